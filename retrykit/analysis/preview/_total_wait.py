"""Total delay of a call that gives up: exact, or estimated from a sample.

The sum of a few independent uniform delays has a formula; other totals are estimated
from sampled calls.
"""

import math
from array import array
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, islice
from typing import final

from retrykit._core.limits import override
from retrykit._core.policy import Policy
from retrykit._internal.binary_search import first_where
from retrykit._internal.frozen import Frozen
from retrykit.analysis.preview._distributions import Distribution, saturating_sum
from retrykit.analysis.preview._projection import RetryRow, walk
from retrykit.schedules._randomness import MAX_DELAY, SHARED_CALLS, SharedDraws

__all__ = ["Z_95", "Quantile", "TotalWait", "estimate_mean", "exact_total_wait"]
__all__ += ["sample_calls", "sampled_total_wait", "with_means"]

# The formula for n delays has 2**n terms, each of them a large integer.
_MAX_UNIFORMS = 8
_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@final
class Quantile(Frozen):
    """A quantile of the total delay of calls that give up.

    Attributes:
        probability: The share of the calls that wait no longer, between 0 and 1.
        value: Sum of the delays, in seconds.
        error: Half the width of the value's 95 % confidence interval, in seconds; 0 if
            exact.
    """

    __slots__ = ("error", "probability", "value")
    probability: float
    value: float
    error: float


@final
class TotalWait(Frozen):
    """The total delay and the number of attempts of calls that fail every time.

    Attributes:
        quantiles: Quantiles of the total delay.
        mean: Mean of the total delay, in seconds.
        error: Half the width of the 95 % confidence interval of *mean*, in seconds; 0
            if exact.
        attempts: Mean number of attempts, including the first.
        attempts_error: Half the width of the 95 % confidence interval of *attempts*; 0
            if exact.
        samples: Number of sampled calls; 0 if everything is exact.
    """

    __slots__ = ("attempts", "attempts_error", "error", "mean", "quantiles", "samples")
    quantiles: tuple[Quantile, ...]
    mean: float
    error: float
    attempts: float
    attempts_error: float
    samples: int


def exact_total_wait(distributions: Sequence[Distribution | None]) -> TotalWait | None:
    """Return the total of independent delays; None if no formula is feasible.

    Source:
        The sum of independent uniform variables: W. Feller, "An Introduction
        to Probability Theory and Its Applications", volume II, 1966, I.9.
    """
    uniform = _bounds(distributions)
    if uniform is None:
        return None
    widths = [b - a for a, b in uniform if a < b]
    if len(widths) > _MAX_UNIFORMS:
        return None
    lowest = saturating_sum(a for a, _ in uniform)
    quantiles = (
        Quantile(share, min(lowest + _quantile_of_sum(widths, share), MAX_DELAY), 0.0)
        for share in _SHARES
    )
    mean = saturating_sum(a / 2 + b / 2 for a, b in uniform)
    return TotalWait(tuple(quantiles), mean, 0.0, len(distributions) + 1.0, 0.0, 0)


def _bounds(
    distributions: Sequence[Distribution | None],
) -> list[tuple[float, float]] | None:
    """Return the bounds of delays; None unless each delay is fixed or uniform."""
    bounds: list[tuple[float, float]] = []
    for each in distributions:
        if each is None or each.pieces is None or len(each.pieces) != 1:
            return None
        [(_, low, high)] = each.pieces
        bounds.append((low, high))
    return bounds


def _quantile_of_sum(widths: Sequence[float], share: float) -> float:
    """Return a quantile of a sum of uniform numbers between 0 and each width."""
    if not widths:
        return 0.0
    # Terms of opposite sign nearly cancel, so they are computed as integers, in steps
    # finer than the resolution of a float.
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

    wanted = math.ceil(Fraction(share) * math.factorial(count) * math.prod(steps))
    found = first_where(lambda total: below(total) >= wanted, 0, sum(steps))
    return float(found * step)


