"""The form of a preset: a function whose parameters are checked by their types.

    @preset
    def system(*, retries: Retries = 3, wait: Wait = 1) -> Policy:
        return Policy(schedule=constant(wait), max_attempts=retries + 1)

The parameters have the names that the system gives them. Before the function runs, each
argument is checked as its parameter's type says; a duration is converted to seconds.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    TypeVar,
    cast,
    final,
    get_args,
    get_origin,
    get_type_hints,
)

from retrykit._core.policy import Policy
from retrykit._core.settings import DeadlineRule, LongHintRule
from retrykit._internal.durations import (
    Duration,
    parse_duration,
    parse_positive_duration,
)
from retrykit._internal.validation import (
    LARGEST,
    check_choice,
    check_integer,
    check_number,
    invalid_setting,
    user_facing,
)
from retrykit.hints import Hint, retry_after
from retrykit.schedules import constant, exponential, linear, uniform
from retrykit.schedules._base import Schedule

__all__ = ["Attempts", "Flag", "Growth", "Number", "Period", "Retries", "Share"]
__all__ += ["Wait", "Waits", "add_random", "between", "capped", "check_order"]
__all__ += ["client_policy", "drawn_seconds", "growing", "job_policy", "lasting"]
__all__ += ["lengthened", "limit_time", "preset", "seconds", "whole_milliseconds"]

F = TypeVar("F", bound=Callable[..., Any])


@final
class _Check:
    """A check of a parameter, as a part of its type; signatures show its `repr`."""

    __slots__ = ("check", "rule")

    def __init__(self, rule: str, check: Callable[..., Any], **bounds: Any) -> None:
        self.rule: Final = rule
        self.check: Final[Callable[[str, Any], Any]] = partial(check, **bounds)

    def __repr__(self) -> str:
        return self.rule


def between(at_least: int, at_most: int = LARGEST) -> _Check:
    """Return a check, for use in a type, of a count in an inclusive range."""
    rule = f">= {at_least}" if at_most == LARGEST else f"{at_least} to {at_most}"
    return _Check(rule, check_integer, at_least=at_least, at_most=at_most)


def lasting(at_least: float, at_most: float = math.inf) -> _Check:
    """Return a check, for use in a type, of a duration; both bounds are in seconds."""

    def check(name: str, value: object) -> float:
        parsed = parse_duration(name, value)
        return check_number(name, parsed, at_least=at_least, at_most=at_most)

    most = "" if at_most == math.inf else f", <= {at_most} s"
    return _Check(f">= {at_least} s{most}", check)


def _check_flag(name: str, value: object) -> bool:
    # Files and variables write it as text.
    flag = {"true": True, "false": False}.get(value) if type(value) is str else value
    if not isinstance(flag, bool):
        raise invalid_setting(name, "True or False", value)
    return flag


def _parse_waits(name: str, value: object) -> list[float]:
    waits = value if isinstance(value, list | tuple) else [value]
    if not waits:
        raise invalid_setting(name, "a duration, or a list of at least one", value)
    return [parse_duration(name, each) for each in waits]


Attempts = Annotated[int, _Check(">= 1", check_integer, at_least=1)]
"""A number of attempts, including the first. Count, >= 1."""

Retries = Annotated[int, _Check(">= 0", check_integer, at_least=0)]
"""A number of retries, or another count. Count, >= 0."""

Wait = Annotated[Duration, _Check(">= 0", parse_duration)]
"""A delay. A duration, >= 0."""

Waits = Annotated[
    Duration | Sequence[Duration], _Check(">= 0, or a list of them", _parse_waits)
]
"""One delay or several, which arrive as a list of seconds. Durations, >= 0."""

Period = Annotated[Duration, _Check("> 0", parse_positive_duration)]
"""A time. A duration, > 0."""

Number = Annotated[float, _Check(">= 0", check_number, at_least=0)]
"""A number, such as a factor, >= 0."""

Flag = Annotated[bool, _Check("True or False", _check_flag)]
"""A switch: True or False, or in text "true" or "false"."""

Growth = Annotated[float, _Check(">= 1", check_number, at_least=1)]
"""A factor by which delays grow. Dimensionless, >= 1."""

Share = Annotated[float, _Check("0 to 1", check_number, at_least=0, at_most=1)]
"""A share of a delay. Dimensionless, 0 to 1."""


def preset(fn: F) -> F:
    """Decorate a function that returns a system's policy, to check its arguments."""
    checks: dict[str, Callable[[str, Any], Any]] = {}

    def check(values: dict[str, Any]) -> dict[str, Any]:
        if not checks:
            hints = get_type_hints(fn, include_extras=True)
            checks.update({name: _check_of(hint) for name, hint in hints.items()})
        given = {**(fn.__kwdefaults__ or {}), **values}
        return {
            name: checks[name](name, value) if name in checks else value
            for name, value in given.items()
        }

    return user_facing(fn, prepare=check)


