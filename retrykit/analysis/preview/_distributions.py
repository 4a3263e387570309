"""Mixtures of uniform distributions, and their transformations.

Most delays are fixed, uniform between two bounds, or a mixture of such pieces. Their
means stay exact through clamping and rounding.
"""

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import final

from retrykit._internal.frozen import Frozen
from retrykit.schedules._randomness import MAX_DELAY
from retrykit.schedules._transforms import round_down_to

__all__ = ["Distribution", "Piece", "clamp", "is_point", "mean_of_smaller"]
__all__ += ["mixture", "point", "round_down", "saturating_sum", "scale"]

Piece = tuple[float, float, float]
"""The probability of a piece, and the bounds between which it is uniform."""

# A rounded delay is a mixture of steps; if there are more, only the mean is kept. The
# work of `mean_of_smaller` grows with their square.
_MAX_STEPS = 100


@final
class Distribution(Frozen):
    """The distribution of a delay.

    Attributes:
        mean: The mean delay, in seconds.
        low: The shortest delay, in seconds.
        high: The longest delay, in seconds.
        pieces: The mixture, whose probabilities sum to 1; None if it is not a mixture
            of uniform pieces, has too many of them, or depends on previous delays.
    """

    __slots__ = ("high", "low", "mean", "pieces")
    mean: float
    low: float
    high: float
    pieces: tuple[Piece, ...] | None


def point(delay: float) -> Distribution:
    """Return the distribution of a fixed delay."""
    return Distribution(delay, delay, delay, ((1.0, delay, delay),))


def is_point(distribution: Distribution) -> bool:
    """Return whether a delay is fixed."""
    return distribution.low == distribution.high


def mixture(pieces: Iterable[Piece]) -> Distribution:
    """Return a mixture of pieces whose probabilities sum to 1."""
    parts = tuple(pieces)
    mean = math.fsum(share * (a / 2 + b / 2) for share, a, b in parts)
    low, high = min(a for _, a, _ in parts), max(b for *_, b in parts)
    return Distribution(mean, low, high, parts)


def clamp(distribution: Distribution, low: float, high: float) -> Distribution | None:
    """Return the distribution of a delay clamped to a range; None if unknown."""
    if low <= distribution.low and distribution.high <= high:
        return distribution
    if distribution.pieces is None:
        return None
    return mixture(
        part for piece in distribution.pieces for part in _cut(piece, low, high)
    )


def _cut(piece: Piece, low: float, high: float) -> Iterator[Piece]:
    share, a, b = piece
    if a == b:
        end = min(max(a, low), high)
        yield share, end, end
        return
    below = min(max((low - a) / (b - a), 0.0), 1.0)
    above = min(max((b - high) / (b - a), 0.0), 1.0)
    if below:
        yield share * below, low, low
    if below + above < 1:
        yield share * (1 - below - above), max(a, low), min(b, high)
    if above:
        yield share * above, high, high


def scale(distribution: Distribution, low: float, high: float) -> Distribution:
    """Return the distribution of a delay times an independent uniform factor.

    The factor is between *low* and *high*.
    """
    fixed = low == high or all(a == b for _, a, b in distribution.pieces or ())
    if distribution.pieces is None or not fixed:
        mean = distribution.mean * (low / 2 + high / 2)
        return Distribution(
            mean, distribution.low * low, distribution.high * high, None
        )
    return mixture((share, a * low, b * high) for share, a, b in distribution.pieces)


def round_down(distribution: Distribution, unit: float) -> Distribution | None:
    """Return the distribution of a delay rounded down to a unit; None if unknown."""
    if distribution.pieces is None or distribution.high / unit > 2**53:
        return None
    mean = math.fsum(
        share * (_mean_of_floor(a, b, unit) if a < b else round_down_to(a, unit))
        for share, a, b in distribution.pieces
    )
    steps = None
    if sum((b - a) / unit for _, a, b in distribution.pieces) <= _MAX_STEPS:
        steps = tuple(
            step for piece in distribution.pieces for step in _steps(piece, unit)
        )
    low, high = (
        round_down_to(end, unit) for end in (distribution.low, distribution.high)
    )
    return Distribution(mean, low, high, steps)


def _steps(piece: Piece, unit: float) -> Iterator[Piece]:
    """Yield the fixed delays of a piece that is rounded down, with their shares."""
    share, a, b = piece
    if a == b:
        only = round_down_to(a, unit)
        yield share, only, only
        return
    for step in range(math.floor(a / unit), math.floor(b / unit) + 1):
        start, end = max(a, step * unit), min(b, (step + 1) * unit)
        if start < end:
            yield share * (end - start) / (b - a), step * unit, step * unit


def _mean_of_floor(a: float, b: float, unit: float) -> float:
    """Return the mean of a uniform delay that is rounded down."""
    first = math.floor(a / unit)
    # Relative to the first step, to limit cancellation.
    start, end = a / unit - first, b / unit - first
    if start == end:
        return first * unit
    whole = math.floor(end)
    area = whole * (whole - 1) / 2 + whole * (end - whole)
    return (first + area / (end - start)) * unit


def mean_of_smaller(left: Distribution, right: Distribution) -> float | None:
    """Return the mean of the smaller of two independent delays; None if unknown."""
    if left.pieces is None or right.pieces is None:
        return None
    ends = sorted({end for _, a, b in left.pieces + right.pieces for end in (a, b)})
    # The integral of P(left > x) * P(right > x). Both factors are 1 before the
    # first end and linear between two ends, where Simpson's rule is exact.
    area = ends[0]
    for start, end in pairwise(ends):
        middle = start / 2 + end / 2
        inside = [_above(each, middle) for each in (left, right)]
        first = [_above(each, start) for each in (left, right)]
        last = [2 * m - f for m, f in zip(inside, first, strict=True)]
        products = first[0] * first[1] + 4 * inside[0] * inside[1] + last[0] * last[1]
        area += (end - start) * products / 6
    return area


def _above(distribution: Distribution, delay: float) -> float:
    """Return the probability that a random delay is longer than *delay*."""
    return math.fsum(
        share * (float(b > delay) if a == b else min(max((b - delay) / (b - a), 0), 1))
        for share, a, b in distribution.pieces or ()
    )


def saturating_sum(delays: Iterable[float]) -> float:
    """Return the sum of delays, at most the largest float."""
    try:
        return math.fsum(delays)
    except OverflowError:
        return MAX_DELAY
