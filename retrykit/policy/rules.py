"""Rules: some errors of a policy with their own schedules and limits."""

from typing import final

from retrykit._internal.error_conditions import Condition, check_condition
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import check_instance, check_integer, invalid_setting
from retrykit.policy.conditions import format_value
from retrykit.schedules import ScheduleLike
from retrykit.schedules.base import Schedule, as_schedule

__all__ = ["Rule", "check_rules", "types_of"]


@final
class Rule(Frozen):
    """A schedule or a limit of attempts for some errors of a policy.

    The first rule of a policy whose `on` matches an error applies. The error is then
    retried whatever the policy's own `on` says; the other limits of the policy hold.

    >>> from retrykit import Policy
    >>> Policy(rules=[Rule(on=BlockingIOError, schedule=["30s", "2m"])], on=OSError)
    Policy(on=OSError, rules=(Rule(on=BlockingIOError, schedule=sequence([30.0, \
120.0])),))
    >>> Rule(on=OSError)
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: rule must be given a schedule or max_attempts, got \
Rule(on=OSError); errors without their own limits belong in the policy's on

    Args:
        on: The errors, in the forms of a policy's `on`.
        schedule: Their delays, in the forms of a policy's schedule, counted from the
            first of these errors. None, the default: the policy's schedule.
        max_attempts: Maximum number of attempts that fail with these errors; the
            last of them is not retried. Count, >= 1; None, the default, is unlimited.

    Raises:
        ConfigError: An argument is invalid, or there is neither a schedule nor
            max_attempts.
    """

    __slots__ = ("max_attempts", "on", "schedule")
    on: Condition
    schedule: Schedule | None
    max_attempts: int | None

    def __init__(
        self,
        on: Condition,
        schedule: ScheduleLike | None = None,
        max_attempts: int | None = None,
    ) -> None:
        limit = max_attempts
        if limit is not None:
            limit = check_integer("max_attempts", limit, at_least=1)
        delays = None if schedule is None else as_schedule(schedule)
        errors = check_condition("on", on, allow_empty=False)
        Frozen.__init__(self, errors, delays, limit)
        if schedule is None and max_attempts is None:
            suggestion = "errors without their own limits belong in the policy's on"
            rule = "given a schedule or max_attempts"
            raise invalid_setting("rule", rule, self, suggestion)

    def __repr__(self) -> str:
        parts = [f"on={format_value(self.on)}"]
        if self.schedule is not None:
            parts.append(f"schedule={self.schedule!r}")
        if self.max_attempts is not None:
            parts.append(f"max_attempts={self.max_attempts}")
        return f"Rule({', '.join(parts)})"


def check_rules(name: str, value: object) -> tuple[Rule, ...]:
    """Return the rules of a policy as a tuple, if each can apply."""
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
            raise invalid_setting(place, rule, each, suggestion)
        before += kinds
    return tuple(value)


def types_of(condition: Condition) -> tuple[type[Exception], ...]:
    """Return the exception types of a condition; empty if it is a predicate."""
    if isinstance(condition, tuple):
        return condition
    return (condition,) if isinstance(condition, type) else ()
