"""What a call leaves on the error that it gives up with.

The error is the user's own: it gets a note, and beside it the state of its
call, which `state_of` reads. A response that comes out of a client in place of
an error gets the state too. Nothing here decides or retries.
"""

from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any, final

from retrykit._internal.notes import add_note_once
from retrykit._internal.validation import invalid_setting
from retrykit.errors import AttemptTimeout, RetrykitError
from retrykit.state.records import ErrorRecord, attributes_of
from retrykit.state.retry_state import RetryState, StopReason

__all__ = [
    "FailureGroup",
    "NestedRetryError",
    "RetryError",
    "attach_state",
    "is_own_timeout",
]
__all__ += ["attached_state", "build_final_error", "state_of"]


@final
class RetryError(RetrykitError):
    """A call gave up, and its policy asks to be told so.

    Raised under ``raises="retry_error"``, where the last error is its
    ``__cause__``; and where there is no error to let out, because the last
    attempt gave a result that `on_result` refuses, and no group to let out
    either. It can be pickled: its state then holds records of the errors.

    Attributes:
        state: The history of the call.
    """

    def __init__(self, state: RetryState) -> None:
        super().__init__(state)
        self.state = state

    def __str__(self) -> str:
        state = self.state
        last = [f.describe(redact=state.redact) for f in state.failures[-1:]]
        return "; last came ".join([f"{state.name} {state.describe()}", *last])


@final
class NestedRetryError(RetrykitError, RuntimeError):
    """Calls are retried inside of calls that would retry them again.

    Raised under ``nested="raise"``, from the error with which the inner call gave
    up; `state_of` has the history of the outer one, and its `nested_state` that of the
    inner one.

    >>> from retrykit import Policy
    >>> inner = Policy(schedule=[0], name="inner")
    >>> Policy(nested="raise", name="outer").call(inner.call, int, "seven")
    Traceback (most recent call last):
    ...
    retrykit.state.final_error.NestedRetryError: inner is retried, and outer around it
    """


@final
class FailureGroup(ExceptionGroup[Exception]):
    """All errors of a call, under ``raises="group"``.

    Python makes new groups when ``except*`` splits one: these have the state
    of the call too.
    """

    def derive(self, errors: Any, /) -> Any:
        """Return a group of some of the errors, with the state of the call."""
        part = FailureGroup(self.message, errors)
        attach_state(part, vars(self)[_STATE])
        return part


def build_final_error(
    raises: str, state: RetryState, error: Exception | None
) -> Exception:
    """Return what a call lets out, with its state and its note.

    Args:
        raises: What its policy says that it raises; or ``"nested"``.
        state: Its state, after its end.
        error: Its last error; None if a result was refused.
    """
    refused = state.stop_reason is StopReason.NOT_RETRYABLE
    form = "last" if refused else raises
    errors = [e for e in state.errors if isinstance(e, Exception)]
    if form == "group" and errors:
        group = FailureGroup(f"{state.name} {state.describe()}", errors)
        attach_state(group, state)
        group.__suppress_context__ = True
        return group
    if form == "nested":
        inside = state.innermost.name
        found = NestedRetryError(f"{inside} is retried, and {state.name} around it")
        found.__cause__ = error
        attach_state(found, state)
        return found
    if form == "retry_error" or error is None:
        wrapper = RetryError(state)
        wrapper.__cause__ = error
        return wrapper
    attach_state(error, state)
    # An error that is none of the policy's business leaves as it came.
    if state.attempt > 1 or not refused:
        add_note_once(error, state.describe())
    return error


_STATE = "__retrykit_state__"

# Stands for the error itself in the state that hangs on it. A reference back
# would be a cycle, and the frames of the error would outlive its handler.
_SELF = ErrorRecord("itself", "", "")


def attach_state(bearer: object, state: RetryState) -> None:
    """Hang the state of a call on the error, or the response, it ends with."""
    # Straight into the dict: the class of the error may refuse attributes.
    vars(bearer)[_STATE] = _swap_outcome(state, bearer, _SELF)


def state_of(outcome: object) -> RetryState | None:
    """Return the state of the call that gave up with this error.

    >>> state_of(ValueError("from elsewhere")) is None
    True

    It holds the errors, and they hold the frames in which they were raised:
    to keep it for long, keep its `to_dict`.

    Args:
        outcome: What an ``except`` clause caught; or the response of a client
            that retries by a part of `retrykit.integrations`, which has a state
            whether or not it is a good one; or the error that is about it.

    Returns:
        The state, as it was when the call ended; None if no retried call
        ended with this.

    Raises:
        ConfigError: *outcome* is neither.
    """
    borne = attributes_of(outcome)
    if borne is None or isinstance(outcome, _NO_OUTCOMES):
        rule = "an exception or a response"
        raise invalid_setting(
            "outcome", rule, outcome, "pass what an except clause caught"
        )
    state = attached_state(outcome)
    if state is not None:
        # A wrapper has the state of its own call, whole; another may let it out.
        own = isinstance(outcome, RetryError) and state is outcome.state
        return state if own else _swap_outcome(state, _SELF, outcome)
    # The error of ``raise_for_status`` has the response that it is about, and one
    # of requests that of urllib3.
    for part in (borne.get("response"), borne.get("raw")):
        if attributes_of(part) is not None:
            return state_of(part)
    return None


# They have a dict of their own, too, and are passed by mistake only.
_NO_OUTCOMES = (FunctionType, ModuleType)


def attached_state(outcome: object) -> RetryState | None:
    """Return the state of the call that has ended with this, and nothing deeper.

    In the failures of that state a record stands for the error itself.
    """
    state: RetryState | None = vars(outcome).get(_STATE)
    if state is None and isinstance(outcome, RetryError):
        return outcome.state
    return state


def is_own_timeout(error: BaseException | None) -> bool:
    """Return whether an attempt took too long, and no call has ended with that.

    An attempt of a call inside of it may have taken too long, too: with that
    error the inner call has ended.
    """
    return isinstance(error, AttemptTimeout) and attached_state(error) is None


def _swap_outcome(state: RetryState, old: object, new: Any) -> RetryState:
    if not state.failures:
        return state
    failures = tuple(
        failure._replace(error=new)
        if _same(failure.error, old)
        else failure._replace(result=new)
        if failure.result is not None and _same(failure.result, old)
        else failure
        for failure in state.failures
    )
    inner = state.nested_state and _swap_outcome(state.nested_state, old, new)
    return replace(state, failures=failures, nested_state=inner)


def _same(one: object, other: object) -> bool:
    # A record is known again by its value, because a pickle makes a new one. An
    # error is not asked whether it is equal: that may be anyone's code.
    records = isinstance(one, ErrorRecord) and isinstance(other, ErrorRecord)
    return one is other or (records and one == other)
