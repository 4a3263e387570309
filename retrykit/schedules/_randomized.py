"""Endless schedules with random delays: uniform, decorrelated, Google's and Polly's."""

import math
from functools import lru_cache
from typing import ClassVar, final

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import check_number, invalid_setting
from retrykit.schedules._base import Bounds, Schedule, constructor
from retrykit.schedules._basic import Constant, Exponential, Formula, saturated_product
from retrykit.schedules._randomness import (
    MAX_DELAY,
    Random,
    previous_random,
    uniform_between,
)

__all__ = ["MAX_INTERVAL", "MAX_INTERVALS", "MAX_MILLISECONDS", "Decorrelated"]
__all__ += ["GoogleInterval", "PollyInterval", "Uniform", "decorrelated"]
__all__ += ["google_interval", "google_intervals", "polly_interval", "uniform"]

MAX_MILLISECONDS = 2**31 - 1
"""The longest interval and delay of `GoogleInterval`: the largest Java int, in ms."""

MAX_INTERVAL = MAX_MILLISECONDS / 1000
"""The longest interval and delay of `GoogleInterval`, in seconds."""

MAX_INTERVALS = 1_000
"""Maximum number of different intervals of a `GoogleInterval`."""


@final
class Uniform(Formula):
    """Delays drawn between two durations."""

    __slots__ = ("high", "low")
    kind: ClassVar[str] = "uniform"
    low: float
    high: float

    def delay(self, _retry: int, _previous: float | None, random: Random, /) -> float:
        return uniform_between(self.low, self.high, random)

    def bounds(self, _retry: int, /) -> Bounds:
        return self.low, self.high

    def without_jitter(self) -> Schedule:
        return Constant(self.low + (self.high - self.low) / 2)


@constructor
def uniform(low: Duration, high: Duration) -> Schedule:
    """Draw each delay between *low* and *high*; all in between are equally likely.

    >>> uniform("1s", "3s").bounds(1)
    (1.0, 3.0)
    >>> uniform(1, 3).without_jitter()
    constant(2.0)

    Args:
        low: Shortest delay. A duration, >= 0.
        high: Longest delay. A duration, >= *low*.

    Source:
        `wait_random`, tenacity.
    """
    shortest = parse_duration("low", low)
    longest = parse_duration("high", high)
    check_number("high", longest, at_least=shortest, suggestion="no shorter than low")
    return Uniform(shortest, longest)


@final
class Decorrelated(Formula):
    """A random walk that starts at its shortest delay, and grows on average."""

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
        return self.first, saturated_product(self.first, self.factor, retry)

    def without_jitter(self) -> Schedule:
        return Exponential(self.first, self.factor)


@constructor
def decorrelated(first: Duration, *, factor: float = 3.0) -> Schedule:
    """Draw between *first* and *factor* times the previous delay.

    The delays are a random walk, which grows on average and spreads callers well.
    Before retry 1, the previous delay counts as *first*. Limit it with ``.cap()``.

    >>> walk = decorrelated(1).cap(10)
    >>> [walk.bounds(retry) for retry in (1, 2, 3)]
    [(1.0, 3.0), (1.0, 9.0), (1.0, 10.0)]

    Args:
        first: Shortest delay. A duration, >= 0.
        factor: Growth of the longest delay. Dimensionless, >= 1.

    Source:
        Decorrelated jitter, M. Brooker, "Exponential Backoff And Jitter", AWS
        Architecture Blog, 2015.
    """
    factor = check_number("factor", factor, at_least=1)
    return Decorrelated(parse_duration("first", first), factor)


@final
class GoogleInterval(Formula):
    """An interval in whole milliseconds, with its own jitter."""

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
        """Return the interval before a retry, in milliseconds, without jitter."""
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
        # The sum may be rounded up to the next integer.
        return min(max(drawn, low), high) / 1000

    def bounds(self, retry: int, /) -> Bounds | None:
        interval = self.interval(retry)
        low, high = self._range(interval)
        return low / 1000, high / 1000

    def without_jitter(self) -> Schedule:
        fixed: Schedule = self.replace(randomization_factor=0.0)
        return fixed

    def _range(self, interval: int) -> tuple[int, int]:
        delta = self.randomization_factor * interval
        # Draws are below interval + delta + 1, and truncated to integers.
        high = math.ceil(interval + delta + 1) - 1
        return int(interval - delta), min(high, MAX_MILLISECONDS)


@lru_cache
def google_intervals(first: float, multiplier: float, longest: float) -> list[int]:
    """Return the intervals of a `GoogleInterval` in milliseconds; the last one repeats.

    If there are too many, the first ones are returned: one more than is allowed.

    >>> google_intervals(0.5, 1.5, 2.0)
    [500, 750, 1125, 1687, 2000]
    """
    interval, maximum = round(first * 1000), round(longest * 1000)
    known: list[int] = []
    while interval not in known[-1:] and len(known) <= MAX_INTERVALS:
        known.append(interval)
        over = interval >= maximum / multiplier
        interval = maximum if over else int(interval * multiplier)
    return known


