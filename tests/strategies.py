"""What properties are tested with: any duration, any schedule, any policy."""

from hypothesis import settings, strategies as st

from retrykit import Policy, schedules as s
from retrykit.jitter import LONGEST

__all__ = ["durations", "policies", "quick", "schedules", "seeds"]

# The same examples in each run: a suite that fails at times helps nobody.
quick = settings(max_examples=100, deadline=None, derandomize=True)

ORDINARY = [0.0, 0.001, 0.1, 0.5, 1.0, 1.5, 60.0, 14_400.0]
EXTREME = [5e-324, 1e-300, 2.0**53, 1e300, LONGEST]


def durations(at_least=0.0, at_most=LONGEST):
    """Draw seconds: ordinary ones, extreme ones, and anything between."""
    known = [x for x in ORDINARY + EXTREME if at_least <= x <= at_most]
    usual = min(max(1e6, at_least), at_most)
    drawn = st.floats(at_least, usual) | st.floats(at_least, at_most)
    return st.sampled_from(known) | drawn if known else drawn


def seeds():
    """Draw the seeds that a call can have."""
    return st.integers(0, 2**53 - 1)


def schedules(*, walking=True, rounding=True, max_leaves=5):
    """Draw schedules of every kind and every nesting.

    Args:
        walking: Whether `decorrelated` is among them, whose delays depend on
            the delays before.
        rounding: Whether `round_down` is, at whose steps a delay jumps.
        max_leaves: How many constructors may be in one expression.
    """
    return st.recursive(
        _formulas(walking=walking),
        lambda parts: _methods(parts, rounding=rounding) | _operators(parts),
        max_leaves=max_leaves,
    )


def policies():
    """Draw policies that are made of retrykit's own parts."""
    limited = st.fixed_dictionaries(
        {"max_elapsed": durations()},
        optional={"deadline": st.sampled_from(["stop", "clip", "overshoot"])},
    )
    limits = limited | st.sampled_from([{}, {"max_elapsed": None}])
    others = st.fixed_dictionaries(
        {},
        optional={
            "schedule": schedules(),
            "max_attempts": st.none() | st.integers(1, 10**6),
            "on": st.sampled_from([OSError, (ConnectionError, TimeoutError)]),
            "give_up_on": st.sampled_from([BrokenPipeError, (FileExistsError,)]),
            "raises": st.sampled_from(["last", "retry_error", "group"]),
            "max_failures": st.integers(2, 10**6),
            "seed": seeds(),
            "name": st.sampled_from(["fetch", "verify a hostname"]),
        },
    )
    return st.builds(lambda a, b: Policy(**a, **b), limits, others)


def _formulas(*, walking):
    factors = st.just(1.0) | st.floats(1, 1e300)
    # The original keeps milliseconds in 32 bits.
    intervals = durations(0.001, 2_147_483.647)
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
    return st.one_of(kinds)


def _methods(parts, *, rounding):
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


def _operators(parts):
    return st.builds(
        lambda join, left, right: join(left, right),
        st.sampled_from(
            [s.Schedule.__add__, s.Schedule.__or__, s.Schedule.__and__],
        ),
        parts,
        parts,
    )
