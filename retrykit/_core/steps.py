"""The steps of a retried call, shared by the drivers, streams, blocks and jobs.

A failed attempt takes one pass: evaluate (conditions, hint, nesting, decision), report
(limits), pay (budget), record (state, events), and exit (final error or fallback) or
pause. Most steps have an async twin.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from retrykit._conditions import reject_awaitable
from retrykit._core import events
from retrykit._core.call import OWNER, Entry, FallbackValue, Outcome, RetryCall
from retrykit._core.controller import Asked, RetryController, admission
from retrykit._core.decision import (
    amatch_error,
    amatch_group,
    evaluate,
    match_error,
    match_group,
)
from retrykit._core.failures import Evaluation, StopReason
from retrykit._core.final_error import is_own_timeout
from retrykit._core.ineffective import warn_once
from retrykit._core.nesting import find_exhausted
from retrykit._core.result_conditions import (
    amatch_result,
    arelease_result,
    match_result,
    release_result,
)
from retrykit._internal.clocks import AsyncClock, Clock, ClockSource, wait_for_event
from retrykit._internal.error_texts import log_fault, note_policy_fault
from retrykit._internal.introspection import is_awaitable
from retrykit._internal.late_modules import logging
from retrykit._internal.tracebacks import keep_context
from retrykit.schedules._randomness import MAX_DELAY

if TYPE_CHECKING:
    from retrykit._core.policy import Policy
    from retrykit.budgets._base import Budget
    from retrykit.limits._leases import Lease

__all__ = ["adeposit_safely", "ahandle_failure", "ahandle_result", "ajudge", "apause"]
__all__ += ["abegin", "astart", "awithdraw_hedge", "begin", "deposit_safely"]
__all__ += ["report_failed_send", "withdraw_hedge"]
__all__ += ["handle_failure", "handle_result", "judge", "pause", "start"]


def start(
    controller: RetryController, call: RetryCall, asked: Asked | None = None
) -> FallbackValue | None:
    """Begin a call that is watched or resumed, once its delay and limits allow it.

    Returns:
        None if an attempt begins; the fallback's value if the call has ended already.
        Without a fallback, the error of such a call is raised.
    """
    if controller.begins_late:
        return _raise_error(begin(controller, call, asked))
    # Inlined from `begin`.
    controller.start(call)
    return None


def begin(
    controller: RetryController, call: RetryCall, asked: Asked | None = None
) -> Outcome:
    """Begin the first attempt of a call, or the one with which it is resumed.

    Returns:
        None if it begins; else how the call has ended, as in `handle_failure`.
    """
    delay = controller.resumed_delay(call)
    if delay is not None:
        return pause(controller, call, delay)
    if controller.admits:
        outcome = admit(controller, call, asked)
        if outcome is not None:
            return outcome
    controller.start(call)
    return None


async def astart(
    controller: RetryController, call: RetryCall, asked: Asked | None = None
) -> FallbackValue | None:
    """Begin a call that is watched or resumed, as `start` does."""
    if controller.begins_late:
        return _raise_error(await abegin(controller, call, asked))
    # Inlined from `abegin`.
    controller.start(call)
    if call.pending:
        await events.deliver(call.pending)
    return None


async def abegin(
    controller: RetryController, call: RetryCall, asked: Asked | None = None
) -> Outcome:
    """Begin an attempt, as `begin` does."""
    delay = controller.resumed_delay(call)
    if delay is not None:
        return await apause(controller, call, delay)
    if controller.admits:
        outcome = await aadmit(controller, call, asked)
        if outcome is not None:
            return outcome
    controller.start(call)
    if call.pending:
        await events.deliver(call.pending)
    return None


def _raise_error(outcome: Outcome) -> FallbackValue | None:
    """Raise an outcome that is an error; return any other."""
    if not isinstance(outcome, Exception):
        return outcome
    with keep_context(outcome):
        try:
            raise outcome
        finally:
            # No frame may keep the error that it raises.
            del outcome


def pause(controller: RetryController, call: RetryCall, delay: float) -> Outcome:
    """Wait for a delay in seconds, and begin the next attempt.

    Returns:
        None if it begins; else how the call has ended, as in `handle_failure`.
    """
    policy = controller.policy
    if not wait_delay(policy, controller.clock, delay):
        error = controller.record_stop(call)
        return use_fallback(policy, call) if call.used_fallback else error
    if controller.admits:
        outcome = admit(controller, call)
        if outcome is not None:
            return outcome
    last = controller.kept_failure(call)
    if last is not None:
        release_result(policy, last.rule, last.result)
    controller.start_next_attempt(call)
    return None


async def apause(controller: RetryController, call: RetryCall, delay: float) -> Outcome:
    """Wait for a delay, and begin the next attempt, as `pause` does."""
    policy = controller.policy
    if not await await_delay(policy, controller.clock, delay):
        error = controller.record_stop(call)
        if call.pending:
            await events.deliver(call.pending)
        return await ause_fallback(policy, call) if call.used_fallback else error
    if controller.admits:
        outcome = await aadmit(controller, call)
        if outcome is not None:
            return outcome
    last = controller.kept_failure(call)
    if last is not None:
        await arelease_result(policy, last.rule, last.result)
    controller.start_next_attempt(call)
    if call.pending:
        await events.deliver(call.pending)
    return None


def admit(
    controller: RetryController, call: RetryCall, asked: Asked | None = None
) -> Outcome:
    """Ask the limits of the policy for the attempt that is due, and wait for them.

    The policy's `stop_event` does not end a wait in the queue of a limit.

    Returns:
        None if the attempt may be made; else how the call has ended, as in
        `handle_failure`.
    """
    policy = controller.policy
    while True:
        answer, asked = admission.ask(controller, call, asked), None
        if answer is None:
            return None
        if not isinstance(answer, Exception | float | int):
            # A place in a queue.
            refusal = answer.wait(admission.time_left(controller, call))
            if refusal is None:
                continue
            answer = admission.refuse(controller, call, refusal)
        if isinstance(answer, float | int):
            if wait_delay(policy, controller.clock, answer):
                continue
            answer = controller.record_stop(call)
        return use_fallback(policy, call) if call.used_fallback else answer


async def aadmit(
    controller: RetryController, call: RetryCall, asked: Asked | None = None
) -> Outcome:
    """Ask the limits of the policy for the attempt that is due, as `admit` does."""
    policy = controller.policy
    while True:
        answer, asked = admission.ask(controller, call, asked), None
        if answer is None:
            return None
        if not isinstance(answer, Exception | float | int):
            # A place in a queue.
            refusal = await answer.wait_async(admission.time_left(controller, call))
            if refusal is None:
                continue
            answer = admission.refuse(controller, call, refusal)
        if isinstance(answer, float | int):
            if await await_delay(policy, controller.clock, answer):
                continue
            answer = controller.record_stop(call)
        if call.pending:
            await events.deliver(call.pending)
        return await ause_fallback(policy, call) if call.used_fallback else answer


def wait_delay(policy: "Policy", clock: ClockSource[Clock], delay: float) -> bool:
    """Wait for a delay in seconds, and return whether the call may continue.

    If a test replaces the clock, its sleep replaces the policy's own `sleep`. Neither
    is cut short by the policy's `stop_event`.
    """
    event, own_sleep = policy.stop_event, policy.sleep
    replaced = clock.current() is not clock.real
    if event is not None and event.is_set():
        return False
    if own_sleep is not None and not replaced:
        reject_awaitable("sleep", own_sleep(delay))
    elif event is not None and not replaced:
        wait_for_event(event, delay)
    else:
        clock.sleep(delay)
    return event is None or not event.is_set()


async def await_delay(
    policy: "Policy", clock: ClockSource[AsyncClock], delay: float
) -> bool:
    """Wait for a delay as `wait_delay` does; return whether the call may continue."""
    event, own_sleep = policy.stop_event, policy.sleep
    replaced = clock.current() is not clock.real
    if event is not None and event.is_set():
        return False
    if own_sleep is not None and not replaced:
        begun = clock.now()
        slept = own_sleep(delay)
        if is_awaitable(slept):
            await slept
        elif delay > 0 and clock.now() - begun >= delay:
            message = "%s: its sleep blocks the event loop; make it async"
            warn_once(getattr(own_sleep, "__qualname__", "sleep"), message)
    elif event is not None and not replaced:
        # Imported here: sync code needs no event loop.
        from retrykit._internal import loop_clock  # noqa: PLC0415

        await loop_clock.wait_for_event(event, delay)
    else:
        await clock.sleep(delay)
    return event is None or not event.is_set()


def use_fallback(policy: "Policy", call: RetryCall) -> FallbackValue:
    """Return the fallback's value, in place of an error to raise."""
    fallback = policy.fallback
    value = fallback(call.state) if callable(fallback) else fallback
    reject_awaitable("fallback", value)
    return FallbackValue(value)


