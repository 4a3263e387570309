"""Nested calls: an outer call does not retry what an inner one has given up on.

An inner call marks its final error with the marker of the call around it. An error
that comes from elsewhere, such as an executor or another process, is recognized by the
state that is attached to it.
"""

from typing import TYPE_CHECKING, Final

from retrykit._core.call import GIVE_UPS, RetryCall, outer_call, state_lock
from retrykit._core.call_record import CallFacts, clock_id
from retrykit._core.decision import decide
from retrykit._core.failures import attributes_of
from retrykit._core.final_error import attach_state, attached_state
from retrykit._core.retry_state import RetryState, StopReason
from retrykit._internal.late_modules import logging, opcode
from retrykit.errors import CommitUnknown, RetryAfter, RetryError

if TYPE_CHECKING:
    from retrykit._core.policy import Policy

__all__ = ["copy_state", "find_exhausted", "has_exhausted_retries"]
__all__ += [
    "limit_by_outer_call",
    "limit_nested_states",
    "mark_exhausted",
    "warn_if_idle",
    "warned_names",
]


def limit_by_outer_call(call: RetryCall) -> None:
    """Set the depth of a nested call, and its deadline from the calls around it."""
    outer = outer_call(call)
    controller = None if outer is None else outer.controller
    if outer is None or controller is None:
        return
    call.depth = outer.depth + 1
    deadline = outer.outer_deadline
    limits = [
        controller.time_left(outer),
        None if deadline is None else deadline - outer.elapsed,
    ]
    left = [limit for limit in limits if limit is not None]
    call.outer_deadline = call.elapsed + min(left) if left else None


def has_exhausted_retries(record: CallFacts) -> bool:
    """Return whether a call used up its retries, so that an outer one must not retry.

    Its retries failed, or more were prevented: by its time limit, a hint, its budget, a
    limit, its `stop_event` or an exhausted nested call. If its policy does not retry
    the error, or was told to give up, the outer policy decides.
    """
    if record.stop_reason in {StopReason.ATTEMPTS, StopReason.SCHEDULE_ENDED}:
        return record.attempt > 1
    return record.stop_reason in _NO_RETRY_ALLOWED


_NO_RETRY_ALLOWED = {
    StopReason.ELAPSED,
    StopReason.HINT,
    StopReason.BUDGET,
    StopReason.REFUSED,
    StopReason.NESTED,
    StopReason.STOPPED,
}


def limit_nested_states(state: RetryState | None) -> RetryState | None:
    """Return a state whose chain down to the innermost state has at most 16 states.

    If there is one more, the second is left out. The innermost is kept, since its call
    made all others give up.
    """
    depth, deepest = 0, state
    while deepest is not None:
        depth, deepest = depth + 1, deepest.nested_state
    if depth <= _MAX_NESTED or state is None or state.nested_state is None:
        return state
    return state._replace(nested_state=state.nested_state.nested_state)


_MAX_NESTED: Final = 16

_MARKER: Final = "__retrykit_exhausted__"


def mark_exhausted(error: BaseException, outer: RetryCall) -> None:
    """Mark an error with which a call nested in *outer* has exhausted its retries."""
    if outer.controller is None:
        return
    with state_lock:
        number, marker = outer.exhausted_marker or (0, None)
        if number != outer.attempt:
            marker = object()
            outer.exhausted_marker = outer.attempt, marker
    marked = [error]
    for each in marked:
        vars(each)[_MARKER] = marker
        # ``except*`` makes new groups, of the same errors.
        if isinstance(each, BaseExceptionGroup):
            marked += each.exceptions


def copy_state(result: object, error: RetryError) -> None:
    """Attach to a result the state and the marker of the error whose place it takes."""
    attach_state(result, error.state)
    if _MARKER in vars(error):
        vars(result)[_MARKER] = vars(error)[_MARKER]


def _gave_up_within(inner: CallFacts, call: RetryCall) -> bool:
    """Return whether *inner* began and gave up within the running attempt of *call*.

    A call that began earlier may share its error with the attempt, but is not part of
    it.
    """
    if inner.give_up_number <= call.entry[GIVE_UPS]:
        return False
    start = call.started + call.attempt_started
    other_clock = inner.clock_id != clock_id(call.read_clock) or not inner.clock_id
    return other_clock or inner.started >= start - _ROUNDING


