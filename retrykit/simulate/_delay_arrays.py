"""Delays of many calls, computed with numpy: the same floats as the schedule gives."""

import math
from collections.abc import Callable
from typing import Any, Final, final

import numpy as np

from retrykit._core.common_failures import Delays
from retrykit._internal.clocks import LONGEST_SLEEP
from retrykit.schedules import Schedule
from retrykit.schedules._base import RANDOM_KINDS, iter_parts
from retrykit.schedules._randomness import FACTORS, MAX_DELAY, STEP, call_random

__all__ = ["DelayArrays", "delay_draws"]

Array = Any
"""A numpy array."""

_MASK: Final = 2**64 - 1
_UNIT: Final = 2.0**-53


def delay_draws(seeds: Array, retry: int | Array, number: int = 1) -> Array:
    """Return each call's draw before a retry, in units of 2**-53, like `CallRandom`.

    Args:
        seeds: The seeds of the calls.
        retry: The number of the retry, one for all calls or one for each.
        number: The number of the draw.

    Returns:
        Floats with the values of integers.
    """
    if isinstance(retry, int):
        z = seeds.astype(np.uint64) + np.uint64(((retry << 32) + number) * STEP & _MASK)
    else:
        draws = (retry.astype(np.uint64) << np.uint64(32)) + np.uint64(number)
        z = seeds.astype(np.uint64) + draws * np.uint64(STEP)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FACTORS[0])
    z = (z ^ (z >> np.uint64(27))) * np.uint64(FACTORS[1])
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64)


@final
class DelayArrays:
    """The delays of one schedule, none of which depends on the previous one.

    Args:
        schedule: The schedule.
        delays: The lowest delay before each retry, and its step for each unit of the
            draw.
    """

    def __init__(self, schedule: Schedule, delays: Delays) -> None:
        self._delays = delays
        self._low = self._step = np.empty(0)
        self._compute = _compute(schedule)

    def find(self, attempts: Array, seeds: Array) -> Array:
        """Return the delays after failed attempts, in seconds.

        A delay is infinite if the schedule has ended, or if the caller must ask the
        schedule for it.

        Args:
            attempts: The numbers of the attempts, at least one.
            seeds: The seeds of their calls.
        """
        self._learn(int(attempts.max()))
        found, step = self._low[attempts], self._step[attempts]
        drawn = np.flatnonzero(step > 0)
        if len(drawn):
            draws = delay_draws(seeds[drawn], attempts[drawn])
            found[drawn] += step[drawn] * draws
        others = np.flatnonzero(step < 0)
        if len(others):
            for attempt in np.unique(attempts[others]).tolist():
                chosen = others[attempts[others] == attempt]
                found[chosen] = self._compute(attempt, seeds[chosen])
            found[found > LONGEST_SLEEP] = math.inf
        return found

    def _learn(self, most: int) -> None:
        """Look up the delays before all retries up to number *most*."""
        known = len(self._low)
        if most < known:
            return
        more = [self._delays[n] if n else (0.0, 0.0) for n in range(known, most + 1)]
        low = [each[0] for each in more]
        # Below 0 if more than one draw is needed.
        step = [-1.0 if each[1] is None else each[1] for each in more]
        self._low = np.concatenate([self._low, low])
        self._step = np.concatenate([self._step, step])


def _compute(schedule: Schedule) -> Callable[[int, Array], Array]:
    """Return a function of a retry's number and of seeds, which computes delays.

    The function returns infinity if the schedule has ended.
    """
    random = [part for _, part in iter_parts(schedule) if part.kind in RANDOM_KINDS]
    if any(part.kind not in _EXACT for part in random):
        return lambda retry, seeds: _ask(schedule, retry, seeds)
    draw = _drawing(schedule)

    def compute(retry: int, seeds: Array) -> Array:
        # Sums saturate, as in a schedule.
        with np.errstate(over="ignore", invalid="ignore"):
            found = draw(retry, _Draws(seeds, retry))
        return np.full(len(seeds), math.inf if found is None else found)

    return compute


def _ask(schedule: Schedule, retry: int, seeds: Array) -> Array:
    """Return the delays before a retry, asked for one by one."""
    found = [
        schedule.delay(retry, None, call_random(seed, retry)) for seed in seeds.tolist()
    ]
    return np.array([math.inf if each is None else each for each in found])


@final
class _Draws:
    """The random numbers of calls before a retry."""

    def __init__(self, seeds: Array, retry: int) -> None:
        self._seeds, self._retry, self._number = seeds, retry, 0

    def between(self, low: Any, high: Any) -> Array:
        """Return delays drawn from a range, as `uniform_between` does."""
        self._number += 1
        draws = delay_draws(self._seeds, self._retry, self._number)
        return low + (high - low) * (draws * _UNIT)


_Drawing = Callable[[int, _Draws], Any]
"""Returns the delays before a retry: an array, or one for all calls.

None if the schedule has ended.
"""


def _drawing(schedule: Any) -> _Drawing:
    """Return a function that draws the delays of a schedule, part by part."""
    if not any(part.kind in RANDOM_KINDS for _, part in iter_parts(schedule)):
        return lambda retry, _: (schedule.bounds(retry) or (None,))[0]
    return _EXACT[schedule.kind](schedule)


