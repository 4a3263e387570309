"""The running call: its record, and which call runs inside which.

A call knows the call around it wherever its context reaches: in its task or
thread, in the tasks that it starts, and in ``asyncio.to_thread``.
"""

import copyreg
import os
import sys
from _thread import RLock
from collections.abc import Callable
from contextvars import ContextVar
from operator import methodcaller
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, cast, final

from retrykit.policy.timeouts import AsArgument
from retrykit.state.events import Pending
from retrykit.state.retry_state import RetryState

if TYPE_CHECKING:
    from retrykit.execution.controller import RetryController

__all__ = ["Entry", "FallbackValue", "Outcome", "RetryCall", "attempt_time_limit"]
__all__ += ["current_entry", "current_state", "innermost_running", "outer_call"]
__all__ += ["outer_calls", "running_call", "state_lock"]


Entry = list[Any]
"""The entry of a call in its context: [owner, start, before, give_ups].

The owner is the controller of the call at first, its `RetryCall` once an attempt fails
or the state is needed, and None once the call has ended. The start is a clock reading,
in seconds; the `Records` of common failures, which begin with it, take its place, and
None once the call has ended. The entry before is the one that was current, or None.
The last item is how many calls had given up when the attempt began.

A list, because nothing is cheaper to make, and most calls need nothing more. Besides
this module, only the drivers, `common_failures`, the controller and `ManualCall` use
its indices.

An interrupt may end a call before it can restore `current_entry`. So code that finds an
entry there, or before another one, asks `innermost_running`.
"""

current_entry: ContextVar[Entry | None] = ContextVar("retrykit call", default=None)
"""The entry of the innermost retried call of this context."""


def _reduce_variable(variable: ContextVar[Any]) -> Any:
    """Return the parts of `current_entry` for pickle; other variables have none.

    A driver that is pickled by value, as those of scripts and notebooks, refers to it.
    """
    if variable is current_entry:
        return _find_current_entry, ()
    return _reduce_others(variable)


def _find_current_entry() -> ContextVar[Entry | None]:
    return current_entry


# By default, Python's own error.
_reduce_others: Callable[[Any], Any] = copyreg.dispatch_table.get(
    ContextVar, methodcaller("__reduce_ex__", 2)
)
copyreg.pickle(ContextVar, _reduce_variable)


class RetryCall:
    """A running call with a state; `RetryController.ensure_call` creates it.

    Attributes:
        controller: The controller of the call; None once the call has ended.
        before: The entry before that of this call, or None.
        state: The history of the call.
        give_ups_before: How many calls had given up when the attempt began.
        exhausted_marker: Attached to the final errors of calls nested in this attempt
            that have exhausted their retries.
        last_traceback: The traceback of the last error when it was recorded.
        function: The function of the call; None for a block.
        args: The positional arguments of the call, for events.
        kwargs: Its keyword arguments; None if its driver has not told them yet.
        pending: What async observers have returned and is not awaited yet.
        rule: The index of the rule that rejected the last result, or None.
        warning_issued: Whether a warning was logged for this call: its hint
            fails, or its clock stands still.
    """

    __slots__ = (
        "__weakref__",
        "args",
        "before",
        "controller",
        "exhausted_marker",
        "function",
        "give_ups_before",
        "kwargs",
        "last_traceback",
        "pending",
        "rule",
        "state",
        "warning_issued",
    )

    controller: "RetryController | None"
    before: Entry | None
    state: RetryState
    give_ups_before: int
    exhausted_marker: object
    last_traceback: TracebackType | None
    function: Callable[..., Any] | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any] | None
    pending: Pending | None
    rule: int | None
    warning_issued: bool

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of the call.

        Raises:
            LookupError: Its driver has not told them yet, and is not further up in this
                thread or task.
        """
        if self.kwargs is None and self.function is not None:
            frame: FrameType | None = sys._getframe()  # noqa: SLF001  documented
            while frame is not None and not self._take_arguments(frame):
                frame = frame.f_back
            if self.kwargs is None:
                msg = "state.args must be read in the thread or task of the call"
                raise LookupError(msg)
        return self.args, self.kwargs or {}

    def _take_arguments(self, frame: FrameType) -> bool:
        """Take the arguments from a frame, if it is that of the driver of this call."""
        if frame.f_code.co_name != "call_with_retries":
            return False
        variables = frame.f_locals
        entry, args, kwargs = (variables[name] for name in ("entry", "args", "kwargs"))
        if sys.version_info < (3, 13):  # pragma: no branch
            # It is a copy, which lives as long as the frame.
            variables.clear()
        if type(entry) is not list or entry[0] is not self:
            return False
        self.args, self.kwargs = args, kwargs
        return True

    def already_warned(self) -> bool:
        """Return whether a warning was logged before; the caller logs one if not."""
        before, self.warning_issued = self.warning_issued, True
        return before


@final
class FallbackValue:
    """The value that a call returns in place of the error that it gives up with."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


Outcome = Exception | FallbackValue | None
"""How a call has ended: the error to raise or the value to return; None if it runs."""


def running_call(entry: Entry) -> RetryCall | None:
    """Return the running call of an entry, with its state; None if it has ended."""
    owner = entry[0]
    if owner is not None and not isinstance(owner, RetryCall):
        owner = cast("RetryController", owner).ensure_call(entry)
    return owner if owner is not None and owner.controller is not None else None


# Reentrant, since a signal handler or a finalizer may make retried calls too
# while the lock is held.
state_lock = RLock()
"""Held while the state or marker of a call, shared by threads, is created."""

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
        changes as the call goes on. Do not keep it in a local variable: the
        variable, the errors in the state and the frames in their tracebacks
        would be a reference cycle, which only the garbage collector frees.

    Raises:
        LookupError: No retried call runs in this context.
    """
    current = current_entry.get()
    # Read once, since the call may end in another thread.
    owner = None if current is None else current[0]
    if type(owner) is RetryCall and owner.state.used_fallback:
        # The fallback runs: the call is over for nested calls only.
        return owner.state
    entry = innermost_running(current)
    call = None if entry is None else running_call(entry)
    if call is None:
        msg = "current_state() was called outside a retried call"
        raise LookupError(msg)
    return call.state


def innermost_running(entry: Entry | None) -> Entry | None:
    """Return the innermost entry of a running call: *entry*, or one before it."""
    while entry is not None:
        owner = entry[0]
        controller = owner.controller if isinstance(owner, RetryCall) else owner
        if controller is not None and not controller.runner_is_gone():
            return entry
        entry = entry[2]
    return None


def outer_call(call: RetryCall) -> RetryCall | None:
    """Return the running call around a call, or None."""
    entry = innermost_running(call.before)
    if entry is None:
        return None
    # The outermost first, since each state takes over what the one around it knows.
    without_state = []
    outer: Entry | None = entry
    while outer is not None and not isinstance(outer[0], RetryCall):
        without_state.append(outer)
        outer = innermost_running(outer[2])
    for each in reversed(without_state):
        running_call(each)
    return running_call(entry)


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
    call = call or cast("RetryCall", running_call(cast("Entry", current_entry.get())))
    timeout = cast("RetryController", call.controller).policy.attempt_timeout
    limits = [timeout.seconds if isinstance(timeout, AsArgument) else timeout]
    for each in (call, *outer_calls(call)):
        controller = each.controller
        # Under the other rules an attempt may begin when no time is left.
        if controller is not None and controller.policy.deadline == "stop":
            limits.append(controller.time_left(each))
    return max(min(limit for limit in limits if limit is not None), 0.0)