async def ause_fallback(policy: "Policy", call: RetryCall) -> FallbackValue:
    """Return the fallback's value, as `use_fallback` does."""
    fallback = policy.fallback
    value = fallback(call.state) if callable(fallback) else fallback
    if callable(fallback) and is_awaitable(value):
        value = await value
    return FallbackValue(value)


def stop_evaluation(policy: "Policy", evaluation: Evaluation) -> Evaluation:
    """Return an evaluation, without a retry if the policy's `stop_event` is set."""
    failure, decision, retryable = evaluation
    event = policy.stop_event
    if isinstance(decision, str) or event is None or not event.is_set():
        return evaluation
    return Evaluation(failure._replace(delay=None), StopReason.STOPPED, retryable)


def handle_failure(  # noqa: C901  one pass, in its order
    controller: RetryController,
    call: RetryCall,
    error: Exception | None,
    result: object = None,
) -> float | Exception | FallbackValue:
    """Handle a failed attempt: evaluate, report, pay, record, and exit if not retried.

    Returns:
        The delay before the next attempt, in seconds; or, if the call has ended, the
        error to raise, which may be *error* itself, or the fallback's value.
    """
    policy, exhausted = controller.policy, None
    evaluation = controller.evaluate_usual(call, error)
    if evaluation is None:
        bare = error is not None and controller.trim_tracebacks(call, error)
        exhausted = None
        if not bare and policy.nested != "retry":
            exhausted = find_exhausted(call, error, result)
        matched: StopReason | int | None
        if error is None:
            matched = call.rule
        elif not bare and isinstance(error, ExceptionGroup):
            matched = match_group(policy, error)
        else:
            timed = policy.attempt_timeout is not None or call.stream is not None
            own = timed and is_own_timeout(error)
            matched = match_error(policy, error, own_timeout=own)
        read_clock = call.read_clock or controller.attach_clock(call)
        elapsed = read_clock() - call.started
        hinted = policy.hint is not None or policy.rules
        already_warned = call.already_warned if hinted else None
        evaluation = evaluate(
            policy, call, elapsed, error, result, matched, exhausted, already_warned
        )
        if call.stream is not None:
            evaluation = call.stream.judge(evaluation)
    if controller.can_be_stopped:
        evaluation = stop_evaluation(policy, evaluation)
    if controller.admits:
        evaluation = admission.report(controller, call, evaluation, error)
    if policy.budget is not None:
        try:
            cost = withdraw_safely(policy.budget, evaluation)
        except BaseException:
            controller.record_last_failure(call, evaluation)
            raise
        evaluation = controller.apply_budget(call, evaluation, cost)
    outcome = controller.record_failure(call, error, evaluation, exhausted)
    if isinstance(outcome, Exception):
        return use_fallback(policy, call) if call.used_fallback else outcome
    if error is None and not (controller.can_be_stopped or controller.admits):
        release_result(policy, call.rule, result)
    return outcome


