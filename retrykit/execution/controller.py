"""Controls the lifecycle of retried calls, shared by the sync and async drivers.

A failed attempt takes one pass: evaluate (conditions, hint, nesting, decision), pay
(budget), record (state, events), exit (final error). The sync and async functions at
the end differ in ``await`` alone.
"""

import logging
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from retrykit._internal import fast_path
from retrykit._internal.clocks import AsyncClock, Clock, ClockSource, wall
from retrykit._internal.durations import format_duration
from retrykit._internal.error_conditions import reject_awaitable
from retrykit._internal.tracebacks import (
    drop_frames,
    skip_wrapper_frames,
    trim_traceback,
    with_traceback,
)
from retrykit.budgets.base import (
    adeposit_safely,
    awithdraw_safely,
    deposit_safely,
    withdraw_safely,
)
from retrykit.execution.call import Entry, RetryCall, outer_call, state_lock
from retrykit.execution.nesting import (
    find_exhausted,
    has_exhausted_retries,
    limit_nested_states,
    mark_exhausted,
    warn_if_idle,
)
from retrykit.execution.overrides import retry_overrides
from retrykit.policy.conditions import (
    arejects_result,
    arelease_result,
    rejects_result,
    release_result,
)
from retrykit.policy.decision import amatch_error, evaluate, match_error
from retrykit.schedules.randomness import new_seed
from retrykit.state import events
from retrykit.state.failures import Evaluation, StopReason
from retrykit.state.final_error import (
    attach_state,
    build_final_error,
    is_own_timeout,
    state_of,
)
from retrykit.state.retry_state import RetryState
from retrykit.state.signals import Signal

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["RetryController", "ahandle_failure", "ahandle_result", "handle_failure"]
__all__ += ["handle_result"]


