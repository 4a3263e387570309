"""Exact distribution of the delay before each retry of a schedule.

Each kind of schedule that is made of others, or has random delays with a formula, has
a function.
"""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from retrykit.analysis.preview._distributions import (
    Distribution,
    clamp,
    is_point,
    mean_of_smaller,
    mixture,
    point,
    round_down,
    scale,
)
from retrykit.schedules._base import Schedule, iter_parts
from retrykit.schedules._randomized import MAX_MILLISECONDS
from retrykit.schedules._randomness import MAX_DELAY

__all__ = ["delay_distributions"]

_Result = Distribution | None

# The work grows with the square of the number of parts; larger schedules are
# sampled instead.
_MAX_PARTS = 30

# Near the largest float, the formulas do not hold.
_TOO_LONG = MAX_DELAY / 16

# The previous delay of the first retry.
_NO_DELAY = point(0.0)


def delay_distributions(schedule: Schedule) -> Iterator[_Result]:
    """Yield the distribution of each delay of a schedule, in order.

    >>> from retrykit.schedules import constant
    >>> first = next(delay_distributions(constant(4).full_jitter().cap(3)))
    >>> first.mean, first.pieces
    (1.875, ((0.75, 0.0, 3.0), (0.25, 3.0, 3.0)))

    Returns:
        A one-shot iterator, endless if the schedule is. It yields None for a delay
        without a formula.
    """
    previous: _Result = _NO_DELAY
    simple = sum(1 for _ in iter_parts(schedule)) <= _MAX_PARTS
    for retry in count(1):  # pragma: no branch  (a count has no end)
        bounds = schedule.bounds(retry)
        if bounds is None:
            return
        if simple:
            previous = _distribution(schedule, retry, previous)
        else:
            previous = point(float(bounds[0])) if bounds[0] == bounds[1] else None
        yield previous


def _distribution(schedule: Schedule, retry: int, previous: _Result) -> _Result:
    """Return the distribution of one delay; None if there is no formula.

    Args:
        schedule: The schedule, which has a delay for the retry.
        retry: The number of the retry, from 1.
        previous: The distribution of the previous delay; None if it is unknown.
    """
    low, high = map(float, schedule.bounds(retry) or (0.0, 0.0))
    if low == high:
        return point(low)
    compute = _KINDS.get(schedule.kind)
    if compute is None or high > _TOO_LONG:
        return None
    result = compute(schedule, retry, previous)
    # Rounding can carry a mean past the bounds by a few units in the last place.
    return result and result.replace(mean=min(max(result.mean, low), high))


_Compute = Callable[[Any, int, _Result], _Result]


def _of(transform: Callable[[Any, Distribution], _Result]) -> _Compute:
    def compute(schedule: Any, retry: int, previous: _Result) -> _Result:
        inner = _distribution(schedule.of, retry, previous)
        return inner and transform(schedule, inner)

    return compute


def _then(schedule: Any, retry: int, previous: _Result) -> _Result:
    if schedule.of.bounds(retry) is not None:
        return _distribution(schedule.of, retry, previous)
    later = schedule.later(retry)
    return _distribution(schedule.other, later, previous if later > 1 else _NO_DELAY)


def _switch(schedule: Any, retry: int, previous: _Result) -> _Result:
    part = schedule.of if retry <= schedule.after else schedule.to
    return _distribution(part, retry, previous)


def _sum(schedule: Any, retry: int, previous: _Result) -> _Result:
    left = _distribution(schedule.left, retry, previous)
    right = _distribution(schedule.right, retry, previous)
    if left is None or right is None:
        return None
    if is_point(left):
        left, right = right, left
    pieces, more = left.pieces, right.low
    if pieces is not None and is_point(right):
        return mixture((share, a + more, b + more) for share, a, b in pieces)
    low, high = schedule.bounds(retry)
    return Distribution(left.mean + right.mean, low, high, None)


def _union_or_intersection(schedule: Any, retry: int, previous: _Result) -> _Result:
    union = schedule.kind == "union"
    # A union may continue with one of its parts; an intersection needs both.
    parts = [part for part in (schedule.left, schedule.right) if part.bounds(retry)]
    if len(parts) == 1:
        return _distribution(parts[0], retry, previous)
    left, right = (_distribution(part, retry, previous) for part in parts)
    if left is None or right is None:
        return None
    if is_point(left):
        left, right = right, left
    if is_point(right):
        low, high = (0.0, right.low) if union else (right.low, MAX_DELAY)
        return clamp(left, low, high)
    if left.high <= right.low or right.high <= left.low:
        return left if (left.high <= right.low) == union else right
    mean = mean_of_smaller(left, right)
    pick = min if union else max
    if mean is not None and not union:
        # The smaller and the larger delay have the same sum as the two delays.
        mean = left.mean - mean + right.mean
    low, high = pick(left.low, right.low), pick(left.high, right.high)
    return None if mean is None else Distribution(mean, low, high, None)


def _uniform(schedule: Any, _retry: int, _previous: _Result) -> _Result:
    return mixture([(1.0, schedule.low, schedule.high)])


def _decorrelated(schedule: Any, retry: int, previous: _Result) -> _Result:
    low, high = schedule.bounds(retry)
    start = previous and clamp(previous, low, MAX_DELAY)
    top = start and clamp(scale(start, schedule.factor, schedule.factor), 0.0, high)
    if top is None:
        return None
    pieces = ((1.0, low, top.high),) if is_point(top) else None
    return Distribution(low / 2 + top.mean / 2, low, top.high, pieces)


def _google(schedule: Any, retry: int, _previous: _Result) -> _Result:
    # A draw is truncated to whole milliseconds.
    interval = schedule.interval(retry)
    delta = schedule.randomization_factor * interval
    drawn = mixture([(1.0, interval - delta, interval + delta + 1)])
    capped = clamp(drawn, 0.0, MAX_MILLISECONDS)
    rounded = capped and round_down(capped, 1.0)
    steps = rounded and rounded.pieces
    pieces = steps and tuple((p, a / 1000, b / 1000) for p, a, b in steps)
    low, high = schedule.bounds(retry)
    return rounded and Distribution(rounded.mean / 1000, low, high, pieces)


_KINDS: dict[str, _Compute] = {
    "cap": _of(lambda s, inner: clamp(inner, 0.0, s.limit)),
    "at_least": _of(lambda s, inner: clamp(inner, s.limit, MAX_DELAY)),
    "round_down": _of(lambda s, inner: round_down(inner, s.unit)),
    "scale": _of(lambda s, inner: scale(inner, s.factor, s.factor)),
    "full_jitter": _of(lambda _, inner: scale(inner, 0.0, 1.0)),
    "equal_jitter": _of(lambda _, inner: scale(inner, 0.5, 1.0)),
    "jitter": _of(lambda s, inner: scale(inner, 1 - s.factor, 1 + s.factor)),
    "take": _of(lambda _, inner: inner),
    "within": _of(lambda _, inner: inner),
    "then": _then,
    "switch": _switch,
    "sum": _sum,
    "union": _union_or_intersection,
    "intersection": _union_or_intersection,
    "uniform": _uniform,
    "decorrelated": _decorrelated,
    "google_interval": _google,
}