async def ahandle_failure(  # noqa: C901, PLR0912  one pass, in its order
    controller: RetryController,
    call: RetryCall,
    error: Exception | None,
    result: object = None,
) -> float | Exception | FallbackValue:
    """Handle a failed attempt, as `handle_failure` does."""
    policy, exhausted = controller.policy, None
    evaluation = controller.evaluate_usual(call, error)
    if evaluation is None:
        bare = error is not None and controller.trim_tracebacks(call, error)
        exhausted = None
        if not bare and policy.nested != "retry":
            exhausted = find_exhausted(call, error, result)
        matched: StopReason | int | None
        if error is None:
            matched = call.rule
        elif not bare and isinstance(error, ExceptionGroup):
            matched = await amatch_group(policy, error)
        else:
            timed = policy.attempt_timeout is not None or call.stream is not None
            own = timed and is_own_timeout(error)
            matched = await amatch_error(policy, error, own_timeout=own)
        read_clock = call.read_clock or controller.attach_clock(call)
        elapsed = read_clock() - call.started
        hinted = policy.hint is not None or policy.rules
        already_warned = call.already_warned if hinted else None
        evaluation = evaluate(
            policy, call, elapsed, error, result, matched, exhausted, already_warned
        )
        if call.stream is not None:
            evaluation = call.stream.judge(evaluation)
    if controller.can_be_stopped:
        evaluation = stop_evaluation(policy, evaluation)
    if controller.admits:
        evaluation = admission.report(controller, call, evaluation, error)
    if policy.budget is not None:
        try:
            cost = await awithdraw_safely(policy.budget, evaluation)
        except BaseException:
            controller.record_last_failure(call, evaluation)
            raise
        evaluation = controller.apply_budget(call, evaluation, cost)
    outcome = controller.record_failure(call, error, evaluation, exhausted)
    if isinstance(outcome, Exception):
        if call.pending:
            await events.deliver(call.pending)
        return await ause_fallback(policy, call) if call.used_fallback else outcome
    if error is None and not (controller.can_be_stopped or controller.admits):
        await arelease_result(policy, call.rule, result)
    if call.pending:
        await events.deliver(call.pending)
    return outcome