class RetryController:
    """Records and reports the calls of one function.

    Args:
        policy: The policy of the calls.
        name: The name of the calls, if the policy has none.
        clock: The clock of the driver.
        resumed: The state that a call continues, or None.
        driven: Whether a driver calls the function: its frame is then the first one
            in the traceback of every error.
        runner: The loop of a retried block, or the attempt of a job; the call ends
            when it is gone. Referred to weakly.

    Attributes:
        policy: The policy of the calls.
        budget: That of the policy, or None.
        watch: Not empty if calls need their state from the beginning: for observers,
            `on_result`, a resumed state, or whatever blocks the fast path.
    """

    __slots__ = (
        "_clock",
        "_driven",
        "_keeps_frames",
        "_name",
        "_observers",
        "_resumed",
        "_runner",
        "_timed",
        "budget",
        "policy",
        "watch",
    )

    def __init__(  # noqa: PLR0913  what the calls of a function have in common
        self,
        policy: "Policy",
        name: str,
        clock: ClockSource[Clock] | ClockSource[AsyncClock],
        resumed: RetryState | None,
        *,
        driven: bool = True,
        runner: object = None,
    ) -> None:
        self._driven = driven
        self._runner = None if runner is None else weakref.ref(runner)
        self.policy, self.budget = policy, policy.budget
        self._observers = policy.observers
        self._name = policy.name or name
        self._clock = clock
        self._resumed = resumed
        self._timed = policy.attempt_timeout is not None
        self._keeps_frames = policy.keep_tracebacks or policy.raises == "group"
        watched = policy.observers or policy.on_result or resumed
        self.watch: Sequence[object] = (policy,) if watched else fast_path.blockers

    def with_overrides(self) -> "RetryController":
        """Return the controller of a call that begins under the overrides of tests."""
        if not fast_path.blockers:
            return self
        policy = retry_overrides.get().apply_to(self.policy)
        if policy is self.policy:
            return self
        runner = None if self._runner is None else self._runner()
        return RetryController(
            policy,
            self._name,
            self._clock,
            self._resumed,
            driven=self._driven,
            runner=runner,
        )

    def runner_is_gone(self) -> bool:
        """Return whether the runner is gone, because an interrupt skipped its end."""
        return self._runner is not None and self._runner() is None

    def ensure_call(self, entry: Entry, *, watched: bool = False) -> RetryCall:
        """Return the `RetryCall` of an entry; create it, with its state, once.

        Args:
            entry: The entry.
            watched: Whether the call begins now, and this context's clock times it.
                Otherwise it began earlier, and the real clock times it.
        """
        clock, policy, resumed = self._clock, self.policy, self._resumed
        # Threads that the function starts may ask at once, and must share one state.
        with state_lock:
            owner, started, before = entry
            if isinstance(owner, RetryCall):
                return owner
            read_clock = clock.reader() if watched else clock.real_reader()
            begun = wall()
            if read_clock is not None:
                now = read_clock()
                started = now if watched else started
                begun -= now - started
            if resumed is None:
                state = RetryState(
                    self._name,
                    new_seed() if policy.seed is None else policy.seed,
                    begun,
                    policy.max_elapsed,
                    policy.max_failures,
                    redact=policy.redact,
                    read_clock=read_clock,
                    started_at_clock=started,
                )
            else:
                state = replace(
                    resumed,
                    stop_reason=None,
                    nested_state=None,
                    # It may be nested in other calls now, or in none.
                    depth=0,
                    outer_deadline=None,
                    max_elapsed=policy.max_elapsed,
                    max_failures=policy.max_failures,
                    redact=policy.redact,
                    read_clock=read_clock,
                    # The time that was spent before counts.
                    started_at_clock=started - resumed.elapsed_at_end,
                )
            # The state has it now.
            entry[1] = None
            call = RetryCall()
            call.controller, call.before, call.state = self, before, state
            call.exhausted_marker = call.last_traceback = None
            call.warning_issued = False
            if before is not None:
                _apply_nesting(call)
            # A signal handler may have asked meanwhile, in the same thread.
            if entry[0] is owner:
                entry[0] = call
            created: RetryCall = entry[0]
            return created

    def start(self, call: RetryCall) -> float | None:
        """Begin a call that is watched or resumed.

        Returns:
            The remaining delay before its next attempt, in seconds; None if an
            attempt begins.
        """
        state = call.state
        last = state.failures[-1] if state.failures else None
        if state.next_delay is None:
            if last is not None and last.attempt == state.attempt:
                state.begin_attempt()
            if self._observers or events.process_observers:
                self._notify(events.AttemptStarted(state))
            return None
        waited = 0.0
        if last is not None:
            waited = max(state.elapsed - (last.started + last.duration), 0.0)
        return max(state.next_delay - waited, 0.0)

    def attach_clock(self, state: RetryState) -> Callable[[], float]:
        """Return the reader of a clock that could not be found when the call began."""
        # Drivers run in the event loop, where there always is one.
        reader = cast("Callable[[], float]", self._clock.reader())
        state.read_clock = reader
        return reader

    def trim_tracebacks(self, call: RetryCall, error: Exception) -> bool:
        """Trim the traceback of an error, and release the previous one's frames.

        Returns:
            Whether the error is bare: it has no cause, no context, no members and no
            attributes, such as the state of a call that has given up.
        """
        alone = error.__context__ is None and error.__cause__ is None
        alone = alone and not isinstance(error, BaseExceptionGroup)
        state, last = call.state, None
        if state.failures:
            before = state.failures[-1]
            last = before.error
            release = last is not error and not self._keeps_frames
            if release and isinstance(last, Exception):
                locations = drop_frames(last, None if alone else error)
                state.frame_locations += ((before.attempt, locations),)
        trace = error.__traceback__
        if self._driven and trace is not None:
            trace = trace.tb_next
            if self._timed:
                trace = skip_wrapper_frames(trace)
            with_traceback(error, trace)
        if last is error:
            trim_traceback(trace, call.last_traceback)
        call.last_traceback = trace
        # Not through __dict__, which would create it.
        return alone and len(_reduce(error)) == _WITHOUT_DICT

    def apply_budget(
        self, call: RetryCall, evaluation: Evaluation, cost: float | None
    ) -> Evaluation:
        """Return the evaluation after the budget was asked to pay for the retry."""
        failure, decision, retryable = evaluation
        if isinstance(decision, str):
            return evaluation
        call.state.retry_cost = cost
        if cost is not None:
            return evaluation
        return Evaluation(failure._replace(delay=None), StopReason.BUDGET, retryable)

    def record_last_failure(self, call: RetryCall, evaluation: Evaluation) -> None:
        """Record a failed attempt after which the call is interrupted."""
        call.state.record(evaluation.failure._replace(delay=None))

    def record_failure(
        self,
        call: RetryCall,
        error: Exception | None,
        evaluation: Evaluation,
        exhausted: object | None,
    ) -> float | Exception:
        """Record a failed attempt, and end the call if it is not retried.

        Returns:
            The delay before the next attempt, in seconds, or the error to raise.
        """
        state = call.state
        failure, decision, _ = evaluation
        state.record(failure)
        if not isinstance(decision, str):
            if self._observers or events.process_observers:
                self._notify(events.AttemptFailed(state, failure))
                self._notify(events.RetryScheduled(state, decision))
            return decision
        if decision is StopReason.NESTED:
            state.nested_state = limit_nested_states(state_of(exhausted))
            warn_if_idle(self.policy, state)
        state.end(decision)
        call.controller = None
        if self._observers or events.process_observers:
            self._notify(events.AttemptFailed(state, failure))
            self._notify(events.GaveUp(state))
        policy = self.policy
        nested = decision is StopReason.NESTED and policy.nested == "raise"
        cause = error.error if isinstance(error, Signal) else error
        final_error = build_final_error(
            "nested" if nested else policy.raises, state, cause
        )
        outer = None if call.before is None else outer_call(call)
        if outer is not None and has_exhausted_retries(state):
            mark_exhausted(final_error, outer)
        return final_error

    def start_next_attempt(self, call: RetryCall) -> None:
        """Record that the delay is over and the next attempt begins."""
        state = call.state
        state.begin_attempt()
        call.exhausted_marker = None
        if self.policy.max_attempts is None:
            _check_time_passed(call, state)
        if self._observers or events.process_observers:
            self._notify(events.AttemptStarted(state))

    def record_success(self, call: RetryCall, result: object) -> float | None:
        """Record that the call has its result.

        Returns:
            What its last retry cost the budget; None if there was no retry.
        """
        if not self._clock.awaited and hasattr(type(result), "__await__"):
            rule = "a function that returns its result directly, under retry"
            reject_awaitable(self._name, result, rule, "decorate it with aretry")
        state = call.state
        call.controller = None
        state.end(StopReason.SUCCEEDED)
        if self._observers or events.process_observers:
            self._notify(events.Succeeded(state))
        return state.retry_cost

    def record_interruption(self, call: RetryCall, error: BaseException) -> None:
        """Record that the call was ended by something other than its attempts.

        Cancellation, Ctrl-C, or an `Exception` such as that of `on_result`.
        """
        if call.controller is None:
            return
        call.controller = None
        # The frames of the error keep the call, and must not keep the other errors.
        state, call.state = call.state, _ENDED
        if state.read_clock is None:
            state.read_clock = self._clock.reader()
        cancelled = not isinstance(error, Exception)
        state.end(StopReason.CANCELLED if cancelled else StopReason.NOT_RETRYABLE)
        attach_state(error, state)
        self._notify(events.GaveUp(state))

    def record_suspension(self, call: RetryCall) -> None:
        """Record that the call goes on elsewhere, from its state."""
        call.controller = None
        self._notify(events.Suspended(call.state))

    def time_left(self, call: RetryCall) -> float | None:
        """Return the time that calls nested in this one may take, in seconds.

        None if it is unlimited, or cannot be known in this thread.
        """
        policy, state = self.policy, call.state
        if policy.max_elapsed is None or policy.deadline == "overshoot":
            return None
        return None if state.read_clock is None else policy.max_elapsed - state.elapsed

    def _notify(self, event: events.Event) -> None:
        events.notify(self._observers, event)


