"""Errors and results as plain data, as they are in another process.

Nothing here knows of calls.
"""

import math
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, final

from retrykit._internal.exceptions import FrameLocations, format_traceback
from retrykit._internal.frozen import Frozen, fields_of
from retrykit._internal.redaction import redact_urls, request_summary
from retrykit._internal.type_names import type_name
from retrykit._internal.validation import safe_repr

__all__ = [
    "ErrorRecord",
    "ResultRecord",
    "attributes_of",
    "error_from_dict",
    "error_to_dict",
]
__all__ += [
    "error_text",
    "result_from_data",
    "result_text",
    "result_to_data",
    "result_type",
    "strict_type",
]
__all__ += ["safe_str", "status_of", "traceback_text"]


@final
class ErrorRecord(Frozen):
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
class ResultRecord(Frozen):
    """What is kept of a refused result that is no number, text or None.

    Attributes:
        type: Its class as ``module.Name``, a built-in one by its name alone.
        text: Its ``repr``, cut after 200 characters.
    """

    __slots__ = ("text", "type")
    type: str
    text: str


def error_to_dict(
    error: Exception | ErrorRecord | None,
    places: FrameLocations | None = None,
    *,
    redact: bool = True,
) -> dict[str, str] | None:
    """Return an error as a dict of type, message and traceback.

    Args:
        error: The error; a record of one is returned as it is.
        redact: Whether secrets of requests and URLs are left out.
        places: Where it was raised, if it has no frames any more.
    """
    if error is None:
        return None
    if not isinstance(error, ErrorRecord):
        kind, text = type_name(type(error)), error_text(error, redact=redact)
        error = ErrorRecord(kind, text, traceback_text(error, places, redact=redact))
    return fields_of(error)


def error_text(error: Exception, *, redact: bool = True) -> str:
    """Return the text of an error.

    Args:
        error: The error. If it is about a request, its text is method, host and
            status of that; of other texts, user info and queries of URLs are left
            out.
        redact: Whether to do so; else the text is whole.
    """
    if not redact:
        return safe_str(error)
    summary = request_summary(error)
    return redact_urls(safe_str(error)) if summary is None else summary


def traceback_text(
    error: Exception, places: FrameLocations | None = None, *, redact: bool = True
) -> str:
    """Return the formatted traceback of an error, with its notes and its causes.

    Args:
        error: The error.
        places: Where it was raised, if it has no frames any more.
        redact: Whether user info and queries of URLs are left out.
    """
    text = safe_str(error, lambda error: format_traceback(error, places or ()))
    return redact_urls(text) if redact else text


def error_from_dict(data: Mapping[str, str] | None) -> ErrorRecord | None:
    """Return the record that `error_to_dict` wrote."""
    return None if data is None else ErrorRecord(**_texts(**data))


def result_to_data(result: object, *, redact: bool = True) -> Any:
    """Return a result as JSON holds it: a plain one itself, or a record of it.

    Args:
        result: The result.
        redact: Whether user info and queries of URLs are left out.
    """
    # By their types: an object's __class__ may be anyone's code.
    if type(result) is ResultRecord:
        return {"record": fields_of(result)}
    if type(result) is str:
        return redact_urls(result) if redact else result
    if _is_plain(result):
        return result
    record = ResultRecord(type_name(type(result)), result_text(result, redact=redact))
    return {"record": fields_of(record)}


def _is_plain(result: object) -> bool:
    # JSON has no form for infinities and for what is no number.
    if type(result) is float:
        return math.isfinite(result)
    # Python itself refuses to write or read an integer of thousands of digits.
    if type(result) is int:
        return result.bit_length() <= _LONGEST_INTEGER
    return result is None or type(result) is bool


def result_type(result: object) -> str:
    """Return the type of a result; of a response, with its status."""
    if type(result) is ResultRecord:
        return result.text if re.fullmatch(_RESPONSE, result.text) else result.type
    status, kind = status_of(result), type_name(type(result))
    return kind if status is None else f"{kind} with status {status}"


# What a record says of a response, and no ``repr`` of anything else.
_RESPONSE = r"[\w.<>]+ with status \d+"


def result_text(result: object, *, redact: bool = True) -> str:
    """Return what may be told of a result, in at most 200 characters.

    Of a response that is its status: what else there is in its ``repr``, such as
    a URL or a cookie, may be secret.

    Args:
        result: The result.
        redact: Whether user info and queries of URLs are left out.
    """
    if status_of(result) is not None:
        return result_type(result)
    text = safe_str(result, repr)
    return (redact_urls(text) if redact else text)[:200]


def status_of(result: object) -> int | None:
    """Return the HTTP status of a response; None of what is none."""
    parts = attributes_of(result) or {}
    status = parts.get("status_code", parts.get("status"))
    return int(status) if isinstance(status, int) else None


def attributes_of(value: object) -> dict[str, Any] | None:
    """Return the dict of an object, without running code of its attributes.

    Returns:
        None if it has none, or if its own ``__dict__`` or ``__class__`` fails.
    """
    try:
        found, _ = vars(value), value.__class__
    except Exception:  # noqa: BLE001  they may be anyone's code
        return None
    return found if type(found) is dict else None


def result_from_data(data: Any) -> object:
    """Return what `result_to_data` wrote.

    Raises:
        TypeError, KeyError: It is no such thing.
    """
    if isinstance(data, Mapping):
        if set(data) != {"record"}:
            raise KeyError(*data)
        return ResultRecord(**_texts(**data["record"]))
    if result_to_data(data, redact=False) is not data:
        msg = f"{safe_repr(data)} is no plain result"
        raise TypeError(msg)
    return data


_LONGEST_INTEGER = 1024


def safe_str(value: object, form: Callable[[Any], str] = str) -> str:
    """Return the text of a value, whatever its own code does."""
    try:
        return form(value)
    except Exception as error:  # noqa: BLE001  it must not lose the rest
        return f"<{type_name(type(error))} while it was told>"


def strict_type(*kinds: type) -> Callable[[Any], Any]:
    """Return what reads a value of one of these types, and refuses all others.

    A bool is no number here, and a number is finite: no integer is larger than a
    float can be.
    """

    def read(value: Any) -> Any:
        known = isinstance(value, kinds) and not isinstance(value, bool)
        odd = isinstance(value, float) and not math.isfinite(value)
        if isinstance(value, int):
            odd = abs(value) > sys.float_info.max
        if odd or not known:
            names = " or ".join(kind.__name__ for kind in kinds)
            msg = f"{safe_repr(value)} is no {names}"
            raise TypeError(msg)
        return value

    return read


_text = strict_type(str)


def _texts(**parts: object) -> dict[str, str]:
    return {name: _text(part) for name, part in parts.items()}
