"""The values that the algebra of schedules builds.

Each is written beside its expression: ``repr`` gives the expression back.
They are reached through the methods and operators of `Schedule`. What rounding
makes of a delay is public, for those who follow a delay without a schedule.
"""

import math
from abc import abstractmethod
from bisect import bisect_left
from typing import ClassVar, final

from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting
from retrykit.schedules.base import Bounds, Schedule, as_operand, iter_parts
from retrykit.schedules.randomness import MAX_DELAY, Random, uniform_between

__all__ = ["round_down_to"]

# How many delays are added up at the most to answer one question, divided by the
# number of schedules that each delay is asked of.
_MAX_STEPS = 60_000


def round_down_to(delay: float, unit: float) -> float:
    """Return what is left of a delay in whole times a unit.

    >>> round_down_to(2.9, 1.0), round_down_to(0.3, 0.1) == 3 * 0.1
    (2.0, True)

    Args:
        delay: Seconds, >= 0.
        unit: Seconds, > 0.
    """
    steps = delay / unit
    # Floats so large have no fractions of the unit left to drop.
    if steps > 2**53:
        return delay
    # 0.3 / 0.1 is a hair below 3: what is that near to a step is on it.
    nearest = round(steps)
    on_it = math.isclose(steps, nearest, rel_tol=1e-15)
    return min((nearest if on_it else math.floor(steps)) * unit, MAX_DELAY)


class _Derived(Schedule):
    """A schedule made of one other by a method of that name."""

    __slots__ = ("of",)
    of: Schedule

    def __repr__(self) -> str:
        return f"{as_operand(self.of)}.{self.kind}({self._arguments()})"

    def _arguments(self) -> str:
        _, *own = self.field_names
        return ", ".join(repr(getattr(self, name)) for name in own)


class _Transform(_Derived):
    """Each delay changed on its own, longer ones staying the longer."""

    __slots__ = ()

    @abstractmethod
    def _map(self, delay: float, /) -> float: ...

    def delay(
        self, retry: int, previous: float | None, random: Random, /
    ) -> float | None:
        delay = self.of.delay(retry, previous, random)
        return None if delay is None else self._map(delay)

    def bounds(self, retry: int, /) -> Bounds | None:
        bounds = self.of.bounds(retry)
        return bounds and (self._map(bounds[0]), self._map(bounds[1]))


@final
class Cap(_Transform):
    __slots__ = ("limit",)
    kind: ClassVar[str] = "cap"
    limit: float

    def _map(self, delay: float, /) -> float:
        return delay if delay < self.limit else self.limit


@final
class AtLeast(_Transform):
    __slots__ = ("limit",)
    kind: ClassVar[str] = "at_least"
    limit: float

    def _map(self, delay: float, /) -> float:
        return delay if delay > self.limit else self.limit


@final
class RoundDown(_Transform):
    __slots__ = ("unit",)
    kind: ClassVar[str] = "round_down"
    unit: float

    def _map(self, delay: float, /) -> float:
        return round_down_to(delay, self.unit)


@final
class Scale(_Transform):
    __slots__ = ("factor",)
    kind: ClassVar[str] = "scale"
    needs_parentheses: ClassVar[bool] = True
    factor: float

    def _map(self, delay: float, /) -> float:
        return min(delay * self.factor, MAX_DELAY)

    def __repr__(self) -> str:
        return f"{as_operand(self.of)} * {self.factor!r}"


class _RandomRange(_Derived):
    """Each delay spread over a range that grows with it.

    The range is all that a kind of jitter is, so what is drawn and what is promised
    are one formula.

    Source:
        Full, equal and decorrelated jitter: M. Brooker, "Exponential Backoff And
        Jitter", AWS Architecture Blog, 2015. Proportional jitter:
        `ExponentialBackOff`, Google HTTP Client Library for Java.
    """

    __slots__ = ()

    @abstractmethod
    def _spread(self, delay: float, /) -> Bounds: ...

    def delay(
        self, retry: int, previous: float | None, random: Random, /
    ) -> float | None:
        delay = self.of.delay(retry, previous, random)
        if delay is None:
            return None
        low, high = self._spread(delay)
        return uniform_between(low, high, random)

    def bounds(self, retry: int, /) -> Bounds | None:
        bounds = self.of.bounds(retry)
        return bounds and (self._spread(bounds[0])[0], self._spread(bounds[1])[1])

    def without_jitter(self) -> Schedule:
        return self.of.without_jitter()


