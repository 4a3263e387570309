"""The running call: its record, and which call runs inside of which.

A call knows the call around it wherever its context reaches: in its task or
thread, in the tasks that it starts, and in ``asyncio.to_thread``.
"""

import os
import threading
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, cast, final

from retrykit.policy.timeouts import AsArgument
from retrykit.state.retry_state import RetryState

if TYPE_CHECKING:
    from retrykit.execution.controller import RetryController

__all__ = ["RetryCall", "attempt_time_limit", "current_call", "current_state"]
__all__ += ["innermost_running", "new_call", "outer_call", "outer_calls", "state_lock"]


@final
class RetryCall:
    """One call while it runs.

    It has no constructor: making one is part of every call, and most calls succeed at
    once. The drivers set the first four attributes; the others are set together with
    the state.

    An interrupt may end a call before it can restore `current_call`. So code that
    finds a call there, or as the call around another, asks `innermost_running`.

    Attributes:
        controller: What records the call; None once the call has ended.
        started: The clock reading at its start, in seconds.
        before: The call that was current when this one began, or None.
        state: Its history; None until an attempt fails or somebody asks for it, and
            again once the call has ended.
        exhausted_marker: Put on errors that exhausted a call nested in this attempt.
        last_traceback: The traceback of the last error when it was recorded.
        hint_warning_issued: Whether a warning was logged for this call: its hint
            fails, or its clock stands still.
    """

    __slots__ = (
        "before",
        "controller",
        "exhausted_marker",
        "hint_warning_issued",
        "last_traceback",
        "started",
        "state",
    )

    controller: "RetryController | None"
    started: float
    before: "RetryCall | None"
    state: RetryState | None
    exhausted_marker: object
    last_traceback: TracebackType | None
    hint_warning_issued: bool

    def get_state(self) -> RetryState | None:
        """Return the state of the call; None if it has ended meanwhile."""
        controller = self.controller
        return None if controller is None else controller.get_state(self)

    def warn_once(self) -> bool:
        """Return whether a warning was logged before; one is logged now."""
        before, self.hint_warning_issued = self.hint_warning_issued, True
        return before


def new_call(controller: "RetryController", started: float = 0.0) -> RetryCall:
    """Return a call that is driven step by step.

    Args:
        controller: What records the call.
        started: The clock reading at its start, in seconds.
    """
    call = RetryCall()
    call.controller, call.started = controller, started
    call.before, call.state = innermost_running(current_call.get()), None
    return call


current_call: ContextVar[RetryCall | None] = ContextVar("retrykit call", default=None)
"""The innermost retried call of this context."""

# Reentrant, since a signal handler or a finalizer may make retried calls of its own
# while the lock is held.
state_lock = threading.RLock()
"""Held while the state or the marker of a call is made, which its threads share."""

if hasattr(os, "register_at_fork"):  # pragma: no branch  (Windows has no fork)
    # A fork must not copy the lock while another thread holds it.
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
    state = None if call is None else call.get_state()
    if state is None:
        msg = "current_state() is for functions that are being retried; none is"
        raise LookupError(msg)
    return state


def innermost_running(call: RetryCall | None) -> RetryCall | None:
    """Return the innermost call that has not ended: *call*, or one around it."""
    while call is not None:
        controller = call.controller
        if controller is not None and not controller.abandoned():
            return call
        call = call.before
    return None


def outer_call(call: RetryCall) -> RetryCall | None:
    """Return the running call around a call, or None."""
    before = call.before
    return None if before is None else innermost_running(before)


def outer_calls(call: RetryCall) -> list[RetryCall]:
    """Return the running calls around a call, the nearest first."""
    found = []
    outer = outer_call(call)
    while outer is not None:
        found.append(outer)
        outer = outer_call(outer)
    return found


def attempt_time_limit(call: RetryCall | None = None) -> float:
    """Return the time limit of the attempt that begins.

    Args:
        call: Its call; by default the current one.

    Returns:
        Seconds, >= 0: the policy's `attempt_timeout`, or the remaining time of the
        call and of those around it, if that is less.
    """
    call = cast("RetryCall", call or current_call.get())
    timeout = cast("RetryController", call.controller).policy.attempt_timeout
    limits = [timeout.seconds if isinstance(timeout, AsArgument) else timeout]
    for each in (call, *outer_calls(call)):
        controller = each.controller
        # Under the other rules an attempt may begin when no time is left.
        if controller is not None and controller.policy.deadline == "stop":
            limits.append(controller.time_left(each))
    return max(min(limit for limit in limits if limit is not None), 0.0)
