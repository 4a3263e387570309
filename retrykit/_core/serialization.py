"""Policies as plain data, for JSON and TOML.

Custom code cannot be written as data: only retrykit's own classes and exception types
can. Reading never imports the module of a type that the data names.
"""

from collections.abc import Callable, Mapping
from typing import Any

from retrykit._conditions import default_condition
from retrykit._core.final_error import NO_FALLBACK
from retrykit._core.rules import Rule
from retrykit._core.settings import SETTINGS
from retrykit._core.timeouts import AsArgument
from retrykit._internal.error_texts import type_from_name, type_to_name
from retrykit._internal.frozen import fields_of
from retrykit._internal.validation import check_integer, invalid_setting, prefix_errors
from retrykit.budgets._base import Budget
from retrykit.hints._base import Hint
from retrykit.schedules._base import Schedule

__all__ = ["UNLIMITED", "policy_to_dict", "setting_to_data", "settings_from_dict"]

# TOML has no null.
UNLIMITED = "unlimited"
"""Written in place of a limit that is None."""


def policy_to_dict(settings: Mapping[str, object]) -> dict[str, Any]:
    """Return the settings of a policy as plain data, without those that are not set.

    Raises:
        ConfigError: A setting cannot be written as data, such as a function.
    """
    data = {
        name: setting_to_data(name, value)
        for name, value in settings.items()
        # It has no name, as it is the default.
        if value is not default_condition
    }
    return {name: value for name, value in data.items() if value is not None}


def setting_to_data(name: str, value: Any) -> Any:
    """Return a setting as plain data, or None if it is to be left out.

    >>> setting_to_data("max_elapsed", None), setting_to_data("on", (OSError, EOFError))
    ('unlimited', ['OSError', 'EOFError'])

    Raises:
        ConfigError: The setting cannot be written as data, such as a function.
    """
    if name not in SETTINGS:
        # A part of a budget.
        return value
    form, none = SETTINGS[name].form, SETTINGS[name].none
    if form == "code" or (form == "flag" and callable(value)):
        # None is a fallback like any other.
        absent = NO_FALLBACK if name == "fallback" else None
        if value is not absent and (name != "observers" or value):
            rule = "left out of a policy that is written as data"
            suggestion = f"leave it out, and add it with .replace({name}=...)"
            raise invalid_setting(name, rule, value, suggestion, code="not-expressible")
        return None
    if value is None:
        return UNLIMITED if none == "unlimited" else None
    return _WRITERS[form](name, value) if form in _WRITERS else value


def settings_from_dict(data: object) -> dict[str, Any]:
    """Return the settings of a policy as keyword arguments, from its data.

    Raises:
        ConfigError: *data* is not a dict of settings, a setting is invalid, or it can
            only be written in code.
    """
    if not isinstance(data, Mapping) or not all(isinstance(n, str) for n in data):
        raise invalid_setting("policy", "a dict of settings", data)
    for name in SETTINGS:
        if name in data and SETTINGS[name].form == "code":
            rule = "left out of a policy that is read from data"
            raise invalid_setting(
                name,
                rule,
                data[name],
                f"add it with .replace({name}=...)",
                code="not-expressible",
            )
    return {name: _read(name, value) for name, value in data.items()}


def _read(name: str, value: Any) -> Any:
    if name not in SETTINGS:
        return value
    form, none = SETTINGS[name].form, SETTINGS[name].none
    limit = none in {"unlimited", "absent"}
    if (value is None and none) or (limit and value == UNLIMITED):
        return None
    if form == "count" and limit:
        # Data has no None to suggest.
        suggestion = f"the first attempt counts; {UNLIMITED!r} is no limit"
        return check_integer(name, value, at_least=1, suggestion=suggestion)
    return _READERS[form](name, value) if form in _READERS else value


def _names(name: str, condition: object) -> str | list[str]:
    if isinstance(condition, tuple):
        return [type_to_name(name, kind) for kind in condition]
    if isinstance(condition, type):
        return type_to_name(name, condition)
    from retrykit.conditions._texts import condition_to_texts  # noqa: PLC0415  below

    return condition_to_texts(name, condition)


def _types(name: str, value: object) -> object:
    texts = [*value] if isinstance(value, list | tuple) else [value]
    if any(isinstance(each, str) and "=" in each for each in texts):
        from retrykit.conditions._texts import condition_from_texts  # noqa: PLC0415

        return condition_from_texts(name, texts)
    if isinstance(value, list | tuple):
        return tuple(type_from_name(name, each) for each in value)
    return type_from_name(name, value)


def _results_data(name: str, condition: Any) -> list[str]:
    from retrykit.conditions._texts import result_to_texts  # noqa: PLC0415  below

    return result_to_texts(name, condition)


def _results(name: str, value: object) -> object:
    from retrykit.conditions._texts import result_from_texts  # noqa: PLC0415  below

    return result_from_texts(name, value)


def _rules_data(_: str, rules: tuple[Rule, ...]) -> list[dict[str, Any]]:
    return [_rule_data(f"rules[{index}]", each) for index, each in enumerate(rules)]


