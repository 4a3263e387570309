"""Failed attempts, their evaluation by a policy, and the reasons to stop."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple, final

from retrykit._core.records import (
    ErrorRecord,
    Reader,
    error_from_dict,
    error_to_dict,
    read_fields,
    result_from_data,
    result_to_data,
    result_type,
    strict_type,
)
from retrykit._internal.error_texts import error_text
from retrykit._internal.redaction import Redaction, request_summary
from retrykit._internal.tracebacks import FrameLocations
from retrykit._internal.type_names import type_name
from retrykit._internal.validation import safe_repr

__all__ = ["EXPLANATIONS", "NEVER_RETRIED", "Evaluation", "Failure", "StopReason"]
__all__ += ["failure_from_dict", "failure_to_dict", "read_attempt", "read_count"]
__all__ += ["read_delay", "read_seconds"]


class StopReason(StrEnum):
    """Why a call made no further attempt; its values are labels for metrics.

    >>> StopReason("attempts").explanation
    'max attempts reached'
    """

    SUCCEEDED = "succeeded"
    ATTEMPTS = "attempts"
    ELAPSED = "elapsed"
    SCHEDULE_ENDED = "schedule_ended"
    NOT_RETRYABLE = "not_retryable"
    GAVE_UP = "gave_up"
    HINT = "hint"
    BUDGET = "budget"
    NESTED = "nested"
    STOPPED = "stopped"
    CANCELLED = "cancelled"

    @property
    def explanation(self) -> str:
        """The reason as the end of a sentence."""
        return EXPLANATIONS[self]


EXPLANATIONS = {
    StopReason.SUCCEEDED: "it succeeded",
    StopReason.ATTEMPTS: "max attempts reached",
    StopReason.ELAPSED: "no time is left for another attempt",
    StopReason.SCHEDULE_ENDED: "the schedule has ended",
    StopReason.NOT_RETRYABLE: "the error is not retryable",
    StopReason.GAVE_UP: "ended by give_up_on, GiveUp or a hint",
    StopReason.HINT: "it was asked to wait longer than allowed",
    StopReason.BUDGET: "the retry budget is spent",
    StopReason.NESTED: "a nested call has given up",
    StopReason.STOPPED: "stop_event was set",
    StopReason.CANCELLED: "it was cancelled",
}
"""Each reason as the end of a sentence."""

NEVER_RETRIED = (StopReason.NOT_RETRYABLE, StopReason.CANCELLED)
"""The reasons of errors that no attempt would be made after, whatever the limits."""


@final
class Failure(NamedTuple):
    """One failed attempt.

    Attributes:
        attempt: Its number, from 1.
        error: The error that was captured; an `ErrorRecord` of it in a state
            that came from another process; None if a result was rejected.
        result: The rejected result, or a `ResultRecord` of it in a state that came
            from another process.
        started: When it began, in seconds since the call began.
        duration: How long it took, in seconds.
        delay: The delay that followed, in seconds; None if none did.
        rule: The index of the policy's rule that matched, from 0; None if none did.
        hint: The delay that the outcome asked for, in seconds; None if none.
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
        """Return an expression without the secrets of requests and URLs."""
        parts = {name: safe_repr(value) for name, value in self._asdict().items()}
        if request_summary(self.error) is not None:
            parts["error"] = f"<{self.describe()}>"
        return f"Failure({', '.join(f'{name}={text}' for name, text in parts.items())})"

    def describe(self, *, redact: Redaction = True) -> str:
        """Return the error's type and text, or the type of the rejected result.

        >>> Failure(1, OSError("refused"), None, 0.0, 0.1, None).describe()
        'OSError: refused'
        >>> Failure(1, None, "not yet", 0.0, 0.1, None).describe()
        'a rejected result of type str'

        Args:
            redact: Whether secrets of requests and URLs are left out of the text
                of an error, or a function of the text, as in a policy;
                `RetryState.redact` has what the policy says.
        """
        if self.error is None:
            return f"a rejected result of type {result_type(self.result)}"
        if isinstance(self.error, ErrorRecord):
            return str(self.error)
        text = error_text(self.error, redact=redact)
        kind = type_name(type(self.error))
        return f"{kind}: {text}" if text else kind


@final
class Evaluation(NamedTuple):
    """The verdict of a policy on a failed attempt.

    Attributes:
        failure: The attempt, with the delay that follows it.
        decision: The delay before the next attempt, in seconds, or why there is none.
        retryable: Whether the outcome is one to retry, by the policy's conditions
            and not by its limits.
    """

    failure: Failure
    decision: float | StopReason
    retryable: bool


def failure_to_dict(
    failure: Failure, locations: FrameLocations | None = None, *, redact: Redaction
) -> dict[str, Any]:
    """Return a failure as a dict of plain data."""
    plain = {
        "error": error_to_dict(failure.error, locations, redact=redact),
        "result": result_to_data(failure.result, redact=redact),
    }
    return failure._asdict() | plain


def failure_from_dict(data: Mapping[str, Any]) -> Failure:
    """Return the failure that `failure_to_dict` wrote."""
    return Failure(**read_fields(_FIELDS, data))


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
    """Return *value* if it is a number of seconds, >= 0, or None."""
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


_FIELDS: dict[str, Reader] = {
    "attempt": read_attempt,
    "error": error_from_dict,
    "result": result_from_data,
    "started": _number,
    "duration": _number,
    "delay": read_delay,
    "rule": lambda rule: None if rule is None else read_count(rule),
    "hint": read_delay,
}