def _check_of(hint: Any) -> Callable[[str, Any], Any]:
    """Return the check in a type; without one, a check that accepts everything.

    In a union, the words and the None of the other types are accepted as well.
    """
    if get_origin(hint) is Annotated:
        return cast("Callable[[str, Any], Any]", hint.__metadata__[0].check)
    if get_origin(hint) is Literal:
        return partial(_check_choice, choices=get_args(hint))
    options = get_args(hint)
    checked = [each for each in options if get_origin(each) is Annotated]
    if checked:
        # Or a word, or None.
        own = _check_of(checked[0])
        words = [x for each in options if each not in checked for x in get_args(each)]
        also = [*words, None] if type(None) in options else words
        return lambda name, value: value if value in also else own(name, value)
    return lambda _, value: value


def _check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    return check_choice(name, value, choices)


def seconds(duration: Duration) -> float:
    """Return a duration as seconds: its check has already made it a number."""
    return cast("float", duration)


def check_order(**durations: Duration | None) -> None:
    """Raise `ConfigError` if the second of two parameters is shorter than the first.

    If the second is None, it is unlimited; if the first is None, it counts as 0.
    """
    (first_name, first), (name, longest) = durations.items()
    if longest is not None:
        rule, least = f"no shorter than {first_name}", seconds(first or 0)
        check_number(name, longest, at_least=least, suggestion=rule)


def capped(schedule: Schedule, longest: Duration | None) -> Schedule:
    """Return a schedule capped at *longest*; unchanged if that is None."""
    return schedule if longest is None else schedule.cap(longest)


def add_random(schedule: Schedule, most: Duration) -> Schedule:
    """Return a schedule with a random time of up to *most* added to each delay."""
    return schedule + uniform(0, most) if seconds(most) else schedule


def whole_milliseconds(schedule: Schedule) -> Schedule:
    """Return a schedule with its delays rounded to the nearest millisecond."""
    return (schedule + constant(0.0005)).round_down(0.001)


def growing(kind: str, first: Duration) -> Schedule:
    """Return the delays of a named kind of backoff.

    Args:
        kind: ``"none"`` for no delay, ``"fixed"``, ``"linear"`` or ``"exponential"``.
        first: First delay, unless there is none. A duration, >= 0.
    """
    kinds: dict[str, Callable[[Duration], Schedule]]
    kinds = {"fixed": constant, "linear": linear, "exponential": exponential}
    return constant(0) if kind == "none" else kinds[kind](first)


def lengthened(schedule: Schedule, share: float) -> Schedule:
    """Return a schedule with up to *share* of each delay added to it, at random."""
    return schedule + (schedule * share).full_jitter()


def drawn_seconds(longest: Schedule) -> Schedule:
    """Return whole seconds, drawn uniformly from 0 to each delay of *longest*.

    The delays of *longest* must be whole seconds.
    """
    return (longest + constant(1)).full_jitter().round_down(1) | longest


def client_policy(  # noqa: PLR0913  what clients do in different ways
    retries: int,
    schedule: Schedule,
    longest_hint: Duration | None,
    *,
    hint: Hint | None = None,
    on_long_hint: LongHintRule = "clip",
    spread: float = 0,
) -> Policy:
    """Return the policy of a client that obeys a server's hint, by default Retry-After.

    Args:
        retries: Maximum number of retries. Count, >= 0.
        schedule: The delays without a hint.
        longest_hint: Longest delay that a hint may request. A duration, >= 0; None is
            unlimited.
        hint: The hint; by default it reads Retry-After.
        on_long_hint: As in `Policy`; without effect if *longest_hint* is None.
        spread: Largest random share that is added to each delay, even to a delay that
            the server requests.
    """
    if longest_hint is None:
        # No hint is too long.
        on_long_hint = "give_up"
    return Policy(
        schedule=lengthened(schedule, spread) if spread else schedule,
        max_attempts=retries + 1,
        hint=hint or retry_after(),
        hint_cap=longest_hint,
        on_long_hint=on_long_hint,
        hint_jitter=spread,
    )


def limit_time(policy: Policy, limit: Duration | None, rule: DeadlineRule) -> Policy:
    """Return a policy with a time limit for the whole call; None is unlimited.

    *rule* is the `deadline` of the policy, if there is a limit.
    """
    return policy.replace(max_elapsed=limit, deadline="stop" if limit is None else rule)


def job_policy(retries: int | None, delays: Schedule | Duration) -> Policy:
    """Return the policy of a job, under which every `Exception` is retried.

    The state of a job keeps all its failures, or up to 100 if retries are unlimited.

    Args:
        retries: Maximum number of retries. Count, >= 0; None is unlimited.
        delays: A schedule, or the delay of each retry.
    """
    attempts = None if retries is None else retries + 1
    return Policy(
        schedule=delays if isinstance(delays, Schedule) else constant(delays),
        max_attempts=attempts,
        # A job is retried whatever its error.
        on=Exception,
        max_failures=max(attempts or 0, 100),
    )
