"""The error that a call gives up with, the state of the call, and its fallback.

By default it is the user's own error, with a note about the retries. The state of the
call is attached to it, or to the response that a client returns instead of an error;
`state_of` returns the state.
"""

from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final, final

from retrykit._core.call_record import CallFacts
from retrykit._core.failures import NEVER_RETRIED, Failure, attributes_of
from retrykit._core.retry_state import RetryState, view
from retrykit._internal.introspection import accepts_one_argument
from retrykit._internal.tracebacks import add_note_once
from retrykit._internal.validation import invalid_setting, user_facing
from retrykit.errors import (
    STATE_ATTRIBUTE,
    AttemptTimeout,
    FailureGroup,
    NestedRetryError,
    RetryError,
)

if TYPE_CHECKING:
    from retrykit._core.policy import Policy

__all__ = ["NO_FALLBACK", "NoFallback", "attach_record", "attach_state"]
__all__ += ["attached_state", "build_final_error", "check_fallback"]
__all__ += ["check_no_fallback", "has_value", "is_own_timeout", "last_result"]
__all__ += ["state_of"]


def build_final_error(
    raises: str, record: CallFacts, error: Exception | None
) -> Exception:
    """Return the final exception of a call, with the state of the call attached."""
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
    # Nor if there was no attempt: it would say the same.
    if record.attempt and (
        record.stop_reason not in NEVER_RETRIED or record.attempt > 1
    ):
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

    The state holds the errors, and they hold the frames in which they were raised: to
    keep a state for a long time, keep the result of its `to_dict`.

    Args:
        outcome: The exception that an ``except`` clause caught; or a response of a
            client that retries through `retrykit.integrations`, or an error about
            such a response.

    Returns:
        The state at the end of the call; None if no retried call ended with *outcome*.

    Raises:
        ConfigError: *outcome* is of a type that can have no state, such as a string.
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
    # An error of ``raise_for_status`` has its response, and a requests response has the
    # urllib3 one.
    for part in (attributes.get("response"), attributes.get("raw")):
        if attributes_of(part) is not None:
            return state_of(part)
    return None


# They also have a dict, and are passed only by mistake.
_NOT_OUTCOMES = (FunctionType, ModuleType)


def attached_state(outcome: object) -> RetryState | None:
    """Return the attached state as stored, with `ITSELF` for the outcome, or None."""
    state: Any = vars(outcome).get(STATE_ATTRIBUTE)
    if state is None and isinstance(outcome, RetryError):
        state = outcome.state
    return state if isinstance(state, RetryState) else None


def is_own_timeout(error: BaseException | None) -> bool:
    """Return whether an error is the timeout of an attempt of this call.

    A timeout that has a state is the final error of a nested call.
    """
    return isinstance(error, AttemptTimeout) and attached_state(error) is None


@final
class NoFallback:
    """The type of `NO_FALLBACK`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NO_FALLBACK"

    def __reduce__(self) -> str:
        return "NO_FALLBACK"


NO_FALLBACK: Final = NoFallback()
"""The fallback of a policy that has none: None is a value like any other."""


def last_result(state: RetryState) -> Any:
    """Return the last rejected result, for use as the `fallback` of a policy.

    If the last attempt raised an error, the call raises it, as it would without a
    fallback.

    >>> from retrykit import Policy
    >>> policy = Policy(schedule=[0], on_result=lambda x: x < 9, fallback=last_result)
    >>> policy.call(int, "7")
    7
    """
    return state.failures[-1].result


def has_value(fallback: object, failure: Failure | None) -> bool:
    """Return whether a fallback replaces the error after this last failure."""
    if fallback is last_result:
        return failure is not None and failure.error is None
    return fallback is not NO_FALLBACK


def check_no_fallback(policy: "Policy") -> None:
    """Raise an error if a policy has a fallback where no function could return it."""
    if policy.fallback is not NO_FALLBACK:
        rule = "left out where no function can return it: in a block, a client, a job "
        rule += "or a stream"
        suggestion = "handle the error there, or write Policy.run"
        raise invalid_setting(
            "fallback", rule, policy.fallback, suggestion, code="not-here"
        )


def check_fallback(name: str, value: Any) -> Any:
    """Return *value* unless it is a class, or a function that cannot take the state."""
    if isinstance(value, type):
        rule = "a value, or a function of the state"
        suggestion = f"write lambda state: {value.__name__}() for a new object each"
        raise invalid_setting(name, rule, value, suggestion)
    if callable(value) and not accepts_one_argument(value):
        rule = "a value, or a function that takes the state"
        raise invalid_setting(name, rule, value, "write lambda state: ...")
    return value
