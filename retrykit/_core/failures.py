"""Failed attempts: their errors or results, their evaluation, and reasons to stop."""

import re
from enum import Enum, StrEnum
from itertools import chain, islice
from typing import Any, NamedTuple, final

from retrykit._internal.error_texts import error_text, safe_str, type_name
from retrykit._internal.frozen import Frozen
from retrykit._internal.redaction import Redaction, redact_text, request_summary
from retrykit._internal.validation import safe_repr

__all__ = ["EXPLANATIONS", "NEVER_RETRIED", "ErrorRecord", "Evaluation", "Failure"]
__all__ += ["ResultRecord", "StopReason", "attributes_of", "result_text", "result_type"]
__all__ += ["status_of", "without_bulk"]


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
    REFUSED = "refused"
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
    StopReason.REFUSED: "a limit refused another attempt",
    StopReason.NESTED: "a nested call has given up",
    StopReason.STOPPED: "stop_event was set",
    StopReason.CANCELLED: "it was cancelled",
}
"""Each reason as the end of a sentence."""

NEVER_RETRIED = (StopReason.NOT_RETRYABLE, StopReason.CANCELLED)
"""The reasons after which the settings `raises` and `fallback` do not apply."""


@final
class ErrorRecord(Frozen):
    """An error as text, such as one that was read from data.

    Attributes:
        type: The class as ``module.Name``, or as ``Name`` if it is built in.
        message: The text of the error.
        traceback: The formatted traceback, with the notes and causes of the error.
    """

    __slots__ = ("message", "traceback", "type")
    type: str
    message: str
    traceback: str

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@final
class ResultRecord(Frozen):
    """A rejected result as text: one read from data, or too large to be kept.

    Attributes:
        type: The class as ``module.Name``, or as ``Name`` if it is built in.
        text: The first 200 characters of the ``repr``; for a response, its type and
            status.
    """

    __slots__ = ("text", "type")
    type: str
    text: str


@final
class Failure(NamedTuple):
    """One failed attempt.

    Attributes:
        attempt: The number of the attempt, from 1.
        error: The error that was captured; an `ErrorRecord` of it in a state that was
            read from data; None if a result was rejected.
        result: The rejected result; None if an error was raised. A `ResultRecord` may
            take its place in a state that was read from data, or if it was large and
            another failure followed.
        started: When the attempt began, in seconds since the call began.
        duration: How long the attempt took, in seconds.
        delay: The delay that followed, in seconds; None if none did.
        rule: The index of the policy's rule that matched, from 0; None if none did.
        hint: The delay that the outcome asked for, in seconds; None if there is none.
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
        """Return the fields as text, without the secrets of requests and URLs."""
        parts = {name: safe_repr(value) for name, value in self._asdict().items()}
        if request_summary(self.error) is not None:
            parts["error"] = f"<{self.describe()}>"
        return f"Failure({', '.join(f'{name}={text}' for name, text in parts.items())})"

    def describe(self, *, redact: Redaction = True) -> str:
        """Return the error's type and text, or the rejected result's type and status.

        >>> Failure(1, OSError("refused"), None, 0.0, 0.1, None).describe()
        'OSError: refused'
        >>> Failure(1, None, "not yet", 0.0, 0.1, None).describe()
        'a rejected result of type str'

        Args:
            redact: Whether to leave secrets of requests and URLs out of the text of
                an error, or a function that leaves out more, as in a policy;
                `RetryState.redact` is the policy's setting.
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
        retryable: Whether the policy's conditions select the outcome for a retry,
            whatever its limits allow; False if a nested call has given up.
    """

    failure: Failure
    decision: float | StopReason
    retryable: bool


def result_type(result: object) -> str:
    """Return the type name of a result, and the status if it is a response."""
    if type(result) is ResultRecord:
        return result.text if re.fullmatch(_RESPONSE, result.text) else result.type
    status, kind = status_of(result), type_name(type(result))
    return kind if status is None else f"{kind} with status {status}"


# The text of a response's record, which is never the ``repr`` of another object.
_RESPONSE = r"[\w.<>]+ with status \d+"


def result_text(result: object, *, redact: Redaction = True) -> str:
    """Return the text of a result for records and logs, at most 200 characters.

    For a response it is the type and the status: its ``repr`` may contain secrets, such
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
        # Formatting it would take as much memory again.
        shown = result[:_SMALL]
    return ResultRecord(type_name(type(result)), result_text(shown, redact=redact))


# Characters, bytes and items of a result that is kept.
_SMALL = 10_000
_SMALL_KINDS = (bool, float, Enum, ResultRecord)


def _is_small(result: object) -> bool:
    """Return whether a result consists of plain values that take little memory."""
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
    """Return the HTTP status code of a result, or None if it is not a response."""
    parts = attributes_of(result) or {}
    status = parts.get("status_code", parts.get("status"))
    return int(status) if isinstance(status, int) else None


def attributes_of(value: object) -> dict[str, Any] | None:
    """Return the ``__dict__`` of an object, or None if it has no plain dict.

    Reading attributes from the dict runs no properties.
    """
    try:
        found, _ = vars(value), value.__class__
    except Exception:  # noqa: BLE001  they may run user code
        return None
    return found if type(found) is dict else None
