"""Windows of recent calls: the last few calls, or the calls of the last seconds."""

from collections import deque
from typing import Final, Protocol, final

__all__ = ["CountWindow", "Counts", "TimeWindow", "Window"]


Counts = tuple[int, int, int]
"""The number of calls, of failed calls, and of slow calls."""


class Window(Protocol):
    """Recent calls."""

    def add(self, now: float, failed: bool, slow: bool) -> bool:  # noqa: FBT001
        """Add a call; return False only if no call in the window failed or was slow."""
        ...

    def catch_up(self, successes: int) -> None:
        """Add the successes since the last `catch_up`, from their total.

        If it is interrupted, the next `catch_up` adds all of them.
        """
        ...

    def count(self, now: float) -> Counts:
        """Return the counts of the calls in the window."""
        ...


@final
class CountWindow:
    """The last calls, each kept as a bit, so that no interruption can falsify counts.

    Args:
        size: Number of calls. Count, >= 1.
        seen: The total of successes so far, which the window does not count.
    """

    __slots__ = ("_calls", "_failed", "_mask", "_seen", "_size", "_slow")

    def __init__(self, size: int, seen: int = 0) -> None:
        self._size, self._seen = size, seen
        self._mask = (1 << size) - 1
        self._calls = self._failed = self._slow = 0

    def add(self, now: float, failed: bool, slow: bool) -> bool:  # noqa: ARG002,FBT001
        """Add a call; return False only if no call in the window failed or was slow.

        True may be due to a call that this one has pushed out.
        """
        if self._calls < self._size:
            self._calls += 1
        if not (failed or slow or self._failed or self._slow):
            return False
        self._failed = (self._failed << 1 | failed) & self._mask
        self._slow = (self._slow << 1 | slow) & self._mask
        return True

    def catch_up(self, successes: int) -> None:
        """Add the successes since the last `catch_up`, from their total."""
        # Without a call, after which an interrupt could come.
        added, size = successes - self._seen, self._size
        if added <= 0:
            return
        self._seen, calls = successes, self._calls + added
        self._calls = calls if calls < size else size
        if self._failed or self._slow:
            shift = added if added < size else size
            self._failed = self._failed << shift & self._mask
            self._slow = self._slow << shift & self._mask

    def count(self, now: float) -> Counts:  # noqa: ARG002
        """Return the counts of the calls in the window."""
        return self._calls, self._failed.bit_count(), self._slow.bit_count()


# As in Polly, opossum and nopanic.
_SLOTS: Final = 10


@final
class TimeWindow:
    """The calls of the last seconds, in slots, the last of which is being filled.

    Args:
        seconds: How long calls count, > 0; they may count for one slot less.
        slots: Number of slots.
        seen: The total of successes so far, which the window does not count.

    Attributes:
        width: How long a slot is, in seconds.
        index: The number of the slot that is being filled: the time divided by the
            width, rounded down.
    """

    __slots__ = ("_current", "_past", "_seen", "_slots", "_some", "index", "width")

    def __init__(self, seconds: float, slots: int = _SLOTS, *, seen: int = 0) -> None:
        self.width: float = seconds / slots
        self._seen = seen
        self._slots = deque([[0, 0, 0] for _ in range(slots)], slots)
        self._current = self._slots[-1]
        self._past: Counts = (0, 0, 0)
        self._some = False
        self.index: float = 0.0

    def add(self, now: float, failed: bool, slow: bool) -> bool:  # noqa: FBT001
        """Add a call; return whether any call in the window failed or was slow."""
        if now // self.width != self.index:
            self._turn(now // self.width)
        current = self._current
        current[0] += 1
        if failed or slow:
            current[1] += failed
            current[2] += slow
            self._some = True
        return self._some

    def catch_up(self, successes: int) -> None:
        """Add the successes since the last `catch_up` to the slot being filled."""
        added = successes - self._seen
        if added > 0:
            self._seen = successes
            self._current[0] += added

    def count(self, now: float) -> Counts:
        """Return the counts of the calls in the window."""
        if now // self.width != self.index:
            self._turn(now // self.width)
        (calls, failures, slow), current = self._past, self._current
        return calls + current[0], failures + current[1], slow + current[2]

    def _turn(self, index: float) -> None:
        """Begin a new slot, and drop expired slots.

        Args:
            index: The number of the slot, as in `index`.
        """
        # Time goes back if the clock was replaced: then nothing is dropped.
        for _ in range(int(min(max(index - self.index, 0), len(self._slots)))):
            self._slots.append([0, 0, 0])
        self.index = index
        self._current = self._slots[-1]
        # Summed again, so that no error lasts longer than a window.
        past = [*self._slots][:-1]
        calls, failures, slow = map(sum, zip(*past, strict=True))
        self._past = calls, failures, slow
        self._some = any(self._past[1:]) or any(self._current[1:])
