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
from retrykit._internal.validation import check_instance, check_integer, invalid_setting
from retrykit.hints import attribute, first_of, milliseconds, retry_after
from retrykit.policy.policy import Policy
from retrykit.policy.rules import Rule
from retrykit.schedules import Schedule, ScheduleLike
from retrykit.testing.drawn import durations, formulas, methods, operators

__all__ = ["durations", "failure_scripts", "policies", "schedules", "seeds"]


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
    >>> find(hourly, lambda schedule: schedule.bounds(1)).bounds(1)[1] <= 3600
    True

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
    check_instance("walking", walking, bool)
    check_instance("rounding", rounding, bool)
    return st.recursive(
        formulas(walking=walking),
        lambda parts: methods(parts, rounding=rounding) | operators(parts),
        max_leaves=check_integer("max_leaves", max_leaves, at_least=1),
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
        suggestion = "write hypothesis.strategies.just(schedule) for a single one"
        always["schedule"] = check_instance(
            "schedules", schedules, SearchStrategy, suggestion
        )
    if max_attempts is not None:
        most = check_integer("max_attempts", max_attempts, at_least=1)
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

    A script of failures alone ends: ``ScriptedFunction([*script, ...])`` goes on with
    the last one, under `policies` with ``max_attempts``, whose calls end.

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
        raise invalid_setting("errors", rule, errors, "no other is ever retried")
    if _is_a(BaseException, value):
        rule = "what the function returns"
        raise invalid_setting("value", rule, value, "what it raises belongs to errors")
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
    "on_long_hint": st.sampled_from(["honor", "clip", "give_up"]),
    "nested": st.sampled_from(["respect", "retry", "raise"]),
    "raises": st.sampled_from(["last", "retry_error", "group"]),
    "redact": st.booleans(),
    "keep_tracebacks": st.booleans(),
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
