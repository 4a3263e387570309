"""The settings of a policy: their types, their validators, advice for unknown ones."""

import functools
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Literal, Protocol, TypedDict, TypeVar, get_args

from retrykit._conditions import Condition, check_condition, format_value
from retrykit._core.events import EventHook, EventHooks, Observer, check_observer
from retrykit._core.fallback import check_fallback
from retrykit._core.result_conditions import ResultCondition, check_result_condition
from retrykit._core.rules import Rule, check_rules
from retrykit._core.timeouts import AsArgument
from retrykit._internal.durations import (
    Duration,
    parse_duration,
    parse_positive_duration,
)
from retrykit._internal.introspection import accepts_one_argument, is_coroutine_function
from retrykit._internal.redaction import Redaction
from retrykit._internal.user_facing import user_facing
from retrykit._internal.validation import (
    check_choice,
    check_encodable,
    check_integer,
    check_number,
    did_you_mean,
    invalid_setting,
    safe_repr,
)
from retrykit.budgets._base import Budget
from retrykit.errors import ConfigError
from retrykit.hints._base import Hint, check_hint
from retrykit.schedules._base import Schedule, ScheduleLike, as_schedule

__all__ = ["DeadlineRule", "GroupRule", "LimitRule", "LongHintRule", "NestedRule"]
__all__ += ["OtherSettings", "PolicySettings", "Raises", "SleepFunction", "StopEvent"]
__all__ += ["VALIDATORS", "check_event_kind", "check_sleep", "check_stop_event"]
__all__ += ["guess_setting", "suggest_setting", "takes_settings"]


DeadlineRule = Literal["stop", "clip", "overshoot"]
"""What to do if the next attempt would start too late."""

Raises = Literal["last", "retry_error", "group"]
"""What to raise on giving up."""

NestedRule = Literal["respect", "retry", "raise"]
"""What to do after a retried call inside this one has given up."""

LimitRule = Literal["any", "all"]
"""Which of `max_attempts` and `max_elapsed` ends a call."""

GroupRule = Literal["all", "any", "whole"]
"""When to retry an ExceptionGroup."""

LongHintRule = Literal["honor", "clip", "ignore", "give_up"]
"""What to do with a hint above `hint_cap`."""


class StopEvent(Protocol):
    """An event of threading, multiprocessing, asyncio, trio or anyio."""

    def is_set(self) -> bool:
        """Return whether the event has happened."""
        ...

    @property
    def wait(self) -> Callable[..., Any]:
        """Waits for the event; its result is awaitable in asyncio, trio and anyio."""
        ...


SleepFunction = Callable[[float], object] | Callable[[float], Awaitable[object]]
"""Waits for a number of seconds; it may be async under `aretry`."""


class OtherSettings(TypedDict, total=False):
    """The settings of a policy as keyword arguments, except `fallback`.

    Where `fallback` is given, the decorated type includes its type.
    """

    schedule: ScheduleLike
    max_attempts: int | None
    max_elapsed: Duration | None
    limits: LimitRule
    deadline: DeadlineRule
    on: Condition
    give_up_on: Condition
    on_result: ResultCondition | None
    exception_groups: GroupRule
    rules: Iterable[Rule]
    hint: Hint | None
    hint_cap: Duration | None
    on_long_hint: LongHintRule
    hint_jitter: float
    budget: Budget | None
    attempt_timeout: Duration | AsArgument | None
    nested: NestedRule
    raises: Raises
    stop_event: StopEvent | None
    sleep: SleepFunction | None
    redact: Redaction
    keep_tracebacks: bool
    max_failures: int
    seed: int | None
    observers: Iterable[Observer] | EventHooks
    name: str | None


class PolicySettings(OtherSettings, total=False):
    """The settings of a policy as keyword arguments."""

    fallback: Any


def _optional(check: "_Validator") -> "_Validator":
    """Return a validator that allows None, too."""
    return lambda name, value: None if value is None else check(name, value)


