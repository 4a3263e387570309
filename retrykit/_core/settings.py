"""The settings of a policy: their validators, and advice for unknown ones."""

import functools
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    TypeGuard,
    TypeVar,
    final,
    get_args,
)

from retrykit._conditions import check_condition, format_value
from retrykit._core.events import EventHook, Observer, check_observer
from retrykit._core.final_error import check_fallback
from retrykit._core.result_conditions import check_result_condition
from retrykit._internal.durations import parse_duration, parse_positive_duration
from retrykit._internal.introspection import accepts_one_argument, is_coroutine_function
from retrykit._internal.validation import (
    LARGEST,
    check_choice,
    check_encodable,
    check_integer,
    check_number,
    did_you_mean,
    invalid_setting,
    safe_repr,
    user_facing,
)
from retrykit.errors import ConfigError
from retrykit.schedules._base import Schedule, as_schedule

if TYPE_CHECKING:
    from retrykit._core.hedge import Hedge
    from retrykit._core.rules import Rule
    from retrykit._core.timeouts import AsArgument
    from retrykit.budgets._base import Budget
    from retrykit.limits._base import Limit
    from retrykit.limits._registry import Registry

__all__ = ["DeadlineRule", "GroupRule", "LimitRule", "LongHintRule", "NestedRule"]
__all__ += ["Raises", "RefusedRule", "SleepFunction", "StopEvent"]
__all__ += [
    "SETTINGS",
    "Setting",
    "check_event_kind",
    "check_sleep",
    "check_stop_event",
]
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

RefusedRule = Literal["give_up", "wait"]
"""What to do when a limit refuses an attempt."""

LongHintRule = Literal["honor", "clip", "ignore", "give_up"]
"""What to do with a hint above `hint_cap`."""


class StopEvent(Protocol):
    """An event of threading, multiprocessing, asyncio, trio or anyio."""

    def is_set(self) -> bool:
        """Return whether the event has happened."""
        ...

    @property
    def wait(self) -> Callable[..., Any]:
        """The method that waits for the event; an async one for an async event."""
        ...


SleepFunction = Callable[[float], object] | Callable[[float], Awaitable[object]]
"""Waits for a number of seconds; it may be async under `aretry`."""


# Few policies have rules, a hint, a budget or a timeout, so each of these is imported
# with the first that has it. A call that fails needs no further import.


def _rules(name: str, value: object) -> "tuple[Rule, ...]":
    from retrykit._core.rules import check_rules  # noqa: PLC0415  see above

    return check_rules(name, value)


def _limit_rule(name: str, value: object) -> object:
    # It has the name of the package.
    suggestion = "write admission=[...] for those of retrykit.limits"
    options = get_args(LimitRule)
    return check_choice(
        name, value, options, "" if isinstance(value, str) else suggestion
    )


def _hint(name: str, value: object) -> object:
    from retrykit.hints._base import check_hint  # noqa: PLC0415  see above

    return check_hint(name, value)


def _is_budget(value: object) -> "TypeGuard[Budget]":
    from retrykit.budgets._base import Budget  # noqa: PLC0415  see above

    return isinstance(value, Budget)


def _budget(name: str, value: object) -> "Budget":
    from retrykit.budgets._base import Budget  # noqa: PLC0415  see above

    if isinstance(value, Budget):
        return value
    suggestion = "use one of retrykit.budgets"
    if hasattr(value, "acquire"):
        suggestion = "write admission=[...] for limits such as a CircuitBreaker"
    if isinstance(value, type) and issubclass(value, Budget):
        suggestion = f"create one: {value.__name__}()"
    raise invalid_setting(name, "a budget", value, suggestion)


def _admission(name: str, value: object) -> "tuple[Limit | Registry[Any], ...]":
    if value in ((), []):
        return ()
    from retrykit._core.admission import check_admission  # noqa: PLC0415  see above

    return check_admission(name, value)


