"""Shortens the history of a job, which is read and written at each attempt."""

from dataclasses import replace

from retrykit._internal.validation import truncate
from retrykit.schedules.randomness import MAX_DELAY
from retrykit.state.failures import Failure, failure_from_dict, failure_to_dict
from retrykit.state.records import ErrorRecord, ResultRecord
from retrykit.state.retry_state import RetryState

__all__ = ["MAX_FAILURES", "compact_state", "failure_type"]

MAX_FAILURES = 20
"""Number of failures to keep: the first and the last ones, half of each."""

# In characters. A traceback of a web client has some 6,000, causes included.
_MAX_TEXT, _MAX_TRACEBACK = 500, 4000


def compact_state(state: RetryState) -> RetryState:
    """Return a state with records in place of errors, and long texts truncated.

    Only the last error keeps its traceback.
    """
    failures = tuple(_compact_failure(state, failure) for failure in state.failures)
    nested = state.nested_state and compact_state(state.nested_state)
    total_delay = min(state.total_delay, MAX_DELAY)
    bare = replace(state, failures=(), nested_state=None, total_delay=total_delay)
    # The round trip drops everything that belongs to this process.
    bare = RetryState.from_dict(bare.to_dict())
    name = _shorten(state.name)
    return replace(bare, name=name, failures=failures, nested_state=nested)


def failure_type(failure: Failure) -> str:
    """Return the error type under which a compacted failure is counted."""
    if isinstance(failure.error, ErrorRecord):
        return failure.error.type
    return "rejected result"


def _compact_failure(state: RetryState, failure: Failure) -> Failure:
    record = failure_from_dict(failure_to_dict(failure, redact=state.redact))
    is_last = failure is state.failures[-1]
    error, result = record.error, record.result
    if isinstance(error, ErrorRecord):
        traceback = _shorten(error.traceback, _MAX_TRACEBACK) if is_last else ""
        error = ErrorRecord(_shorten(error.type), _shorten(error.message), traceback)
    if isinstance(result, ResultRecord):
        result = ResultRecord(_shorten(result.type), _shorten(result.text))
    elif isinstance(result, str) and _shorten(result) != result:
        result = ResultRecord("str", _shorten(result))
    return record._replace(error=error, result=result)


def _shorten(text: str, longest: int = _MAX_TEXT) -> str:
    # File names may contain lone surrogates, which cannot be encoded, and PostgreSQL
    # does not store NUL.
    storable = text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
    return truncate(storable, longest)
