"""The error that a call gives up with, and the state attached to it.

By default it is the user's own error, with a note about the retries. The state of the
call is attached to it, or to the response that a client returns instead of an error;
`state_of` reads it.
"""

from types import FunctionType, ModuleType
from typing import Any

from retrykit._core.call_record import CallFacts
from retrykit._core.failures import NEVER_RETRIED
from retrykit._core.records import attributes_of
from retrykit._core.retry_state import RetryState, view
from retrykit._internal.tracebacks import add_note_once
from retrykit._internal.user_facing import user_facing
from retrykit._internal.validation import invalid_setting
from retrykit.errors import (
    STATE_ATTRIBUTE,
    AttemptTimeout,
    FailureGroup,
    NestedRetryError,
    RetryError,
)

__all__ = ["attach_record", "attach_state", "attached_state", "build_final_error"]
__all__ += ["is_own_timeout", "state_of"]


def build_final_error(
    raises: str, record: CallFacts, error: Exception | None
) -> Exception:
    """Build the exception to raise when a call gives up, with its state and note."""
    form = "last" if record.stop_reason in NEVER_RETRIED else raises
    members: list[Exception] = []
    if form == "group":
        members += [x for x in view(record).errors if isinstance(x, Exception)]
    if members:
        text = f"{record.terms.name} {view(record).describe()}"
        group = FailureGroup(text, members)
        attach_record(group, record)
        group.__suppress_context__ = True
        return group
    if form == "nested":
        inside = view(record).innermost.name
        found = NestedRetryError(f"{inside} is retried inside {record.terms.name}")
        found.__cause__ = error
        attach_record(found, record)
        return found
    if form == "retry_error" or error is None:
        wrapper = RetryError(view(record))
        wrapper.__cause__ = error
        return wrapper
    state = attach_record(error, record)
    # No note if the first attempt failed with an error that is not retryable.
    if record.stop_reason not in NEVER_RETRIED or record.attempt > 1:
        add_note_once(error, state.describe())
    return error


def attach_state(outcome: object, state: RetryState) -> None:
    """Attach a state to the final error or response of its call."""
    # One that was attached to another error stands for that one.
    own = state._outcome is None
    attach_record(outcome, state._record if own else state._replace()._record)


def attach_record(outcome: object, record: CallFacts) -> RetryState:
    """Attach the record of a call to its final error or response; return its view."""
    attached = record.record_for(outcome)
    nested = record.nested_state
    if nested is not None and nested._outcome is outcome:
        attached.nested_state = view(nested._record)
    # Into the dict, since the class of the error may refuse attributes.
    vars(outcome)[STATE_ATTRIBUTE] = state = view(attached)
    return state


@user_facing
def state_of(outcome: object) -> RetryState | None:
    """Return the state of the call that ended with this error or response.

    >>> state_of(ValueError("from elsewhere")) is None
    True

    The state holds the errors, and they hold the frames in which they were raised:
    to keep it for long, keep its `to_dict`.

    Args:
        outcome: The exception that an ``except`` clause caught; or a response of a
            client that retries through `retrykit.integrations`, or an error about
            such a response.

    Returns:
        The state at the end of the call; None if no retried call ended with *outcome*.

    Raises:
        ConfigError: *outcome* is neither an exception nor a response.
    """
    attributes = attributes_of(outcome)
    if attributes is None or isinstance(outcome, _NOT_OUTCOMES):
        rule = "an exception or a response"
        raise invalid_setting(
            "outcome", rule, outcome, "pass what an except clause caught"
        )
    state = attached_state(outcome)
    if state is not None:
        # A RetryError has the whole state of its own call, and another may raise it.
        own = isinstance(outcome, RetryError) and state is outcome.state
        return state if own else view(state._record, outcome)
    # An error of ``raise_for_status`` has its response, and a response of requests
    # that of urllib3.
    for part in (attributes.get("response"), attributes.get("raw")):
        if attributes_of(part) is not None:
            return state_of(part)
    return None


# They have a dict, too, and are passed by mistake only.
_NOT_OUTCOMES = (FunctionType, ModuleType)


def attached_state(outcome: object) -> RetryState | None:
    """Return the attached state as stored: a record is in place of the outcome."""
    state: Any = vars(outcome).get(STATE_ATTRIBUTE)
    if state is None and isinstance(outcome, RetryError):
        state = outcome.state
    return state if isinstance(state, RetryState) else None


def is_own_timeout(error: BaseException | None) -> bool:
    """Return whether an error is the timeout of this call's attempt.

    One that has a state is the final error of a nested call.
    """
    return isinstance(error, AttemptTimeout) and attached_state(error) is None