def _rule_data(name: str, rule: Rule) -> dict[str, Any]:
    parts = {part: x for part, x in fields_of(rule).items() if x is not None}
    with prefix_errors(name):
        return {part: setting_to_data(part, x) for part, x in parts.items()}


def _rules(_: str, data: object) -> object:
    if not isinstance(data, list | tuple):
        raise invalid_setting("rules", "a list of dicts", data)
    return [_rule(f"rules[{index}]", each) for index, each in enumerate(data)]


def _rule(name: str, data: object) -> Rule:
    known = isinstance(data, Mapping) and set(_PARTS).issuperset(data)
    if not isinstance(data, Mapping) or not known or not {"on"} < set(data):
        rule = "a dict of on, and of schedule, max_attempts or hint"
        raise invalid_setting(name, rule, data)
    with prefix_errors(name):
        return Rule(**settings_from_dict(data))


_PARTS = ("on", "on_result", "schedule", "max_attempts", "hint")


# Imported on demand: few programs need them, and they take 1, 3 and 4 ms.
def _schedule_text(_: str, schedule: Schedule) -> str:
    from retrykit.schedules._parsing import schedule_to_text  # noqa: PLC0415  see above

    return schedule_to_text(schedule)


def _schedule(_: str, data: object) -> Schedule:
    from retrykit.schedules._parsing import schedule_from_data  # noqa: PLC0415  same

    return schedule_from_data(data)


def _hint_text(_: str, hint: object) -> str:
    from retrykit.hints._parsing import hint_to_text  # noqa: PLC0415  see above

    return hint_to_text(hint)


def _hint(_: str, text: object) -> Hint:
    from retrykit.hints._parsing import parse_hint  # noqa: PLC0415  see above

    return parse_hint(text)


def _budget_data(_: str, budget: Budget) -> dict[str, Any]:
    from retrykit.budgets._shared_budgets import SerializableBudget  # noqa: PLC0415

    if not isinstance(budget, SerializableBudget):
        rule = "one of retrykit.budgets in a policy that is written as data"
        suggestion = "leave it out, and add it with .replace(budget=...)"
        raise invalid_setting(
            "budget", rule, budget, suggestion, code="not-expressible"
        )
    return budget.to_dict()


def _budget(_: str, data: object) -> Budget:
    from retrykit.budgets._serialization import budget_from_dict  # noqa: PLC0415  same

    return budget_from_dict(data)


def _limits_data(name: str, limits: tuple[Any, ...]) -> list[dict[str, Any]] | None:
    from retrykit.limits._shared_limits import SerializableLimit  # noqa: PLC0415  same

    data = []
    for index, limit in enumerate(limits):
        item = f"{name}[{index}]"
        if not isinstance(limit, SerializableLimit):
            rule = "one of retrykit.limits in a policy that is written as data"
            suggestion = f"leave it out, and add it with .replace({name}=...)"
            raise invalid_setting(item, rule, limit, suggestion, code="not-expressible")
        with prefix_errors(item):
            data.append(limit.to_dict())
    return data


def _limits(name: str, data: object) -> object:
    from retrykit.limits._serialization import limit_from_dict  # noqa: PLC0415  same

    if not isinstance(data, list | tuple):
        raise invalid_setting(name, "a list of dicts", data)
    limits = []
    for index, each in enumerate(data):
        with prefix_errors(f"{name}[{index}]"):
            limits.append(limit_from_dict(each))
    return limits


def _hedge_data(_: str, hedge: Any) -> Any:
    return hedge.to_dict()


def _hedge(_: str, data: object) -> object:
    from retrykit._core.hedge import hedge_from_dict  # noqa: PLC0415  same

    return hedge_from_dict(data)


def _timeout_data(_: str, timeout: float | AsArgument) -> float | dict[str, Any]:
    if isinstance(timeout, AsArgument):
        return {"argument": timeout.name, "seconds": timeout.seconds}
    return timeout


def _timeout(_: str, data: Any) -> object:
    if not isinstance(data, Mapping):
        return data
    if set(data) != {"argument", "seconds"}:
        rule = "a duration, or a dict of argument and seconds"
        raise invalid_setting("attempt_timeout", rule, data)
    with prefix_errors("attempt_timeout"):
        return AsArgument(data["seconds"], data["argument"])


# Writers and readers of values whose form is not a number or a string; they also get
# the name of the setting.
_WRITERS: dict[str, Callable[[str, Any], Any]] = {
    "schedule": _schedule_text,
    "errors": _names,
    "results": _results_data,
    "rules": _rules_data,
    "hint": _hint_text,
    "budget": _budget_data,
    "limits": _limits_data,
    "hedge": _hedge_data,
    "timeout": _timeout_data,
}
_READERS: dict[str, Callable[[str, Any], Any]] = {
    "schedule": _schedule,
    "errors": _types,
    "results": _results,
    "rules": _rules,
    "hint": _hint,
    "budget": _budget,
    "limits": _limits,
    "hedge": _hedge,
    "timeout": _timeout,
}