def _apply_nesting(call: RetryCall) -> None:
    """Set the depth of a nested call, and its deadline by the calls around it."""
    outer, state = outer_call(call), call.state
    controller = None if outer is None else outer.controller
    if outer is None or controller is None:
        return
    state.depth = outer.state.depth + 1
    deadline = outer.state.outer_deadline
    limits = [
        controller.time_left(outer),
        None if deadline is None else deadline - outer.state.elapsed,
    ]
    left = [limit for limit in limits if limit is not None]
    state.outer_deadline = state.elapsed + min(left) if left else None


_ENDED: Final = RetryState("", 0, 0.0)
"""Stands for the state of a call that was interrupted."""

# Of the base class, since the class of the error may override it.
_reduce = BaseException.__reduce__
# The length of its answer for an error without attributes.
_WITHOUT_DICT: Final = 2

# In seconds: shorter delays may be invisible to clocks of a low resolution.
_NOTICEABLE: Final = 0.1


def _check_time_passed(call: RetryCall, state: RetryState) -> None:
    """Warn once of a sleep that took no time, where only time would end the call."""
    last = state.failures[-1] if state.failures else None
    if last is None or last.delay is None:
        return
    passed = state.attempt_started - last.started - last.duration
    if last.delay < max(_NOTICEABLE, 2 * passed) or call.already_warned():
        return
    message = "%s slept %s before its next attempt, but its clock advanced only %s: "
    message += "is sleep mocked or time frozen? Without max_attempts, only time ends "
    message += "this call; retrykit.testing.virtual_time replaces both"
    logging.getLogger("retrykit").warning(
        message, state.name, format_duration(last.delay), format_duration(passed)
    )