def _limit(check: "_Validator") -> "_Validator":
    """Return a validator of a limit, which other libraries take as a function, too."""

    def check_limit(name: str, value: object) -> object:
        if callable(value):
            suggestion = "for settings at run time write retry(policy=function)"
            raise invalid_setting(name, "a value", value, suggestion)
        return check(name, value)

    return check_limit


def _one_of(rules: object, suggestion: str = "") -> "_Validator":
    return partial(check_choice, options=get_args(rules), suggestion=suggestion)


def _budget(name: str, value: object) -> Budget:
    if isinstance(value, Budget):
        return value
    suggestion = "use one of retrykit.budgets"
    if isinstance(value, type) and issubclass(value, Budget):
        suggestion = f"create one: {value.__name__}()"
    raise invalid_setting(name, "a budget", value, suggestion)


def _attempt_timeout(name: str, value: object) -> float | AsArgument:
    if isinstance(value, AsArgument):
        return value
    return parse_positive_duration(name, value, "None is unlimited")


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise invalid_setting(name, "True or False", value)
    return value


def _redaction(name: str, value: object) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, type) or not callable(value):
        raise invalid_setting(name, "True, False or a function of the text", value)
    if not accepts_one_argument(value):
        raise invalid_setting(name, "a function that takes the text", value)
    if is_coroutine_function(value):
        rule = "a sync function, even under aretry"
        raise invalid_setting(name, rule, value, "it returns the text without secrets")
    return value


def _observers(name: str, value: object) -> tuple[Observer, ...]:
    if isinstance(value, Mapping):
        return tuple(EventHook(*each) for each in value.items())
    if not isinstance(value, Iterable) or isinstance(value, str):
        rule = "a list of functions that take an event"
        suggestion = "put brackets around it" if callable(value) else ""
        raise invalid_setting(name, rule, value, suggestion)
    return tuple(
        check_observer(f"{name}[{index}]", each, allow_async=True)
        for index, each in enumerate(value)
    )


def _name(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        suggestion = "None uses the name of the function"
        raise invalid_setting(name, "a non-empty string", value, suggestion)
    return check_encodable(name, value)


def check_stop_event(name: str, value: Any) -> Any:
    """Return *value* if it is an event."""
    parts = getattr(value, "is_set", None), getattr(value, "wait", None)
    if isinstance(value, type) or not all(map(callable, parts)):
        rule = "an event with is_set() and wait()"
        suggestion = "write threading.Event(), or asyncio.Event() under aretry"
        raise invalid_setting(name, rule, value, suggestion)
    return value


def check_sleep(name: str, value: Any) -> Any:
    """Return *value* if it is a function of a number of seconds."""
    if isinstance(value, type) or not callable(value):
        suggestion = "for delays write schedule=..."
        raise invalid_setting(name, "a function of the seconds", value, suggestion)
    if not accepts_one_argument(value):
        raise invalid_setting(name, "a function that takes the seconds", value)
    return value


def check_sleep_kind(sleep: SleepFunction | None, *, awaited: bool) -> None:
    """Check that a function that waits does not block the event loop."""
    if sleep is None or not awaited:
        return
    function: Any = sleep
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None), getattr(function, "__module__", None)
    owner = type(getattr(function, "__self__", None))
    blocks = name in _BLOCKING or (owner.__module__, name[0]) == ("threading", "wait")
    if blocks:
        rule, suggestion = "an async function under aretry", "it would block the event "
        suggestion += "loop: leave it out, or write asyncio.sleep"
        raise invalid_setting("sleep", rule, sleep, suggestion)


_BLOCKING = {
    ("sleep", "time"),
    ("sleep", "gevent.hub"),
    ("sleep", "eventlet.greenthread"),
}


