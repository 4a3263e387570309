"""Strategies for hypothesis: durations, seeds, schedules, policies and scripts.

Schedules and policies consist only of retrykit's own parts and built-in types, so they
can be compared, printed as expressions and written as data. The library hypothesis is
needed.
"""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from retrykit import schedules as s
from retrykit._core.policy import Policy
from retrykit._core.rules import Rule
from retrykit._core.settings import SETTINGS, Setting
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    check_number,
    invalid_setting,
    user_facing,
)
from retrykit.errors import ConfigError
from retrykit.hints import attribute, first_of, milliseconds, retry_after
from retrykit.schedules import Schedule, ScheduleLike
from retrykit.schedules._base import as_schedule
from retrykit.schedules._randomized import MAX_INTERVAL
from retrykit.schedules._randomness import MAX_DELAY

__all__ = ["durations", "failure_scripts", "policies", "schedules", "seeds"]

_ORDINARY = [0.0, 0.001, 0.1, 0.5, 1.0, 1.5, 60.0, 14_400.0]
_EXTREME = [5e-324, 1e-300, 2.0**53, 1e300, MAX_DELAY]


@user_facing
def durations(
    at_least: Duration = 0.0, at_most: Duration = MAX_DELAY
) -> SearchStrategy[float]:
    """Draw durations in seconds, ordinary and extreme ones, both bounds included.

    >>> from hypothesis import find
    >>> find(durations("1m", "2h"), lambda seconds: seconds > 60)
    61.0

    Args:
        at_least: The shortest. A duration, >= 0.
        at_most: The longest. A duration, >= *at_least*; by default the largest float,
            where delays saturate.
    """
    low, high = parse_duration("at_least", at_least), parse_duration("at_most", at_most)
    check_number("at_most", high, at_least=low)
    known = [x for x in _ORDINARY + _EXTREME if low <= x <= high]
    ordinary = min(max(1e6, low), high)
    drawn = st.floats(low, ordinary) | st.floats(low, high)
    return st.sampled_from(known) | drawn if known else drawn


def seeds() -> SearchStrategy[int]:
    """Draw seeds of calls: integers from 0 to 2**53 - 1.

    >>> from hypothesis import given
    >>> @given(seeds())
    ... def same_seed_same_delays(seed):
    ...     jittered = s.constant(1).full_jitter().take(3)
    ...     assert list(jittered.draw(seed)) == list(jittered.draw(seed))
    >>> same_seed_same_delays()
    """
    return st.integers(0, 2**53 - 1)


@user_facing
def schedules(
    *, correlated: bool = True, rounding: bool = True, max_leaves: int = 5
) -> SearchStrategy[Schedule]:
    """Draw schedules of every kind, nested at random.

    They may be endless, or end at once; delays are from 0 s to the largest float. Use
    ``.map()`` where that is too wide:

    >>> from hypothesis import find
    >>> hourly = schedules().map(lambda schedule: schedule.cap("1h"))
    >>> find(hourly, lambda schedule: schedule.bounds(1)).bounds(1)[1] <= 3600
    True

    Args:
        correlated: Whether to include `decorrelated` and `polly_interval`, whose
            delays depend on the random numbers of earlier ones.
        rounding: Whether to include `round_down`, whose delays jump.
        max_leaves: Maximum number of constructors in one expression. Count, >= 1.
    """
    check_instance("correlated", correlated, bool)
    check_instance("rounding", rounding, bool)
    return st.recursive(
        _formulas(correlated=correlated),
        lambda parts: _methods(parts, rounding=rounding) | _operators(parts),
        max_leaves=check_integer("max_leaves", max_leaves, at_least=1),
    )


def _formulas(*, correlated: bool) -> SearchStrategy[Schedule]:
    """Draw schedules made by constructors."""
    factors = st.just(1.0) | st.floats(1, 1e300)
    rates = st.just(1.0) | st.floats(0, 1e300)
    intervals = durations(0.001, MAX_INTERVAL)
    # Large enough for the interval to reach its maximum after a few steps.
    multipliers = st.just(1.0) | st.floats(1.25, 1e300)
    kinds = [
        st.builds(s.constant, durations()),
        st.builds(s.linear, durations()),
        st.builds(
            lambda step, falls, first: s.linear(
                -step if falls and step else step, first=first
            ),
            durations(),
            st.booleans(),
            durations(),
        ),
        st.builds(s.exponential, durations(), factor=factors),
        st.builds(s.decay, durations(), rate=rates),
        st.builds(s.polynomial, st.floats(0, 400), first=durations()),
        st.builds(s.fibonacci, durations()),
        st.builds(s.sequence, st.lists(durations(), max_size=6)),
        st.tuples(durations(), durations()).map(lambda pair: s.uniform(*sorted(pair))),
        st.builds(
            lambda pair, jitter, growth: s.google_interval(
                min(pair),
                randomization_factor=jitter,
                multiplier=growth,
                max_interval=max(pair),
            ),
            st.tuples(intervals, intervals),
            st.floats(0, 1, exclude_max=True),
            multipliers,
        ),
    ]
    if correlated:
        kinds.append(st.builds(s.decorrelated, durations(), factor=factors))
        kinds.append(st.builds(s.polly_interval, durations()))
    return st.one_of(kinds)


