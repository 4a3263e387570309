"""Errors and results as plain data, as they cross processes."""

import math
import re
import sys
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from itertools import chain, islice
from typing import Any, final

from retrykit._internal.error_texts import error_text, safe_str, traceback_text
from retrykit._internal.frozen import Frozen, fields_of
from retrykit._internal.redaction import Redaction, redact_text
from retrykit._internal.tracebacks import FrameLocations
from retrykit._internal.type_names import type_name
from retrykit._internal.validation import escape_unprintable, safe_repr, truncate
from retrykit.errors import ConfigError

__all__ = ["ErrorRecord", "FieldError", "Reader", "ResultRecord"]
__all__ += ["attributes_of", "error_from_dict", "read_fields", "read_list"]
__all__ += ["error_to_dict", "result_from_data", "result_text", "result_to_data"]
__all__ += ["result_type"]
__all__ += ["status_of", "strict_type"]

Reader = Callable[[Any], Any]
"""Returns the value of stored data, or raises an error if it is invalid."""


@final
class ErrorRecord(Frozen):
    """An error of another process, as text.

    Attributes:
        type: Its class as ``module.Name``, or ``Name`` of a built-in one.
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
    """A rejected result of another process, as text.

    Attributes:
        type: Its class as ``module.Name``, or ``Name`` of a built-in one.
        text: The first 200 characters of its ``repr``; for a response, its type and
            status.
    """

    __slots__ = ("text", "type")
    type: str
    text: str


def error_to_dict(
    error: Exception | ErrorRecord | None,
    locations: FrameLocations | None = None,
    *,
    redact: Redaction = True,
) -> dict[str, str] | None:
    """Return an error as a dict of type, message and traceback."""
    if error is None:
        return None
    if not isinstance(error, ErrorRecord):
        kind, text = type_name(type(error)), error_text(error, redact=redact)
        error = ErrorRecord(kind, text, traceback_text(error, locations, redact=redact))
    return fields_of(error)


def error_from_dict(data: Mapping[str, str] | None) -> ErrorRecord | None:
    """Return the record that `error_to_dict` wrote."""
    return None if data is None else ErrorRecord(**read_fields(_ERROR, data))


def result_to_data(result: object, *, redact: Redaction = True) -> Any:
    """Return a result as JSON data: a plain value unchanged, others as a record."""
    # Exact types: an object's __class__ may run user code.
    if type(result) is ResultRecord:
        return {"record": fields_of(result)}
    if type(result) is str:
        return redact_text(result, redact)
    if _is_plain(result):
        return result
    record = ResultRecord(type_name(type(result)), result_text(result, redact=redact))
    return {"record": fields_of(record)}


_MAX_INTEGER_BITS = 1024


def _is_plain(result: object) -> bool:
    # JSON has no infinities and no NaN.
    if type(result) is float:
        return math.isfinite(result)
    # Python refuses to format or parse integers of thousands of digits.
    if type(result) is int:
        return result.bit_length() <= _MAX_INTEGER_BITS
    return result is None or type(result) is bool


def result_type(result: object) -> str:
    """Return the type name of a result, with the status of a response."""
    if type(result) is ResultRecord:
        return result.text if re.fullmatch(_RESPONSE, result.text) else result.type
    status, kind = status_of(result), type_name(type(result))
    return kind if status is None else f"{kind} with status {status}"


# The text of a response's record, which is never the ``repr`` of another object.
_RESPONSE = r"[\w.<>]+ with status \d+"


def result_text(result: object, *, redact: Redaction = True) -> str:
    """Return the text of a result for records and logs, at most 200 characters.

    Of a response it is the type and the status: its ``repr`` may have secrets, such
    as a URL or a cookie.
    """
    if status_of(result) is not None:
        return result_type(result)
    return redact_text(safe_str(result, repr), redact)[:200]


def without_bulk(result: object, *, redact: Redaction = True) -> object:
    """Return a result, or its record if it may take much memory.

    >>> without_bulk({"status": "queued"})
    {'status': 'queued'}
    >>> without_bulk(b"0" * 10**6).type
    'bytes'
    """
    if _is_small(result):
        return result
    shown = result
    if isinstance(result, str | bytes | bytearray):
        # To format it would take as much memory again.
        shown = result[:_SMALL]
    return ResultRecord(type_name(type(result)), result_text(shown, redact=redact))


# Characters, bytes and items of a result that is kept.
_SMALL = 10_000
_SMALL_KINDS = (bool, float, Enum, ResultRecord)


def _is_small(result: object) -> bool:
    """Return whether a result is built of a few plain values."""
    size, pending = 0, [result]
    while pending and size <= _SMALL:
        value = pending.pop()
        kind = type(value)
        if isinstance(value, str | bytes) and kind in {str, bytes}:
            size += len(value)
        elif isinstance(value, dict) and kind is dict:
            pending += islice(chain.from_iterable(value.items()), _SMALL)
        elif isinstance(value, list | tuple) and kind in {list, tuple}:
            pending += islice(value, _SMALL)
        elif isinstance(value, int) and kind is int:
            size += value.bit_length() // 8
        # A member of an enumeration lives as long as its class.
        elif value is not None and not issubclass(kind, _SMALL_KINDS):
            return False
        size += 1
    return size <= _SMALL


def status_of(result: object) -> int | None:
    """Return the HTTP status code, or None if this is not a response."""
    parts = attributes_of(result) or {}
    status = parts.get("status_code", parts.get("status"))
    return int(status) if isinstance(status, int) else None


def attributes_of(value: object) -> dict[str, Any] | None:
    """Return the ``__dict__`` of an object, without running its properties."""
    try:
        found, _ = vars(value), value.__class__
    except Exception:  # noqa: BLE001  they may run user code
        return None
    return found if type(found) is dict else None


def result_from_data(data: Any) -> object:
    """Return the result, or its record, that `result_to_data` wrote."""
    if isinstance(data, Mapping):
        result: ResultRecord = read_fields({"record": _read_result}, data)["record"]
        return result
    if result_to_data(data, redact=False) is not data:
        msg = "it is not a plain result"
        raise TypeError(msg)
    return data


def strict_type(*kinds: type) -> Callable[[Any], Any]:
    """Return a function that returns values of these types, and rejects all others.

    A bool does not count as a number, and numbers must be finite and fit a float.
    """

    def read(value: Any) -> Any:
        known = isinstance(value, kinds) and (
            bool in kinds or not isinstance(value, bool)
        )
        odd = isinstance(value, float) and not math.isfinite(value)
        if isinstance(value, int):
            odd = abs(value) > sys.float_info.max
        if odd or not known:
            names = " or ".join(kind.__name__ for kind in kinds)
            msg = f"it is not of type {names}"
            raise TypeError(msg)
        return value

    return read


class FieldError(ValueError):
    """A field of stored data is missing, unknown or invalid.

    Attributes:
        path: Where it is in the data, as ``.failures[3].delay``.
        value: Its value.
        fault: What is wrong with it.
    """

    def __init__(self, field: str, value: object, fault: str) -> None:
        super().__init__(field, value, fault)
        self.path = f".{field}" if field[:1] not in {"", "["} else field
        self.value, self.fault = value, fault

    def as_setting(self, name: str) -> ConfigError:
        """Return the error about the stored data *name*, in one line."""
        where = truncate(f"{name}{self.path}", 80)
        got, fault = truncate(safe_repr(self.value), 80), truncate(self.fault, 100)
        text = f"{where} must be as retrykit wrote it, got {got}; {fault}"
        return ConfigError(escape_unprintable(text))


def read_fields(
    readers: Mapping[str, Reader], data: object, optional: Collection[str] = ()
) -> dict[str, Any]:
    """Read the fields of a value that was stored as a dict.

    >>> read_fields({"delay": strict_type(int, float)}, {"delay": 2.5})
    {'delay': 2.5}

    Args:
        readers: For each field the function that reads it.
        data: The dict.
        optional: Fields that may be missing.

    Raises:
        FieldError: A field is missing, unknown or invalid.
    """
    if not isinstance(data, Mapping):
        raise FieldError("", data, "it is not a dict")
    for field in readers:
        if field not in data and field not in optional:
            raise FieldError(field, None, "it is missing")
    for field, value in data.items():
        if field not in readers:
            raise FieldError(str(field), value, "it is unknown")
    known = [field for field in readers if field in data]
    return {each: _read_part(f".{each}", readers[each], data[each]) for each in known}


def read_list(reader: Reader) -> Reader:
    """Return a function that reads the items of a list, as a tuple."""

    def read(values: Any) -> tuple[Any, ...]:
        items = enumerate(_list(values))
        return tuple(_read_part(f"[{index}]", reader, item) for index, item in items)

    return read


def _read_part(path: str, reader: Reader, value: object) -> Any:
    try:
        return reader(value)
    except FieldError as error:
        error.path = path + error.path
        raise
    except (RecursionError, TypeError, ValueError) as error:
        raise FieldError(path.strip("."), value, str(error)) from None


_string, _list = strict_type(str), strict_type(list, tuple)
_ERROR: dict[str, Reader] = {"type": _string, "message": _string, "traceback": _string}
_RESULT: dict[str, Reader] = {"type": _string, "text": _string}


def _read_result(data: object) -> ResultRecord:
    return ResultRecord(**read_fields(_RESULT, data))
