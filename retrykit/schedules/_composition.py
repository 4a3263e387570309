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
    """The sum of the two delays, while both schedules continue: ``+``."""

    __slots__ = ()
    kind: ClassVar[str] = "sum"
    symbol: ClassVar[str] = "+"

    def _combined(self, left: float | None, right: float | None, /) -> float | None:
        return _while_both(lambda a, b: min(a + b, MAX_DELAY), left, right)


@final
class Intersection(_Composition):
    """The longer of the two delays, while both schedules continue: ``&``."""

    __slots__ = ()
    kind: ClassVar[str] = "intersection"
    symbol: ClassVar[str] = "&"

    def _combined(self, left: float | None, right: float | None, /) -> float | None:
        return _while_both(max, left, right)


@final
class Union(_Composition):
    """The shorter of the two delays, while either schedule continues: ``|``."""

    __slots__ = ()
    kind: ClassVar[str] = "union"
    symbol: ClassVar[str] = "|"

    def _combined(self, left: float | None, right: float | None, /) -> float | None:
        return min((x for x in (left, right) if x is not None), default=None)


@final
class Then(Derived):
    """One schedule after the end of another."""

    __slots__ = ("_known", "other")
    kind: ClassVar[str] = "then"
    other: Schedule
    _known: tuple[int, bool]

    def __init__(self, of: Schedule, other: Schedule) -> None:
        Frozen.__init__(self, of, other)
        # Number of delays that the first schedule is known to have, and whether there
        # are no more. Replaced as one tuple: at worst, a thread repeats the work of
        # another.
        object.__setattr__(self, "_known", (0, False))

    def delay(
        self, retry: int, previous: float | None, random: Random, /
    ) -> float | None:
        # Its bounds tell whether the first schedule has ended: its delay would draw
        # numbers, also after its end, that are the other's.
        number, ended = self._known
        if retry <= number or (not ended and self._first_bounds(retry) is not None):
            return self.of.delay(retry, previous, random)
        later = self.later(retry)
        return self.other.delay(later, previous if later > 1 else None, random)

    def bounds(self, retry: int, /) -> Bounds | None:
        bounds = self._first_bounds(retry)
        return self.other.bounds(self.later(retry)) if bounds is None else bounds

    def later(self, retry: int, /) -> int:
        """Return a retry's number in the other schedule, after the end of the first."""
        number, ended = self._known
        if not ended:
            after = first_where(lambda n: self.of.bounds(n) is None, number + 1, retry)
            number = after - 1
            object.__setattr__(self, "_known", (number, True))
        return retry - number

    def _first_bounds(self, retry: int) -> Bounds | None:
        """Return the first schedule's bounds; None if that has ended."""
        number, ended = self._known
        if ended and retry > number:
            return None
        bounds = self.of.bounds(retry)
        if bounds is not None and retry > number:
            object.__setattr__(self, "_known", (retry, False))
        return bounds


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
        """Return the schedule of a retry.

        None for a retry after the switch, if the first schedule ended before that.
        """
        if retry <= self.after:
            return self.of
        ended = self.after > 0 and self.of.bounds(self.after) is None
        return None if ended else self.to

    def _arguments(self) -> str:
        return f"after={self.after!r}, to={self.to!r}"
