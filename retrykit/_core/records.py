"""States, failures, errors and results as plain data, to pass between processes."""

import math
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from retrykit._core.failures import (
    ErrorRecord,
    Failure,
    ResultRecord,
    StopReason,
    result_text,
)
from retrykit._core.retry_state import RetryState, view
from retrykit._internal.error_texts import error_text, traceback_text, type_name
from retrykit._internal.frozen import fields_of
from retrykit._internal.redaction import Redaction, combine_redactions, redact_text
from retrykit._internal.tracebacks import FrameLocations
from retrykit._internal.validation import escape_unprintable, safe_repr, truncate
from retrykit.errors import ConfigError

__all__ = ["STATE_FIELDS", "FieldError", "Reader", "error_from_dict", "error_to_dict"]
__all__ += ["failure_from_dict", "failure_to_dict", "read_attempt", "read_count"]
__all__ += ["read_delay", "read_fields", "read_list", "read_seconds", "read_state"]
__all__ += ["result_from_data", "result_to_data", "state_to_dict", "strict_type"]

Reader = Callable[[Any], Any]
"""Returns the value of stored data, or raises an error if the data is invalid."""


def error_to_dict(
    error: Exception | ErrorRecord | None,
    locations: FrameLocations | None = None,
    *,
    redact: Redaction = True,
) -> dict[str, str] | None:
    """Return an error as a dict of type, message and traceback; None for None.

    *locations* replace the frames that were released.
    """
    if error is None:
        return None
    if not isinstance(error, ErrorRecord):
        kind, text = type_name(type(error)), error_text(error, redact=redact)
        error = ErrorRecord(kind, text, traceback_text(error, locations, redact=redact))
    return fields_of(error)


def error_from_dict(data: Mapping[str, str] | None) -> ErrorRecord | None:
    """Return the record of the error that `error_to_dict` wrote; None for None."""
    return None if data is None else ErrorRecord(**read_fields(_ERROR, data))


def result_to_data(result: object, *, redact: Redaction = True) -> Any:
    """Return a result as JSON data: a plain value, a redacted string, or a record."""
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
    """Return a reader of values of these types, which raises a TypeError for others.

    A bool is not accepted as a number, and numbers must be finite and fit a float.
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
        path: Where the field is in the data, such as ``.failures[3].delay``.
        value: The value of the field; None if it is missing.
        fault: What is wrong with the field.
    """

    def __init__(self, field: str, value: object, fault: str) -> None:
        super().__init__(field, value, fault)
        self.path = f".{field}" if field[:1] not in {"", "["} else field
        self.value, self.fault = value, fault

    def as_setting(self, name: str) -> ConfigError:
        """Return a one-line ConfigError about the field, with *name* for the data."""
        where = truncate(f"{name}{self.path}", 80)
        got, fault = truncate(safe_repr(self.value), 80), truncate(self.fault, 100)
        text = f"{where} must be as retrykit wrote it, got {got}; {fault}"
        return ConfigError(escape_unprintable(text), "damaged-data")


