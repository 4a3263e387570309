"""Arguments and results of jobs, as JSON: readable by later code, safe to load."""

import json
import math
from typing import Any, NoReturn

from retrykit._internal.validation import check_encodable, invalid_setting, safe_repr
from retrykit.errors import ConfigError

__all__ = ["as_json", "from_json"]

# How much of an unreadable text is shown, in characters.
_SHOWN = 80

_RULE = "JSON-serializable: None, bools, finite numbers, strings, lists and dicts"


def as_json(name: str, value: object) -> str:
    """Return *value* as JSON text that loads as an equal value; tuples become lists.

    >>> as_json("args", {"host": "example.com", "ports": (80, 443)})
    '{"host": "example.com", "ports": [80, 443]}'
    >>> as_json("args", {"when": {1: "one"}})
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: args['when'] must be a dict with string keys, \
got {1: 'one'}; JSON would turn them into strings  [invalid-value]
    """
    try:
        _check_value(name, value)
        return json.dumps(value, allow_nan=False)
    except ConfigError:
        raise
    except (RecursionError, ValueError):
        # Python does not convert integers of thousands of digits to text.
        rule = f"{_RULE}, not nested too deeply and not too long"
        raise invalid_setting(name, rule, value) from None


def from_json(name: str, text: object) -> Any:
    """Return the value that `as_json` wrote; errors call the text *name*."""
    if not isinstance(text, str | bytes):
        raise invalid_setting(name, "JSON text", text)
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except (RecursionError, ValueError) as error:
        start, fault = text[:_SHOWN], _describe_fault(error)
        raise invalid_setting(name, "valid JSON text", start, fault) from None


def _describe_fault(error: Exception) -> str:
    """Return what is wrong with a text that should be JSON."""
    if isinstance(error, _InvalidConstantError):
        return str(error)
    if not isinstance(error, json.JSONDecodeError):
        # Bytes of another encoding, or what Python limits: depth and digits.
        return "it is damaged"
    text = error.doc.rstrip()
    if not text:
        return "it is empty"
    if error.pos >= len(text) or error.msg.startswith("Unterminated"):
        return f"it is cut off after {len(text)} characters"
    return f"it is damaged at character {error.pos + 1}"


class _InvalidConstantError(ValueError):
    """A NaN or an infinity, which JSON does not have."""


def _reject_constant(name: str) -> NoReturn:
    msg = f"{name} is not valid JSON"
    raise _InvalidConstantError(msg)


def _check_value(name: str, value: object) -> None:
    if isinstance(value, str):
        _check_text(name, value)
    elif isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            suggestion = "JSON would turn them into strings"
            raise invalid_setting(name, "a dict with string keys", value, suggestion)
        for key, part in value.items():
            _check_text(f"a key of {name}", key)
            _check_value(f"{name}[{safe_repr(key)}]", part)
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            _check_value(f"{name}[{index}]", part)
    elif isinstance(value, float) and not math.isfinite(value):
        suggestion = "JSON has no NaN or infinity"
        raise invalid_setting(
            name, "a finite number", value, suggestion, code="out-of-range"
        )
    elif value is not None and not isinstance(value, bool | int | float):
        suggestion = "pass an id or a string instead"
        raise invalid_setting(name, _RULE, value, suggestion)


def _check_text(name: str, text: str) -> None:
    check_encodable(name, text, "for a file name, pass os.fsencode(name).hex()")
    if "\0" in text:
        suggestion = "PostgreSQL does not store it"
        raise invalid_setting(name, "a string without NUL", text, suggestion)
