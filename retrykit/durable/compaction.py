"""The history of a job, cut to what is worth keeping for weeks.

A call in one process may keep a hundred tracebacks. What a job keeps is written
and read at every attempt, and goes through brokers.
"""

from dataclasses import replace

from retrykit._internal.validation import truncate
from retrykit.schedules.randomness import MAX_DELAY
from retrykit.state.failures import Failure, failure_from_dict, failure_to_dict
from retrykit.state.records import ErrorRecord, ResultRecord
from retrykit.state.retry_state import RetryState

__all__ = ["MOST_FAILURES", "compact_state", "kind_of"]

MOST_FAILURES = 20
"""How many failures are kept: half of them the first, half of them the last."""

# With their causes, tracebacks of a web client are some 6,000 characters long.
_LONGEST, _LONGEST_TRACE = 500, 4000


def compact_state(state: RetryState) -> RetryState:
    """Return a state as it is kept: with records of its errors, cut.

    The last error keeps its traceback. Of long texts the beginning and the end
    are kept.
    """
    cut = tuple(_cut(state, failure) for failure in state.failures)
    inner = state.nested_state and compact_state(state.nested_state)
    # As data and back, for all that is of this process and no other.
    bare = replace(
        state,
        failures=(),
        nested_state=None,
        total_delay=min(state.total_delay, MAX_DELAY),
    )
    bare = RetryState.from_dict(bare.to_dict())
    return replace(bare, name=_text(state.name), failures=cut, nested_state=inner)


def kind_of(failure: Failure) -> str:
    """Return what a failure that is kept counts as: the type of its error."""
    if isinstance(failure.error, ErrorRecord):
        return failure.error.type
    return "a refused result"


def _cut(state: RetryState, failure: Failure) -> Failure:
    record = failure_from_dict(failure_to_dict(failure, redact=state.redact))
    last = failure is state.failures[-1]
    error, result = record.error, record.result
    if isinstance(error, ErrorRecord):
        kind, message = _text(error.type), _text(error.message)
        error = ErrorRecord(
            kind, message, _text(error.traceback, _LONGEST_TRACE * last)
        )
    if isinstance(result, ResultRecord):
        result = ResultRecord(_text(result.type), _text(result.text))
    elif isinstance(result, str) and _text(result) != result:
        result = ResultRecord("str", _text(result))
    return record._replace(error=error, result=result)


def _text(text: str, longest: int = _LONGEST) -> str:
    # File names that are no UTF-8 come as lone surrogates, which nobody can store,
    # and PostgreSQL does not keep the character 0.
    told = text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
    return truncate(told, longest) if longest else ""
