"""Calls that are drawn, for what has no formula; always the same ones.

Each of them is a function of its seed. What they show is told with the error
that a sample of that size has; what is done with it is not known here.
"""

import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice

from retrykit.analysis.preview.projection import RetryRow, walk
from retrykit.policy.policy import Policy
from retrykit.schedules.randomness import MAX_DELAY

__all__ = ["SIGMAS", "drawn", "mean_of", "with_means"]

SIGMAS = 1.959964
"""How far 95 % of a normal distribution lie from its middle."""


def drawn(
    policy: Policy, retries: int, samples: int, *, allowed: float = math.inf
) -> Iterator[Sequence[float]]:
    """Give the delays of calls, of those that its schedule gives up to a retry.

    Args:
        policy: Its seed is that of the first call; without one it is 0.
        retries: Count, >= 0.
        samples: How many calls. Count, >= 0.
        allowed: Delays in all, in seconds, beyond which no more are asked for.

    Raises:
        ConfigError: The user's own schedule gave what is no delay.
    """
    timeless = policy.replace(max_elapsed=None, deadline="stop")
    for number in range(samples):
        chance = policy.schedule.draw((policy.seed or 0) + number)
        delays = list(_until(islice(chance, retries), allowed))
        if not all(0 <= delay <= MAX_DELAY for delay in delays):
            # The decision knows how to refuse them.
            walk(timeless, delays, 0.0, retries)
        yield array("d", delays)


def _until(delays: Iterator[float], allowed: float) -> Iterator[float]:
    """Give delays up to the one whose sum with those before it is too long."""
    passed = 0.0
    while passed <= allowed and (delay := next(delays, None)) is not None:
        yield delay
        passed += delay


def with_means(
    rows: Sequence[RetryRow], calls: Sequence[Sequence[float]]
) -> Iterator[RetryRow]:
    """Give rows, whose means are those of a sample where they are not known."""
    for row in rows:
        column: list[float] = []
        if row.mean is None:
            column = [call[row.retry - 1] for call in calls if len(call) >= row.retry]
        if column:
            mean, error = mean_of(column, row.high - row.low)
            yield row.replace(mean=mean, mean_error=error)
        else:
            yield row


def mean_of(sample: Sequence[float], widest: float) -> tuple[float, float]:
    """Return the mean of a sample, and its error at a confidence of 95 %.

    Args:
        sample: Numbers, at least one.
        widest: The error where there is but one, which shows none.
    """
    count = len(sample)
    mean = math.fsum(x / count for x in sample)
    # Parts of the smallest floats are lost in the division.
    mean = min(max(mean, min(sample)), max(sample))
    if count == 1:
        return mean, widest
    each = SIGMAS / math.sqrt(count * (count - 1))
    return mean, math.hypot(*((x - mean) * each for x in sample))
