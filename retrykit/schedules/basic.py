"""The values behind the schedules that exist by name.

What their numbers may be is checked in `retrykit.schedules`, where they are
made; here is what follows from them.
"""

import math
from functools import cache, lru_cache
from typing import ClassVar, final

from retrykit.schedules.base import Bounds, Schedule
from retrykit.schedules.randomness import (
    MAX_DELAY,
    CallRandom,
    Random,
    previous_draw,
    uniform_between,
)

__all__ = ["Constant", "Decorrelated", "Exponential", "Fibonacci", "Fixed"]
__all__ += ["MAX_INTERVAL", "MAX_INTERVALS", "GoogleInterval", "Linear"]
__all__ += ["PollyInterval", "Polynomial", "google_intervals"]

MAX_INTERVAL = (2**31 - 1) / 1000
"""The longest interval of `GoogleInterval`, in seconds.

The original keeps milliseconds in 32 bits.
"""

MAX_INTERVALS = 1_000
"""The most intervals of a `GoogleInterval` until it no longer grows."""


class _Formula(Schedule):
    """A schedule that is built from numbers, and prints as its constructor."""

    __slots__ = ()

    def __repr__(self) -> str:
        first, *rest = self.field_names
        named = (f", {name}={getattr(self, name)!r}" for name in rest)
        return f"{self.kind}({getattr(self, first)!r}{''.join(named)})"


class Fixed(_Formula):
    """A schedule without chance: one delay for each retry."""

    __slots__ = ()

    def bounds(self, retry: int, /) -> Bounds | None:
        delay = self.delay(retry, None, _NO_CHANCE)
        return None if delay is None else (delay, delay)


_NO_CHANCE: Random = CallRandom(0, 0)


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
        return min(self.step * retry, MAX_DELAY)


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
        return first and MAX_DELAY
    return product if product < MAX_DELAY else MAX_DELAY


@final
class Fibonacci(Fixed):
    """The numbers of Fibonacci."""

    __slots__ = ("first",)
    kind: ClassVar[str] = "fibonacci"
    first: float

    def delay(self, retry: int, _previous: float | None, _random: Random, /) -> float:
        numbers = _fibonacci_numbers()
        return min(self.first * numbers[min(retry, len(numbers)) - 1], MAX_DELAY)


@cache
def _fibonacci_numbers() -> list[float]:
    """Return the numbers of Fibonacci that a float can hold."""
    number, following = 1, 1
    numbers: list[float] = []
    while number <= MAX_DELAY:
        numbers.append(float(number))
        number, following = following, number + following
    return numbers


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
        return uniform_between(low, min(start * self.factor, high), random)

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
        last = previous_draw(random).random() if retry > 1 else 0.0
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
        return min(max(at - was, 0.0) * step, MAX_DELAY)


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

    def interval(self, retry: int) -> int:
        """Return the interval before a retry without jitter, in milliseconds."""
        known = google_intervals(
            self.initial_interval, self.multiplier, self.max_interval
        )
        return known[min(retry, len(known)) - 1]

    def delay(
        self, retry: int, _previous: float | None, random: Random, /
    ) -> float | None:
        interval = self.interval(retry)
        low, high = self._range(interval)
        delta = self.randomization_factor * interval
        drawn = int(interval - delta + random.random() * (2 * delta + 1))
        # Rounding can carry the sum to the next whole number.
        return min(max(drawn, low), high) / 1000

    def bounds(self, retry: int, /) -> Bounds | None:
        interval = self.interval(retry)
        low, high = self._range(interval)
        return low / 1000, high / 1000

    def without_jitter(self) -> Schedule:
        same: Schedule = self.replace(randomization_factor=0.0)
        return same

    def _range(self, interval: int) -> tuple[int, int]:
        delta = self.randomization_factor * interval
        # The draw ends below interval + delta + 1, and is cut to a whole one.
        return int(interval - delta), math.ceil(interval + delta + 1) - 1


@lru_cache
def google_intervals(first: float, multiplier: float, longest: float) -> list[int]:
    """Return the intervals of a `GoogleInterval`, the last of which stays.

    >>> google_intervals(0.5, 1.5, 2.0)
    [500, 750, 1125, 1687, 2000]

    Args:
        first: The first interval, in seconds.
        multiplier: Growth of the interval. Dimensionless, >= 1.
        longest: The bound on the interval, in seconds.

    Returns:
        Milliseconds; at most `MAX_INTERVALS` and one more.
    """
    interval, maximum = round(first * 1000), round(longest * 1000)
    known: list[int] = []
    while interval not in known[-1:] and len(known) <= MAX_INTERVALS:
        known.append(interval)
        over = interval >= maximum / multiplier
        interval = maximum if over else int(interval * multiplier)
    return known