def _methods(
    parts: SearchStrategy[Schedule], *, rounding: bool
) -> SearchStrategy[Schedule]:
    """Draw schedules built from *parts* by methods."""
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
        # `within` adds up delay by delay, so it must end soon.
        st.builds(lambda a, t: a.at_least(t / 30).within(t), parts, total),
    ]
    if rounding:
        units = durations(at_least=5e-324)
        kinds.append(st.builds(s.Schedule.round_down, parts, units))
    return st.one_of(kinds)


def _operators(parts: SearchStrategy[Schedule]) -> SearchStrategy[Schedule]:
    """Draw schedules built from two *parts* by operators."""
    return st.builds(
        lambda join, left, right: join(left, right),
        st.sampled_from([s.Schedule.__add__, s.Schedule.__or__, s.Schedule.__and__]),
        parts,
        parts,
    )


@user_facing
def policies(
    *,
    schedules: SearchStrategy[ScheduleLike] | None = None,
    max_attempts: int | None = None,
) -> SearchStrategy[Policy]:
    """Draw policies.

    Limits are set or left to their defaults, and one limit may end every call before
    another can. All settings vary except `on_result`, `fallback`, `stop_event`, `sleep`
    and `observers`, which are code; `budget` and `admission`, which calls share; and
    `attempt_timeout` and `hedge`, which not every function supports. The conditions of
    each policy match `ConnectionError` and `TimeoutError`.
    Use ``.map()`` for settings that all policies should have, except the schedule,
    limits, hint and rules, which must fit together:

    >>> from hypothesis import find
    >>> named = policies(max_attempts=9).map(lambda policy: policy.replace(name="pay"))
    >>> find(named, lambda policy: policy.max_elapsed is None)
    Policy(max_attempts=1, name='pay')

    Args:
        schedules: A strategy for their schedules, or for lists of durations; by
            default all `schedules`, and the default of `Policy`.
        max_attempts: The largest `max_attempts`, so that calls end; `limits` is then
            ``"any"``. Count, >= 1; by default up to 10**6, or unlimited.
    """
    always: dict[str, SearchStrategy[object]] = {}
    if schedules is not None:
        suggestion = "write hypothesis.strategies.just(schedule) for a single one"
        always["schedule"] = check_instance(
            "schedules", schedules, SearchStrategy, suggestion
        )
    if max_attempts is not None:
        most = check_integer("max_attempts", max_attempts, at_least=1)
        always["max_attempts"] = st.integers(1, most)
        always["limits"] = st.just("any")
    optional = {name: _VARIED[name] for name in _VARIED if name not in always}
    settings = st.fixed_dictionaries(always, optional=optional)
    return st.builds(_build_policy, _LIMITS, settings)


def _build_policy(limits: dict[str, Any], others: dict[str, Any]) -> Policy:
    """Return a policy of these settings, with limits that make them valid."""
    settings = others | limits
    if None in {settings.get("max_attempts"), settings.get("max_elapsed")}:
        settings.pop("limits", None)
    written = {"schedule", "max_attempts", "max_elapsed"} & settings.keys()
    ruled = any(rule.schedule for rule in settings.get("rules", ()))
    if (written or ruled) and settings.get("max_elapsed") is None:
        settings.pop("deadline", None)
    if _is_valid(settings):
        return Policy(**settings)
    settings.pop("limits", None)
    first = as_schedule(settings.get("schedule", Policy().schedule)).bounds(1)
    if first is None:
        settings["max_attempts"] = 1
    else:
        settings["max_elapsed"] = min(settings["max_elapsed"] + first[0], MAX_DELAY)
    return Policy(**settings)


def _is_valid(settings: dict[str, Any]) -> bool:
    try:
        return bool(Policy(**settings))
    except ConfigError:
        return False


