"""Calls that run inside of one another, and what one tells the one around it.

Which call is around another is known where the context of the outer one
reaches: in its task or thread, in the tasks that it starts, and in
``asyncio.to_thread``.
"""

import os
import threading
from contextvars import ContextVar, Token
from typing import Any

from retrykit.state import RetryState, StopReason
from retrykit.timeouts import AsArgument
from retrykit.verdicts import RetryError, attach

__all__ = [
    "Call",
    "around",
    "current",
    "current_state",
    "exhausted",
    "find",
    "leave_mark",
]
__all__ += ["opening", "stands_for", "surroundings"]

Call = list[Any]
"""A call while it runs: [its book, clock reading at its start, its state].

A list, because nothing is cheaper to make and most calls need nothing more.
Until an attempt fails or somebody asks for the state, what was current before
stands in its place: as the token of `current`, or itself. The list of a call
that has ended is empty, so that nothing keeps its errors.
"""

# Counted from the end: of a call that has ended, what it lets out may be left,
# which another thread must not take for its book.
_BOOK = -3

current: ContextVar[Call] = ContextVar("retrykit call")
"""The innermost retried call of this context."""

# A signal handler or a finaliser in the middle of it may make calls of its own,
# and a fork must not copy it while another thread has it.
opening = threading.RLock()
"""Held while what threads of one call share is made: its state, its mark."""

if hasattr(os, "register_at_fork"):  # pragma: no branch  (Windows has no fork)
    os.register_at_fork(
        before=opening.acquire,
        after_in_parent=opening.release,
        after_in_child=opening.release,
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
    call = current.get([])
    try:
        state: RetryState = call[_BOOK].state(call)
    except IndexError:
        msg = "current_state() is for functions that are being retried; none is"
        raise LookupError(msg) from None
    return state


def around(call: Call) -> Call | None:
    """Return the call that a call runs inside of, if there is one and it runs."""
    held = call[2]
    if isinstance(held, RetryState):
        held = held.around
    elif isinstance(held, Token):
        held = held.old_value
    return held if isinstance(held, list) and len(held) == -_BOOK else None


def surroundings(call: Call) -> list[Call]:
    """Return copies of the calls that a call runs inside of, the nearest first.

    They are what these calls are now: in their threads they may end meanwhile.
    """
    found = []
    outer = around(call)
    while outer is not None:
        copied = outer[:]
        if len(copied) != -_BOOK:  # pragma: no cover  (it ended just now)
            break
        found.append(copied)
        outer = around(copied)
    return found


def allowance(call: Call | None = None) -> float:
    """Return how long the attempt that begins may take.

    Args:
        call: The call that it is of; by default the one of this context.

    Returns:
        Seconds, >= 0: what its policy allows, or what remains, if that is less.
    """
    call = current.get() if call is None else call
    timeout = call[0].policy.attempt_timeout
    length: float = timeout.seconds if isinstance(timeout, AsArgument) else timeout
    for each in (call, *surroundings(call)):
        # Under the other rules an attempt may begin when nothing is left.
        left = each[0].left(each) if each[0].policy.deadline == "stop" else None
        length = length if left is None else min(left, length)
    return max(length, 0.0)


def exhausted(state: RetryState) -> bool:
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

_MARK = "__retrykit_exhausted__"


def leave_mark(error: BaseException, outer: Call) -> None:
    """Say on an error that a call inside of another has given up with it."""
    try:
        state: RetryState = outer[_BOOK].state(outer)
    except IndexError:
        # The outer call has ended meanwhile, and nobody asks.
        return
    with opening:
        state.mark = state.mark or object()
    marked = [error]
    for each in marked:
        vars(each)[_MARK] = state.mark
        # ``except*`` makes new groups, of the same errors.
        if isinstance(each, BaseExceptionGroup):
            marked += each.exceptions


def stands_for(result: object, error: RetryError) -> None:
    """Hang on a result what hangs on the error in whose place it comes out."""
    attach(result, error.state)
    if _MARK in vars(error):
        vars(result)[_MARK] = vars(error)[_MARK]


def find(outcome: object, mark: object, *, deep: bool = True) -> object | None:
    """Return what has a mark: an error or result, or what the error came from.

    Looks at what the error was raised from or while handling, into groups, and
    at the response that it is about, if it is to look so deep.
    """
    seen: set[int] = set()
    left: list[object] = [outcome]
    while left:
        outcome = left.pop()
        borne = getattr(outcome, "__dict__", None)
        if id(outcome) in seen or not isinstance(borne, dict):
            continue
        if borne.get(_MARK) is mark:
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
