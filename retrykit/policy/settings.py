"""What a policy says: its settings, as one frozen and checked value.

What a policy does is in `retrykit.policy.policy`. A setting is checked here, where
its user writes it, and nowhere else.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Literal, Self, TypedDict, TypeVar, Unpack, get_args

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.error_conditions import Condition, check_condition
from retrykit._internal.validation import (
    check_choice,
    check_encodable,
    check_integer,
    invalid_setting,
    safe_repr,
)
from retrykit.budgets.base import Budget
from retrykit.errors import ConfigError
from retrykit.hints.base import Hint, check_hint
from retrykit.policy.conditions import (
    ResultCondition,
    check_predicate,
    format_condition,
)
from retrykit.policy.rules import Rule, check_rules, types_of
from retrykit.policy.timeouts import AsArgument
from retrykit.schedules import ScheduleLike, exponential
from retrykit.schedules.base import Schedule, as_schedule
from retrykit.state.events import Observer, check_observer

__all__ = ["Changes", "DeadlineRule", "LongHintRule", "NestedRule", "Raises"]
__all__ += ["Settings", "recast"]

DeadlineRule = Literal["stop", "clip", "overshoot"]
"""What happens when the next attempt could not start in time."""

Raises = Literal["last", "retry_error", "group"]
"""What a call raises when it gives up."""

NestedRule = Literal["respect", "retry", "raise"]
"""What happens when a retried call inside of this one has given up."""

# The delays are the defaults of Google's ExponentialBackOff; five attempts in
# at most a minute are what a waiting person or request can bear.
_DEFAULT = exponential(0.5, factor=1.5).cap(60).jitter(0.5)


LongHintRule = Literal["honor", "clip", "give_up"]
"""What happens when a hint asks for more than `hint_cap`."""


class Changes(TypedDict, total=False):
    """The settings of a policy, for those who change some of them."""

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


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Settings:
    """The settings of a policy; `Policy` says what each of them means."""

    schedule: Schedule = _DEFAULT
    max_attempts: int | None = 5
    max_elapsed: float | None = 60.0
    deadline: DeadlineRule = "stop"
    on: Condition = Exception
    give_up_on: Condition = ()
    on_result: ResultCondition | None = None
    rules: tuple[Rule, ...] = ()
    hint: Hint | None = None
    hint_cap: float | None = 3600.0
    on_long_hint: LongHintRule = "give_up"
    budget: Budget | None = None
    attempt_timeout: float | AsArgument | None = None
    nested: NestedRule = "respect"
    raises: Raises = "last"
    redact: bool = True
    keep_tracebacks: bool = False
    max_failures: int = 100
    seed: int | None = None
    observers: tuple[Observer, ...] = ()
    name: str | None = None

    def __init__(self, **settings: Unpack[Changes]) -> None:
        self._set(settings, _DEFAULTS)

    def _set(self, given: Mapping[str, object], others: Mapping[str, object]) -> None:
        for name, value in given.items():
            if name not in _CHECKS:
                raise _unknown(name, value)
        for name, check in _CHECKS.items():
            value = check(name, given[name]) if name in given else others[name]
            object.__setattr__(self, name, value)
        self._check_together()

    def _check_together(self) -> None:
        if self.deadline != "stop" and self.max_elapsed is None:
            rule = "'stop' where max_elapsed is None"
            suggestion = (
                "set max_elapsed, the time that it is about, or deadline='stop'"
            )
            raise invalid_setting("deadline", rule, self.deadline, suggestion)
        never = types_of(self.give_up_on)
        retried = types_of(self.on)
        if retried and not self.rules and _within(retried, never):
            rule, told = "narrower than on, or nothing is ever retried", self.on
            raise invalid_setting(
                "give_up_on", rule, self.give_up_on, f"on is {format_condition(told)}"
            )
        for each in self.rules:
            if types_of(each.on) and _within(types_of(each.on), never):
                rule = "narrower than the on of each rule, or the rule never holds"
                suggestion = f"there is {each!r}"
                raise invalid_setting("give_up_on", rule, self.give_up_on, suggestion)

    def replace(self, **changes: Unpack[Changes]) -> Self:
        """Return the same policy with some settings changed.

        Args:
            **changes: Settings, as for `Policy`.

        Raises:
            ConfigError: A setting is wrong, or contradicts another.
        """
        other = object.__new__(type(self))
        other._set(changes, {name: getattr(self, name) for name in _CHECKS})
        return other

    def __repr__(self) -> str:
        told = (
            f"{name}={format_condition(getattr(self, name))}"
            for name in _CHECKS
            if getattr(self, name) != _DEFAULTS[name]
        )
        return f"{type(self).__name__}({', '.join(told)})"


S = TypeVar("S", bound=Settings)


def recast(settings: Settings, kind: type[S]) -> S:
    """Return the same settings as a value of another class of them."""
    # They are checked, so only their class is another.
    other = object.__new__(kind)
    for name in _CHECKS:
        object.__setattr__(other, name, getattr(settings, name))
    return other


def _within(kinds: tuple[type, ...], others: tuple[type, ...]) -> bool:
    return all(issubclass(kind, others) for kind in kinds)


def _unknown(name: str, value: object) -> ConfigError:
    # Imported here: only who mistypes needs it, and everyone would wait for it.
    from retrykit.policy.setting_aliases import suggest_setting  # noqa: PLC0415

    suggestion = suggest_setting(name, _CHECKS)
    shown = safe_repr(name).strip("'")
    return ConfigError(
        f"{shown} is no setting of a policy, got {safe_repr(value)}; {suggestion}"
    )


def _schedule(_name: str, value: object) -> Schedule:
    return as_schedule(value)


def _max_attempts(name: str, value: object) -> int | None:
    suggestion = "the first call counts; None is unlimited"
    return (
        None
        if value is None
        else check_integer(name, value, at_least=1, suggestion=suggestion)
    )


def _max_elapsed(name: str, value: object) -> float | None:
    return None if value is None else parse_duration(name, value)


def _deadline(name: str, value: object) -> object:
    suggestion = "a time limit is max_elapsed"
    return check_choice(name, value, get_args(DeadlineRule), suggestion)


def _hint(name: str, value: object) -> object:
    return None if value is None else check_hint(name, value)


def _hint_cap(name: str, value: object) -> float | None:
    return None if value is None else parse_duration(name, value)


def _hint_over(name: str, value: object) -> object:
    return check_choice(name, value, get_args(LongHintRule), "a bound is hint_cap")


def _budget(name: str, value: object) -> Budget | None:
    if value is None or isinstance(value, Budget):
        return value
    suggestion = "take one of retrykit.budgets"
    if isinstance(value, type) and issubclass(value, Budget):
        suggestion = f"make one: {value.__name__}()"
    raise invalid_setting(name, "a budget", value, suggestion)


def _attempt_timeout(name: str, value: object) -> float | AsArgument | None:
    if value is None or isinstance(value, AsArgument):
        return value
    length = parse_duration(name, value)
    if not length:
        raise invalid_setting(name, "a duration > 0", value, "None is unlimited")
    return length


def _nested(name: str, value: object) -> object:
    return check_choice(name, value, get_args(NestedRule))


def _raises(name: str, value: object) -> object:
    return check_choice(name, value, get_args(Raises))


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise invalid_setting(name, "True or False", value)
    return value


def _on(name: str, value: object) -> object:
    if value == ():
        raise invalid_setting(
            name, "at least one Exception type", value, "write Exception"
        )
    return check_condition(name, value)


def _on_result(name: str, value: object) -> object:
    return None if value is None else check_predicate(name, value)


def _max_failures(name: str, value: object) -> int:
    suggestion = "the first and the last are always kept"
    return check_integer(name, value, at_least=2, suggestion=suggestion)


def _seed(name: str, value: object) -> int | None:
    # The generator has 64 bits of state.
    most = 2**64 - 1
    return (
        None if value is None else check_integer(name, value, at_least=0, at_most=most)
    )


def _observers(name: str, value: object) -> tuple[Observer, ...]:
    if not isinstance(value, Iterable) or isinstance(value, str):
        rule = "a list of functions that take an event"
        suggestion = "put brackets around it" if callable(value) else ""
        raise invalid_setting(name, rule, value, suggestion)
    return tuple(check_observer(name, observer) for observer in value)


def _name(name: str, value: object) -> str | None:
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise invalid_setting(
            name, "a text that is not empty", value, "None takes the function's"
        )
    return None if value is None else check_encodable(name, value)


_CHECKS: dict[str, Callable[[str, object], object]] = {
    "schedule": _schedule,
    "max_attempts": _max_attempts,
    "max_elapsed": _max_elapsed,
    "deadline": _deadline,
    "on": _on,
    "give_up_on": check_condition,
    "on_result": _on_result,
    "rules": check_rules,
    "hint": _hint,
    "hint_cap": _hint_cap,
    "on_long_hint": _hint_over,
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
_DEFAULTS: dict[str, object] = {field.name: field.default for field in fields(Settings)}