@constructor
def google_interval(
    initial_interval: Duration = 0.5,
    *,
    randomization_factor: float = 0.5,
    multiplier: float = 1.5,
    max_interval: Duration = 60.0,
) -> Schedule:
    """Wait like Google's `ExponentialBackOff`, in whole milliseconds.

    The first and the longest interval are rounded to milliseconds, other intervals and
    all delays truncated, and no delay is longer than 2**31 - 1 ms, so that the same
    random numbers give the same delays as the original. If that does not matter,
    ``exponential(0.5, factor=1.5).cap(60).jitter(0.5)`` is the same without truncation.

    >>> list(google_interval(randomization_factor=0).take(5).draw())
    [0.5, 0.75, 1.125, 1.687, 2.53]
    >>> google_interval().bounds(1)
    (0.25, 0.75)

    Args:
        initial_interval: Interval before retry 1. A duration, >= 1 ms.
        randomization_factor: Fraction of the interval by which a delay may be shorter
            or longer. Dimensionless, 0 <= factor < 1.
        multiplier: Growth of the interval. Dimensionless, >= 1; there may be at most
            1,000 different intervals.
        max_interval: Limit of the interval, before jitter. A duration,
            >= *initial_interval*, <= 2**31 - 1 ms as in the original.

    Source:
        `ExponentialBackOff`, Google HTTP Client Library for Java: class
        documentation and checks.
    """
    first = parse_duration("initial_interval", initial_interval)
    check_number("initial_interval", first, at_least=0.001)
    longest = parse_duration("max_interval", max_interval)
    suggestion = "no shorter than initial_interval, no longer than 2**31 - 1 ms"
    check_number(
        "max_interval",
        longest,
        at_least=first,
        at_most=MAX_INTERVAL,
        suggestion=suggestion,
    )
    spread = check_number("randomization_factor", randomization_factor, at_most=1)
    if spread == 1:
        rule = "a number >= 0 and < 1"
        raise invalid_setting(
            "randomization_factor", rule, randomization_factor, code="out-of-range"
        )
    growth = check_number("multiplier", multiplier, at_least=1)
    if len(google_intervals(first, growth, longest)) > MAX_INTERVALS:
        rule = f"1, or large enough for at most {MAX_INTERVALS} different intervals"
        raise invalid_setting("multiplier", rule, multiplier, code="out-of-range")
    return GoogleInterval(first, spread, growth, longest)


@final
class PollyInterval(Formula):
    """Delays between random times, one drawn in each step of exponential growth."""

    __slots__ = ("median_first_retry_delay",)
    kind: ClassVar[str] = "polly_interval"
    median_first_retry_delay: float

    def delay(
        self, retry: int, _previous: float | None, random: Random, /
    ) -> float | None:
        # The time of the previous retry follows from its random number.
        last = previous_random(random).random() if retry > 1 else 0.0
        return self._wait(retry, last, random.random())

    def bounds(self, retry: int, /) -> Bounds:
        return 0.0, self._wait(retry, 0.0, 1.0)

    def without_jitter(self) -> Schedule:
        # The differences between the medians of its times, about 1, 2, 4 and 8.
        first = self.median_first_retry_delay
        return Constant(first).switch(after=1, to=Exponential(first / 2, 2.0))

    def _wait(self, retry: int, last: float, drawn: float) -> float:
        # In units of this step, since powers of 2 overflow for late retries.
        at = 2**drawn * math.tanh(2 * math.sqrt(retry - 1 + drawn))
        was = (
            2**last / 2 * math.tanh(2 * math.sqrt(retry - 2 + last))
            if retry > 1
            else 0.0
        )
        step = saturated_product(self.median_first_retry_delay / 1.4, 2.0, retry - 1)
        # Rounding may give a difference just below 0.
        return min(max(at - was, 0.0) * step, MAX_DELAY)


@constructor
def polly_interval(median_first_retry_delay: Duration = 1.0) -> Schedule:
    """Wait like Polly with jitter: exponential growth, and evenly spread retries.

    The times of the retries are drawn, not the delays: retry n is made at
    ``2 ** t * tanh(sqrt(4 * t))`` with t between n - 1 and n, in units of
    *median_first_retry_delay* / 1.4. Limit it with ``.cap()``.

    >>> smooth = polly_interval("1s")
    >>> [round(smooth.bounds(retry)[1], 3) for retry in (1, 2, 3, 4)]
    [1.377, 2.837, 4.326, 8.584]
    >>> list(smooth.without_jitter().take(5).draw())
    [1.0, 1.0, 2.0, 4.0, 8.0]

    Args:
        median_first_retry_delay: Approximate median of the time of the first retry; the
            medians of later ones are 2, 4, 8 times as long. A duration, >= 0.

    Returns:
        An endless schedule. Each delay may be 0.

    Source:
        `DecorrelatedJitterBackoffV2`, Polly.Contrib.WaitAndRetry 1.1 and
        Polly 8, by the formula of G. Polevoy, issue 530 of Polly, 2019.
    """
    return PollyInterval(
        parse_duration("median_first_retry_delay", median_first_retry_delay)
    )