def handle_result(controller: RetryController, call: RetryCall, result: object) -> bool:
    """Return whether a result is accepted; if so, record that the call has it."""
    if controller.judges:
        rejection = match_result(controller.judges, result)
        if rejection is not None:
            [call.rule] = rejection
            return False
    finish(controller, call, result)
    return True


async def ahandle_result(
    controller: RetryController, call: RetryCall, result: object
) -> bool:
    """Return whether a result is accepted, as `handle_result` does."""
    if controller.judges:
        rejection = await amatch_result(controller.judges, result)
        if rejection is not None:
            [call.rule] = rejection
            return False
    await afinish(controller, call, result)
    return True


def judge(
    entry: Entry,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    result: object,
    leases: "list[Lease] | None" = None,
) -> RetryCall | None:
    """Judge a first result; if it is accepted, end the call.

    Returns:
        None if the result is accepted; the call, with its state, if it is rejected.
    """
    owner = entry[OWNER]
    controller: Any = owner.controller if isinstance(owner, RetryCall) else owner
    rejection = match_result(controller.judges, result)
    stateless = entry[OWNER] is controller
    if stateless and rejection is None and controller.is_direct(type(result)):
        if leases:
            controller.report_success(controller.limits, leases, result)
        if controller.budget is not None:
            entry[OWNER] = None
            deposit_safely(controller.budget, None)
        return None
    call: RetryCall = controller.ensure_call(entry, args, kwargs, leases)
    if rejection is not None:
        [call.rule] = rejection
        return call
    finish(controller, call, result)
    return None


async def ajudge(
    entry: Entry,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    result: object,
    leases: "list[Lease] | None" = None,
) -> RetryCall | None:
    """Judge a first result, as `judge` does."""
    owner = entry[OWNER]
    controller: Any = owner.controller if isinstance(owner, RetryCall) else owner
    rejection = await amatch_result(controller.judges, result)
    stateless = entry[OWNER] is controller
    if stateless and rejection is None and controller.is_direct(type(result)):
        if leases:
            controller.report_success(controller.limits, leases, result)
        if controller.budget is not None:
            entry[OWNER] = None
            await adeposit_safely(controller.budget, None)
        return None
    call: RetryCall = controller.ensure_call(entry, args, kwargs, leases)
    if rejection is not None:
        [call.rule] = rejection
        return call
    await afinish(controller, call, result)
    return None


