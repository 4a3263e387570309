"""Validators of the settings of a policy."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Literal, TypedDict, get_args

from retrykit._internal.durations import (
    Duration,
    parse_duration,
    parse_positive_duration,
)
from retrykit._internal.error_conditions import Condition, check_condition
from retrykit._internal.introspection import accepts_one_argument
from retrykit._internal.validation import (
    check_choice,
    check_encodable,
    check_integer,
    invalid_setting,
)
from retrykit.budgets.base import Budget
from retrykit.hints.base import Hint, check_hint
from retrykit.policy.conditions import ResultCondition
from retrykit.policy.rules import Rule, check_rules
from retrykit.policy.timeouts import AsArgument
from retrykit.schedules import ScheduleLike
from retrykit.schedules.base import Schedule, as_schedule
from retrykit.state.events import Observer, check_observer

__all__ = ["VALIDATORS", "Changes", "DeadlineRule", "LongHintRule", "NestedRule"]
__all__ += ["Raises"]

DeadlineRule = Literal["stop", "clip", "overshoot"]
"""What to do if the next attempt would start too late."""

Raises = Literal["last", "retry_error", "group"]
"""What to raise on giving up."""

NestedRule = Literal["respect", "retry", "raise"]
"""What to do after a retried call inside this one has given up."""

LongHintRule = Literal["honor", "clip", "give_up"]
"""What to do with a hint above `hint_cap`."""


class Changes(TypedDict, total=False):
    """The settings of a policy as keyword arguments."""

    schedule: ScheduleLike
    max_attempts: int | None
    max_elapsed: Duration | None
    deadline: DeadlineRule
    on: Condition
    give_up_on: Condition
    on_result: ResultCondition | None
    rules: Iterable[Rule]
    hint: Hint | None
    hint_cap: Duration | None
    on_long_hint: LongHintRule
    budget: Budget | None
    attempt_timeout: Duration | AsArgument | None
    nested: NestedRule
    raises: Raises
    redact: bool
    keep_tracebacks: bool
    max_failures: int
    seed: int | None
    observers: Iterable[Observer]
    name: str | None


def _schedule(_name: str, value: object) -> Schedule:
    return as_schedule(value)


def _max_attempts(name: str, value: object) -> int | None:
    if value is None:
        return None
    suggestion = "the first call counts; None is unlimited"
    return check_integer(name, value, at_least=1, suggestion=suggestion)


def _optional_duration(name: str, value: object) -> float | None:
    return None if value is None else parse_duration(name, value)


def _deadline(name: str, value: object) -> object:
    suggestion = "a time limit is max_elapsed"
    return check_choice(name, value, get_args(DeadlineRule), suggestion)


def _hint(name: str, value: object) -> object:
    return None if value is None else check_hint(name, value)


def _on_long_hint(name: str, value: object) -> object:
    return check_choice(name, value, get_args(LongHintRule), "a bound is hint_cap")


def _budget(name: str, value: object) -> Budget | None:
    if value is None or isinstance(value, Budget):
        return value
    suggestion = "use one of retrykit.budgets"
    if isinstance(value, type) and issubclass(value, Budget):
        suggestion = f"create one: {value.__name__}()"
    raise invalid_setting(name, "a budget", value, suggestion)


def _attempt_timeout(name: str, value: object) -> float | AsArgument | None:
    if value is None or isinstance(value, AsArgument):
        return value
    return parse_positive_duration(name, value, "None is unlimited")


def _nested(name: str, value: object) -> object:
    return check_choice(name, value, get_args(NestedRule))


def _raises(name: str, value: object) -> object:
    return check_choice(name, value, get_args(Raises))


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise invalid_setting(name, "True or False", value)
    return value


def _on_result(name: str, value: object) -> object:
    if value is None:
        return None
    if isinstance(value, type) or not callable(value):
        rule, suggestion = "a predicate of the result", "write a function"
        raise invalid_setting(name, rule, value, suggestion)
    if not accepts_one_argument(value):
        raise invalid_setting(name, "a predicate that takes the result", value)
    return value


def _max_failures(name: str, value: object) -> int:
    suggestion = "the first and the last are always kept"
    return check_integer(name, value, at_least=2, suggestion=suggestion)


def _seed(name: str, value: object) -> int | None:
    if value is None:
        return None
    # The generator has 64 bits of state.
    return check_integer(name, value, at_least=0, at_most=2**64 - 1)


def _observers(name: str, value: object) -> tuple[Observer, ...]:
    if not isinstance(value, Iterable) or isinstance(value, str):
        rule = "a list of functions that take an event"
        suggestion = "put brackets around it" if callable(value) else ""
        raise invalid_setting(name, rule, value, suggestion)
    return tuple(check_observer(name, observer) for observer in value)


def _name(name: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        suggestion = "None takes the function's"
        raise invalid_setting(name, "a non-empty string", value, suggestion)
    return check_encodable(name, value)


VALIDATORS: dict[str, Callable[[str, object], object]] = {
    "schedule": _schedule,
    "max_attempts": _max_attempts,
    "max_elapsed": _optional_duration,
    "deadline": _deadline,
    "on": partial(check_condition, allow_empty=False),
    "give_up_on": check_condition,
    "on_result": _on_result,
    "rules": check_rules,
    "hint": _hint,
    "hint_cap": _optional_duration,
    "on_long_hint": _on_long_hint,
    "budget": _budget,
    "attempt_timeout": _attempt_timeout,
    "nested": _nested,
    "raises": _raises,
    "redact": _flag,
    "keep_tracebacks": _flag,
    "max_failures": _max_failures,
    "seed": _seed,
    "observers": _observers,
    "name": _name,
}
"""The validator of each setting by its name, in the order of `Policy`."""
