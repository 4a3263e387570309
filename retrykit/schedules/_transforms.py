"""Schedules derived from another one, by a method of `Schedule` or by ``*``."""

import math
from abc import abstractmethod
from typing import Any, ClassVar, final

from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting
from retrykit.schedules._base import (
    Bounds,
    Schedule,
    as_operand,
    has_user_code,
    is_uniform,
    iter_parts,
)
from retrykit.schedules._randomness import MAX_DELAY, Random, uniform_between

__all__ = ["AtLeast", "Cap", "Derived", "EqualJitter", "FullJitter", "Jitter"]
__all__ += ["RoundDown", "Scale", "Take", "Within", "round_down_to"]

# Maximum number of delays to add up for one retry, divided by the number of parts.
_MAX_STEPS = 60_000


def round_down_to(delay: float, unit: float) -> float:
    """Return a delay rounded down to a multiple of a unit.

    >>> round_down_to(2.9, 1.0), round_down_to(0.3, 0.1) == 3 * 0.1
    (2.0, True)
    """
    steps = delay / unit
    # Such large floats have no fraction of the unit.
    if steps > 2**53:
        return delay
    # 0.3 / 0.1 is just below 3, but means 3.
    nearest = round(steps)
    exact = math.isclose(steps, nearest, rel_tol=1e-15)
    return min((nearest if exact else math.floor(steps)) * unit, MAX_DELAY)


# The number of retries whose ranges are remembered.
_MOST_KNOWN = 256


class Derived(Schedule):
    """A schedule made from another: by ``*``, or by the method named after its kind."""

    __slots__ = ("of",)
    of: Schedule

    def __repr__(self) -> str:
        return f"{as_operand(self.of)}.{self.kind}({self._arguments()})"

    def _arguments(self) -> str:
        _, *own = self._field_names
        return ", ".join(repr(getattr(self, name)) for name in own)


class _Transform(Derived):
    """Each delay changed by a monotonic function."""

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
    """Each delay drawn from a range that grows with the original delay.

    Source:
        Full and equal jitter: M. Brooker, "Exponential Backoff And Jitter", AWS
        Architecture Blog, 2015. Proportional jitter: `ExponentialBackOff`, Google HTTP
        Client Library for Java.
    """

    __slots__ = ("_known",)
    _known: dict[int, Bounds] | None
    """The ranges of some retries; None if another part is random or user code."""

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__(*values, **named)
        fixed = is_uniform(self) and not has_user_code(self)
        object.__setattr__(self, "_known", {} if fixed else None)

    @abstractmethod
    def _spread(self, delay: float, /) -> Bounds: ...

    def delay(
        self, retry: int, previous: float | None, random: Random, /
    ) -> float | None:
        known = self._known
        bounds = known.get(retry) if known is not None else None
        if bounds is None:
            delay = self.of.delay(retry, previous, random)
            if delay is None:
                return None
            bounds = self._spread(delay)
            if known is not None and len(known) < _MOST_KNOWN:
                known[retry] = bounds
        return uniform_between(*bounds, random)

    def bounds(self, retry: int, /) -> Bounds | None:
        bounds = self.of.bounds(retry)
        return bounds and (self._spread(bounds[0])[0], self._spread(bounds[1])[1])

    def without_jitter(self) -> Schedule:
        return self.of.without_jitter()


@final
class FullJitter(_RandomRange):
    """Delays drawn between 0 and the original delay."""

    __slots__ = ()
    kind: ClassVar[str] = "full_jitter"

    def _spread(self, delay: float, /) -> Bounds:
        return 0.0, delay


@final
class EqualJitter(_RandomRange):
    """Delays drawn between half of the original delay and all of it."""

    __slots__ = ()
    kind: ClassVar[str] = "equal_jitter"

    def _spread(self, delay: float, /) -> Bounds:
        return delay / 2, delay


@final
class Jitter(_RandomRange):
    """Original delays made shorter or longer at random, by up to a fraction."""

    __slots__ = ("factor",)
    kind: ClassVar[str] = "jitter"
    factor: float

    def _spread(self, delay: float, /) -> Bounds:
        high = delay * (1 + self.factor)
        return delay * (1 - self.factor), high if high < MAX_DELAY else MAX_DELAY


@final
class Take(Derived):
    """The first delays of a schedule, up to a count."""

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
    """The first delays of a schedule, while their largest sum is within a limit."""

    __slots__ = ("_known", "total")
    kind: ClassVar[str] = "within"
    total: float
    _known: tuple[int, float, bool]

    def __init__(self, of: Schedule, total: float) -> None:
        Frozen.__init__(self, of, total)
        # Number of delays known to fit, their sum, and whether there are no more.
        # Replaced as one tuple: at worst, a thread repeats the work of another.
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
        # The rounded sum may slightly exceed a total that the exact sum fits.
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
            rule = f"at most {last} with .within(), which adds up all earlier delays"
            raise invalid_setting(
                "retry",
                rule,
                retry,
                "limit the time with max_elapsed",
                code="out-of-range",
            )
        return bounds

    def _ahead(self, retry: int) -> int:
        """Return how many more delays may be added up for a retry."""
        if retry == self._known[0] + 1:
            return 1
        return max(_MAX_STEPS // sum(1 for _ in iter_parts(self)), 1)
