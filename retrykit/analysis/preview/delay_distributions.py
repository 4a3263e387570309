"""How the delay before a retry is spread, worked out and not sampled.

One function for each kind of schedule that changes what it is made of. It
knows nothing of policies, and of schedules of the user's own nothing at all.
"""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from retrykit.analysis.preview.distributions import (
    Spread,
    clamped,
    is_one,
    least,
    mixed,
    one,
    rounded,
    scaled,
)
from retrykit.schedules.base import Schedule, iter_parts
from retrykit.schedules.randomness import MAX_DELAY

__all__ = ["spreads"]

# The work grows with the square of how many schedules one is made of: of one that
# is made of more no spread is worked out, and calls are drawn.
_MOST_PARTS = 30


def spreads(schedule: Schedule) -> Iterator[Spread | None]:
    """Give the spread of each delay of a schedule, in order.

    >>> from retrykit.schedules import constant
    >>> next(spreads(constant(4).full_jitter().cap(3)))
    Spread(mean=1.875, low=0.0, high=3.0, pieces=((0.75, 0.0, 3.0), (0.25, 3.0, 3.0)))

    Returns:
        A one-shot iterator, endless if the schedule is; None in it stands for
        a spread that cannot be worked out.
    """
    previous: Spread | None = _NONE_BEFORE
    simple = sum(1 for _ in iter_parts(schedule)) <= _MOST_PARTS
    for retry in count(1):  # pragma: no branch  (a count has no end)
        bounds = schedule.bounds(retry)
        if bounds is None:
            return
        if simple:
            previous = _spread(schedule, retry, previous)
        else:
            previous = one(float(bounds[0])) if bounds[0] == bounds[1] else None
        yield previous


def _spread(schedule: Schedule, retry: int, previous: Spread | None) -> Spread | None:
    """Return the spread of one delay, of a schedule that has not ended yet.

    Args:
        schedule: The schedule.
        retry: Number of the retry, >= 1.
        previous: The spread of the delay before; None where it is not known.
    """
    low, high = map(float, schedule.bounds(retry) or (0.0, 0.0))
    if low == high:
        return one(low)
    known = _KINDS.get(schedule.kind)
    if known is None or high > _FAR:
        return None
    found = known(schedule, retry, previous)
    # Rounding can carry a mean past the ends by a few steps of the float.
    return found and found.replace(mean=min(max(found.mean, low), high))


# Where delays saturate, or nearly so, formulas do not hold.
_FAR = MAX_DELAY / 16
# What stands for the delay before the first retry.
_NONE_BEFORE = one(0.0)


_Known = Callable[[Any, int, Spread | None], Spread | None]


def _of(change: Callable[[Any, Spread], Spread | None]) -> _Known:
    def known(schedule: Any, retry: int, previous: Spread | None) -> Spread | None:
        inner = _spread(schedule.of, retry, previous)
        return inner and change(schedule, inner)

    return known


def _then(schedule: Any, retry: int, previous: Spread | None) -> Spread | None:
    if schedule.of.bounds(retry) is not None:
        return _spread(schedule.of, retry, previous)
    later = schedule.later(retry)
    return _spread(schedule.other, later, previous if later > 1 else _NONE_BEFORE)


def _switch(schedule: Any, retry: int, previous: Spread | None) -> Spread | None:
    part = schedule.of if retry <= schedule.after else schedule.to
    return _spread(part, retry, previous)


def _plus(schedule: Any, retry: int, previous: Spread | None) -> Spread | None:
    left = _spread(schedule.left, retry, previous)
    right = _spread(schedule.right, retry, previous)
    if left is None or right is None:
        return None
    if is_one(left):
        left, right = right, left
    pieces, more = left.pieces, right.low
    if pieces is not None and is_one(right):
        return mixed((share, a + more, b + more) for share, a, b in pieces)
    low, high = schedule.bounds(retry)
    return Spread(left.mean + right.mean, low, high, None)


def _smaller(schedule: Any, retry: int, previous: Spread | None) -> Spread | None:
    going = [part for part in (schedule.left, schedule.right) if part.bounds(retry)]
    if len(going) == 1:
        return _spread(going[0], retry, previous)
    left, right = (_spread(part, retry, previous) for part in going)
    if left is None or right is None:
        return None
    if is_one(right) or is_one(left):
        single, other = (right, left) if is_one(right) else (left, right)
        return clamped(other, 0.0, single.low)
    if left.high <= right.low or right.high <= left.low:
        return left if left.high <= right.low else right
    mean = least(left, right)
    low, high = min(left.low, right.low), min(left.high, right.high)
    return None if mean is None else Spread(mean, low, high, None)


def _larger(schedule: Any, retry: int, previous: Spread | None) -> Spread | None:
    left = _spread(schedule.left, retry, previous)
    right = _spread(schedule.right, retry, previous)
    if left is None or right is None:
        return None
    if is_one(right) or is_one(left):
        single, other = (right, left) if is_one(right) else (left, right)
        return clamped(other, single.low, MAX_DELAY)
    if left.high <= right.low or right.high <= left.low:
        return right if left.high <= right.low else left
    smaller = least(left, right)
    if smaller is None:
        return None
    # Of two delays, the smaller and the larger are as much as both.
    mean = left.mean - smaller + right.mean
    low, high = max(left.low, right.low), max(left.high, right.high)
    return Spread(mean, low, high, None)


def _walk(schedule: Any, retry: int, previous: Spread | None) -> Spread | None:
    low, high = schedule.bounds(retry)
    start = previous and clamped(previous, low, MAX_DELAY)
    top = start and clamped(scaled(start, schedule.factor, schedule.factor), 0.0, high)
    if top is None:
        return None
    pieces = ((1.0, low, top.high),) if is_one(top) else None
    return Spread(low / 2 + top.mean / 2, low, top.high, pieces)


def _google(schedule: Any, retry: int, _previous: Spread | None) -> Spread | None:
    # The draw is even over all whole milliseconds that it may be cut to.
    interval = schedule.interval(retry)
    delta = schedule.randomization_factor * interval
    drawn = mixed([(1.0, interval - delta, interval + delta + 1)])
    cut = rounded(drawn, 1.0)
    steps = cut and cut.pieces
    pieces = steps and tuple((p, a / 1000, b / 1000) for p, a, b in steps)
    low, high = schedule.bounds(retry)
    return cut and Spread(cut.mean / 1000, low, high, pieces)


_KINDS: dict[str, _Known] = {
    "cap": _of(lambda s, inner: clamped(inner, 0.0, s.limit)),
    "at_least": _of(lambda s, inner: clamped(inner, s.limit, MAX_DELAY)),
    "round_down": _of(lambda s, inner: rounded(inner, s.unit)),
    "scale": _of(lambda s, inner: scaled(inner, s.factor, s.factor)),
    "full_jitter": _of(lambda _, inner: scaled(inner, 0.0, 1.0)),
    "equal_jitter": _of(lambda _, inner: scaled(inner, 0.5, 1.0)),
    "jitter": _of(lambda s, inner: scaled(inner, 1 - s.factor, 1 + s.factor)),
    "take": _of(lambda _, inner: inner),
    "within": _of(lambda _, inner: inner),
    "then": _then,
    "switch": _switch,
    "sum": _plus,
    "union": _smaller,
    "intersection": _larger,
    "decorrelated": _walk,
    "google_interval": _google,
}