def check_event_kind(event: StopEvent | None, *, awaited: bool) -> None:
    """Check that an event can be waited for, by a thread or by a task."""
    if event is None or is_coroutine_function(event.wait) is awaited:
        return
    rule, suggestion = "a threading.Event under retry", "asyncio.Event needs aretry"
    if awaited:
        rule = "an asyncio.Event or a trio.Event under aretry"
        suggestion = "to wait for a thread's event would block the event loop"
    raise invalid_setting("stop_event", rule, event, suggestion)


_max_attempts = partial(
    check_integer, at_least=1, suggestion="the first attempt counts; None is unlimited"
)
_max_failures = partial(
    check_integer, at_least=2, suggestion="the first and the last are always kept"
)
_hint_jitter = partial(
    check_number, at_most=1, suggestion="0.1 adds up to 10 % of a hint; 0 adds nothing"
)
# The generator has 64 bits of state.
_seed = partial(check_integer, at_least=0, at_most=2**64 - 1)

_Validator = Callable[[str, object], object]

VALIDATORS: dict[str, _Validator] = {
    "schedule": lambda _, value: as_schedule(value),
    "max_attempts": _optional(_limit(_max_attempts)),
    "max_elapsed": _optional(_limit(parse_duration)),
    "limits": _one_of(LimitRule),
    "deadline": _one_of(DeadlineRule, "for a time limit use max_elapsed"),
    "on": check_condition,
    "give_up_on": check_condition,
    "on_result": _optional(check_result_condition),
    "exception_groups": _one_of(GroupRule),
    "rules": check_rules,
    "hint": _optional(check_hint),
    "hint_cap": _optional(parse_duration),
    "on_long_hint": _one_of(LongHintRule, "for a bound use hint_cap"),
    "hint_jitter": _hint_jitter,
    "budget": _optional(_budget),
    "attempt_timeout": _optional(_attempt_timeout),
    "nested": _one_of(NestedRule),
    "raises": _one_of(Raises),
    "fallback": check_fallback,
    "stop_event": _optional(check_stop_event),
    "sleep": _optional(check_sleep),
    "redact": _redaction,
    "keep_tracebacks": _flag,
    "max_failures": _max_failures,
    "seed": _optional(_seed),
    "observers": _observers,
    "name": _optional(_name),
}
"""The validator of each setting by its name, in the order of `Policy`."""


def suggest_setting(name: str, known: Collection[str]) -> str:
    """Suggest a setting in place of one that does not exist.

    >>> suggest_setting("max_retries", ["max_attempts", "max_failures"])
    'write max_attempts, which includes the first attempt'
    """
    # Imported here: only unknown settings need it.
    from retrykit._core.foreign_settings import advice_for  # noqa: PLC0415

    # First, since names of other libraries are similar to settings: base and raises.
    return (
        advice_for(name)
        or did_you_mean(name, known)
        or f"the settings are {', '.join(known)}"
    )


F = TypeVar("F", bound=Callable[..., Any])


def takes_settings(fn: F) -> F:
    """Decorate a public function that takes settings by their names."""
    return user_facing(fn, guess=guess_setting)


def guess_setting(value: object) -> str:
    """Return the setting that was probably meant by a value without a name.

    >>> guess_setting((OSError, ValueError)), guess_setting(3), guess_setting("2m")
    ('on=(OSError, ValueError)', 'max_attempts=3', "max_elapsed='2m'")

    Returns:
        The name and the value; empty if it is unknown.
    """
    kinds = value if isinstance(value, tuple) and value else (value,)
    if all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        return f"on={format_value(value)}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"max_attempts={value}"
    if isinstance(value, Schedule | list | range):
        return f"schedule={safe_repr(value)}"
    if isinstance(value, Budget):
        return f"budget={safe_repr(value)}"
    if not isinstance(value, int | float):
        with suppress(ConfigError):
            parse_duration("max_elapsed", value)
            return f"max_elapsed={safe_repr(value)}"
    return ""
