"""Errors and results as plain data, as they are in another process.

Nothing here knows of calls.
"""

import math
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, final

from retrykit.checks import told
from retrykit.values import Value, parts_of

__all__ = ["ErrorRecord", "ResultRecord", "error_data", "error_from", "result_data"]
__all__ += ["exactly", "result_from", "result_text", "safe_text", "status_of"]
__all__ += ["type_name"]


@final
class ErrorRecord(Value):
    """What is kept of an error when it leaves its process.

    Attributes:
        type: Its class as ``module.Name``, a built-in one by its name alone.
        message: Its text.
        traceback: Its formatted traceback, with its notes and its causes.
    """

    __slots__ = ("message", "traceback", "type")
    type: str
    message: str
    traceback: str

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@final
class ResultRecord(Value):
    """What is kept of a refused result that is no number, text or None.

    Attributes:
        type: Its class as ``module.Name``, a built-in one by its name alone.
        text: Its ``repr``, cut after 200 characters.
    """

    __slots__ = ("text", "type")
    type: str
    text: str


def type_name(kind: type) -> str:
    """Return ``module.Name`` of a class, and ``Name`` of a built-in one."""
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def error_data(error: Exception | ErrorRecord | None) -> dict[str, str] | None:
    """Return an error as a dict of type, message and traceback."""
    if error is None:
        return None
    if not isinstance(error, ErrorRecord):
        trace = safe_text(error, _formatted)
        error = ErrorRecord(type_name(type(error)), safe_text(error), trace)
    return parts_of(error)


def _formatted(error: Exception) -> str:
    told = traceback.TracebackException.from_exception(error, compact=True)
    return "".join(told.format())


def error_from(data: Mapping[str, str] | None) -> ErrorRecord | None:
    """Return the record that `error_data` wrote."""
    return None if data is None else ErrorRecord(**_texts(**data))


def result_data(result: object) -> Any:
    """Return a result as JSON holds it: a plain one itself, or a record of it."""
    if isinstance(result, ResultRecord):
        return {"record": parts_of(result)}
    # JSON has no form for infinities and for what is no number.
    odd = isinstance(result, float) and not math.isfinite(result)
    # Python itself refuses to write or read an integer of thousands of digits.
    odd = odd or (isinstance(result, int) and result.bit_length() > _LONGEST_INTEGER)
    if not odd and (result is None or type(result) in _PLAIN):
        return result
    record = ResultRecord(type_name(type(result)), result_text(result))
    return {"record": parts_of(record)}


def result_text(result: object) -> str:
    """Return what may be told of a result, in at most 200 characters.

    Of a response that is its status: what else there is in its ``repr``, such as
    a URL or a cookie, may be secret.
    """
    status = status_of(result)
    if status is not None:
        return f"{type_name(type(result))} with status {status}"
    return safe_text(result, repr)[:200]


def status_of(result: object) -> int | None:
    """Return the HTTP status of a response; None of what is none."""
    # In their dicts, since an attribute may be anyone's code.
    parts = getattr(result, "__dict__", None)
    if not isinstance(parts, dict):
        return None
    status = parts.get("status_code", parts.get("status"))
    return int(status) if isinstance(status, int) else None


def result_from(data: Any) -> object:
    """Return what `result_data` wrote.

    Raises:
        TypeError, KeyError: It is no such thing.
    """
    if isinstance(data, Mapping):
        if set(data) != {"record"}:
            raise KeyError(*data)
        return ResultRecord(**_texts(**data["record"]))
    if result_data(data) is not data:
        msg = f"{told(data)} is no plain result"
        raise TypeError(msg)
    return data


_LONGEST_INTEGER = 1024
_PLAIN = {bool, int, float, str}


def safe_text(value: object, form: Callable[[Any], str] = str) -> str:
    """Return the text of a value, whatever its own code does."""
    try:
        return form(value)
    except Exception as error:  # noqa: BLE001  it must not lose the rest
        return f"<{type_name(type(error))} while it was told>"


def exactly(*kinds: type) -> Callable[[Any], Any]:
    """Return what reads a value of one of these types, and refuses all others.

    A bool is no number here, and a number is finite: where it may be a float, no
    integer is larger than those are.
    """

    def read(value: Any) -> Any:
        known = isinstance(value, kinds) and not isinstance(value, bool)
        odd = isinstance(value, float) and not math.isfinite(value)
        if isinstance(value, int) and float in kinds:
            odd = abs(value) > sys.float_info.max
        if odd or not known:
            names = " or ".join(kind.__name__ for kind in kinds)
            msg = f"{told(value)} is no {names}"
            raise TypeError(msg)
        return value

    return read


_text = exactly(str)


def _texts(**parts: object) -> dict[str, str]:
    return {name: _text(part) for name, part in parts.items()}
