"""One failed attempt, as data. It knows nothing of the call that it is of."""

from collections.abc import Mapping
from typing import Any, NamedTuple, final

from retrykit.reasons import StopReason
from retrykit.records import (
    ErrorRecord,
    error_data,
    error_from,
    exactly,
    result_data,
    result_from,
    result_text,
    safe_text,
    type_name,
)

__all__ = ["Failure", "Judged", "delay_from", "failure_data", "failure_from", "natural"]


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

    def describe(self) -> str:
        """Return what failed: the error's type and text, or the refused result.

        >>> Failure(1, OSError("refused"), None, 0.0, 0.1, None).describe()
        'OSError: refused'
        >>> Failure(1, None, 503, 0.0, 0.1, None).describe()
        'the result 503'
        """
        if self.error is None:
            return f"the result {result_text(self.result)}"
        if isinstance(self.error, ErrorRecord):
            return str(self.error)
        return str(ErrorRecord(type_name(type(self.error)), safe_text(self.error), ""))


Judged = tuple[Failure, float | StopReason, bool]
"""What a policy says of a failed attempt: the attempt, with the delay that is
to follow; that delay, in seconds, or why there is none; and whether its outcome
is one to retry, whatever the limits say."""


def failure_data(failure: Failure) -> dict[str, Any]:
    """Return a failure as a dict of plain data."""
    plain = {
        "error": error_data(failure.error),
        "result": result_data(failure.result),
    }
    return failure._asdict() | plain


def failure_from(data: Mapping[str, Any]) -> Failure:
    """Return the failure that `failure_data` wrote.

    Raises:
        KeyError: *data* has other parts.
        TypeError, ValueError: A part is no such thing.
    """
    if set(data) != set(Failure._fields):
        raise KeyError(*data)
    return Failure(
        exactly(int)(data["attempt"]),
        error_from(data["error"]),
        result_from(data["result"]),
        _number(data["started"]),
        _number(data["duration"]),
        delay_from(data["delay"]),
        None if data["rule"] is None else natural(data["rule"]),
        delay_from(data["hint"]),
    )


_number = exactly(int, float)


def delay_from(value: object) -> float | None:
    """Return *value* if it is a delay in seconds, >= 0, or None."""
    delay: float | None = None if value is None else _number(value)
    if delay is not None and delay < 0:
        msg = f"{delay!r} is no delay"
        raise ValueError(msg)
    return delay


def natural(value: object) -> int:
    """Return *value* if it is a whole number >= 0."""
    number: int = exactly(int)(value)
    if number < 0:
        msg = f"{number!r} is no count"
        raise ValueError(msg)
    return number
