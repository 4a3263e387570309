"""Two schedules asked side by side: the values of ``+``, ``|`` and ``&``."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, final

from retrykit.schedules.base import Bounds, Schedule, as_operand
from retrykit.schedules.randomness import MAX_DELAY, Random

__all__: list[str] = []


class _Composition(Schedule):
    """Two schedules asked side by side, joined by an operator."""

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
    join: Callable[[float, float], float], left: float | None, right: float | None
) -> float | None:
    return None if left is None or right is None else join(left, right)


@final
class Sum(_Composition):
    __slots__ = ()
    kind: ClassVar[str] = "sum"
    symbol: ClassVar[str] = "+"

    def _combined(self, left: float | None, right: float | None, /) -> float | None:
        return _while_both(lambda a, b: min(a + b, MAX_DELAY), left, right)


@final
class Intersection(_Composition):
    __slots__ = ()
    kind: ClassVar[str] = "intersection"
    symbol: ClassVar[str] = "&"

    def _combined(self, left: float | None, right: float | None, /) -> float | None:
        return _while_both(max, left, right)


@final
class Union(_Composition):
    __slots__ = ()
    kind: ClassVar[str] = "union"
    symbol: ClassVar[str] = "|"

    def _combined(self, left: float | None, right: float | None, /) -> float | None:
        return min((x for x in (left, right) if x is not None), default=None)
