"""The values behind the schedules that exist by name.

What their numbers may be is checked in `retrykit.schedules`, where they are
made; here is what follows from them.
"""

import math
from typing import ClassVar, final

from retrykit.algebra import Bounds, Schedule
from retrykit.jitter import LONGEST, Draws, Random, before, between

__all__ = ["Constant", "Decorrelated", "Exponential", "Fibonacci", "Fixed"]
__all__ += ["LONGEST_INTERVAL", "GoogleInterval", "Linear", "PollyInterval"]
__all__ += ["Polynomial"]

LONGEST_INTERVAL = (2**31 - 1) / 1000
"""The longest interval of `GoogleInterval`, in seconds.

The original keeps milliseconds in 32 bits.
"""


class _Formula(Schedule):
    """A schedule that is built from numbers, and prints as its constructor."""

    __slots__ = ()

    def __repr__(self) -> str:
        first, *rest = self.parts
        named = (f", {name}={getattr(self, name)!r}" for name in rest)
        return f"{self.kind}({getattr(self, first)!r}{''.join(named)})"


class Fixed(_Formula):
    """A schedule without chance: one delay for each retry."""

    __slots__ = ()

    def bounds(self, retry: int, /) -> Bounds | None:
        delay = self.delay(retry, None, _NO_CHANCE)
        return None if delay is None else (delay, delay)


_NO_CHANCE: Random = Draws(0, 0)


@final
class Constant(Fixed):
    """The same delay each time."""

    __slots__ = ("wait",)
    kind: ClassVar[str] = "constant"
    wait: float

    def delay(self, _retry: int, _previous: float | None, _random: Random, /) -> float:
        return self.wait


@final
class Linear(Fixed):
    """Multiples of one step."""

    __slots__ = ("step",)
    kind: ClassVar[str] = "linear"
    step: float

    def delay(self, retry: int, _previous: float | None, _random: Random, /) -> float:
        return min(self.step * retry, LONGEST)


@final
class Exponential(Fixed):
    """Powers of one factor."""

    __slots__ = ("factor", "first")
    kind: ClassVar[str] = "exponential"
    first: float
    factor: float

    def delay(self, retry: int, _previous: float | None, _random: Random, /) -> float:
        return _product(self.first, self.factor, retry - 1)


@final
class Polynomial(Fixed):
    """One power of the number of the retry."""

    __slots__ = ("exponent", "first")
    kind: ClassVar[str] = "polynomial"
    exponent: float
    first: float

    def delay(self, retry: int, _previous: float | None, _random: Random, /) -> float:
        return _product(self.first, float(retry), self.exponent)


def _product(first: float, base: float, exponent: float) -> float:
    """Return ``first * base ** exponent``, or the largest float if less."""
    try:
        # Zero times the largest float is zero, and times infinity no number.
        product = first * math.pow(base, exponent)
    except OverflowError:
        return first and LONGEST
    return product if product < LONGEST else LONGEST


@final
class Fibonacci(Fixed):
    """The numbers of Fibonacci."""

    __slots__ = ("first",)
    kind: ClassVar[str] = "fibonacci"
    first: float

    def delay(self, retry: int, _previous: float | None, _random: Random, /) -> float:
        delay, following = 1, 1
        # Beyond the 1476th there is no float for them.
        for _ in range(min(retry, 1476) - 1):
            delay, following = following, delay + following
        return min(self.first * delay, LONGEST)


@final
class Decorrelated(_Formula):
    """A random walk upwards from its shortest delay."""

    __slots__ = ("factor", "first")
    kind: ClassVar[str] = "decorrelated"
    first: float
    factor: float

    def delay(
        self, retry: int, previous: float | None, random: Random, /
    ) -> float | None:
        low, high = self.bounds(retry)
        start = low if previous is None else max(previous, low)
        return between(low, min(start * self.factor, high), random)

    def bounds(self, retry: int, /) -> Bounds:
        return self.first, _product(self.first, self.factor, retry)

    def without_jitter(self) -> Schedule:
        return Exponential(self.first, self.factor)


@final
class PollyInterval(_Formula):
    """The waits between times, of which one is drawn in each step of a growth."""

    __slots__ = ("median_first_retry_delay",)
    kind: ClassVar[str] = "polly_interval"
    median_first_retry_delay: float

    def delay(
        self, retry: int, _previous: float | None, random: Random, /
    ) -> float | None:
        # The chance of the retry before says when it was: no state is kept.
        last = before(random).random() if retry > 1 else 0.0
        return self._wait(retry, last, random.random())

    def bounds(self, retry: int, /) -> Bounds:
        return 0.0, self._wait(retry, 0.0, 1.0)

    def without_jitter(self) -> Schedule:
        # The medians of its times are near 1, 2, 4, 8, and these their differences.
        first = self.median_first_retry_delay
        return Constant(first).switch(after=1, to=Exponential(first / 2, 2.0))

    def _wait(self, retry: int, last: float, drawn: float) -> float:
        # In units of this step, since the powers of late ones overflow.
        at = 2**drawn * math.tanh(2 * math.sqrt(retry - 1 + drawn))
        was = (
            2**last / 2 * math.tanh(2 * math.sqrt(retry - 2 + last))
            if retry > 1
            else 0.0
        )
        step = _product(self.median_first_retry_delay / 1.4, 2.0, retry - 1)
        # Rounding can make what is no time at all a hair less than that.
        return min(max(at - was, 0.0) * step, LONGEST)


@final
class GoogleInterval(_Formula):
    """An interval kept in whole milliseconds, with its own jitter."""

    __slots__ = (
        "initial_interval",
        "max_interval",
        "multiplier",
        "randomization_factor",
    )
    kind: ClassVar[str] = "google_interval"
    initial_interval: float
    randomization_factor: float
    multiplier: float
    max_interval: float

    def delay(
        self, retry: int, _previous: float | None, random: Random, /
    ) -> float | None:
        interval = self._interval(retry)
        low, high = self._range(interval)
        delta = self.randomization_factor * interval
        drawn = int(interval - delta + random.random() * (2 * delta + 1))
        # Rounding can carry the sum to the next whole number.
        return min(max(drawn, low), high) / 1000

    def bounds(self, retry: int, /) -> Bounds | None:
        interval = self._interval(retry)
        low, high = self._range(interval)
        return low / 1000, high / 1000

    def without_jitter(self) -> Schedule:
        same: Schedule = self.replaced(randomization_factor=0.0)
        return same

    def _interval(self, retry: int) -> int:
        interval, maximum = (
            round(self.initial_interval * 1000),
            round(self.max_interval * 1000),
        )
        for _ in range(retry - 1):
            if interval >= maximum / self.multiplier:
                return maximum
            before, interval = interval, int(interval * self.multiplier)
            if interval == before:
                break
        return interval

    def _range(self, interval: int) -> tuple[int, int]:
        delta = self.randomization_factor * interval
        # The draw ends below interval + delta + 1, and is cut to a whole one.
        return int(interval - delta), math.ceil(interval + delta + 1) - 1
