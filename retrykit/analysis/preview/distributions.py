"""How a number is spread, and what becomes of that when the number changes.

Most delays are one number, or spread evenly between two, or a mixture of such
pieces; then their mean is exact, whatever is cut off or rounded later. Nothing
here knows of schedules.
"""

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import final

from retrykit._internal.frozen import Frozen
from retrykit.schedules.randomness import MAX_DELAY
from retrykit.schedules.transforms import round_down_to

__all__ = ["Piece", "Spread", "clamped", "is_one", "least", "mixed", "one"]
__all__ += ["rounded", "scaled", "total"]

Piece = tuple[float, float, float]
"""A share of all draws, and the ends between which it is spread evenly."""

# A rounded delay is a mixture of its steps; beyond this many only their mean
# is worked out. The work of `least` grows with their square.
_STEPS = 100


@final
class Spread(Frozen):
    """The spread of a delay.

    Attributes:
        mean: Seconds.
        low: The shortest delay, in seconds.
        high: The longest delay, in seconds.
        pieces: What it is a mixture of, their shares summing to 1; None where
            it is no mixture of even pieces. A delay that depends on those
            before it has none.
    """

    __slots__ = ("high", "low", "mean", "pieces")
    mean: float
    low: float
    high: float
    pieces: tuple[Piece, ...] | None


def one(delay: float) -> Spread:
    """Return the spread of what is always the same."""
    return Spread(delay, delay, delay, ((1.0, delay, delay),))


def mixed(pieces: Iterable[Piece]) -> Spread:
    """Return the spread of a mixture, whose shares sum to 1."""
    known = tuple(pieces)
    mean = math.fsum(share * (a / 2 + b / 2) for share, a, b in known)
    return Spread(mean, min(a for _, a, _ in known), max(b for *_, b in known), known)


def is_one(known: Spread) -> bool:
    """Return whether nothing is left to chance."""
    return known.low == known.high


def clamped(known: Spread, low: float, high: float) -> Spread | None:
    """Return what is left where nothing may lie outside of two ends."""
    if low <= known.low and known.high <= high:
        return known
    if known.pieces is None:
        return None
    return mixed(part for piece in known.pieces for part in _cut(piece, low, high))


def _cut(piece: Piece, low: float, high: float) -> Iterator[Piece]:
    """Give the parts of a piece of which nothing lies outside of two ends."""
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


def scaled(known: Spread, shortest: float, longest: float) -> Spread:
    """Return the spread of a delay times a chance between two factors."""
    steady = shortest == longest or all(a == b for _, a, b in known.pieces or ())
    if known.pieces is None or not steady:
        mean = known.mean * (shortest / 2 + longest / 2)
        return Spread(mean, known.low * shortest, known.high * longest, None)
    return mixed((share, a * shortest, b * longest) for share, a, b in known.pieces)


def rounded(known: Spread, unit: float) -> Spread | None:
    """Return what is left where all is cut to whole times a unit."""
    if known.pieces is None or known.high / unit > 2**53:
        return None
    mean = math.fsum(
        share * (_mean_of_floor(a, b, unit) if a < b else round_down_to(a, unit))
        for share, a, b in known.pieces
    )
    steps = None
    if sum((b - a) / unit for _, a, b in known.pieces) <= _STEPS:
        steps = tuple(step for piece in known.pieces for step in _steps(piece, unit))
    low, high = (round_down_to(end, unit) for end in (known.low, known.high))
    return Spread(mean, low, high, steps)


def _steps(piece: Piece, unit: float) -> Iterator[Piece]:
    """Give the single delays that a rounded piece is made of."""
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
    """Return the mean of what lies evenly between two ends, rounded down."""
    first = math.floor(a / unit)
    # Counted from the first step, so that little is lost in the difference.
    start, end = a / unit - first, b / unit - first
    if start == end:
        return first * unit
    whole = math.floor(end)
    area = whole * (whole - 1) / 2 + whole * (end - whole)
    return (first + area / (end - start)) * unit


def least(left: Spread, right: Spread) -> float | None:
    """Return the mean of the smaller of two delays that do not know each other."""
    if left.pieces is None or right.pieces is None:
        return None
    ends = sorted({end for _, a, b in left.pieces + right.pieces for end in (a, b)})
    # What is above zero but below the first end is longer for certain. Between
    # two ends both shares are straight lines, of whose product Simpson's rule
    # gives the exact area.
    area = ends[0]
    for start, end in pairwise(ends):
        middle = start / 2 + end / 2
        inside = [_above(each, middle) for each in (left, right)]
        first = [_above(each, start) for each in (left, right)]
        last = [2 * m - f for m, f in zip(inside, first, strict=True)]
        products = first[0] * first[1] + 4 * inside[0] * inside[1] + last[0] * last[1]
        area += (end - start) * products / 6
    return area


def _above(known: Spread, delay: float) -> float:
    """Return the share that is longer than a delay."""
    return math.fsum(
        share * (float(b > delay) if a == b else min(max((b - delay) / (b - a), 0), 1))
        for share, a, b in known.pieces or ()
    )


def total(delays: Iterable[float]) -> float:
    """Return the sum of delays, or the largest float if that is less."""
    try:
        return math.fsum(delays)
    except OverflowError:
        return MAX_DELAY