def _mapped(change: Callable[[Any, Any], Any]) -> Callable[[Any], _Drawing]:
    """Return a function that makes the drawing of a schedule that changes delays.

    Args:
        change: Takes the schedule and the delays of the schedule inside it; returns the
            changed delays.
    """

    def drawing(schedule: Any) -> _Drawing:
        inner = _drawing(schedule.of)

        def draw(retry: int, draws: _Draws) -> Any:
            found = inner(retry, draws)
            return None if found is None else change(schedule, found)

        return draw

    return drawing


def _ranged(spread: Callable[[Any, Any], Any]) -> Callable[[Any], _Drawing]:
    """Return a function that makes the drawing of a schedule with jitter.

    Args:
        spread: Takes the schedule and the delays of the schedule inside it; returns the
            bounds of the ranges to draw from.
    """

    def drawing(schedule: Any) -> _Drawing:
        inner = _drawing(schedule.of)

        def draw(retry: int, draws: _Draws) -> Any:
            found = inner(retry, draws)
            return None if found is None else draws.between(*spread(schedule, found))

        return draw

    return drawing


def _joined(
    join: Callable[[Any, Any], Any], *, both: bool
) -> Callable[[Any], _Drawing]:
    """Return a function that makes the drawing of a schedule that joins two others.

    Args:
        join: Returns the delay for one delay of each.
        both: Whether it ends with the first of them to end, instead of with the last.
    """

    def drawing(schedule: Any) -> _Drawing:
        left, right = _drawing(schedule.left), _drawing(schedule.right)

        def draw(retry: int, draws: _Draws) -> Any:
            one, other = left(retry, draws), right(retry, draws)
            if one is None or other is None:
                return None if both else other if one is None else one
            return join(one, other)

        return draw

    return drawing


def _round_down(schedule: Any, delays: Array) -> Array:
    """Round delays, as `round_down_to` does."""
    unit = schedule.unit
    steps = delays / unit
    nearest = np.rint(steps)
    apart = np.abs(steps - nearest)
    # As `math.isclose`.
    exact = (apart <= 1e-15 * nearest) | (apart <= 1e-15 * steps)
    whole = np.where(exact, nearest, np.floor(steps))
    return np.where(steps > 2**53, delays, np.minimum(whole * unit, MAX_DELAY))


def _uniform(schedule: Any) -> _Drawing:
    return lambda _, draws: draws.between(schedule.low, schedule.high)


def _google_interval(schedule: Any) -> _Drawing:
    def draw(retry: int, draws: _Draws) -> Any:
        interval = schedule.interval(retry)
        delta = schedule.randomization_factor * interval
        drawn = draws.between(0.0, 2 * delta + 1)
        return np.clip(
            np.trunc(interval - delta + drawn) / 1000, *schedule.bounds(retry)
        )

    return draw


def _take(schedule: Any) -> _Drawing:
    """Return the drawing of a schedule that ends when its bounds do."""
    inner = _drawing(schedule.of)
    return lambda retry, draws: (
        None if schedule.bounds(retry) is None else inner(retry, draws)
    )


def _then(schedule: Any) -> _Drawing:
    first, other = _drawing(schedule.of), _drawing(schedule.other)
    return lambda retry, draws: (
        other(schedule.later(retry), draws)
        if schedule.of.bounds(retry) is None
        else first(retry, draws)
    )


def _switch(schedule: Any) -> _Drawing:
    first, other = _drawing(schedule.of), _drawing(schedule.to)

    def draw(retry: int, draws: _Draws) -> Any:
        if schedule.bounds(retry) is None:
            # Also if the first schedule has ended too early.
            return None
        return (first if retry <= schedule.after else other)(retry, draws)

    return draw


_EXACT: Final[dict[str, Callable[[Any], _Drawing]]] = {
    "cap": _mapped(lambda of, delays: np.minimum(delays, of.limit)),
    "at_least": _mapped(lambda of, delays: np.maximum(delays, of.limit)),
    "round_down": _mapped(_round_down),
    "scale": _mapped(lambda of, delays: np.minimum(delays * of.factor, MAX_DELAY)),
    "full_jitter": _ranged(lambda _, delays: (0.0, delays)),
    "equal_jitter": _ranged(lambda _, delays: (delays / 2, delays)),
    "jitter": _ranged(
        lambda of, delays: (
            delays * (1 - of.factor),
            np.minimum(delays * (1 + of.factor), MAX_DELAY),
        )
    ),
    "sum": _joined(lambda a, b: np.minimum(a + b, MAX_DELAY), both=True),
    "intersection": _joined(np.maximum, both=True),
    "union": _joined(np.minimum, both=False),
    "uniform": _uniform,
    "google_interval": _google_interval,
    "take": _take,
    "within": _take,
    "then": _then,
    "switch": _switch,
}
"""Functions that make the drawing of a schedule, keyed by its kind.

numpy repeats the arithmetic of these kinds to the bit.
"""