def finish(controller: RetryController, call: RetryCall, result: object) -> None:
    """Record that the call has an accepted result, and report it to the budget."""
    policy, cost = controller.policy, controller.record_success(call, result)
    if policy.budget is not None:
        deposit_safely(policy.budget, cost)


async def afinish(controller: RetryController, call: RetryCall, result: object) -> None:
    """Record that the call has an accepted result, as `finish` does."""
    policy, cost = controller.policy, controller.record_success(call, result)
    if call.pending:
        await events.deliver(call.pending)
    if policy.budget is not None:
        await adeposit_safely(policy.budget, cost)


def withdraw_safely(budget: "Budget", evaluation: Evaluation) -> float | None:
    """Report a failure to the budget, and return the cost of the retry after it.

    None if there is no retry, or the budget does not pay for it or fails.
    """
    try:
        # An async budget was rejected when the function was decorated.
        return _check_cost(_ask_budget(budget, evaluation))
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        _note_fault(evaluation.failure.error, fault)
        return None


def withdraw_hedge(budget: "Budget | None") -> bool:
    """Return whether another send is paid for; it is free if there is no budget."""
    try:
        return budget is None or _check_cost(budget.withdraw(None)) is not None
    except Exception as fault:  # noqa: BLE001  the attempt goes on
        log_fault(logging.ERROR, fault, "not hedged, because the budget failed")
        return False


def report_failed_send(budget: "Budget | None") -> None:
    """Report to the budget a failed send that is not the outcome of its attempt."""
    try:
        if budget is not None:
            budget.failed(first=False, retryable=True)
    except Exception as fault:  # noqa: BLE001  the attempt goes on
        log_fault(logging.ERROR, fault, "the budget failed on a failed send")


async def awithdraw_hedge(budget: "Budget | None") -> bool:
    """Return whether another send is paid for, as `withdraw_hedge` does."""
    try:
        if budget is None:
            return True
        cost = budget.withdraw(None)
        return (
            _check_cost(await cost if isinstance(cost, Awaitable) else cost) is not None
        )
    except Exception as fault:  # noqa: BLE001  the attempt goes on
        log_fault(logging.ERROR, fault, "not hedged, because the budget failed")
        return False


async def awithdraw_safely(budget: "Budget", evaluation: Evaluation) -> float | None:
    """Report a failure to the budget, as `withdraw_safely` does."""
    try:
        cost = _ask_budget(budget, evaluation)
        return _check_cost(await cost if isinstance(cost, Awaitable) else cost)
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        _note_fault(evaluation.failure.error, fault)
        return None


def _ask_budget(
    budget: "Budget", evaluation: Evaluation
) -> float | Awaitable[float | None] | None:
    failure, decision, retryable = evaluation
    budget.failed(first=failure.attempt == 1, retryable=retryable)
    if isinstance(decision, StopReason):
        return None
    error = failure.error if isinstance(failure.error, Exception) else None
    return budget.withdraw(error)


def _check_cost(cost: object) -> float | None:
    """Return the cost from `withdraw`, or None; raise a TypeError for anything else."""
    if cost is None:
        return None
    if isinstance(cost, int | float) and 0 <= cost <= MAX_DELAY:
        return float(cost)
    msg = f"withdraw() must give None or a number >= 0, got {cost!r}"
    raise TypeError(msg)


def deposit_safely(budget: "Budget", cost: float | None) -> None:
    """Report a success to a budget; log its error rather than lose the result."""
    try:
        budget.deposit(cost)
    except Exception as fault:  # noqa: BLE001  the result must come through
        log_fault(logging.ERROR, fault, "the budget failed on a result")


async def adeposit_safely(budget: "Budget", cost: float | None) -> None:
    """Report a success to a budget; log its error rather than lose the result."""
    try:
        deposited = budget.deposit(cost)
        if deposited is not None:
            await deposited
    except Exception as fault:  # noqa: BLE001  the result must come through
        log_fault(logging.ERROR, fault, "the budget failed on a result")


def _note_fault(error: object, fault: Exception) -> None:
    """Report that a retry was not made because the budget failed."""
    if isinstance(error, Exception):
        note_policy_fault(error, fault)
    else:
        log_fault(logging.ERROR, fault, "not retried, because the budget failed")