def _hedge(name: str, value: object) -> "Hedge":
    from retrykit._core.hedge import check_hedge  # noqa: PLC0415  see above

    return check_hedge(name, value)


def _attempt_timeout(name: str, value: object) -> "float | AsArgument":
    from retrykit._core.timeouts import AsArgument  # noqa: PLC0415  see above

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
        raise invalid_setting(
            name,
            rule,
            value,
            "it returns the text without secrets",
            code="async-mismatch",
        )
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
    """Return *value* if it is an event, else raise a ConfigError."""
    parts = getattr(value, "is_set", None), getattr(value, "wait", None)
    if isinstance(value, type) or not all(map(callable, parts)):
        rule = "an event with is_set() and wait()"
        suggestion = "write threading.Event(), or asyncio.Event() under aretry"
        raise invalid_setting(name, rule, value, suggestion)
    return value


def check_sleep(name: str, value: Any) -> Any:
    """Return *value* if it is a function of seconds, else raise a ConfigError."""
    if isinstance(value, type) or not callable(value):
        suggestion = "for delays write schedule=..."
        raise invalid_setting(name, "a function of the seconds", value, suggestion)
    if not accepts_one_argument(value):
        raise invalid_setting(name, "a function that takes the seconds", value)
    return value


def check_sleep_kind(sleep: SleepFunction | None, *, awaited: bool) -> None:
    """Raise an error if a coroutine would wait by blocking, as with `time.sleep`."""
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
        raise invalid_setting("sleep", rule, sleep, suggestion, code="async-mismatch")


_BLOCKING = {
    ("sleep", "time"),
    ("sleep", "gevent.hub"),
    ("sleep", "eventlet.greenthread"),
}


def check_event_kind(event: StopEvent | None, *, awaited: bool) -> None:
    """Raise an error unless an event suits what waits for it: a task, or a thread."""
    if event is None or is_coroutine_function(event.wait) is awaited:
        return
    rule, suggestion = "a threading.Event under retry", "asyncio.Event needs aretry"
    if awaited:
        rule = "an asyncio.Event or a trio.Event under aretry"
        suggestion = "waiting for a thread's event would block the event loop"
    raise invalid_setting("stop_event", rule, event, suggestion, code="async-mismatch")


@final
class Setting:
    """A setting of a policy: how it is checked, written as data, and described.

    Validation, data, environment variables, the JSON Schema, strategies and signatures
    follow from it; its type and its default are written in `Policy`.

    Attributes:
        check: Returns the value of the setting, or raises `ConfigError`.
        form: Its form as data, as in `retrykit._core.serialization`; ``"code"`` if it
            cannot be written as data.
        sentence: The description in the JSON Schema; empty for ``"code"``.
        none: How None is written as data: ``"unlimited"``; ``"null"``, which is left
            out; ``"absent"``, which is left out, and may be read as ``"unlimited"``; or
            ``""``, where None is not a value.
        options: The values of a choice.
        bounds: The lower and the upper bound of a count or a number.
    """

    __slots__ = ("bounds", "check", "form", "none", "options", "sentence")

    def __init__(
        self,
        check: "_Validator",
        form: str,
        sentence: str = "",
        *,
        options: tuple[str, ...] = (),
        bounds: tuple[float, float] = (0, LARGEST),
    ) -> None:
        self.check: _Validator = check
        self.form: str = form
        self.sentence: str = sentence
        self.none: _None = ""
        self.options: tuple[str, ...] = options
        self.bounds: tuple[float, float] = bounds


_Validator = Callable[[str, object], object]
_None = Literal["", "null", "unlimited", "absent"]


def _choice(rule: object, sentence: str, suggestion: str = "") -> Setting:
    options = get_args(rule)
    check = partial(check_choice, options=options, suggestion=suggestion)
    return Setting(check, "choice", sentence, options=options)


def _count(
    least: int, sentence: str, suggestion: str = "", most: int = LARGEST
) -> Setting:
    check = partial(check_integer, at_least=least, at_most=most, suggestion=suggestion)
    return Setting(check, "count", sentence, bounds=(least, most))


