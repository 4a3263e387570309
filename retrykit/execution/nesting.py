"""Calls that run inside of one another, and what one tells the one around it.

Which call is around another is known where the context of the outer one
reaches: in its task or thread, in the tasks that it starts, and in
``asyncio.to_thread``. An error that comes from elsewhere, such as an executor or
another process, still has the state of the call that gave up with it.
"""

import os
import threading
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, cast

from retrykit.policy.timeouts import AsArgument
from retrykit.state.final_error import RetryError, attach_state, attached_state
from retrykit.state.records import attributes_of
from retrykit.state.retry_state import RetryState, StopReason

__all__ = [
    "Call",
    "close",
    "current_call",
    "current_state",
    "find_exhausted",
    "has_exhausted_retries",
    "mark_exhausted",
    "outer_call",
]
__all__ += [
    "copy_state",
    "innermost_running",
    "limit_nested_states",
    "raises_another_error",
    "state_if_running",
    "state_lock",
]
__all__ += ["outer_calls"]

Call = list[Any]
"""A call while it runs: [its book, clock reading at its start, its state].

A list, because nothing is cheaper to make and most calls need nothing more.
Until an attempt fails or somebody asks for the state, the call that was current
before stands in its place, or None. It does so again when the call has ended, so
that nothing keeps its errors; its book is then None. What it lets out follows as
a fourth, until the driver takes it.

An interrupt may end a call before it can leave `current_call` as it was: so whoever
meets a call there, or as the one around another, asks `innermost_running` about it.
"""

current_call: ContextVar[Call | None] = ContextVar("retrykit call", default=None)
"""The innermost retried call of this context."""

# A signal handler or a finaliser in the middle of it may make calls of its own,
# and a fork must not copy it while another thread has it.
state_lock = threading.RLock()
"""Held while what threads of one call share is made: its state, its mark."""

if hasattr(os, "register_at_fork"):  # pragma: no branch  (Windows has no fork)
    os.register_at_fork(
        before=state_lock.acquire,
        after_in_parent=state_lock.release,
        after_in_child=state_lock.release,
    )


def current_state() -> RetryState:
    """Return the state of the retried call that this code runs in.

    >>> from retrykit import Policy
    >>> Policy().call(lambda: current_state().attempt)
    1

    Returns:
        The state of the innermost call: the number of the attempt, the
        failures so far, the time that remains, how deep it is nested. It
        changes as the call goes on. Use it in place: a local variable that
        holds it holds the errors, they hold the frames of their attempts, and
        those such a variable, until the garbage collector runs.

    Raises:
        LookupError: No retried call runs in this context.
    """
    call = innermost_running(current_call.get())
    state = None if call is None else state_if_running(call)
    if state is None:
        msg = "current_state() is for functions that are being retried; none is"
        raise LookupError(msg)
    return state


def state_if_running(call: Call) -> RetryState | None:
    """Return the state of a call; None if it has ended meanwhile."""
    book = call[0]
    state: RetryState | None = None if book is None else book.get_state(call)
    return state


def close(call: Call) -> None:
    """Mark a call as ended: it keeps only the call that was current before it."""
    call[0], call[2] = None, _before(call)
    del call[_PARTS:]


def raises_another_error(call: Call) -> bool:
    """Return whether an ended call raises another error than its last attempt did."""
    return len(call) > _PARTS


_PARTS = 3


def innermost_running(call: Call | None) -> Call | None:
    """Return the innermost call that has not ended: *call*, or one around it."""
    while call is not None:
        book = call[0]
        if book is not None and not book.abandoned():
            return call
        call = _before(call)
    return None


def outer_call(call: Call) -> Call | None:
    """Return the call that a call runs inside of, if there is one and it runs."""
    before = _before(call)
    return None if before is None else innermost_running(before)


def _before(call: Call) -> Call | None:
    """Return what was current before a call."""
    held: RetryState | Call | None = call[2]
    return held.around if isinstance(held, RetryState) else held


def outer_calls(call: Call) -> list[Call]:
    """Return copies of the calls that a call runs inside of, the nearest first.

    They are what these calls are now: in their threads they may end meanwhile.
    """
    found = []
    outer = outer_call(call)
    while outer is not None:
        copied = outer[:]
        found.append(copied)
        outer = outer_call(copied)
    # One may have ended just before it was copied.
    return [each for each in found if each[0] is not None]


