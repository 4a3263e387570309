"""States of a circuit breaker, their changes, and counts of calls."""

from itertools import count
from typing import Final, Literal, NamedTuple, final

from retrykit.limits._base import Limit
from retrykit.limits._windows import Counts, TimeWindow, Window

__all__ = ["CircuitChange", "CircuitMetrics", "CircuitState", "Closed", "HalfOpen"]
__all__ += ["Isolated", "Open", "Opening", "Standing", "State", "is_valid"]

CircuitState = Literal["closed", "open", "half-open", "isolated"]
"""The name of a state."""


class CircuitChange(NamedTuple):
    """The change of a breaker from one state to another.

    Attributes:
        breaker: The `CircuitBreaker`.
        old: The name of the previous state.
        new: The name of the new state.
        reason: What made it change, in words.
        generation: The number of the new state. Several threads may notify an observer
            out of order: this number tells the order of the changes.
        retry_in: How long the breaker stays open, in seconds; None if the new state is
            not open, or has ended already.
    """

    breaker: Limit
    old: CircuitState
    new: CircuitState
    reason: str
    generation: int
    retry_in: float | None


class CircuitMetrics(NamedTuple):
    """Counts of the calls of a breaker.

    The first five cover the window of a closed breaker, the probes of a half-open one,
    and otherwise the calls that had been counted when it opened or was isolated. The
    last four count since the breaker was made, and include reports that came too late
    to matter.

    Attributes:
        calls: Number of calls that succeeded or failed.
        failures: Number of calls that failed.
        slow_calls: Number of calls that took longer than `slow_after`.
        failure_rate: Failures per call, 0 to 1; None without a call.
        slow_rate: Slow calls per call, 0 to 1; None without a call.
        total_succeeded: Number of calls that succeeded.
        total_failed: Number of calls that failed.
        total_ignored: Number of calls that were reported as ignored, such as cancelled
            calls, and calls whose error does not count.
        total_refused: Number of calls that were refused.
    """

    calls: int
    failures: int
    slow_calls: int
    failure_rate: float | None
    slow_rate: float | None
    total_succeeded: int
    total_failed: int
    total_ignored: int
    total_refused: int


class Standing(NamedTuple):
    """The state of a breaker, and its opening unless other processes decided on it.

    Attributes:
        generation: The number of its state.
        name: The name of its state.
        opened: How long ago it opened, in seconds; None if it is not open, or if other
            processes decided on its opening.
        left: How much longer it stays open, in seconds; 0 if *opened* is None.
    """

    generation: int
    name: CircuitState
    opened: float | None
    left: float


class Opening(NamedTuple):
    """One of several openings in a row, with no recovery between them.

    Attributes:
        number: Its number, from 1; 0 if other processes decided on it.
        seed: The seed of the delays of all openings in the row.
        delay: How long it lasts, in seconds.
    """

    number: int
    seed: int
    delay: float


@final
class Successes:
    """Counts successes, each in one step, so that threads need no lock.

    Attributes:
        steps: A counter that each success advances by one.
    """

    __slots__ = ("_readings", "steps")

    def __init__(self) -> None:
        self.steps: count[int] = count()
        self._readings = 0

    def total(self) -> int:
        """Return the number of successes, with the lock held."""
        # Each reading is a step as well. It is counted first, as an interrupt may come
        # after the step, or a signal handler may read it then.
        self._readings = readings = self._readings + 1
        return next(self.steps) + 1 - readings


# A state is replaced as a whole, by one assignment: whatever interrupts a change, the
# breaker is in the old state or in the new one.
@final
class Closed:
    """A breaker that lets all calls through, and counts them.

    Attributes:
        generation: The number of the state.
        window: The recent calls.
        failures: The number of failures in a row; a success since the last `catch_up`
            has not ended the row yet.
        quiet: Whether a success, in the current slot of the window if it has slots,
            cannot change the state. Then it needs only a step of *steps*.
        steps: The counter of the breaker's successes.
        timed: The window, if it covers a time; otherwise None.
    """

    __slots__ = (
        "_seen",
        "_successes",
        "failures",
        "generation",
        "quiet",
        "steps",
        "timed",
        "window",
    )
    name: Final = "closed"

    def __init__(self, generation: int, window: Window, successes: Successes) -> None:
        self.generation: int = generation
        self.window: Window = window
        self.timed: TimeWindow | None = window if type(window) is TimeWindow else None
        self.failures: int = 0
        self.quiet: bool = False
        self.steps: count[int] = successes.steps
        self._successes, self._seen = successes, 0

    def catch_up(self) -> None:
        """Count the successes that needed only a step; the next success needs more.

        Until the next call is counted, it is unknown whether a success can change the
        state.
        """
        self.quiet = False
        successes = self._successes.total()
        self.window.catch_up(successes)
        if successes != self._seen:
            self._seen = successes
            self.failures = 0

    def count(self, now: float) -> Counts:
        """Return the counts of the calls in the window."""
        self.catch_up()
        return self.window.count(now)