def _optional(setting: Setting, none: _None = "null") -> Setting:
    """Change a setting so that it may be None, and return it."""
    check = setting.check
    setting.check = lambda name, value: None if value is None else check(name, value)
    setting.none = none
    return setting


def _limit(setting: Setting) -> Setting:
    """Change a limit so that it may be None, but not a function; return it."""
    check = setting.check

    def check_limit(name: str, value: object) -> object:
        if callable(value):
            suggestion = "for settings at run time write retry(policy=function)"
            raise invalid_setting(name, "a value", value, suggestion)
        return check(name, value)

    setting.check = check_limit
    return _optional(setting, "unlimited")


SETTINGS: dict[str, Setting] = {
    "schedule": Setting(
        lambda _, value: as_schedule(value),
        "schedule",
        "Delays before the retries: a list of durations, or a string with an "
        "expression. Retrying ends when the schedule ends.",
    ),
    "max_attempts": _limit(
        _count(
            1,
            'Maximum number of attempts, including the first. "unlimited" for no '
            "limit. No limit by default if max_elapsed or a schedule that ends is "
            "given.",
            "the first attempt counts; None is unlimited",
        )
    ),
    "max_elapsed": _limit(
        Setting(
            parse_duration,
            "duration",
            "Time limit of the whole call, from the start of the first attempt. "
            '"unlimited" for no limit. No limit by default if max_attempts or '
            "schedule is given.",
        )
    ),
    "limits": Setting(
        _limit_rule,
        "choice",
        'Which of max_attempts and max_elapsed ends a call: "any", the first that '
        'is reached; "all", the last.',
        options=get_args(LimitRule),
    ),
    "deadline": _choice(
        DeadlineRule,
        'What to do if the next attempt would start after max_elapsed: "stop" gives '
        'up without waiting; "clip" makes a last attempt at the limit; '
        '"overshoot" makes one after it.',
        "for a time limit use max_elapsed",
    ),
    "on": Setting(
        check_condition,
        "errors",
        "Errors to retry: the name of an exception type, or a list of names; [] for "
        "the errors of rules only. By default every Exception except those that a "
        "mistake in the code raises, such as TypeError.",
    ),
    "give_up_on": Setting(
        check_condition,
        "errors",
        "Errors not to retry even though on includes them: a name or a list of names.",
    ),
    "on_result": _optional(
        Setting(
            check_result_condition,
            "results",
            "Results that count as failures: responses of HTTP by their status, such "
            'as "http=503" or "http=5xx", or a list of them.',
        )
    ),
    "exception_groups": _choice(
        GroupRule,
        'When to retry an ExceptionGroup: "all", if on or a rule matches all errors '
        'in it; "any", if one; "whole", if it matches the group itself.',
    ),
    "rules": Setting(
        _rules,
        "rules",
        "Errors that have their own schedule, limit or hint. The first rule that "
        "matches applies.",
    ),
    "hint": _optional(
        Setting(
            _hint,
            "hint",
            "Where to read the delay that an error or a rejected result asks for, such "
            "as retry_after. The longer of the hint and the schedule's delay is used.",
        )
    ),
    "hint_cap": _optional(
        Setting(
            parse_duration,
            "duration",
            'Longest delay that a hint may ask for. "unlimited" for no limit.',
        ),
        "unlimited",
    ),
    "on_long_hint": _choice(
        LongHintRule,
        'What to do with a hint longer than hint_cap: "give_up" ends the call; '
        '"clip" waits for hint_cap; "ignore" takes the next hint, or the '
        'schedule\'s delay; "honor" waits as long as the hint asks.',
        "for a bound use hint_cap",
    ),
    "hint_jitter": Setting(
        partial(
            check_number,
            at_most=1,
            suggestion="0.1 adds up to 10 % of a hint; 0 adds nothing",
        ),
        "number",
        "Longest random addition to a hint, as a part of it. 0.1 adds up to 10 %; 0 "
        "adds nothing.",
        bounds=(0, 1),
    ),
    "budget": _optional(
        Setting(_budget, "budget", "Limit on retries that many calls share.")
    ),
    "admission": Setting(
        _admission,
        "limits",
        "Limits that are asked before each attempt, in order: circuit breakers, limits "
        "of concurrency and of rate.",
    ),
    "on_refused": _choice(
        RefusedRule,
        'What to do when a limit refuses an attempt: "give_up" ends the call; "wait" '
        "waits until the limit allows it, as long as the time limit allows.",
    ),
    "hedge": _optional(
        Setting(
            _hedge,
            "hedge",
            "When an attempt that takes long is sent again; the first success counts.",
        )
    ),
    "attempt_timeout": _optional(
        Setting(
            _attempt_timeout,
            "timeout",
            "Time limit of each attempt: a duration, or the parameter of the function "
            'to pass it to. "unlimited" for no limit. Async calls are cancelled and '
            "fail with AttemptTimeout, which is always retried. A sync function cannot "
            "be cancelled: name the parameter that takes its timeout.",
        ),
        "absent",
    ),
    "nested": _choice(
        NestedRule,
        'What to do when a retried call inside this one has given up: "respect" does '
        'not retry its error; "retry" does; "raise" raises NestedRetryError.',
    ),
    "raises": _choice(
        Raises,
        'What to raise on giving up: "last": the last error, or RetryError if the '
        'last result was rejected; "retry_error": a RetryError from it; "group": '
        "an ExceptionGroup of all recorded errors. An error that on does not include "
        "is raised unchanged.",
    ),
    "fallback": Setting(check_fallback, "code"),
    "stop_event": _optional(Setting(check_stop_event, "code")),
    "sleep": _optional(Setting(check_sleep, "code")),
    "redact": Setting(
        _redaction,
        "flag",
        "Whether to leave secrets, such as queries of URLs, out of logs, notes and "
        "saved states.",
    ),
    "keep_tracebacks": Setting(
        _flag,
        "flag",
        "Whether errors before the last keep their tracebacks, and so the local "
        "variables of each frame, until the call ends.",
    ),
    "max_failures": _count(
        2,
        "Maximum number of failures to keep in the state: the first and the last ones.",
        "the first and the last are always kept",
    ),
    "seed": _optional(
        _count(
            0,
            "Seed of the random delays, for tests. null draws a new one for each call.",
            # The generator has 64 bits of state.
            most=2**64 - 1,
        )
    ),
    "observers": Setting(_observers, "code"),
    "name": _optional(
        Setting(
            _name,
            "text",
            "Name of the calls in logs, notes and states. null uses the name of the "
            "function.",
        )
    ),
}
"""The settings keyed by name, in the order of `Policy`."""


def suggest_setting(name: str, known: Collection[str]) -> str:
    """Return a suggestion for the name of a setting that does not exist.

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
    """Decorate a public function that takes settings by name, as `user_facing` does."""
    return user_facing(fn, guess=guess_setting)


def guess_setting(value: object) -> str:
    """Return the setting that was probably meant by a value without a name.

    >>> guess_setting((OSError, ValueError)), guess_setting(3), guess_setting("2m")
    ('on=(OSError, ValueError)', 'max_attempts=3', "max_elapsed='2m'")

    Returns:
        The name and the value, as in a call; empty if none is probable.
    """
    kinds = value if isinstance(value, tuple) and value else (value,)
    if all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        return f"on={format_value(value)}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"max_attempts={value}"
    if isinstance(value, Schedule | list | range):
        return f"schedule={safe_repr(value)}"
    if not callable(value) and _is_budget(value):
        return f"budget={safe_repr(value)}"
    if not callable(value) and not isinstance(value, int | float):
        with suppress(ConfigError):
            parse_duration("max_elapsed", value)
            return f"max_elapsed={safe_repr(value)}"
    return ""
