"""Schedules without jitter: constant, growing and falling delays.

They are endless; delays saturate at the largest float.
"""

import math
from functools import cache
from typing import ClassVar, final

from retrykit._internal.durations import (
    Duration,
    parse_duration,
    parse_signed_duration,
)
from retrykit._internal.validation import check_number
from retrykit.schedules._base import Bounds, Schedule, constructor
from retrykit.schedules._randomness import MAX_DELAY, Random, call_random

__all__ = ["Constant", "Decay", "Exponential", "Fibonacci", "Fixed", "Formula"]
__all__ += ["Linear", "Polynomial", "constant", "decay", "exponential", "fibonacci"]
__all__ += ["linear", "polynomial", "saturated_product"]


class Formula(Schedule):
    """A schedule whose repr is a call of its constructor."""

    __slots__ = ()

    def __repr__(self) -> str:
        first, *rest = self._field_names
        named = (f", {name}={getattr(self, name)!r}" for name in rest)
        return f"{self.kind}({getattr(self, first)!r}{''.join(named)})"


class Fixed(Formula):
    """A schedule without random numbers: one delay for each retry."""

    __slots__ = ()

    def bounds(self, retry: int, /) -> Bounds | None:
        delay = self.delay(retry, None, _UNUSED)
        return None if delay is None else (delay, delay)


_UNUSED: Random = call_random(seed=0, retry=0)


def saturated_product(first: float, base: float, exponent: float) -> float:
    """Return ``first * base ** exponent``, at most the largest float."""
    try:
        product = first * math.pow(base, exponent)
    except OverflowError:
        return first and MAX_DELAY
    return product if product < MAX_DELAY else MAX_DELAY


@final
class Constant(Fixed):
    """The same delay each time."""

    __slots__ = ("wait",)
    kind: ClassVar[str] = "constant"
    wait: float

    def delay(self, _retry: int, _previous: float | None, _random: Random, /) -> float:
        return self.wait


@constructor
def constant(wait: Duration) -> Schedule:
    """Wait the same time before every retry.

    >>> list(constant("1.5s").take(3).draw())
    [1.5, 1.5, 1.5]

    Args:
        wait: A duration, >= 0.
    """
    return Constant(parse_duration("wait", wait))


@final
class Linear(Fixed):
    """Multiples of one step, or steps from a first delay."""

    __slots__ = ("first", "step")
    kind: ClassVar[str] = "linear"
    step: float
    first: float | None

    def delay(self, retry: int, _previous: float | None, _random: Random, /) -> float:
        if self.first is None:
            return min(self.step * retry, MAX_DELAY)
        return max(0.0, min(self.first + self.step * (retry - 1), MAX_DELAY))

    def __repr__(self) -> str:
        first = "" if self.first is None else f", first={self.first!r}"
        return f"linear({self.step!r}{first})"


@constructor
def linear(step: Duration, *, first: Duration | None = None) -> Schedule:
    """Wait *step* longer each time: ``first + step * (n - 1)`` before retry n.

    >>> list(linear(2).take(3).draw())
    [2.0, 4.0, 6.0]
    >>> list(linear(2, first=1).take(3).draw())
    [1.0, 3.0, 5.0]
    >>> list(linear(-2, first=5).take(4).draw())
    [5.0, 3.0, 1.0, 0.0]

    Args:
        step: A duration, >= 0. With *first*, it may be negative; no delay is below 0.
        first: Delay before retry 1. A duration, >= 0; None, the default, is *step*.
    """
    if first is None:
        return Linear(parse_duration("step", step), None)
    return Linear(parse_signed_duration("step", step), parse_duration("first", first))


@final
class Exponential(Fixed):
    """A first delay times powers of a factor."""

    __slots__ = ("factor", "first")
    kind: ClassVar[str] = "exponential"
    first: float
    factor: float

    def delay(self, retry: int, _previous: float | None, _random: Random, /) -> float:
        return saturated_product(self.first, self.factor, retry - 1)


@constructor
def exponential(first: Duration, *, factor: float = 2.0) -> Schedule:
    """Wait *factor* times as long each time: ``first * factor ** (n - 1)``.

    Limit it with ``.cap()``: the delays soon become very long.

    >>> list(exponential(0.5).cap(3).take(5).draw())
    [0.5, 1.0, 2.0, 3.0, 3.0]

    Args:
        first: Delay before retry 1. A duration, >= 0.
        factor: Growth from one delay to the next. Dimensionless, >= 1.
    """
    factor = check_number("factor", factor, at_least=1)
    return Exponential(parse_duration("first", first), factor)


@final
class Decay(Fixed):
    """A first delay times falling powers of e."""

    __slots__ = ("first", "rate")
    kind: ClassVar[str] = "decay"
    first: float
    rate: float

    def delay(self, retry: int, _previous: float | None, _random: Random, /) -> float:
        return saturated_product(self.first, math.e, -self.rate * (retry - 1))


@constructor
def decay(first: Duration, *, rate: float = 1.0) -> Schedule:
    """Wait less each time: ``first * e ** (-rate * (n - 1))``.

    Limit it with ``.at_least()``: the delays soon become very short.

    >>> [round(delay, 3) for delay in decay(8).at_least(0.5).take(5).draw()]
    [8.0, 2.943, 1.083, 0.5, 0.5]

    Args:
        first: Delay before retry 1. A duration, >= 0.
        rate: Decrease from one delay to the next: ``math.log(2)`` halves the delay.
            Dimensionless, >= 0.

    Source:
        `decay`, python-backoff 2.3, a fork of backoff.
    """
    return Decay(parse_duration("first", first), check_number("rate", rate))


@final
class Polynomial(Fixed):
    """A first delay times a power of the retry's number."""

    __slots__ = ("exponent", "first")
    kind: ClassVar[str] = "polynomial"
    exponent: float
    first: float

    def delay(self, retry: int, _previous: float | None, _random: Random, /) -> float:
        return saturated_product(self.first, float(retry), self.exponent)


@constructor
def polynomial(exponent: float, *, first: Duration = 1.0) -> Schedule:
    """Wait ``first * n ** exponent`` before retry n.

    The delays grow more slowly than in `exponential`, so many fit into a few weeks.

    >>> list(polynomial(4).take(3).draw())
    [1.0, 16.0, 81.0]

    Args:
        exponent: Dimensionless, >= 0; may be fractional.
        first: Delay before retry 1. A duration, >= 0.
    """
    return Polynomial(
        check_number("exponent", exponent), parse_duration("first", first)
    )


@final
class Fibonacci(Fixed):
    """A first delay times the Fibonacci numbers."""

    __slots__ = ("first",)
    kind: ClassVar[str] = "fibonacci"
    first: float

    def delay(self, retry: int, _previous: float | None, _random: Random, /) -> float:
        numbers = _fibonacci_numbers()
        return min(self.first * numbers[min(retry, len(numbers)) - 1], MAX_DELAY)


@cache
def _fibonacci_numbers() -> list[float]:
    """Return the Fibonacci numbers that fit into a float, without 0."""
    number, successor = 1, 1
    numbers: list[float] = []
    while number <= MAX_DELAY:
        numbers.append(float(number))
        number, successor = successor, number + successor
    return numbers


@constructor
def fibonacci(first: Duration = 1.0) -> Schedule:
    """Wait as long as the two previous delays together: 1, 1, 2, 3, 5 times *first*.

    >>> list(fibonacci("1m").take(6).draw())
    [60.0, 60.0, 120.0, 180.0, 300.0, 480.0]

    Args:
        first: Delay before retries 1 and 2. A duration, >= 0.
    """
    return Fibonacci(parse_duration("first", first))