@final
class Open:
    """A breaker that refuses calls for a time.

    Attributes:
        generation: The number of the state.
        since: When it opened, in seconds of the clock.
        previous: The previous opening in a row; None for the first.
        reason: Why it opened, in words.
    """

    __slots__ = ("_counts", "_found", "generation", "previous", "reason", "since")
    name: Final = "open"

    def __init__(
        self,
        generation: int,
        since: float,
        previous: Opening | None,
        reason: str,
        counts: Counts,
    ) -> None:
        self.generation: int = generation
        self.since: float = since
        self.previous: Opening | None = previous
        self.reason: str = reason
        self._found: dict[str, Opening] = {}
        self._counts = counts

    def opening_or(self, opening: Opening) -> Opening:
        """Set the opening, unless it is set; return the opening that is set then."""
        # One operation, so that threads need no lock.
        return self._found.setdefault("opening", opening)

    @property
    def opening(self) -> Opening | None:
        """The opening; None until its delay is known."""
        return self._found.get("opening")

    def count(self, now: float) -> Counts:  # noqa: ARG002
        """Return the counts of calls when the breaker opened."""
        return self._counts


@final
class HalfOpen:
    """A breaker that lets some calls through, as probes.

    Attributes:
        generation: The number of the state.
        opening: The opening that has just ended.
        granted: When each running probe was let through, in seconds of the clock, keyed
            by the id of its lease, which is unique as long as the lease exists.
        good: Number of probes that succeeded and were not slow.
        bad: Number of probes that failed or were slow.
        failures: Number of probes that failed.
        slow: Number of probes that were slow.
    """

    __slots__ = ("bad", "failures", "generation", "good", "granted", "opening", "slow")
    name: Final = "half-open"

    def __init__(self, generation: int, opening: Opening) -> None:
        self.generation: int = generation
        self.opening: Opening = opening
        self.granted: dict[int, float] = {}
        self.good: int = 0
        self.bad: int = 0
        self.failures: int = 0
        self.slow: int = 0

    def add(self, *, failed: bool, slow: bool) -> None:
        """Count a probe that ended."""
        if failed:
            self.failures += 1
        if slow:
            self.slow += 1
        if failed or slow:
            self.bad += 1
        else:
            self.good += 1

    def drop_expired(self, now: float, timeout: float) -> None:
        """Forget the probes that take too long."""
        # A copy, since a garbage collection may drop a lease meanwhile.
        for lease, granted in self.granted.copy().items():
            if not is_valid(granted, now, timeout):
                self.granted.pop(lease, None)

    def count(self, now: float) -> Counts:  # noqa: ARG002
        """Return the counts of the probes that ended."""
        return self.good + self.bad, self.failures, self.slow


def is_valid(granted: float, now: float, timeout: float) -> bool:
    """Return whether a probe has not expired."""
    # Time goes back if the clock was replaced.
    return 0 <= now - granted < timeout


@final
class Isolated:
    """A breaker that refuses calls until somebody closes it.

    Attributes:
        generation: The number of the state.
    """

    __slots__ = ("_counts", "generation")
    name: Final = "isolated"

    def __init__(self, generation: int, counts: Counts) -> None:
        self.generation: int = generation
        self._counts = counts

    def count(self, now: float) -> Counts:  # noqa: ARG002
        """Return the counts of calls when the breaker was isolated."""
        return self._counts


State = Closed | Open | HalfOpen | Isolated
"""The state of a breaker."""
