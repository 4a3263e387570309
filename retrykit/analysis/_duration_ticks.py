"""Ticks of duration axes, and the choice between a linear and a logarithmic scale."""

import math
from collections.abc import Iterable

__all__ = ["POWERS", "STEPS", "suits_log", "ticks"]

_SECOND, _MINUTE, _HOUR, _DAY = 1.0, 60.0, 3_600.0, 86_400.0
_TENS = [10.0**power for power in range(-9, 0)]
_SMALL = [tens * step for tens in _TENS for step in (1, 2, 5)]
_SIXTIES = (1, 2, 5, 10, 15, 20, 30)
STEPS = [
    *_SMALL,
    *(_SECOND * step for step in _SIXTIES),
    *(_MINUTE * step for step in _SIXTIES),
    *(_HOUR * step for step in (1, 2, 3, 4, 6, 12)),
]
"""Distances between ticks of a linear axis below a day, in seconds."""

POWERS = [*_TENS, *(n * u for u in (_SECOND, _MINUTE, _HOUR) for n in (1, 10))]
"""Ticks of a logarithmic axis below a day, in seconds."""


def suits_log(durations: Iterable[float]) -> bool:
    """Return whether the longest duration is over 100 times the shortest above zero.

    >>> suits_log([0, 1, 100]), suits_log([0.5, 51])
    (False, True)
    """
    positive = [duration for duration in durations if duration > 0]
    return bool(positive) and max(positive) > 100 * min(positive)


def ticks(low: float, high: float, *, log: bool, most: int = 7) -> list[float]:
    """Return at most *most* ticks from *low* to *high*, in seconds.

    >>> ticks(0, 300, log=False)
    [0.0, 60.0, 120.0, 180.0, 240.0, 300.0]
    >>> ticks(0.5, 7200, log=True, most=4)
    [1.0, 60.0, 3600.0]
    """
    return _powers(low, high, most) if log else _multiples(low, high, most)


def _multiples(low: float, high: float, most: int) -> list[float]:
    step = next((each for each in STEPS if (high - low) / each < most), None)
    if step is None:
        days = (high - low) / _DAY / most
        tens = 10.0 ** max(math.floor(math.log10(days)), 0)
        step = next(n * tens for n in (1, 2, 5, 10) if days < n * tens) * _DAY
    first = math.ceil(low / step)
    return [n * step for n in range(first, math.floor(high / step) + 1)]


def _powers(low: float, high: float, most: int) -> list[float]:
    days = range(math.floor(math.log10(max(high / _DAY, 1.0))) + 1)
    powers = [*POWERS, *(_DAY * 10.0**power for power in days)]
    within = [tick for tick in powers if low <= tick <= high]
    return within[:: math.ceil(len(within) / most) or 1]