def read_fields(
    readers: Mapping[str, Reader], data: object, optional: Collection[str] = ()
) -> dict[str, Any]:
    """Read the fields of a value that was stored as a dict.

    >>> read_fields({"delay": strict_type(int, float)}, {"delay": 2.5})
    {'delay': 2.5}

    Args:
        readers: The functions that read the fields, keyed by field name.
        data: The dict.
        optional: Fields that may be missing.

    Raises:
        FieldError: *data* is not a dict, or a field is missing, unknown or invalid.
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
    """Return a reader of lists: it reads each item, and returns a tuple."""

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


def failure_to_dict(
    failure: Failure, locations: FrameLocations | None = None, *, redact: Redaction
) -> dict[str, Any]:
    """Return a failure as a dict of plain data; see `error_to_dict`."""
    plain = {
        "error": error_to_dict(failure.error, locations, redact=redact),
        "result": result_to_data(failure.result, redact=redact),
    }
    return failure._asdict() | plain


def failure_from_dict(data: Mapping[str, Any]) -> Failure:
    """Return the failure that `failure_to_dict` wrote."""
    return Failure(**read_fields(_FAILURE, data))


_number = strict_type(int, float)

# About four attempts per second until the year 9999.
_MAX_ATTEMPTS = 10**12


def read_seconds(value: object) -> float:
    """Return *value* if it is a number of seconds, >= 0."""
    seconds: float = _number(value)
    if seconds < 0:
        msg = "it is below zero"
        raise ValueError(msg)
    return seconds


def read_delay(value: object) -> float | None:
    """Return *value* if it is None or a number of seconds, >= 0."""
    return None if value is None else read_seconds(value)


def read_attempt(value: object) -> int:
    """Return *value* if it is the number of an attempt, from 1 to 10**12."""
    attempt = read_count(value)
    if not 1 <= attempt <= _MAX_ATTEMPTS:
        msg = "it is not the number of an attempt"
        raise ValueError(msg)
    return attempt


def read_count(value: object) -> int:
    """Return *value* if it is an integer >= 0."""
    number: int = strict_type(int)(value)
    if number < 0:
        msg = "it is below zero"
        raise ValueError(msg)
    return number


_FAILURE: dict[str, Reader] = {
    "attempt": read_attempt,
    "error": error_from_dict,
    "result": result_from_data,
    "started": _number,
    "duration": _number,
    "delay": read_delay,
    "rule": lambda rule: None if rule is None else read_count(rule),
    "hint": read_delay,
}


def state_to_dict(state: RetryState, *, redact: Redaction) -> dict[str, Any]:
    """Return a state as plain data, for JSON; see `RetryState.to_dict`."""
    if state._record.stop_reason is None:
        # Of one moment, since the call may continue in another thread.
        state = view(state._record.copy(), state._outcome)
    locations, inner = state._record.locations(), state.nested_state
    within = combine_redactions(redact, redact if inner is None else inner.redact)
    return {name: getattr(state, name) for name in STATE_FIELDS} | {
        "version": _VERSION,
        "rule_counts": list(state.rule_counts),
        "nested_state": inner and state_to_dict(inner, redact=within),
        "elapsed_at_end": state.elapsed,
        "stop_reason": state.stop_reason and state.stop_reason.value,
        "failures": [
            failure_to_dict(each, locations.get(each.attempt), redact=redact)
            for each in state.failures
        ],
    }


def read_state(data: object) -> RetryState:
    """Return the state that `RetryState.to_dict` wrote; it may be part of other data.

    Raises:
        FieldError: *data* has another version, or a field is missing, unknown or
            invalid.
    """
    fields = read_fields({"version": _read_version, **STATE_FIELDS}, data, _ADDED)
    del fields["version"]
    state = RetryState(**fields)
    if sum(state.rule_counts) > state.attempt:
        counts, fault = state.rule_counts, "they are more than there were attempts"
        raise FieldError("rule_counts", counts, fault)
    return state


def _read_version(version: object) -> None:
    # Also by its type: True is equal to 1.
    if (type(version), version) != (int, _VERSION):
        msg = f"it is not {_VERSION}"
        raise ValueError(msg)


_VERSION = 1
# The end of the year 9999, the last one of a datetime.
_LAST = 253_402_300_799.0


def _epoch(value: object) -> float:
    epoch = read_seconds(value)
    if epoch > _LAST:
        msg = "it is after the year 9999"
        raise ValueError(msg)
    return epoch


# A state that waits in a queue may have been written before these were added.
_ADDED = {"hedges", "max_attempts", "retry_in", "stop_detail", "used_fallback"}

STATE_FIELDS: dict[str, Callable[[Any], Any]] = {
    "name": _string,
    "seed": strict_type(int),
    "epoch": _epoch,
    "max_elapsed": read_delay,
    "max_failures": read_count,
    "max_attempts": lambda count: None if count is None else read_attempt(count),
    # 0 if the first one was refused.
    "attempt": lambda number: read_attempt(number) if number else read_count(number),
    "attempt_started": read_seconds,
    "failures": read_list(failure_from_dict),
    "dropped_failures": read_count,
    "total_delay": read_seconds,
    "next_delay": read_delay,
    "stop_reason": lambda reason: None if reason is None else StopReason(reason),
    "stop_detail": strict_type(str, type(None)),
    "retry_in": read_delay,
    "used_fallback": strict_type(bool),
    "elapsed_at_end": read_seconds,
    "rule_counts": read_list(read_count),
    "retry_cost": read_delay,
    "hedges": read_count,
    "depth": read_count,
    "nested_state": lambda data: None if data is None else read_state(data),
}
"""The fields of a state as data, each with the function that reads it."""