def sampled_total_wait(
    calls: Sequence[Sequence[float]], longest: float, most: int
) -> TotalWait:
    """Estimate the total delay from sampled calls.

    Args:
        calls: The delays of each call, in seconds.
        longest: The longest total delay that is possible, in seconds.
        most: The largest number of retries that is possible.
    """
    totals = sorted(map(saturating_sum, calls))
    # The bounds limit the intervals of a small sample.
    bounded = [0.0, *totals, longest]
    quantiles = tuple(_quantile(bounded, share) for share in _SHARES)
    counts = [len(call) + 1.0 for call in calls]
    return TotalWait(
        quantiles,
        *estimate_mean(totals, longest),
        *estimate_mean(counts, float(most)),
        len(calls),
    )


def _quantile(bounded: Sequence[float], share: float) -> Quantile:
    """Return a quantile of a sorted sample between two bounds."""
    count = len(bounded) - 2
    # The number of values below the quantile is binomially distributed.
    spread = Z_95 * math.sqrt(share * (1 - share) * count)
    rank = share * (count + 1)
    value = bounded[min(max(round(rank), 1), count)]
    low = bounded[max(round(rank - spread), 0)]
    high = bounded[min(round(rank + spread), count + 1)]
    return Quantile(share, value, max(value - low, high - value))


Z_95 = 1.959964
"""Standard deviations around the mean that contain 95 % of a normal distribution."""


def sample_calls(
    policy: Policy,
    retries: int,
    samples: int,
    *,
    allowed: float = math.inf,
    independent: Sequence[Distribution | None] = (),
) -> Iterator[Sequence[float]]:
    """Yield the delays of random calls, without the limits of the policy.

    Args:
        policy: The policy.
        retries: Maximum number of delays of a call.
        samples: Number of calls.
        allowed: The sum of delays after which a call may stop, in seconds.
        independent: The distributions of the delays, if these are independent and no
            limit changes them.
    """
    seed = policy.seed or 0
    if bounds := _bounds(independent):
        yield from _sample_uniform(bounds, seed, samples)
        return
    unlimited = override(policy, max_elapsed=None, deadline="stop")
    for index in range(samples):
        drawn = policy.schedule.draw(seed + index)
        delays = list(_take_until(islice(drawn, retries), allowed))
        if not all(0 <= delay <= MAX_DELAY for delay in delays):
            # Raises the error for an invalid delay.
            walk(unlimited, delays, 0.0, retries)
        yield array("d", delays)


def _sample_uniform(
    bounds: Sequence[tuple[float, float]], seed: int, samples: int
) -> Iterator[Sequence[float]]:
    """Yield delays between bounds, drawn as calls with these seeds draw them."""
    steps = [(low, (high - low) * 2.0**-53) for low, high in bounds]
    for first in range(0, samples, SHARED_CALLS):
        draws = SharedDraws(seed + first)
        columns = [
            [low + step * draw for draw in draws[retry]]
            for retry, (low, step) in enumerate(steps, 1)
        ]
        yield from islice(zip(*columns, strict=True), samples - first)


def _take_until(delays: Iterator[float], allowed: float) -> Iterator[float]:
    """Yield delays up to and including the one that exceeds the allowed sum."""
    total = 0.0
    while total <= allowed and (delay := next(delays, None)) is not None:
        yield delay
        total += delay


def with_means(
    rows: Sequence[RetryRow], calls: Sequence[Sequence[float]]
) -> Iterator[RetryRow]:
    """Yield rows, with unknown means estimated from sampled calls."""
    for row in rows:
        delays: list[float] = []
        if row.mean is None:
            delays = [call[row.retry - 1] for call in calls if len(call) >= row.retry]
        if delays:
            mean, error = estimate_mean(delays, row.high - row.low)
            yield row.replace(mean=mean, mean_error=error)
        else:
            yield row


def estimate_mean(sample: Sequence[float], widest: float) -> tuple[float, float]:
    """Return the mean of a sample, and half the width of its 95 % confidence interval.

    With a single value, half the width is *widest*.
    """
    count = len(sample)
    mean = math.fsum(x / count for x in sample)
    # The division loses bits of subnormal numbers.
    mean = min(max(mean, min(sample)), max(sample))
    if count == 1:
        return mean, widest
    each = Z_95 / math.sqrt(count * (count - 1))
    return mean, math.hypot(*((x - mean) * each for x in sample))
