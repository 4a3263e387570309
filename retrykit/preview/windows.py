"""How long a call waits in all before it gives up: exactly, or by a sample.

The sum of delays that are each spread evenly has a formula; where it has too
many terms, or delays depend on each other or on a limit, calls are drawn with
known seeds and held to the decision of live calls.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import final

from retrykit._decide import decide
from retrykit.jitter import LONGEST
from retrykit.preview.spreads import Spread
from retrykit.settings import Settings
from retrykit.state import Failure, RetryState, StopReason
from retrykit.values import Value

__all__ = ["Quantile", "Window", "exact_window", "mean_of", "sampled_window"]

# The formula has two to that many terms, each of them a fraction of long numbers.
_MOST = 8
_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
# Of 95 % of a normal distribution.
_SIGMAS = 1.959964


@final
class Quantile(Value):
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
class Window(Value):
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


def exact_window(spreads: Sequence[Spread | None]) -> Window | None:
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
    widths = [Fraction(b) - Fraction(a) for a, b in even if a < b]
    if not single or len(widths) > _MOST:
        return None
    lowest = math.fsum(a for a, _ in even)
    quantiles = (Quantile(p, lowest + _inverted(widths, p), 0.0) for p in _SHARES)
    mean = math.fsum(a / 2 + b / 2 for a, b in even)
    return Window(tuple(quantiles), mean, 0.0, len(spreads) + 1.0, 0.0, 0)


def _inverted(widths: list[Fraction], share: float) -> float:
    """Return what a sum of numbers between 0 and each width does not exceed."""
    count = len(widths)
    corners = [
        (
            (-1) ** sum(chosen),
            sum((w for w, c in zip(widths, chosen, strict=True) if c), Fraction()),
        )
        for chosen in product((0, 1), repeat=count)
    ]
    volume = math.factorial(count) * math.prod(widths)
    low, high = 0.0, float(sum(widths))
    while low < (middle := low / 2 + high / 2) < high:
        at = Fraction(middle)
        below = sum(
            sign * (at - corner) ** count for sign, corner in corners if corner < at
        )
        low, high = (middle, high) if below < share * volume else (low, middle)
    return high


def sampled_window(
    policy: Settings, attempt: float, samples: int, progress: Callable[[], object]
) -> Window:
    """Return the window as calls show it that are drawn.

    Args:
        policy: What they are held to; it must end them.
        attempt: How long each attempt takes, in seconds.
        samples: How many are drawn. Count, >= 1.
        progress: Called after each of them.
    """
    totals, calls = [], []
    for number in range(samples):
        state = _drawn(policy, attempt, (policy.seed or 0) + number)
        totals.append(min(state.slept, LONGEST))
        calls.append(state.attempt)
        progress()
    totals.sort()
    quantiles = tuple(_quantile(totals, share) for share in _SHARES)
    return Window(quantiles, *mean_of(totals), *mean_of(calls), samples)


def _drawn(policy: Settings, attempt: float, seed: int) -> RetryState:
    """Return the state at the end of a call that fails every time."""
    state = RetryState("", seed, epoch=0.0, max_failures=2)
    while True:
        elapsed = state.slept + state.attempt * attempt
        follows = decide(policy, state, state.attempt, elapsed)
        if isinstance(follows, StopReason):
            return state
        state.record(Failure(state.attempt, None, None, 0.0, attempt, follows))
        state.begin_attempt()


def _quantile(totals: Sequence[float], share: float) -> Quantile:
    last = len(totals) - 1
    # How many of a sample lie below its quantile is binomially distributed.
    spread = _SIGMAS * math.sqrt(share * (1 - share) * len(totals))
    ranks = (share * last + side for side in (-spread, 0, spread))
    low, value, high = (totals[min(max(round(rank), 0), last)] for rank in ranks)
    return Quantile(share, value, max(value - low, high - value))


def mean_of(sample: Sequence[float]) -> tuple[float, float]:
    """Return the mean of a sample, and its error at a confidence of 95 %.

    Args:
        sample: Numbers, at least one.
    """
    mean = math.fsum(x / len(sample) for x in sample)
    squares = math.fsum((x - mean) ** 2 for x in sample)
    spread = math.sqrt(squares / max(len(sample) - 1, 1))
    return mean, _SIGMAS * spread / math.sqrt(len(sample))
