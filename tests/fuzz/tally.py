"""The results of inputs: how many were read or rejected, and each fault once."""

from dataclasses import dataclass, field, replace

__all__ = ["Fault", "Tally"]


@dataclass(frozen=True)
class Fault:
    """A wrong outcome, with the shortest input that causes it.

    Attributes:
        number: The number of the input.
        size: The length of its repr. Characters.
        shown: The repr of the input, truncated.
        error: The error, in one line.
        times: How many inputs caused it.
    """

    number: int
    size: int
    shown: str
    error: str
    times: int = 1


@dataclass
class Tally:
    """The results of the inputs of one target.

    Attributes:
        inputs: The number of inputs.
        read: How many were read and used.
        rejected: How many were rejected by a documented error.
        slowest: The longest time of an input, in seconds of CPU time.
        faults: The faults, by the type and place of their error.
    """

    inputs: int = 0
    read: int = 0
    rejected: int = 0
    slowest: float = 0.0
    faults: dict[str, Fault] = field(default_factory=dict)

    @property
    def wrong(self):
        """How many had another outcome, or exceeded the time limit."""
        return self.inputs - self.read - self.rejected

    def add(self, other):
        """Add the results of other inputs of the same target."""
        self.inputs += other.inputs
        self.read += other.read
        self.rejected += other.rejected
        self.slowest = max(self.slowest, other.slowest)
        for cause, fault in other.faults.items():
            self.add_fault(cause, fault)

    def add_fault(self, cause, fault):
        """Add a fault, and keep the shorter input of two with the same cause."""
        if cause in self.faults:
            known = self.faults[cause]
            shorter = min(known, fault, key=lambda each: (each.size, each.number))
            fault = replace(shorter, times=known.times + fault.times)
        self.faults[cause] = fault
