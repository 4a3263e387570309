"""Policies as plain data, for JSON and TOML.

Only what is made of retrykit's own parts and of exception types can be
written: code of the user's has no form here. Reading never imports a module.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from retrykit.checks import refuse, whole
from retrykit.schedules import from_dict
from retrykit.settings import Settings
from retrykit.type_names import text_of, type_of

__all__ = ["UNLIMITED", "setting_data", "settings_data", "settings_from"]

# TOML has no null.
UNLIMITED = "unlimited"
"""How a limit that is None is written."""

_CODE = ("on_result", "observers")


def settings_data(settings: Settings) -> dict[str, Any]:
    """Return settings as a dict of numbers, texts, lists and dicts.

    Raises:
        ConfigError: A setting is code: a predicate, an observer, a generator.
    """
    values = {each.name: getattr(settings, each.name) for each in fields(settings)}
    data = {name: setting_data(name, value) for name, value in values.items()}
    return {name: value for name, value in data.items() if value is not None}


def setting_data(name: str, value: Any) -> Any:
    """Return one setting as a number, text, list or dict; None if there is none.

    >>> setting_data("max_elapsed", None), setting_data("on", (OSError, EOFError))
    ('unlimited', ['OSError', 'EOFError'])

    Raises:
        ConfigError: It is code.
    """
    if name == "schedule":
        return value.to_dict()
    if name in _CODE:
        if value:
            raise refuse(name, "left out of a policy that is written as data", value)
        return None
    if name in {"max_attempts", "max_elapsed"} and value is None:
        return UNLIMITED
    return _names(name, value) if name in {"on", "give_up_on"} else value


def settings_from(data: object) -> dict[str, Any]:
    """Return the settings that `settings_data` wrote, and no others.

    Raises:
        ConfigError: *data* is no dict, or names a type that is not known here.
            What else is wrong with it is found where the policy is made.
    """
    if not isinstance(data, Mapping) or not all(isinstance(n, str) for n in data):
        raise refuse("policy", "a dict of settings", data)
    for name in _CODE:
        if name in data:
            rule = "left out of a policy that is read from data"
            raise refuse(name, rule, data[name], f"add it with .replace({name}=...)")
    return {name: _read(name, value) for name, value in data.items()}


def _read(name: str, value: Any) -> Any:
    if name == "schedule":
        return from_dict(value)
    if name in {"max_attempts", "max_elapsed"} and value in (None, UNLIMITED):
        return None
    if name == "max_attempts":
        # What code writes as None is no way out here.
        way_out = f"the first call counts; {UNLIMITED!r} is no limit"
        return whole(name, value, at_least=1, way_out=way_out)
    if name not in {"on", "give_up_on"}:
        return value
    if isinstance(value, list | tuple):
        return tuple(type_of(name, each) for each in value)
    return type_of(name, value)


def _names(name: str, condition: object) -> str | list[str]:
    if isinstance(condition, tuple):
        return [text_of(name, kind) for kind in condition]
    return text_of(name, condition)
