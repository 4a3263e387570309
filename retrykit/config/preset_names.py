"""Presets by name, with parameters, as in ``zizq:retry_limit=10``."""

import inspect
from collections.abc import Callable

from retrykit import presets
from retrykit._internal.error_conditions import Condition
from retrykit._internal.type_names import type_from_name
from retrykit._internal.validation import did_you_mean, invalid_setting, safe_repr
from retrykit.errors import ConfigError
from retrykit.policy.policy import Policy

__all__ = ["BUILT_IN", "parse_number", "parse_preset"]

BUILT_IN: dict[str, Callable[..., Policy]] = {
    name.replace("_", "-"): getattr(presets, name) for name in presets.__all__
}
"""The function of each preset, by its name with hyphens."""


def parse_preset(text: str) -> Policy:
    """Return the preset that a string names.

    >>> parse_preset("zizq:retry_limit=10,jitter=5s").max_attempts
    11
    >>> parse_preset("tenacity_default") == presets.tenacity_default()
    True
    >>> parse_preset("zizk")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: preset must be one of aws-adaptive, ..., got 'zizk'; \
did you mean zizq?

    Args:
        text: A name in `BUILT_IN`, with hyphens or underscores, and optional
            parameters after a colon. Durations have units; errors are the name of
            one exception type, as in `Policy.from_dict`.
    """
    name, colon, parameters = text.partition(":")
    key = name.strip().replace("_", "-")
    if key not in BUILT_IN:
        rule = f"one of {', '.join(BUILT_IN)}"
        raise invalid_setting("preset", rule, name, did_you_mean(key, BUILT_IN))
    build = BUILT_IN[key]
    given: dict[str, object] = {}
    for part in parameters.split(",") if colon else ():
        parameter, equals, value = (each.strip() for each in part.partition("="))
        if not equals or parameter in given:
            rule = f"{key}, or {key}:parameter=value,... with each parameter once"
            raise invalid_setting("preset", rule, text)
        given[parameter] = _parse_value(key, parameter, value)
    return build(**given)


def _parse_value(preset: str, name: str, text: str) -> object:
    """Return the value of a parameter, or the string, which the preset checks."""
    known = inspect.signature(BUILT_IN[preset]).parameters
    if name not in known:
        suggestion = (
            did_you_mean(name, known) or f"there are {', '.join(known) or 'none'}"
        )
        shown = safe_repr(name).strip("'")
        msg = f"{shown} is not a parameter of {preset}, got {safe_repr(text)}"
        msg += f"; {suggestion}"
        raise ConfigError(msg)
    kind = known[name].annotation
    if kind == Condition | None:
        return type_from_name(name, text)
    return parse_number(kind, text) if kind in {int, float} else text


def parse_number(kind: type[float], text: str) -> object:
    """Return a string as a number, or the string itself if it is not one.

    >>> parse_number(int, "3"), parse_number(float, "2.5"), parse_number(int, "ten")
    (3, 2.5, 'ten')
    """
    try:
        return kind(text)
    except ValueError:
        return text
