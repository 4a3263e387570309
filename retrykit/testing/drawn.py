"""What drawn policies are made of: durations, and schedules of every kind.

`retrykit.testing.strategies` is where a user finds them.
"""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from retrykit import schedules as s
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import check_number
from retrykit.schedules import Schedule
from retrykit.schedules.randomized import MAX_INTERVAL
from retrykit.schedules.randomness import MAX_DELAY

__all__ = ["durations", "formulas", "methods", "operators"]

_ORDINARY = [0.0, 0.001, 0.1, 0.5, 1.0, 1.5, 60.0, 14_400.0]
_EXTREME = [5e-324, 1e-300, 2.0**53, 1e300, MAX_DELAY]


def durations(
    at_least: Duration = 0.0, at_most: Duration = MAX_DELAY
) -> SearchStrategy[float]:
    """Draw seconds: ordinary ones, extreme ones, and anything between.

    >>> from hypothesis import find
    >>> find(durations("1m", "2h"), lambda seconds: seconds > 60)
    61.0

    Args:
        at_least: Shortest duration drawn. Seconds, timedelta or text, >= 0.
        at_most: Longest duration drawn. Seconds, timedelta or text, >=
            *at_least*; by default the largest float, where delays saturate.

    Returns:
        A strategy for floats, in seconds, both bounds included.

    Raises:
        ConfigError: A bound is no duration, or the longest is the shorter one.
    """
    low, high = parse_duration("at_least", at_least), parse_duration("at_most", at_most)
    check_number("at_most", high, at_least=low)
    known = [x for x in _ORDINARY + _EXTREME if low <= x <= high]
    usual = min(max(1e6, low), high)
    drawn = st.floats(low, usual) | st.floats(low, high)
    return st.sampled_from(known) | drawn if known else drawn


def formulas(*, walking: bool) -> SearchStrategy[Schedule]:
    """Draw what a constructor makes; of walks, only if *walking*."""
    factors = st.just(1.0) | st.floats(1, 1e300)
    intervals = durations(0.001, MAX_INTERVAL)
    # So that the interval is at its maximum after few steps.
    multipliers = st.just(1.0) | st.floats(1.25, 1e300)
    kinds = [
        st.builds(s.constant, durations()),
        st.builds(s.linear, durations()),
        st.builds(s.exponential, durations(), factor=factors),
        st.builds(s.polynomial, st.floats(0, 400), first=durations()),
        st.builds(s.fibonacci, durations()),
        st.builds(s.sequence, st.lists(durations(), max_size=6)),
        st.builds(
            lambda two, part, growth: s.google_interval(
                min(two),
                randomization_factor=part,
                multiplier=growth,
                max_interval=max(two),
            ),
            st.tuples(intervals, intervals),
            st.floats(0, 1, exclude_max=True),
            multipliers,
        ),
    ]
    if walking:
        kinds.append(st.builds(s.decorrelated, durations(), factor=factors))
        kinds.append(st.builds(s.polly_interval, durations()))
    return st.one_of(kinds)


def methods(
    parts: SearchStrategy[Schedule], *, rounding: bool
) -> SearchStrategy[Schedule]:
    """Draw what a method makes of *parts*; `round_down`, only if *rounding*."""
    counts = st.integers(0, 40)
    total = durations(at_least=0.001)
    kinds = [
        st.builds(s.Schedule.cap, parts, durations()),
        st.builds(s.Schedule.at_least, parts, durations()),
        st.builds(s.Schedule.take, parts, counts),
        st.builds(s.Schedule.full_jitter, parts),
        st.builds(s.Schedule.equal_jitter, parts),
        st.builds(s.Schedule.jitter, parts, st.floats(0, 1)),
        st.builds(s.Schedule.__mul__, parts, durations()),
        st.builds(s.Schedule.switch, parts, after=counts, to=parts),
        st.builds(lambda a, n, b: a.take(n).then(b), parts, counts, parts),
        # It is asked delay by delay, so that its end must not be far away.
        st.builds(lambda a, t: a.at_least(t / 30).within(t), parts, total),
    ]
    if rounding:
        units = durations(at_least=5e-324)
        kinds.append(st.builds(s.Schedule.round_down, parts, units))
    return st.one_of(kinds)


def operators(parts: SearchStrategy[Schedule]) -> SearchStrategy[Schedule]:
    """Draw what an operator makes of two of *parts*."""
    return st.builds(
        lambda join, left, right: join(left, right),
        st.sampled_from(
            [s.Schedule.__add__, s.Schedule.__or__, s.Schedule.__and__],
        ),
        parts,
        parts,
    )
