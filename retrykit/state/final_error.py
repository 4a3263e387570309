"""The error that a call gives up with, and the state attached to it.

By default it is the user's own error, with a note about the retries. The state of the
call is attached to it, or to the response that a client returns instead of an error;
`state_of` reads it.
"""

from types import FunctionType, ModuleType
from typing import Any, final

from retrykit._internal.tracebacks import add_note_once
from retrykit._internal.user_facing import user_facing
from retrykit._internal.validation import invalid_setting
from retrykit.errors import AttemptTimeout, RetrykitError
from retrykit.state.call_record import CallFacts
from retrykit.state.failures import NEVER_RETRIED
from retrykit.state.records import attributes_of
from retrykit.state.retry_state import RetryState, view

__all__ = ["FailureGroup", "NestedRetryError", "RetryError", "attach_record"]
__all__ += ["attach_state", "attached_state", "build_final_error", "is_own_timeout"]
__all__ += ["state_of"]


@final
class RetryError(RetrykitError):
    """A call gave up.

    Raised under ``raises="retry_error"``, with the last error as its ``__cause__``;
    and where there is no error to raise, because the result of the last attempt was
    rejected by `on_result`. It can be pickled: its state then holds records of the
    errors.

    Attributes:
        state: The history of the call.
    """

    def __init__(self, state: RetryState) -> None:
        super().__init__(state)
        self.state = state

    def __str__(self) -> str:
        state = self.state
        if not isinstance(state, RetryState):
            # A text, with which Celery makes an error of a result in JSON.
            return str(state)
        last = [f.describe(redact=state.redact) for f in state.failures[-1:]]
        return "; last failure: ".join([f"{state.name} {state.describe()}", *last])


@final
class NestedRetryError(RetrykitError, RuntimeError):
    """A retried call gave up inside another retried call.

    Raised under ``nested="raise"``, from the final error of the nested call;
    `state_of` returns the history of the outer call, whose `nested_state` is that of
    the nested one.

    >>> from retrykit import Policy
    >>> inner = Policy(schedule=[0], name="inner")
    >>> Policy(nested="raise", name="outer").call(inner.call, int, "seven")
    Traceback (most recent call last):
    ...
    retrykit.state.final_error.NestedRetryError: inner is retried inside outer
    """


@final
class FailureGroup(ExceptionGroup[Exception]):
    """All errors of a call, under ``raises="group"``.

    The groups that ``except*`` makes of it have the state of the call, too.
    """

    def derive(self, errors: Any, /) -> Any:
        """Return a group of some of the errors, with the state of the call."""
        part = FailureGroup(self.message, errors)
        attach_state(part, vars(self)[_STATE])
        return part


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


_STATE = "__retrykit_state__"


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
    vars(outcome)[_STATE] = state = view(attached)
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
    state: Any = vars(outcome).get(_STATE)
    if state is None and isinstance(outcome, RetryError):
        state = outcome.state
    return state if isinstance(state, RetryState) else None


def is_own_timeout(error: BaseException | None) -> bool:
    """Return whether an error is the timeout of this call's attempt.

    One that has a state is the final error of a nested call.
    """
    return isinstance(error, AttemptTimeout) and attached_state(error) is None
