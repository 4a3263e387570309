"""How long a call waits in all before it gives up: exactly, or by a sample.

The sum of delays that are each spread evenly has a formula; where it has too
many terms, or delays depend on each other or on a limit, calls that were drawn
show it.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import final

from retrykit._internal.frozen import Frozen
from retrykit.analysis.preview.distributions import Spread, total
from retrykit.analysis.preview.sampling import SIGMAS, mean_of
from retrykit.schedules.randomness import MAX_DELAY

__all__ = ["Quantile", "TotalWait", "exact_total_wait", "sampled_total_wait"]

# The formula has two to that many terms, each of them a fraction of long numbers.
_MOST = 8
_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@final
class Quantile(Frozen):
    """A time that the given share of all calls that give up does not exceed.

    Attributes:
        share: Of the calls, 0 < share < 1.
        value: Delays in all, in seconds.
        error: Half the width of the interval, in seconds, that it lies in with
            a confidence of 95 %; 0 where it is exact.
    """

    __slots__ = ("error", "share", "value")
    share: float
    value: float
    error: float


@final
class TotalWait(Frozen):
    """What calls that fail every time wait in all, and how many calls they make.

    Attributes:
        quantiles: The times that some shares of them do not exceed.
        mean: The mean of the delays in all, in seconds.
        error: Its error, as that of a quantile.
        calls: The mean of the calls of the function, the first included.
        calls_error: Its error.
        samples: How many calls were drawn; 0 where all of it is exact.
    """

    __slots__ = ("calls", "calls_error", "error", "mean", "quantiles", "samples")
    quantiles: tuple[Quantile, ...]
    mean: float
    error: float
    calls: float
    calls_error: float
    samples: int


def exact_total_wait(spreads: Sequence[Spread | None]) -> TotalWait | None:
    """Return the window of delays of which each is known, and all are waited.

    Args:
        spreads: How each delay is spread.

    Returns:
        None where there is no formula, or one of too many terms.

    Source:
        The sum of independent uniform variables: W. Feller, "An Introduction
        to Probability Theory and Its Applications", volume II, 1966, I.9.
    """
    even = [(a, b) for each in spreads if each for _, a, b in each.pieces or ()]
    single = all(each and len(each.pieces or ()) == 1 for each in spreads)
    widths = [b - a for a, b in even if a < b]
    if not single or len(widths) > _MOST:
        return None
    lowest = total(a for a, _ in even)
    quantiles = (
        Quantile(share, min(lowest + _inverted(widths, share), MAX_DELAY), 0.0)
        for share in _SHARES
    )
    mean = total(a / 2 + b / 2 for a, b in even)
    return TotalWait(tuple(quantiles), mean, 0.0, len(spreads) + 1.0, 0.0, 0)


def _inverted(widths: Sequence[float], share: float) -> float:
    """Return what a sum of numbers between 0 and each width does not exceed."""
    if not widths:
        return 0.0
    # Terms of either sign cancel out, so all of them are whole numbers: of steps
    # so small that a float knows no smaller ones, and 2**62 of them in all.
    step = Fraction(max(widths)) / 2**59
    steps = [max(round(Fraction(width) / step), 1) for width in widths]
    count = len(steps)
    corners = [
        ((-1) ** size, sum(chosen))
        for size in range(count)
        for chosen in combinations(steps, size)
    ]

    def below(total: int) -> int:
        parts = ((sign, total - corner) for sign, corner in corners)
        return sum(sign * part**count for sign, part in parts if part > 0)

    wanted = Fraction(share) * math.factorial(count) * math.prod(steps)
    found = bisect_left(range(sum(steps)), math.ceil(wanted), key=below)
    return float(found * step)


def sampled_total_wait(
    calls: Sequence[Sequence[float]], longest: float, most: int
) -> TotalWait:
    """Return the window as calls show it that were drawn.

    Args:
        calls: What each of them waits, delay by delay; at least one.
        longest: What any of them waits at the most, in seconds.
        most: How many retries any of them makes at the most.
    """
    totals = sorted(map(total, calls))
    # Where a sample is too small to tell the ends of an interval, these do.
    known = [0.0, *totals, longest]
    quantiles = tuple(_quantile(known, share) for share in _SHARES)
    made = [len(call) + 1.0 for call in calls]
    return TotalWait(
        quantiles,
        *mean_of(totals, longest),
        *mean_of(made, float(most)),
        len(calls),
    )


def _quantile(known: Sequence[float], share: float) -> Quantile:
    """Return the quantile of a sorted sample between two ends."""
    count = len(known) - 2
    # How many of a sample lie below its quantile is binomially distributed.
    spread = SIGMAS * math.sqrt(share * (1 - share) * count)
    rank = share * (count + 1)
    value = known[min(max(round(rank), 1), count)]
    low = known[max(round(rank - spread), 0)]
    high = known[min(round(rank + spread), count + 1)]
    return Quantile(share, value, max(value - low, high - value))