def handle_failure(
    controller: RetryController,
    call: RetryCall,
    error: Exception | None,
    result: object = None,
) -> float | Exception:
    """Handle a failed attempt: evaluate, pay, record, and exit if it is not retried.

    Returns:
        The delay before the next attempt, in seconds; or, if the call has ended, the
        error to raise, which may be *error* itself.
    """
    policy, state = controller.policy, call.state
    bare = error is not None and controller.trim_tracebacks(call, error)
    exhausted = None
    if not bare and policy.nested != "retry":
        exhausted = find_exhausted(call, error, result)
    own = policy.attempt_timeout is not None and is_own_timeout(error)
    matched = None if error is None else match_error(policy, error, own_timeout=own)
    read_clock = state.read_clock or controller.attach_clock(state)
    elapsed = read_clock() - state.started_at_clock
    already_warned = None if policy.hint is None else call.already_warned
    evaluation = evaluate(
        policy, state, elapsed, error, result, matched, exhausted, already_warned
    )
    if policy.budget is not None:
        try:
            cost = withdraw_safely(policy.budget, evaluation)
        except BaseException:
            controller.record_last_failure(call, evaluation)
            raise
        evaluation = controller.apply_budget(call, evaluation, cost)
    outcome = controller.record_failure(call, error, evaluation, exhausted)
    if error is None and not isinstance(outcome, Exception):
        release_result(policy, result)
    return outcome


async def ahandle_failure(
    controller: RetryController,
    call: RetryCall,
    error: Exception | None,
    result: object = None,
) -> float | Exception:
    """Handle a failed attempt, as `handle_failure` does."""
    policy, state = controller.policy, call.state
    bare = error is not None and controller.trim_tracebacks(call, error)
    exhausted = None
    if not bare and policy.nested != "retry":
        exhausted = find_exhausted(call, error, result)
    own = policy.attempt_timeout is not None and is_own_timeout(error)
    matched = (
        None if error is None else await amatch_error(policy, error, own_timeout=own)
    )
    read_clock = state.read_clock or controller.attach_clock(state)
    elapsed = read_clock() - state.started_at_clock
    already_warned = None if policy.hint is None else call.already_warned
    evaluation = evaluate(
        policy, state, elapsed, error, result, matched, exhausted, already_warned
    )
    if policy.budget is not None:
        try:
            cost = await awithdraw_safely(policy.budget, evaluation)
        except BaseException:
            controller.record_last_failure(call, evaluation)
            raise
        evaluation = controller.apply_budget(call, evaluation, cost)
    outcome = controller.record_failure(call, error, evaluation, exhausted)
    if error is None and not isinstance(outcome, Exception):
        await arelease_result(policy, result)
    return outcome


def handle_result(controller: RetryController, call: RetryCall, result: object) -> bool:
    """Record that the call has its result, or return False if it is rejected."""
    policy = controller.policy
    if policy.on_result is not None and rejects_result(policy, result):
        return False
    cost = controller.record_success(call, result)
    if policy.budget is not None:
        deposit_safely(policy.budget, cost)
    return True


async def ahandle_result(
    controller: RetryController, call: RetryCall, result: object
) -> bool:
    """Record that the call has its result, as `handle_result` does."""
    policy = controller.policy
    if policy.on_result is not None and await arejects_result(policy, result):
        return False
    cost = controller.record_success(call, result)
    if policy.budget is not None:
        await adeposit_safely(policy.budget, cost)
    return True
