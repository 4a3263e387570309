"""The values that the algebra of schedules builds.

Each is written beside its expression: ``repr`` gives the expression back.
They are reached through the methods and operators of `Schedule`. What rounding
makes of a delay is public, for those who follow a delay without a schedule.
"""

import math
from abc import abstractmethod
from typing import ClassVar, final

from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting
from retrykit.schedules.base import Bounds, Schedule, as_operand, iter_parts
from retrykit.schedules.randomness import MAX_DELAY, Random, uniform_between

__all__ = ["AtLeast", "Cap", "Derived", "EqualJitter", "FullJitter", "Jitter"]
__all__ += ["RoundDown", "Scale", "Take", "Within", "round_down_to"]

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


class Derived(Schedule):
    """A schedule made of one other by a method of that name."""

    __slots__ = ("of",)
    of: Schedule

    def __repr__(self) -> str:
        return f"{as_operand(self.of)}.{self.kind}({self._arguments()})"

    def _arguments(self) -> str:
        _, *own = self.field_names
        return ", ".join(repr(getattr(self, name)) for name in own)


class _Transform(Derived):
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
    """No delay longer than a limit."""

    __slots__ = ("limit",)
    kind: ClassVar[str] = "cap"
    limit: float

    def _map(self, delay: float, /) -> float:
        return delay if delay < self.limit else self.limit


@final
class AtLeast(_Transform):
    """No delay shorter than a limit."""

    __slots__ = ("limit",)
    kind: ClassVar[str] = "at_least"
    limit: float

    def _map(self, delay: float, /) -> float:
        return delay if delay > self.limit else self.limit


@final
class RoundDown(_Transform):
    """Delays rounded down to multiples of a unit."""

    __slots__ = ("unit",)
    kind: ClassVar[str] = "round_down"
    unit: float

    def _map(self, delay: float, /) -> float:
        return round_down_to(delay, self.unit)


@final
class Scale(_Transform):
    """Delays multiplied by a factor."""

    __slots__ = ("factor",)
    kind: ClassVar[str] = "scale"
    needs_parentheses: ClassVar[bool] = True
    factor: float

    def _map(self, delay: float, /) -> float:
        return min(delay * self.factor, MAX_DELAY)

    def __repr__(self) -> str:
        return f"{as_operand(self.of)} * {self.factor!r}"


class _RandomRange(Derived):
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
    """Delays drawn between 0 and the delay."""

    __slots__ = ()
    kind: ClassVar[str] = "full_jitter"

    def _spread(self, delay: float, /) -> Bounds:
        return 0.0, delay


@final
class EqualJitter(_RandomRange):
    """Delays drawn between half the delay and the delay."""

    __slots__ = ()
    kind: ClassVar[str] = "equal_jitter"

    def _spread(self, delay: float, /) -> Bounds:
        return delay / 2, delay


@final
class Jitter(_RandomRange):
    """Delays drawn within a proportion of the delay, above and below."""

    __slots__ = ("factor",)
    kind: ClassVar[str] = "jitter"
    factor: float

    def _spread(self, delay: float, /) -> Bounds:
        high = delay * (1 + self.factor)
        return delay * (1 - self.factor), high if high < MAX_DELAY else MAX_DELAY


@final
class Take(Derived):
    """The first delays of a schedule, by number."""

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
class Within(Derived):
    """The first delays of a schedule, by their longest possible sum."""

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
