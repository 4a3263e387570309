"""Values of settings, in the forms that other systems give them."""

import re
from collections.abc import Callable
from typing import Any

from retrykit._internal.validation import LARGEST, invalid_setting

__all__ = ["choice", "flag", "go_duration", "number", "protobuf_duration", "text"]
__all__ += ["texts", "whole"]


def whole(at_least: int, at_most: int = LARGEST) -> Callable[[str, Any], int]:
    """Return a parser of integers in a range.

    It also accepts strings and whole floats.
    """

    def parse(name: str, value: Any) -> int:
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,16}", value):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int or not at_least <= value <= at_most:
            most = "" if at_most == LARGEST else f" and <= {at_most}"
            raise invalid_setting(
                name, f"an integer >= {at_least}{most}", value, code="out-of-range"
            )
        return value

    return parse


def number(at_least: float, at_most: float = LARGEST) -> Callable[[str, Any], float]:
    """Return a parser of numbers in a range, which also accepts decimal strings."""

    def parse(name: str, value: Any) -> float:
        found = value
        if isinstance(value, str) and re.fullmatch(_DECIMAL, value):
            found = float(value)
        if type(found) not in {int, float} or not at_least <= found <= at_most:
            most = "" if at_most == LARGEST else f" and <= {at_most:g}"
            raise invalid_setting(
                name, f"a number >= {at_least:g}{most}", value, code="out-of-range"
            )
        return float(found)

    return parse


_DECIMAL = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"


def flag(name: str, value: Any) -> bool:
    """Parse true or false, which may be strings."""
    known = {"true": True, "false": False}
    found = known.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise invalid_setting(name, "true or false", value)
    return found


def text(name: str, value: Any) -> str:
    """Return a value that must be a non-empty string."""
    if not isinstance(value, str) or not value:
        raise invalid_setting(name, "a string", value)
    return value


def texts(name: str, value: Any) -> list[str]:
    """Return a list of strings, which may be given as one string with commas."""
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, list):
        raise invalid_setting(name, "a list of strings", value)
    return [text(name, each).strip() for each in listed]


def choice(*choices: str) -> Callable[[str, Any], str]:
    """Return a parser that accepts only *choices*."""

    def parse(name: str, value: Any) -> str:
        if value not in choices:
            raise invalid_setting(
                name, f"one of {', '.join(choices)}", value, code="unknown-name"
            )
        return str(value)

    return parse


def go_duration(name: str, value: Any) -> float:
    """Parse a Go duration to seconds.

    >>> go_duration("duration", "1m30s"), go_duration("duration", "1.5h")
    (90.0, 5400.0)
    """
    parts = re.findall(_GO_PART, value) if isinstance(value, str) else []
    if value == "0":
        return 0.0
    if not parts or "".join(f"{n}{unit}" for n, unit in parts) != value:
        rule = 'a duration such as "1m30s" (ns, us, ms, s, m, h)'
        raise invalid_setting(name, rule, value)
    return float(sum(float(n) * _GO[unit] for n, unit in parts))


_GO = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_GO_PART = rf"({_DECIMAL}|\.[0-9]{{1,15}}|[0-9]{{1,15}}\.)(ns|us|µs|ms|s|m|h)"


def protobuf_duration(name: str, value: Any) -> float:
    """Parse a protobuf duration, in its JSON form, to seconds.

    >>> protobuf_duration("timeout", "0.025s")
    0.025
    """
    if not isinstance(value, str) or not re.fullmatch(rf"{_DECIMAL}s", value):
        raise invalid_setting(name, 'seconds such as "3.5s"', value)
    return float(value[:-1])