@user_facing
def failure_scripts(
    *,
    errors: Sequence[type[Exception] | Exception] = (ConnectionError, TimeoutError),
    value: object = "done",
    max_failures: int = 5,
    succeeds: bool | None = None,
) -> SearchStrategy[list[object]]:
    """Draw scripts of a fake function: errors, then its value.

    Each item is the outcome of one attempt: an exception type or instance to raise,
    or the value to return, which comes last.

    >>> from hypothesis import find
    >>> find(failure_scripts(), lambda script: len(script) == 3)
    [<class 'ConnectionError'>, <class 'ConnectionError'>, 'done']
    >>> find(failure_scripts(succeeds=False), lambda script: TimeoutError in script)
    [<class 'TimeoutError'>]

    ``ScriptedFunction([*script, ...])`` repeats the last failure of a script without
    a value, under `policies` with ``max_attempts``.

    Args:
        errors: Exception types and instances to raise. An instance is the same object
            in all scripts, and keeps the notes of each call.
        value: The value that is returned at the end; not an exception.
        max_failures: Maximum number of failures in a script. Count, >= 1.
        succeeds: True for scripts that end with *value*; False for scripts of
            failures alone; None, the default, for both kinds.
    """
    kinds: list[object] = [*errors] if isinstance(errors, list | tuple) else []
    if not kinds or not all(_is_a(Exception, each) for each in kinds):
        rule = "a list or tuple of Exception types and instances, at least one"
        raise invalid_setting("errors", rule, errors, "no other is ever retried")
    if _is_a(BaseException, value):
        rule = "anything but an exception"
        raise invalid_setting("value", rule, value, "exceptions belong in errors")
    most = check_integer("max_failures", max_failures, at_least=1)
    raised = st.sampled_from(kinds)
    failing = st.lists(raised, min_size=1, max_size=most)
    succeeding = st.lists(raised, max_size=most).map(lambda failed: [*failed, value])
    if succeeds is None:
        return succeeding | failing
    suggestion = "None draws scripts of both kinds"
    return (
        succeeding
        if check_instance("succeeds", succeeds, bool, suggestion)
        else failing
    )


def _is_a(kind: type, value: object) -> bool:
    return issubclass(value if isinstance(value, type) else type(value), kind)


_HINTS = [
    retry_after(),
    attribute("retry_after"),
    first_of(milliseconds("retry-after-ms"), retry_after()),
]


def _rules() -> SearchStrategy[list[Rule]]:
    # Narrower types first, so that each rule can apply.
    kinds = [TimeoutError, ConnectionResetError, (ConnectionError, ValueError)]
    delays = st.lists(durations(), max_size=3) | st.builds(s.constant, durations())
    hints = st.none() | st.sampled_from(_HINTS)
    rules = [
        st.builds(Rule, st.just(kind), delays, st.none() | st.integers(1, 9))
        | st.builds(Rule, st.just(kind), st.none(), st.integers(1, 9), hint=hints)
        | st.builds(Rule, st.just(kind), hint=st.sampled_from(_HINTS))
        for kind in kinds
    ]
    three: SearchStrategy[tuple[Rule, ...]] = st.tuples(*rules)
    return st.builds(lambda some, most: [*some[:most]], three, st.integers(0, 3))


_BY_FORM: dict[str, Callable[[Setting], SearchStrategy[object]]] = {
    "choice": lambda setting: st.sampled_from(setting.options),
    "flag": lambda _: st.booleans(),
    "count": lambda setting: st.integers(
        int(setting.bounds[0]), min(int(setting.bounds[1]), 10**6)
    ),
    "number": lambda setting: st.floats(*setting.bounds),
    "duration": lambda _: durations(),
}


def _values(setting: Setting) -> SearchStrategy[object]:
    """Draw values of a setting, as its form requires."""
    drawn = _BY_FORM[setting.form](setting)
    return st.none() | drawn if setting.none else drawn


_VARIED: dict[str, SearchStrategy[object]] = {
    **{
        name: _values(setting)
        for name, setting in SETTINGS.items()
        # A limit of time must suit the schedule, and a deadline needs one.
        if setting.form in _BY_FORM and name not in {"max_elapsed", "deadline"}
    },
    "schedule": schedules(),
    "on": st.sampled_from([OSError, (ConnectionError, TimeoutError)]),
    "give_up_on": st.sampled_from([BrokenPipeError, (FileExistsError,)]),
    "rules": _rules(),
    "hint": st.sampled_from(_HINTS),
    "seed": seeds(),
    "name": st.sampled_from(["fetch", "verify a hostname"]),
}
_LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "max_elapsed": _values(SETTINGS["max_elapsed"]),
        "deadline": _values(SETTINGS["deadline"]),
    },
)