# In seconds: a sum of readings is not exact.
_ROUNDING: Final = 1e-6


def find_exhausted(
    call: RetryCall, error: Exception | None, result: object
) -> object | None:
    """Return the outcome with which a call nested in this attempt gave up, or None.

    It is the attempt's error or result itself, or related to that: a cause, an error
    that was replaced by another, a member of a group, or a response. A nested call is
    recognized by a marker where contexts reach, and by its state wherever its error
    goes, from any thread or process. A call that gave up before the attempt began does
    not count. An unknown commit must not be repeated, even if its call had retries
    left.
    """
    # A function that raises RetryAfter from an error has seen that error.
    deep = not isinstance(error, RetryAfter)
    outcome = result if error is None else error
    number, marker = call.exhausted_marker or (0, None)
    if number != call.attempt:
        marker = None
    seen: set[int] = set()
    pending: list[object] = [outcome]
    while pending:
        outcome = pending.pop()
        attributes = attributes_of(outcome)
        if id(outcome) in seen or attributes is None:
            continue
        if marker is not None and attributes.get(_MARKER) is marker:
            return outcome
        attached = attached_state(outcome)
        inner = None if attached is None else attached._record
        if (
            inner is not None
            and _gave_up_within(inner, call)
            and (has_exhausted_retries(inner) or isinstance(outcome, CommitUnknown))
        ):
            return outcome
        seen.add(id(outcome))
        if not deep:
            continue
        # From the dict, since a property may run any code. A response of requests
        # wraps one of urllib3.
        pending += [attributes.get("raw"), attributes.get("response")]
        if not isinstance(outcome, BaseException):
            continue
        pending.append(outcome.__cause__)
        if _translates(outcome, outcome.__context__):
            pending.append(outcome.__context__)
        if isinstance(outcome, BaseExceptionGroup):
            pending += outcome.exceptions
    return None


def _translates(error: BaseException, handled: BaseException | None) -> bool:
    """Return whether the code that handled an error has itself raised another one.

    An error raised by a function that the handler calls, such as a request to a mirror,
    does not count.
    """
    trace = error.__traceback__
    if handled is None or trace is None:
        return handled is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    frame, handler = trace.tb_frame, handled.__traceback__
    while handler is not None and handler.tb_frame is not frame:
        handler = handler.tb_next
    # A function in C has no frame of its own.
    raises = frame.f_code.co_code[trace.tb_lasti] == opcode.opmap["RAISE_VARARGS"]
    return raises and handler is not None


def warn_if_idle(policy: "Policy", call: RetryCall) -> None:
    """Warn, once for each name, of a call that only a nested call keeps from retrying.

    Args:
        policy: The policy of the outer call.
        call: The outer call, with the state of the nested one, after its last failure.
    """
    state = call.state
    name = state.name
    stopped = state.innermost.stop_reason is StopReason.STOPPED
    if policy.nested != "respect" or name in warned_names or stopped:
        return
    if not _would_retry(policy, call):
        return
    with state_lock:
        if name in warned_names or len(warned_names) >= _MAX_NAMES:
            return
        warned_names.add(name)
    inner = "a call" if state.nested_state is None else state.innermost.name
    message = "%s: not retried, since %s, which is retried inside it, gave up; "
    message += 'nested="retry" on the outer policy retries it anyway'
    logging.getLogger("retrykit").warning(message, name, inner)


def _would_retry(policy: "Policy", call: RetryCall) -> bool:
    """Return whether the policy allows another attempt, rules and hints aside."""
    try:
        decision = decide(policy, call, call.attempt, call.elapsed)
    except Exception:  # noqa: BLE001  a schedule that fails also ends the call
        return False
    return not isinstance(decision, str)


warned_names: set[str] = set()
"""The names of the calls that `warn_if_idle` has logged in this process."""

_MAX_NAMES: Final = 1000
