"""What came of inputs: how many were read and refused, and each fault once."""

from dataclasses import dataclass, field, replace

__all__ = ["Fault", "Tally"]


@dataclass(frozen=True)
class Fault:
    """One wrong outcome, with the shortest input that has it.

    Attributes:
        number: The number of that input.
        size: How long it is, printed. Characters.
        shown: That input, printed and cut.
        error: The error, in a line.
        times: How many inputs had it.
    """

    number: int
    size: int
    shown: str
    error: str
    times: int = 1


@dataclass
class Tally:
    """What came of the inputs of one target.

    Attributes:
        inputs: How many there were.
        read: How many were read, and used.
        refused: How many were refused by a documented error.
        slowest: The longest time that one took. Seconds of the processor.
        faults: The wrong outcomes, by the error and where it was raised.
    """

    inputs: int = 0
    read: int = 0
    refused: int = 0
    slowest: float = 0.0
    faults: dict[str, Fault] = field(default_factory=dict)

    @property
    def wrong(self):
        """How many had another outcome, or took longer than the limit."""
        return self.inputs - self.read - self.refused

    def add(self, other):
        """Add what came of other inputs of the same target."""
        self.inputs += other.inputs
        self.read += other.read
        self.refused += other.refused
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
