"""Rules, which give some failures their own schedule, limit or hint."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, final

from retrykit._conditions import Condition, check_condition, format_value, types_of
from retrykit._core.result_conditions import ResultCondition, check_result_condition
from retrykit._core.settings import SETTINGS
from retrykit._internal.frozen import Frozen, fields_of
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    invalid_setting,
    user_facing,
)
from retrykit.schedules._base import Schedule, ScheduleLike, as_schedule

if TYPE_CHECKING:
    from retrykit.hints._base import Hint

__all__ = ["Rule", "check_rules"]


F = TypeVar("F", bound=Callable[..., Any])


def _takes_conditions(fn: F) -> F:
    return user_facing(fn, advise=_advise)


def _advise(name: str, _: list[str]) -> str:
    """Return what to write instead of a parameter that a rule does not have."""
    # Imported here: only unknown parameters need it.
    from retrykit._core.foreign_settings import advice_for  # noqa: PLC0415

    return "write it in the policy" if name in SETTINGS else advice_for(name)


@final
class Rule(Frozen):
    """A separate schedule, limit or hint for some of a policy's failures.

    The first rule of a policy that matches an error or a result applies. The failure
    is then retried whatever the policy's own `on` and `on_result` say; the other limits
    of the policy hold.

    >>> from retrykit import Policy
    >>> Policy(rules=[Rule(on=BlockingIOError, schedule=["30s", "2m"])], on=OSError)
    Policy(on=OSError, rules=(Rule(on=BlockingIOError, schedule=sequence([30.0, \
120.0])),))
    >>> Rule(on=OSError)
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: rule must be given a schedule, max_attempts or hint, \
got Rule(on=OSError); errors without any belong in the policy's on  \
[never-retries]

    Args:
        on: The errors, in the forms of a policy's `on`. ``()``, the default, matches
            none.
        schedule: The delays, in the forms of a policy's schedule, counted from the
            first of these failures. None, the default, means the policy's schedule.
        max_attempts: Maximum number of attempts that fail in this way; the last of
            them is not retried. Count, >= 1; None, the default, is unlimited.
        on_result: The results: a predicate like a policy's `on_result`. None, the
            default, matches none.
        hint: A hint in place of the policy's `hint`. None, the default, means the
            policy's hint.

    Raises:
        ConfigError: An argument is invalid, there is neither `on` nor `on_result`, or
            none of schedule, max_attempts and hint.
    """

    __slots__ = ("hint", "max_attempts", "on", "on_result", "schedule")
    on: Condition
    schedule: Schedule | None
    max_attempts: int | None
    on_result: ResultCondition | None
    hint: "Hint | None"

    @_takes_conditions
    def __init__(
        self,
        on: Condition = (),
        schedule: ScheduleLike | None = None,
        max_attempts: int | None = None,
        on_result: ResultCondition | None = None,
        hint: "Hint | None" = None,
    ) -> None:
        if max_attempts is not None:
            check_integer("max_attempts", max_attempts, at_least=1)
        if on_result is not None:
            check_result_condition("on_result", on_result)
        if hint is not None:
            # Imported here: most policies have no hint.
            from retrykit.hints._base import check_hint  # noqa: PLC0415

            check_hint("hint", hint)
        delays = None if schedule is None else as_schedule(schedule)
        errors = check_condition("on", on)
        Frozen.__init__(self, errors, delays, max_attempts, on_result, hint)
        if on == () and on_result is None:
            rule = "given errors in on, or a predicate of results in on_result"
            raise invalid_setting("rule", rule, self, code="never-retries")
        if schedule is None and max_attempts is None and hint is None:
            suggestion = "errors without any belong in the policy's on"
            rule = "given a schedule, max_attempts or hint"
            raise invalid_setting("rule", rule, self, suggestion, code="never-retries")

    def __repr__(self) -> str:
        parts = (
            f"{name}={format_value(value)}"
            for name, value in fields_of(self).items()
            if value is not None and value != ()
        )
        return f"Rule({', '.join(parts)})"


def check_rules(name: str, value: object) -> tuple[Rule, ...]:
    """Return rules as a tuple; raise an error if one is invalid or can never apply."""
    if not isinstance(value, list | tuple):
        suggestion = "put brackets around it" if isinstance(value, Rule) else ""
        raise invalid_setting(name, "a list of rules", value, suggestion)
    before: list[type] = []
    for index, each in enumerate(value):
        place = f"{name}[{index}]"
        check_instance(place, each, Rule, "write Rule(on=..., ...)")
        kinds = types_of(each.on)
        if kinds and all(issubclass(kind, tuple(before)) for kind in kinds):
            rule = "placed where it can apply"
            suggestion = "an earlier rule matches all of its errors: put it first"
            raise invalid_setting(place, rule, each, suggestion, code="never-retries")
        before += kinds
    return tuple(value)
