"""What properties of retrying are tested with: strategies for hypothesis.

Durations, seeds, schedules and whole policies, ordinary and extreme ones, and
scripts for a function that fails. All of them are made of retrykit's own parts,
so they compare, print as expressions and can be written as data. Needs the
library hypothesis; nothing here knows how a call is made.
"""

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from retrykit import schedules as s
from retrykit.checks import instance, number, refuse, whole
from retrykit.durations import Duration, seconds
from retrykit.formulas import LONGEST_INTERVAL
from retrykit.hints import attribute, first_of, milliseconds, retry_after
from retrykit.jitter import LONGEST
from retrykit.policy import Policy
from retrykit.rules import Rule
from retrykit.schedules import Schedule, ScheduleLike

__all__ = ["durations", "failure_scripts", "policies", "schedules", "seeds"]

_ORDINARY = [0.0, 0.001, 0.1, 0.5, 1.0, 1.5, 60.0, 14_400.0]
_EXTREME = [5e-324, 1e-300, 2.0**53, 1e300, LONGEST]


def durations(
    at_least: Duration = 0.0, at_most: Duration = LONGEST
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
    low, high = seconds("at_least", at_least), seconds("at_most", at_most)
    number("at_most", high, at_least=low)
    known = [x for x in _ORDINARY + _EXTREME if low <= x <= high]
    usual = min(max(1e6, low), high)
    drawn = st.floats(low, usual) | st.floats(low, high)
    return st.sampled_from(known) | drawn if known else drawn


def seeds() -> SearchStrategy[int]:
    """Draw the seeds that a call can have.

    >>> from hypothesis import given
    >>> @given(seeds())
    ... def same_seed_same_delays(seed):
    ...     jittered = s.constant(1).full_jitter().take(3)
    ...     assert list(jittered.draw(seed)) == list(jittered.draw(seed))
    >>> same_seed_same_delays()

    Returns:
        A strategy for integers from 0 to 2**53 - 1.
    """
    return st.integers(0, 2**53 - 1)


def schedules(
    *, walking: bool = True, rounding: bool = True, max_leaves: int = 5
) -> SearchStrategy[Schedule]:
    """Draw schedules of every kind and every nesting.

    Endless ones and ones that end, at once if need be; with delays from 0 s to
    the largest float. Use ``.map()`` where that is too wide:

    >>> from hypothesis import find
    >>> hourly = schedules().map(lambda schedule: schedule.cap("1h"))
    >>> find(hourly, lambda schedule: schedule.bounds(1) == (60, 60))
    constant(60.0).cap(3600.0)

    Args:
        walking: Whether `decorrelated` and `polly_interval` are among them, whose
            delays depend on those before.
        rounding: Whether `round_down` is, at whose steps a delay jumps.
        max_leaves: How many constructors may be in one expression. Count, >= 1.

    Returns:
        A strategy for schedules that are made of retrykit's own parts.

    Raises:
        ConfigError: *max_leaves* is no such count, or a flag is no bool.
    """
    instance("walking", walking, bool)
    instance("rounding", rounding, bool)
    return st.recursive(
        _formulas(walking=walking),
        lambda parts: _methods(parts, rounding=rounding) | _operators(parts),
        max_leaves=whole("max_leaves", max_leaves, at_least=1),
    )


def policies(
    *,
    schedules: SearchStrategy[ScheduleLike] | None = None,
    max_attempts: int | None = None,
) -> SearchStrategy[Policy]:
    """Draw policies that are made of retrykit's own parts.

    Every setting varies but `on_result` and `observers`, which are code;
    `budget`, which is shared with other calls; and `attempt_timeout`, which not
    every function can be held to. Each policy retries `ConnectionError` and
    `TimeoutError`, whatever its conditions. What all of them shall have is set
    with ``.map()``:

    >>> from hypothesis import find
    >>> named = policies(max_attempts=9).map(lambda policy: policy.replace(name="pay"))
    >>> find(named, lambda policy: policy.max_elapsed is None)
    Policy(max_attempts=1, max_elapsed=None, name='pay')

    Args:
        schedules: What every schedule is drawn from: a strategy for schedules,
            or for lists of durations. By default, every kind of `schedules`
            and the schedule that `Policy` has by itself.
        max_attempts: Most attempts that any of them allows, so that calls
            surely end. Count, >= 1; by default up to 10**6, or no limit at all.

    Returns:
        A strategy for policies.

    Raises:
        ConfigError: *schedules* is no strategy, or *max_attempts* no such count.
    """
    always: dict[str, SearchStrategy[object]] = {}
    if schedules is not None:
        way_out = "write hypothesis.strategies.just(schedule) for a single one"
        always["schedule"] = instance("schedules", schedules, SearchStrategy, way_out)
    if max_attempts is not None:
        most = whole("max_attempts", max_attempts, at_least=1)
        always["max_attempts"] = st.integers(1, most)
    optional = {name: _VARIED[name] for name in _VARIED if name not in always}
    settings = st.fixed_dictionaries(always, optional=optional)
    return st.builds(lambda a, b: Policy(**a, **b), _LIMITS, settings)


def failure_scripts(
    *,
    errors: Sequence[type[Exception] | Exception] = (ConnectionError, TimeoutError),
    value: object = "done",
    max_failures: int = 5,
    succeeds: bool | None = None,
) -> SearchStrategy[list[object]]:
    """Draw what a fake function does, call by call: errors, then its value.

    Each item is the outcome of one attempt: an exception type or instance to
    be raised, or the value to be returned, which comes last.

    >>> from hypothesis import find
    >>> find(failure_scripts(), lambda script: len(script) == 3)
    [<class 'ConnectionError'>, <class 'ConnectionError'>, 'done']
    >>> find(failure_scripts(succeeds=False), lambda script: TimeoutError in script)
    [<class 'TimeoutError'>]

    A script of failures alone ends: ``Script([*script, ...])`` goes on with the
    last one, under `policies` with ``max_attempts``, whose calls end.

    Args:
        errors: What may be raised: Exception types and instances. An instance
            is one object in all scripts, which keeps the notes of each call.
        value: What is returned in the end; no exception.
        max_failures: Most failures of a script. Count, >= 1.
        succeeds: Whether *value* is reached: True for scripts of 0 or more
            failures and the value, False for scripts of 1 or more failures
            alone, None for both kinds.

    Returns:
        A strategy for lists.

    Raises:
        ConfigError: An argument is none of these.
    """
    kinds: list[object] = [*errors] if isinstance(errors, list | tuple) else []
    if not kinds or not all(_is_a(Exception, each) for each in kinds):
        rule = "a list or tuple of Exception types and instances, at least one"
        raise refuse("errors", rule, errors, "no other is ever retried")
    if _is_a(BaseException, value):
        rule = "what the function returns"
        raise refuse("value", rule, value, "what it raises belongs to errors")
    most = whole("max_failures", max_failures, at_least=1)
    raised = st.sampled_from(kinds)
    failing = st.lists(raised, min_size=1, max_size=most)
    succeeding = st.lists(raised, max_size=most).map(lambda failed: [*failed, value])
    if succeeds is None:
        return succeeding | failing
    way_out = "None draws scripts of both kinds"
    return succeeding if instance("succeeds", succeeds, bool, way_out) else failing


def _is_a(kind: type, value: object) -> bool:
    return issubclass(value if isinstance(value, type) else type(value), kind)


def _formulas(*, walking: bool) -> SearchStrategy[Schedule]:
    factors = st.just(1.0) | st.floats(1, 1e300)
    intervals = durations(0.001, LONGEST_INTERVAL)
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


def _methods(
    parts: SearchStrategy[Schedule], *, rounding: bool
) -> SearchStrategy[Schedule]:
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


def _operators(parts: SearchStrategy[Schedule]) -> SearchStrategy[Schedule]:
    return st.builds(
        lambda join, left, right: join(left, right),
        st.sampled_from(
            [s.Schedule.__add__, s.Schedule.__or__, s.Schedule.__and__],
        ),
        parts,
        parts,
    )


def _rules() -> SearchStrategy[list[Rule]]:
    # Each kind of error once, the narrower ones first, so that all can hold.
    kinds = [TimeoutError, ConnectionResetError, (ConnectionError, ValueError)]
    delays = st.lists(durations(), max_size=3) | st.builds(s.constant, durations())
    rules = [
        st.builds(Rule, st.just(kind), delays, st.none() | st.integers(1, 9))
        | st.builds(Rule, st.just(kind), st.none(), st.integers(1, 9))
        for kind in kinds
    ]
    three: SearchStrategy[tuple[Rule, ...]] = st.tuples(*rules)
    return st.builds(lambda some, most: [*some[:most]], three, st.integers(0, 3))


_HINTS = [
    retry_after(),
    attribute("retry_after"),
    first_of(milliseconds("retry-after-ms"), retry_after()),
]
_VARIED: dict[str, SearchStrategy[object]] = {
    "schedule": schedules(),
    "max_attempts": st.none() | st.integers(1, 10**6),
    "on": st.sampled_from([OSError, (ConnectionError, TimeoutError)]),
    "give_up_on": st.sampled_from([BrokenPipeError, (FileExistsError,)]),
    "rules": _rules(),
    "hint": st.sampled_from(_HINTS),
    "hint_cap": st.none() | durations(),
    "hint_over": st.sampled_from(["honour", "clip", "give_up"]),
    "outer": st.sampled_from(["respect", "retry", "raise"]),
    "raises": st.sampled_from(["last", "retry_error", "group"]),
    "max_failures": st.integers(2, 10**6),
    "seed": seeds(),
    "name": st.sampled_from(["fetch", "verify a hostname"]),
}
# Apart from the others: without max_elapsed there is one deadline rule alone.
_LIMITS = st.sampled_from([{}, {"max_elapsed": None}]) | st.fixed_dictionaries(
    {
        "max_elapsed": durations(),
        "deadline": st.sampled_from(["stop", "clip", "overshoot"]),
    }
)
