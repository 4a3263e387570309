"""Two schedules asked side by side: the values of ``+``, ``|`` and ``&``."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, final

from retrykit.schedules.base import Bounds, Schedule, operand
from retrykit.schedules.randomness import LONGEST, Random

__all__: list[str] = []


class _Joined(Schedule):
    """Two schedules asked side by side, joined by an operator."""

    __slots__ = ("left", "right")
    compound: ClassVar[bool] = True
    symbol: ClassVar[str]
    left: Schedule
    right: Schedule

    @abstractmethod
    def _join(self, left: float | None, right: float | None, /) -> float | None: ...

    def delay(
        self, retry: int, previous: float | None, random: Random, /
    ) -> float | None:
        return self._join(
            self.left.delay(retry, previous, random),
            self.right.delay(retry, previous, random),
        )

    def bounds(self, retry: int, /) -> Bounds | None:
        left = self.left.bounds(retry) or (None, None)
        right = self.right.bounds(retry) or (None, None)
        low, high = self._join(left[0], right[0]), self._join(left[1], right[1])
        return None if low is None or high is None else (low, high)

    def __repr__(self) -> str:
        chained = type(self.left) is type(self)
        left = repr(self.left) if chained else operand(self.left)
        return f"{left} {self.symbol} {operand(self.right)}"


def _while_both(
    join: Callable[[float, float], float], left: float | None, right: float | None
) -> float | None:
    return None if left is None or right is None else join(left, right)


@final
class Plus(_Joined):
    __slots__ = ()
    kind: ClassVar[str] = "plus"
    symbol: ClassVar[str] = "+"

    def _join(self, left: float | None, right: float | None, /) -> float | None:
        return _while_both(lambda a, b: min(a + b, LONGEST), left, right)


@final
class Both(_Joined):
    __slots__ = ()
    kind: ClassVar[str] = "both"
    symbol: ClassVar[str] = "&"

    def _join(self, left: float | None, right: float | None, /) -> float | None:
        return _while_both(max, left, right)


@final
class Either(_Joined):
    __slots__ = ()
    kind: ClassVar[str] = "either"
    symbol: ClassVar[str] = "|"

    def _join(self, left: float | None, right: float | None, /) -> float | None:
        return min((x for x in (left, right) if x is not None), default=None)
