"""Schedules made of two others: ``+``, ``|``, ``&``, `then` and `switch`."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, final

from retrykit._internal.binary_search import first_where
from retrykit._internal.frozen import Frozen
from retrykit.schedules._base import Bounds, Schedule, as_operand
from retrykit.schedules._randomness import MAX_DELAY, Random
from retrykit.schedules._transforms import Derived

__all__ = ["Intersection", "Sum", "Switch", "Then", "Union"]


class _Composition(Schedule):
    """Two schedules combined by an operator, delay by delay."""

    __slots__ = ("left", "right")
    needs_parentheses: ClassVar[bool] = True
    symbol: ClassVar[str]
    left: Schedule
    right: Schedule

    @abstractmethod
    def _combined(self, left: float | None, right: float | None, /) -> float | None: ...

    def delay(
        self, retry: int, previous: float | None, random: Random, /
    ) -> float | None:
        return self._combined(
            self.left.delay(retry, previous, random),
            self.right.delay(retry, previous, random),
        )

    def bounds(self, retry: int, /) -> Bounds | None:
        left = self.left.bounds(retry) or (None, None)
        right = self.right.bounds(retry) or (None, None)
        low, high = self._combined(left[0], right[0]), self._combined(left[1], right[1])
        return None if low is None or high is None else (low, high)

    def __repr__(self) -> str:
        chained = type(self.left) is type(self)
        left = repr(self.left) if chained else as_operand(self.left)
        return f"{left} {self.symbol} {as_operand(self.right)}"


def _while_both(
    combine: Callable[[float, float], float], left: float | None, right: float | None
) -> float | None:
    return None if left is None or right is None else combine(left, right)


@final
class Sum(_Composition):
    """The sum of both delays, while both continue: ``+``."""

    __slots__ = ()
    kind: ClassVar[str] = "sum"
    symbol: ClassVar[str] = "+"

    def _combined(self, left: float | None, right: float | None, /) -> float | None:
        return _while_both(lambda a, b: min(a + b, MAX_DELAY), left, right)


@final
class Intersection(_Composition):
    """The longer delay, while both continue: ``&``."""

    __slots__ = ()
    kind: ClassVar[str] = "intersection"
    symbol: ClassVar[str] = "&"

    def _combined(self, left: float | None, right: float | None, /) -> float | None:
        return _while_both(max, left, right)


@final
class Union(_Composition):
    """The shorter delay, while either continues: ``|``."""

    __slots__ = ()
    kind: ClassVar[str] = "union"
    symbol: ClassVar[str] = "|"

    def _combined(self, left: float | None, right: float | None, /) -> float | None:
        return min((x for x in (left, right) if x is not None), default=None)


@final
class Then(Derived):
    """One schedule after the end of another."""

    __slots__ = ("_length", "other")
    kind: ClassVar[str] = "then"
    other: Schedule
    _length: int | None

    def __init__(self, of: Schedule, other: Schedule) -> None:
        Frozen.__init__(self, of, other)
        # Number of delays of the first schedule, once known. At worst, a thread
        # repeats the work of another.
        object.__setattr__(self, "_length", None)

    def delay(
        self, retry: int, previous: float | None, random: Random, /
    ) -> float | None:
        if self._length is None or retry <= self._length:
            delay = self.of.delay(retry, previous, random)
            if delay is not None:
                return delay
        later = self.later(retry)
        return self.other.delay(later, previous if later > 1 else None, random)

    def bounds(self, retry: int, /) -> Bounds | None:
        if self._length is None or retry <= self._length:
            bounds = self.of.bounds(retry)
            if bounds is not None:
                return bounds
        return self.other.bounds(self.later(retry))

    def later(self, retry: int, /) -> int:
        """Return the number that a retry has in the other schedule."""
        if self._length is None:
            after = first_where(lambda n: self.of.bounds(n) is None, 1, retry + 1)
            object.__setattr__(self, "_length", after - 1)
        return retry - (self._length or 0)


@final
class Switch(Derived):
    """Another schedule from a certain retry on."""

    __slots__ = ("after", "to")
    kind: ClassVar[str] = "switch"
    after: int
    to: Schedule

    def delay(
        self, retry: int, previous: float | None, random: Random, /
    ) -> float | None:
        part = self._part(retry)
        return None if part is None else part.delay(retry, previous, random)

    def bounds(self, retry: int, /) -> Bounds | None:
        part = self._part(retry)
        return None if part is None else part.bounds(retry)

    def _part(self, retry: int) -> Schedule | None:
        """Return the schedule of a retry; None if the first one ended too early."""
        if retry <= self.after:
            return self.of
        ended = self.after > 0 and self.of.bounds(self.after) is None
        return None if ended else self.to

    def _arguments(self) -> str:
        return f"after={self.after!r}, to={self.to!r}"
