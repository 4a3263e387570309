"""The values behind the schedules that exist by name.

What their numbers may be is checked in `retrykit.schedules`, where they are
made; here is what follows from them.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any, ClassVar, final

from retrykit.algebra import Bounds, Schedule
from retrykit.checks import refuse
from retrykit.durations import seconds
from retrykit.jitter import LONGEST, Draws, Random, between

__all__ = ["Constant", "Decorrelated", "Exponential", "Fibonacci", "GoogleInterval"]
__all__ += ["Linear", "Polynomial", "Sequence"]


@dataclass(frozen=True, slots=True, repr=False)
class _Formula(Schedule):
    """A schedule that is built from numbers, and prints as its constructor."""

    def __repr__(self) -> str:
        first, *rest = (field.name for field in fields(self))
        named = (f", {name}={getattr(self, name)!r}" for name in rest)
        return f"{self.kind}({getattr(self, first)!r}{''.join(named)})"


@dataclass(frozen=True, slots=True, repr=False)
class _Fixed(_Formula):
    """A schedule without chance: one delay for each retry."""

    def bounds(self, retry: int, /) -> Bounds | None:
        delay = self.delay(retry, None, _NO_CHANCE)
        return None if delay is None else (delay, delay)


_NO_CHANCE: Random = Draws(0, 0)


@final
@dataclass(frozen=True, slots=True, repr=False)
class Constant(_Fixed):
    """The same delay each time."""

    kind: ClassVar[str] = "constant"
    wait: float

    def delay(self, _retry: int, _previous: float | None, _random: Random, /) -> float:
        return self.wait


@final
@dataclass(frozen=True, slots=True, repr=False)
class Linear(_Fixed):
    """Multiples of one step."""

    kind: ClassVar[str] = "linear"
    step: float

    def delay(self, retry: int, _previous: float | None, _random: Random, /) -> float:
        return min(self.step * retry, LONGEST)


@final
@dataclass(frozen=True, slots=True, repr=False)
class Exponential(_Fixed):
    """Powers of one factor."""

    kind: ClassVar[str] = "exponential"
    first: float
    factor: float

    def delay(self, retry: int, _previous: float | None, _random: Random, /) -> float:
        return _product(self.first, self.factor, retry - 1)


@final
@dataclass(frozen=True, slots=True, repr=False)
class Polynomial(_Fixed):
    """One power of the number of the retry."""

    kind: ClassVar[str] = "polynomial"
    exponent: float
    first: float

    def delay(self, retry: int, _previous: float | None, _random: Random, /) -> float:
        return _product(self.first, float(retry), self.exponent)


def _product(first: float, base: float, exponent: float) -> float:
    """Return ``first * base ** exponent``, or the largest float if less."""
    try:
        # Zero times the largest float is zero, and times infinity no number.
        return min(first * math.pow(base, exponent), LONGEST)
    except OverflowError:
        return first and LONGEST


@final
@dataclass(frozen=True, slots=True, repr=False)
class Fibonacci(_Fixed):
    """The numbers of Fibonacci."""

    kind: ClassVar[str] = "fibonacci"
    first: float

    def delay(self, retry: int, _previous: float | None, _random: Random, /) -> float:
        delay, following = 1, 1
        # Beyond the 1476th there is no float for them.
        for _ in range(min(retry, 1476) - 1):
            delay, following = following, delay + following
        return min(self.first * delay, LONGEST)


@final
@dataclass(frozen=True, slots=True, repr=False)
class Decorrelated(_Formula):
    """A random walk upwards from its shortest delay."""

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
@dataclass(frozen=True, slots=True, repr=False)
class GoogleInterval(_Formula):
    """An interval kept in whole milliseconds, with its own jitter."""

    kind: ClassVar[str] = "google_interval"
    initial: float
    randomization: float
    multiplier: float
    maximum: float

    def delay(
        self, retry: int, _previous: float | None, random: Random, /
    ) -> float | None:
        interval = self._interval(retry)
        low, high = self._range(interval)
        delta = self.randomization * interval
        drawn = int(interval - delta + random.random() * (2 * delta + 1))
        # Rounding can carry the sum to the next whole number.
        return min(max(drawn, low), high) / 1000

    def bounds(self, retry: int, /) -> Bounds | None:
        interval = self._interval(retry)
        low, high = self._range(interval)
        return low / 1000, high / 1000

    def without_jitter(self) -> Schedule:
        return replace(self, randomization=0.0)

    def _interval(self, retry: int) -> int:
        interval, maximum = round(self.initial * 1000), round(self.maximum * 1000)
        for _ in range(retry - 1):
            if interval >= maximum / self.multiplier:
                return maximum
            before, interval = interval, int(interval * self.multiplier)
            if interval == before:
                break
        return interval

    def _range(self, interval: int) -> tuple[int, int]:
        delta = self.randomization * interval
        # The draw ends below interval + delta + 1, and is cut to a whole one.
        return int(interval - delta), math.ceil(interval + delta + 1) - 1


@final
@dataclass(frozen=True, slots=True, repr=False)
class Sequence(_Fixed):
    """Delays that the user lists, or that the user's own code yields."""

    kind: ClassVar[str] = "sequence"
    delays: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "delays", _listed(self.delays))

    def delay(
        self, retry: int, _previous: float | None, _random: Random, /
    ) -> float | None:
        delays: Any = self.delays
        if isinstance(delays, tuple):
            return delays[retry - 1] if retry <= len(delays) else None
        afresh: Any = delays() if inspect.isgeneratorfunction(delays) else delays
        delay = next(islice(afresh, retry - 1, None), None)
        return None if delay is None else seconds(f"schedule[{retry - 1}]", delay)

    def to_dict(self) -> dict[str, Any]:
        if not isinstance(self.delays, tuple):
            rule = "made of retrykit's own parts, to be written as data"
            raise refuse("schedule", rule, self.delays, "list its delays")
        return {"kind": self.kind, "delays": list(self.delays)}

    def __repr__(self) -> str:
        own = self.delays
        if isinstance(own, tuple):
            return f"sequence({list(own)!r})"
        return f"sequence({getattr(own, '__qualname__', None) or repr(own)})"


def _listed(delays: object) -> object:
    """Return delays as a tuple of seconds, or as what can be asked afresh."""
    if inspect.isgeneratorfunction(delays):
        _check_that_it_needs_nothing(delays)
        return delays
    if not isinstance(delays, Iterable) or isinstance(delays, str | bytes | Mapping):
        rule = "one of schedules, a re-iterable of durations, or a generator function"
        raise refuse("schedule", rule, delays, "for a single delay write constant()")
    if iter(delays) is delays:
        rule = "re-iterable"
        way_out = "pass a list, a generator function, or an object whose __iter__"
        raise refuse("schedule", rule, _OneShot(delays), f"{way_out} starts afresh")
    if not isinstance(delays, Sized):
        return delays
    return tuple(seconds(f"schedule[{i}]", delay) for i, delay in enumerate(delays))


def _check_that_it_needs_nothing(generator: Callable[..., object]) -> None:
    try:
        inspect.signature(generator).bind()
    except TypeError as error:
        rule = "a generator function that can be called without arguments"
        raise refuse(
            "schedule", rule, generator, "bind them with functools.partial"
        ) from error


class _OneShot:
    """Makes an error message say what is wrong with an iterator."""

    def __init__(self, iterator: object) -> None:
        self.iterator = iterator

    def __repr__(self) -> str:
        return f"the one-shot {self.iterator!r}"
