"""Seeded Monte Carlo samples, where no closed form exists."""

import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice

from retrykit.analysis.preview.projection import RetryRow, walk
from retrykit.policy.policy import Policy
from retrykit.schedules.randomness import MAX_DELAY

__all__ = ["Z_95", "estimate_mean", "sample_calls", "with_means"]

Z_95 = 1.959964
"""Standard deviations around the mean that contain 95 % of a normal distribution."""


def sample_calls(
    policy: Policy, retries: int, samples: int, *, allowed: float = math.inf
) -> Iterator[Sequence[float]]:
    """Yield the delays of random calls, as the schedule gives them."""
    timeless = policy.replace(max_elapsed=None, deadline="stop")
    for index in range(samples):
        drawn = policy.schedule.draw((policy.seed or 0) + index)
        delays = list(_take_until(islice(drawn, retries), allowed))
        if not all(0 <= delay <= MAX_DELAY for delay in delays):
            # The decision raises the error for them.
            walk(timeless, delays, 0.0, retries)
        yield array("d", delays)


def _take_until(delays: Iterator[float], allowed: float) -> Iterator[float]:
    """Yield delays up to and including the one that exceeds the allowed sum."""
    total = 0.0
    while total <= allowed and (delay := next(delays, None)) is not None:
        yield delay
        total += delay


def with_means(
    rows: Sequence[RetryRow], calls: Sequence[Sequence[float]]
) -> Iterator[RetryRow]:
    """Yield rows, with the means of a sample where they are unknown."""
    for row in rows:
        column: list[float] = []
        if row.mean is None:
            column = [call[row.retry - 1] for call in calls if len(call) >= row.retry]
        if column:
            mean, error = estimate_mean(column, row.high - row.low)
            yield row.replace(mean=mean, mean_error=error)
        else:
            yield row


def estimate_mean(sample: Sequence[float], widest: float) -> tuple[float, float]:
    """Return the mean of a sample, and half its 95 % confidence interval."""
    count = len(sample)
    mean = math.fsum(x / count for x in sample)
    # The division loses bits of subnormal numbers.
    mean = min(max(mean, min(sample)), max(sample))
    if count == 1:
        return mean, widest
    each = Z_95 / math.sqrt(count * (count - 1))
    return mean, math.hypot(*((x - mean) * each for x in sample))
