"""The running call: its record, and which call runs inside which.

A call knows the call around it wherever its context reaches: in its task or
thread, in the tasks that it starts, and in ``asyncio.to_thread``.
"""

import os
import threading
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from retrykit.policy.timeouts import AsArgument
from retrykit.state.retry_state import RetryState

if TYPE_CHECKING:
    from retrykit.execution.controller import RetryController

__all__ = ["Entry", "RetryCall", "attempt_time_limit", "current_entry"]
__all__ += ["current_state", "innermost_running", "new_entry", "opened_call"]
__all__ += ["outer_call", "outer_calls", "state_lock"]


Entry = list[Any]
"""The entry of a call in its context: [owner, start, before].

The owner is the controller of the call, then its `RetryCall` once an attempt fails or
somebody asks for its state, and None once it has succeeded without either. The start is
a clock reading, in seconds. The entry before is the one that was current, or None.

A list, because nothing is cheaper to make, and most calls need nothing more. Its
indices are used here and in the drivers alone.

An interrupt may end a call before it can restore `current_entry`. So code that finds an
entry there, or before another one, asks `innermost_running`.
"""

current_entry: ContextVar[Entry | None] = ContextVar("retrykit call", default=None)
"""The entry of the innermost retried call of this context."""


class RetryCall:
    """A running call with a state; `RetryController.open_call` makes it.

    Attributes:
        controller: The controller of the call; None once the call has ended.
        before: The entry before that of this call, or None.
        state: The history of the call.
        exhausted_marker: Put on errors that exhausted a call nested in this attempt.
        last_traceback: The traceback of the last error when it was recorded.
        warning_issued: Whether a warning was logged for this call: its hint
            fails, or its clock stands still.
    """

    __slots__ = (
        "before",
        "controller",
        "exhausted_marker",
        "last_traceback",
        "state",
        "warning_issued",
    )

    controller: "RetryController | None"
    before: Entry | None
    state: RetryState
    exhausted_marker: object
    last_traceback: TracebackType | None
    warning_issued: bool

    def warn_once(self) -> bool:
        """Return whether a warning was logged before; one is logged now."""
        before, self.warning_issued = self.warning_issued, True
        return before


def new_entry(controller: "RetryController") -> Entry:
    """Return the entry of a call that is driven by hand."""
    return [controller, 0.0, innermost_running(current_entry.get())]


def opened_call(entry: Entry) -> RetryCall | None:
    """Return the running call of an entry, with its state; None if it has ended."""
    owner = entry[0]
    if owner is not None and not isinstance(owner, RetryCall):
        owner = cast("RetryController", owner).open_call(entry)
    return owner if owner is not None and owner.controller is not None else None


# Reentrant, since a signal handler or a finalizer may make retried calls too
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
    entry = innermost_running(current_entry.get())
    call = None if entry is None else opened_call(entry)
    if call is None:
        msg = "current_state() was called outside a retried call"
        raise LookupError(msg)
    return call.state


def innermost_running(entry: Entry | None) -> Entry | None:
    """Return the innermost entry of a running call: *entry*, or one before it."""
    while entry is not None:
        owner = entry[0]
        controller = owner.controller if isinstance(owner, RetryCall) else owner
        if controller is not None and not controller.abandoned():
            return entry
        entry = entry[2]
    return None


def outer_call(call: RetryCall) -> RetryCall | None:
    """Return the running call around a call, or None."""
    entry = innermost_running(call.before)
    if entry is None:
        return None
    # The outermost first, since each state takes over what the one around it knows.
    unopened = []
    outer: Entry | None = entry
    while outer is not None and not isinstance(outer[0], RetryCall):
        unopened.append(outer)
        outer = innermost_running(outer[2])
    for each in reversed(unopened):
        opened_call(each)
    return opened_call(entry)


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

    Returns:
        Seconds, >= 0: the policy's `attempt_timeout`, or the remaining time of the
        call and of those around it, if that is less.
    """
    call = call or cast("RetryCall", opened_call(cast("Entry", current_entry.get())))
    timeout = cast("RetryController", call.controller).policy.attempt_timeout
    limits = [timeout.seconds if isinstance(timeout, AsArgument) else timeout]
    for each in (call, *outer_calls(call)):
        controller = each.controller
        # Under the other rules an attempt may begin when no time is left.
        if controller is not None and controller.policy.deadline == "stop":
            limits.append(controller.time_left(each))
    return max(min(limit for limit in limits if limit is not None), 0.0)