def attempt_time_limit(call: Call | None = None) -> float:
    """Return how long the attempt that begins may take.

    Args:
        call: The call that it is of; by default the one of this context.

    Returns:
        Seconds, >= 0: what its policy allows, or what remains, if that is less.
    """
    call = cast("Call", call or current_call.get())
    timeout = call[0].policy.attempt_timeout
    length: float = timeout.seconds if isinstance(timeout, AsArgument) else timeout
    for each in (call, *outer_calls(call)):
        # Under the other rules an attempt may begin when nothing is left.
        left = each[0].time_left(each) if each[0].policy.deadline == "stop" else None
        length = length if left is None else min(left, length)
    return max(length, 0.0)


def has_exhausted_retries(state: RetryState) -> bool:
    """Return whether a call has given up in a way that another must not undo.

    It has made retries and none helped, or there was no time, no budget and no
    leave for any. An error that its policy does not retry, or that told it to
    give up, is the business of whoever is around it.
    """
    if state.stop_reason in {StopReason.ATTEMPTS, StopReason.SCHEDULE_ENDED}:
        return state.attempt > 1
    return state.stop_reason in _WITHOUT_LEAVE


_WITHOUT_LEAVE = {
    StopReason.ELAPSED,
    StopReason.HINT,
    StopReason.BUDGET,
    StopReason.NESTED,
}


def limit_nested_states(state: RetryState | None) -> RetryState | None:
    """Return the state of a call that gave up, with a few of those inside of it.

    The innermost ones are kept, since it was for them that all others gave up.
    """
    inside, deepest = 0, state
    while deepest is not None:
        inside, deepest = inside + 1, deepest.nested_state
    if inside <= _MOST_INSIDE or state is None or state.nested_state is None:
        return state
    return replace(state, nested_state=state.nested_state.nested_state)


_MOST_INSIDE = 16

_MARK = "__retrykit_exhausted__"


def mark_exhausted(error: BaseException, outer: Call) -> None:
    """Say on an error that a call inside of another has given up with it."""
    state = state_if_running(outer)
    if state is None:
        return
    with state_lock:
        state.mark = state.mark or object()
    marked = [error]
    for each in marked:
        vars(each)[_MARK] = state.mark
        # ``except*`` makes new groups, of the same errors.
        if isinstance(each, BaseExceptionGroup):
            marked += each.exceptions


def copy_state(result: object, error: RetryError) -> None:
    """Hang on a result what hangs on the error in whose place it comes out."""
    attach_state(result, error.state)
    if _MARK in vars(error):
        vars(result)[_MARK] = vars(error)[_MARK]


def _was_inside(inner: RetryState, began: float) -> bool:
    """Return whether a call was made since a time of day, and not in no time."""
    return inner.epoch >= began - _TICK and inner.epoch + inner.elapsed_at_end > began


# More than the time of day is rounded by, in seconds.
_TICK = 1e-6


def find_exhausted(
    outcome: object, state: RetryState, *, deep: bool = True
) -> object | None:
    """Return with what a call inside of an attempt has given up, if one has.

    Looks at an error or a result; and if it is to look so deep, at what the error
    was raised from or while handling, into groups, and at the response that it is
    about. What was called inside of the attempt has left a mark where contexts
    reach, and its state wherever its error does: from any thread or process. A
    call that began before the attempt was not made by it.

    Args:
        outcome: The error or the result of an attempt.
        state: The state of the call that the attempt is of.
        deep: Whether to look deeper than at the outcome itself.
    """
    began = state.epoch + state.attempt_started
    seen: set[int] = set()
    left: list[object] = [outcome]
    while left:
        outcome = left.pop()
        borne = attributes_of(outcome)
        if id(outcome) in seen or borne is None:
            continue
        if state.mark is not None and borne.get(_MARK) is state.mark:
            return outcome
        inner = attached_state(outcome)
        if (
            inner is not None
            and _was_inside(inner, began)
            and has_exhausted_retries(inner)
        ):
            return outcome
        seen.add(id(outcome))
        if not deep:
            continue
        # By the dict: a property may be anyone's code. A response of requests is
        # made of one of urllib3.
        left += [borne.get("raw"), borne.get("response")]
        if not isinstance(outcome, BaseException):
            continue
        left += [outcome.__context__, outcome.__cause__]
        if isinstance(outcome, BaseExceptionGroup):
            left += outcome.exceptions
    return None
