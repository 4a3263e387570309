"""What a job is called with, and what it returns: JSON, and nothing else.

A job outlives its process and its code. JSON can be read by whoever comes after,
by people too, and runs no code when it is read.
"""

import json
import math
from typing import Any, NoReturn

from retrykit._internal.validation import check_encodable, invalid_setting, safe_repr
from retrykit.errors import ConfigError

__all__ = ["as_json", "from_json"]

_RULE = "what JSON can hold: None, bools, finite numbers, texts, lists and dicts"


def as_json(name: str, value: object) -> str:
    """Return *value* as JSON that reads back as the same value.

    >>> as_json("args", {"host": "example.com", "ports": (80, 443)})
    '{"host": "example.com", "ports": [80, 443]}'
    >>> as_json("args", {"when": {1: "one"}})
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: args['when'] must be a dict with texts as keys, \
got {1: 'one'}; JSON would make texts of them

    Args:
        name: The parameter as its user typed it.
        value: What is to be kept. Tuples become lists.

    Raises:
        ConfigError: A part of it is nothing that JSON can hold; the error says
            which.
    """
    try:
        _check(name, value)
        return json.dumps(value, allow_nan=False)
    except ConfigError:
        raise
    except (RecursionError, ValueError):
        # An integer of thousands of digits can be written by no one.
        rule = f"{_RULE}, not too deep and not too long"
        raise invalid_setting(name, rule, value) from None


def from_json(name: str, text: object) -> Any:
    """Return what `as_json` wrote.

    Args:
        name: What it is, for the error.
        text: What was kept.

    Raises:
        ConfigError: It is no JSON: cut off, or something else.
    """
    if not isinstance(text, str | bytes):
        raise invalid_setting(name, "JSON text", text)
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (RecursionError, ValueError) as error:
        rule, suggestion = "JSON text, whole and unchanged", f"it is not: {error}"
        raise invalid_setting(name, rule, text, suggestion) from None


def _refuse_constant(name: str) -> NoReturn:
    msg = f"{name} is no JSON"
    raise ValueError(msg)


def _check(name: str, value: object) -> None:
    """Check that JSON holds a value as it is, down to its last part."""
    if isinstance(value, str):
        _check_text(name, value)
    elif isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            suggestion = "JSON would make texts of them"
            raise invalid_setting(name, "a dict with texts as keys", value, suggestion)
        for key, part in value.items():
            _check_text(f"a key of {name}", key)
            _check(f"{name}[{safe_repr(key)}]", part)
    elif isinstance(value, list | tuple):
        for place, part in enumerate(value):
            _check(f"{name}[{place}]", part)
    elif isinstance(value, float) and not math.isfinite(value):
        raise invalid_setting(name, "a finite number", value, "JSON has no form for it")
    elif value is not None and not isinstance(value, bool | int | float):
        raise invalid_setting(name, _RULE, value, "take an id or a text in its place")


def _check_text(name: str, text: str) -> None:
    """Check that a text can be stored."""
    check_encodable(name, text, "of a file name, pass os.fsencode(name).hex()")
    if "\0" in text:
        suggestion = "PostgreSQL does not keep it"
        raise invalid_setting(name, "a text without the character 0", text, suggestion)
