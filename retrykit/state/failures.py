"""One failed attempt, as data. It knows nothing of the call that it is of."""

from collections.abc import Mapping
from typing import Any, NamedTuple, final

from retrykit._internal.redaction import request_summary
from retrykit._internal.type_names import type_name
from retrykit._internal.validation import safe_repr
from retrykit.state.reasons import StopReason
from retrykit.state.records import (
    ErrorRecord,
    error_from_dict,
    error_text,
    error_to_dict,
    result_from_data,
    result_to_data,
    result_type,
    strict_type,
)
from retrykit.state.tracebacks import FrameLocations

__all__ = ["Evaluation", "Failure", "failure_to_dict", "read_attempt", "read_delay"]
__all__ += ["failure_from_dict", "read_count", "read_seconds"]

# More attempts than can be made until the end of the year 9999.
_MOST_ATTEMPTS = 10**12


@final
class Failure(NamedTuple):
    """One failed attempt.

    Attributes:
        attempt: Its number, from 1.
        error: The error that was captured; an `ErrorRecord` of it in a state
            that came from another process; None if a result was refused.
        result: The result that was refused; maybe a `ResultRecord` of it in a
            state that came from another process.
        started: When it began, in seconds since the call began.
        duration: How long it took, in seconds.
        delay: The delay that followed, in seconds; None if none did.
        rule: The place of the policy's rule that held for it, from 0; None if
            none did.
        hint: How long it was asked to wait, in seconds; None if it was not.
    """

    attempt: int
    error: Exception | ErrorRecord | None
    result: object
    started: float
    duration: float
    delay: float | None
    rule: int | None = None
    hint: float | None = None

    def __repr__(self) -> str:
        """Return what it is, without secrets of requests and URLs."""
        parts = {name: safe_repr(value) for name, value in self._asdict().items()}
        if request_summary(self.error) is not None:
            parts["error"] = f"<{self.describe()}>"
        return f"Failure({', '.join(f'{name}={text}' for name, text in parts.items())})"

    def describe(self, *, redact: bool = True) -> str:
        """Return what failed: the error's type and text, or the result's type.

        >>> Failure(1, OSError("refused"), None, 0.0, 0.1, None).describe()
        'OSError: refused'
        >>> Failure(1, None, "not yet", 0.0, 0.1, None).describe()
        'a refused result of type str'

        Args:
            redact: Whether secrets of requests and URLs are left out of the text
                of an error; `RetryState.redact` has what the policy says.
        """
        if self.error is None:
            return f"a refused result of type {result_type(self.result)}"
        if isinstance(self.error, ErrorRecord):
            return str(self.error)
        text = error_text(self.error, redact=redact)
        return str(ErrorRecord(type_name(type(self.error)), text, ""))


Evaluation = tuple[Failure, float | StopReason, bool]
"""What a policy says of a failed attempt: the attempt, with the delay that is
to follow; that delay, in seconds, or why there is none; and whether its outcome
is one to retry, whatever the limits say."""


def failure_to_dict(
    failure: Failure, places: FrameLocations | None = None, *, redact: bool
) -> dict[str, Any]:
    """Return a failure as a dict of plain data.

    Args:
        failure: The failed attempt.
        places: Where its error was raised, if that has no frames any more.
        redact: Whether secrets of requests and URLs are left out.
    """
    plain = {
        "error": error_to_dict(failure.error, places, redact=redact),
        "result": result_to_data(failure.result, redact=redact),
    }
    return failure._asdict() | plain


def failure_from_dict(data: Mapping[str, Any]) -> Failure:
    """Return the failure that `failure_to_dict` wrote.

    Raises:
        KeyError: *data* has other parts.
        TypeError, ValueError: A part is no such thing.
    """
    if set(data) != set(Failure._fields):
        raise KeyError(*data)
    return Failure(
        read_attempt(data["attempt"]),
        error_from_dict(data["error"]),
        result_from_data(data["result"]),
        _number(data["started"]),
        _number(data["duration"]),
        read_delay(data["delay"]),
        None if data["rule"] is None else read_count(data["rule"]),
        read_delay(data["hint"]),
    )


_number = strict_type(int, float)


def read_seconds(value: object) -> float:
    """Return *value* if it is a number of seconds, >= 0."""
    seconds: float = _number(value)
    if seconds < 0:
        msg = f"{seconds!r} is below zero"
        raise ValueError(msg)
    return seconds


def read_delay(value: object) -> float | None:
    """Return *value* if it is a number of seconds, >= 0, or None."""
    return None if value is None else read_seconds(value)


def read_attempt(value: object) -> int:
    """Return *value* if it is the number of an attempt, from 1 to 10**12."""
    attempt = read_count(value)
    if not 1 <= attempt <= _MOST_ATTEMPTS:
        msg = f"{attempt!r} is no attempt"
        raise ValueError(msg)
    return attempt


def read_count(value: object) -> int:
    """Return *value* if it is a whole number >= 0."""
    number: int = strict_type(int)(value)
    if number < 0:
        msg = f"{number!r} is no count"
        raise ValueError(msg)
    return number