@final
class FullJitter(_RandomRange):
    __slots__ = ()
    kind: ClassVar[str] = "full_jitter"

    def _spread(self, delay: float, /) -> Bounds:
        return 0.0, delay


@final
class EqualJitter(_RandomRange):
    __slots__ = ()
    kind: ClassVar[str] = "equal_jitter"

    def _spread(self, delay: float, /) -> Bounds:
        return delay / 2, delay


@final
class Jitter(_RandomRange):
    __slots__ = ("factor",)
    kind: ClassVar[str] = "jitter"
    factor: float

    def _spread(self, delay: float, /) -> Bounds:
        high = delay * (1 + self.factor)
        return delay * (1 - self.factor), high if high < MAX_DELAY else MAX_DELAY


@final
class Take(_Derived):
    __slots__ = ("retries",)
    kind: ClassVar[str] = "take"
    retries: int

    def delay(
        self, retry: int, previous: float | None, random: Random, /
    ) -> float | None:
        if retry > self.retries:
            return None
        return self.of.delay(retry, previous, random)

    def bounds(self, retry: int, /) -> Bounds | None:
        return self.of.bounds(retry) if retry <= self.retries else None


@final
class Within(_Derived):
    __slots__ = ("_known", "total")
    kind: ClassVar[str] = "within"
    total: float
    _known: tuple[int, float, bool]

    def __init__(self, of: Schedule, total: float) -> None:
        Frozen.__init__(self, of, total)
        # How many delays are known to fit, their sum, and whether that is all.
        # Replaced as one: a thread that comes late only finds out again.
        object.__setattr__(self, "_known", (0, 0.0, False))

    def delay(
        self, retry: int, previous: float | None, random: Random, /
    ) -> float | None:
        if retry > self._known[0] and self.bounds(retry) is None:
            return None
        return self.of.delay(retry, previous, random)

    def bounds(self, retry: int, /) -> Bounds | None:
        number, spent, ended = self._known
        if retry <= number:
            return self.of.bounds(retry)
        # Rounding of the sum must not lose a delay that fits to the last bit.
        allowed = min(self.total * (1 + 1e-12), MAX_DELAY)
        last, bounds = min(retry, number + self._ahead(retry)), None
        while number < last and not ended:
            bounds = self.of.bounds(number + 1)
            ended = bounds is None or spent + bounds[1] > allowed
            if bounds is not None and not ended:
                number, spent = number + 1, spent + bounds[1]
        object.__setattr__(self, "_known", (number, spent, ended))
        if ended:
            return None
        if last < retry:
            rule = f"at most {last} where .within() adds up the delays before it"
            raise invalid_setting(
                "retry", rule, retry, "limit the time with max_elapsed"
            )
        return bounds

    def _ahead(self, retry: int) -> int:
        """Return how many delays may be added up to answer for a retry."""
        if retry == self._known[0] + 1:
            return 1
        return max(_MAX_STEPS // sum(1 for _ in iter_parts(self)), 1)


@final
class Then(_Derived):
    __slots__ = ("_length", "other")
    kind: ClassVar[str] = "then"
    other: Schedule
    _length: int | None

    def __init__(self, of: Schedule, other: Schedule) -> None:
        Frozen.__init__(self, of, other)
        # How many delays the first one has, once it is known. A thread that
        # comes late only finds out again.
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
        """Return which retry of the other schedule a retry is."""
        if self._length is None:
            # Whether it has ended is false up to its last retry, and true from there.
            ends = range(1, retry + 1)
            length = bisect_left(ends, 1, key=lambda n: self.of.bounds(n) is None)
            object.__setattr__(self, "_length", length)
        return retry - (self._length or 0)


@final
class Switch(_Derived):
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
        """Return the schedule whose turn it is; None if the first ended too soon."""
        if retry <= self.after:
            return self.of
        ended = self.after > 0 and self.of.bounds(self.after) is None
        return None if ended else self.to

    def _arguments(self) -> str:
        return f"after={self.after!r}, to={self.to!r}"
