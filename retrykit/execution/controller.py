"""Records and reports retried calls: state, tracebacks, events, final error.

`retrykit.execution.steps` decides what is recorded.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from retrykit._internal import fast_path
from retrykit._internal.clocks import (
    AsyncClock,
    Clock,
    ClockSource,
    read_together,
    wall,
)
from retrykit._internal.error_conditions import reject_awaitable
from retrykit._internal.tracebacks import (
    WITHOUT_DICT,
    add_note_once,
    close_errors,
    drop_frames,
    reduce_error,
    skip_wrapper_frames,
    trim_traceback,
    with_traceback,
)
from retrykit.execution.call import Entry, RetryCall, outer_call, state_lock
from retrykit.execution.common_failures import Answer, answer_of, catch_up, replay
from retrykit.execution.ineffective import (
    LAZY,
    longest_first_delay,
    warn_of_blocking,
    warn_of_frozen_time,
    warn_of_lazy_result,
    would_block,
)
from retrykit.execution.nesting import (
    has_exhausted_retries,
    limit_by_outer_call,
    limit_nested_states,
    mark_exhausted,
    warn_if_idle,
)
from retrykit.execution.overrides import retry_overrides
from retrykit.execution.rejected_results import release_before
from retrykit.policy.fallback import NO_FALLBACK, has_value
from retrykit.policy.limits import describe_give_up, describe_limit, most_attempts
from retrykit.schedules.randomness import new_seed
from retrykit.state import events
from retrykit.state.failures import NEVER_RETRIED, Evaluation, Failure, StopReason
from retrykit.state.final_error import (
    attach_state,
    build_final_error,
    state_of,
)
from retrykit.state.retry_log import (
    describe_last_failure,
    is_logged,
    log_retry,
    logs_retries,
)
from retrykit.state.retry_state import RetryState, give_ups
from retrykit.state.signals import Signal

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["RetryController"]


class RetryController:
    """Records and reports the calls of one function.

    Args:
        policy: The policy of the calls.
        name: The name of the calls, if the policy has none.
        clock: The clock of the driver.
        resumed: The state that a call continues, or None.
        function: The function that events name, with its arguments; None for a block
            or a client.
        driven: Whether a driver calls the function: its frame is then the first one
            in the traceback of every error.
        runner: The loop of a retried block, or the attempt of a job; the call ends
            when it is gone. Referred to weakly.

    Attributes:
        policy: The policy of the calls.
        answer: The answer to their common failures, once there was one; else None.
        budget: That of the policy, or None.
        clock: The clock of the driver.
        can_be_stopped: Whether the policy has a `stop_event`.
        only_sleeps: Whether nothing but a sleep belongs to the pause before a retry.
        plain: The type of the first result that is not awaitable, which most results
            have, or None.
        judges_results: Whether the policy or one of its rules has `on_result`.
        watch: Not empty if calls need their state from the beginning: for observers,
            `on_result`, a resumed state, or whatever blocks the fast path.
    """

    __slots__ = (
        "_awaits_observers",
        "_checks_event_loop",
        "_driven",
        "_function",
        "_keeps_frames",
        "_logs",
        "_most_attempts",
        "_name",
        "_observers",
        "_polls",
        "_resumed",
        "_runner",
        "_time_limit",
        "_timed",
        "answer",
        "budget",
        "can_be_stopped",
        "clock",
        "judges_results",
        "only_sleeps",
        "plain",
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
        function: Callable[..., Any] | None = None,
        driven: bool = True,
        runner: object = None,
    ) -> None:
        self._driven, self._function, self._logs = driven, function, False
        # The attempts of a block end in a ``with``, which cannot await.
        self._awaits_observers = clock.awaited and driven
        self._runner = None if runner is None else weakref.ref(runner)
        # Once, at the first failure. Blocks do it by themselves.
        self._checks_event_loop = runner is None and not clock.awaited
        self.policy, self.budget = policy, policy.budget
        self.answer: Answer | None = None
        self.plain: type | None = None
        self._observers = policy.observers
        self._name = policy.name or name
        self.clock: ClockSource[Any] = clock
        self._resumed, self._polls = resumed, policy.on == ()
        self._timed = policy.attempt_timeout is not None
        # Where both limits must be reached, neither of them alone tells the end.
        joined = policy.limits == "all"
        self._time_limit = None if joined else policy.max_elapsed
        self._most_attempts = None if joined else most_attempts(policy)
        self.can_be_stopped = policy.stop_event is not None
        own = policy.stop_event, policy.sleep
        self.only_sleeps = own == (None, None) and not policy.observers
        self.judges_results = policy.on_result is not None or any(
            rule.on_result is not None for rule in policy.rules
        )
        self._keeps_frames = policy.keep_tracebacks or policy.raises == "group"
        watched = policy.observers or self.judges_results or resumed
        self.watch: Sequence[object] = (policy,) if watched else fast_path.blockers

    def with_overrides(self) -> "RetryController":
        """Return the controller of a call that begins under the overrides of tests."""
        if not fast_path.blockers:
            return self
        overrides = retry_overrides.get()
        policy = overrides.apply_to(self.policy)
        if policy is self.policy:
            return self
        runner = None if self._runner is None else self._runner()
        other = RetryController(
            policy,
            self._name,
            self.clock,
            self._resumed,
            function=self._function,
            driven=self._driven,
            runner=runner,
        )
        other.judges_results = self.judges_results and not overrides.disabled
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        # With a driver that is pickled by value.
        parts = self.policy, self._name, self.clock, self._resumed, self._function
        return _restore_controller, parts

    def find_answer(self) -> Answer:
        """Return the answer to common failures, at the first of them."""
        self.answer = answer = answer_of(self.policy)
        if self._checks_event_loop:
            self.check_event_loop()
        return answer

    def check_event_loop(self) -> None:
        """Warn if the first delay of sync code blocks an event loop."""
        self._checks_event_loop = False
        if would_block(self.clock) and longest_first_delay(self.policy) > 0:
            warn_of_blocking(self._name)

    def is_plain(self, kind: type) -> bool:
        """Return whether results of a type are no awaitables; remember the first."""
        plain = not hasattr(kind, "__await__")
        if plain and kind.__name__ in LAZY:
            warn_of_lazy_result(self._name, kind)
        if plain and self.plain is None:
            self.plain = kind
        return plain

    def runner_is_gone(self) -> bool:
        """Return whether the runner is gone, because an interrupt skipped its end."""
        return self._runner is not None and self._runner() is None

    def ensure_call(
        self,
        entry: Entry,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        watched: bool = False,
    ) -> RetryCall:
        """Return the `RetryCall` of an entry; create it, with its state, once.

        Args:
            entry: The entry.
            args: The positional arguments of the call.
            kwargs: Its keyword arguments; None if the caller has no arguments.
            watched: Whether the call begins now, and this context's clock times it.
                Otherwise it began earlier, and the real clock times it.
        """
        owner, started, before, give_ups_before = entry
        if not isinstance(owner, RetryCall):
            if started is None:
                # The call is about to end, in another thread.
                return cast("RetryCall", None)
            # Without the lock: clocks, outer calls and logging run other code.
            call = RetryCall()
            call.controller, call.before = self, before
            call.give_ups_before = give_ups_before
            call.exhausted_marker = call.last_traceback = call.rule = None
            call.function, call.args, call.kwargs = self._function, (), None
            call.pending = None
            call.warning_issued = False
            recorded, seed = type(started) is list, self.policy.seed
            if seed is None:
                # Records have their own.
                seed = 0 if recorded else new_seed()
            start = started[0] if recorded else started
            call.state = self._make_state(call, start, seed, watched)
            # Asked once for each call, not for each failure.
            self._logs = is_logged()
            if before is not None:
                limit_by_outer_call(call)
            # Threads that the function starts may ask at once, and must share one
            # state; a signal handler may ask as well.
            with state_lock:
                if entry[0] is owner:
                    if recorded:
                        replay(call, started)
                    entry[0] = call
                    if recorded or entry[1] is not started:
                        # The driver may have recorded a failure meanwhile, or the end.
                        catch_up(entry)
        published: RetryCall = entry[0]
        if kwargs is not None:
            published.args, published.kwargs = args, kwargs
        return published

    def _make_state(
        self,
        call: RetryCall,
        started: float,
        seed: int,
        watched: bool,  # noqa: FBT001
    ) -> RetryState:
        """Make the state of a call that began at this time, or continue one."""
        clock = self.clock
        read_clock = clock.reader() if watched else clock.real_reader()
        clock_id = 0
        if read_clock is None:
            begun = wall()
        else:
            clock_id = id(getattr(read_clock, "__self__", read_clock))
            begun, now = read_together(read_clock)
            started = now if watched else started
            begun -= now - started
        policy, resumed = self.policy, self._resumed
        if resumed is None:
            return RetryState(
                self._name,
                seed,
                begun,
                self._time_limit,
                policy.max_failures,
                self._most_attempts,
                redact=policy.redact,
                _polls=self._polls,
                _read_clock=read_clock,
                _started_at_clock=started,
                _clock_id=clock_id,
                _call=weakref.ref(call),
            )
        return resumed._replace(
            stop_reason=None,
            stop_detail=None,
            used_fallback=False,
            nested_state=None,
            # It may be nested in other calls now, or in none.
            depth=0,
            _outer_deadline=None,
            max_elapsed=self._time_limit,
            max_failures=policy.max_failures,
            max_attempts=self._most_attempts,
            redact=policy.redact,
            _polls=self._polls,
            _read_clock=read_clock,
            _clock_id=clock_id,
            # The time that was spent before counts.
            _started_at_clock=started - resumed.elapsed_at_end,
            _call=weakref.ref(call),
        )

    def start(self, call: RetryCall) -> float | None:
        """Begin a call that is watched or resumed.

        Returns:
            The remaining delay before its next attempt, in seconds; None if an
            attempt begins.
        """
        state = call.state
        last = state._failures[-1] if state._failures else None
        if state.next_delay is None:
            if last is not None and last.attempt == state.attempt:
                state._begin_attempt(state.elapsed)
            if self._observers or events.process_observers:
                self._notify(call, events.AttemptStarted(state))
            return None
        waited = 0.0
        if last is not None:
            waited = max(state.elapsed - (last.started + last.duration), 0.0)
        return max(state.next_delay - waited, 0.0)

    def attach_clock(self, state: RetryState) -> Callable[[], float]:
        """Return the reader of a clock that could not be found when the call began."""
        # Drivers run in the event loop, where there always is one.
        reader = cast("Callable[[], float]", self.clock.reader())
        state._read_clock = reader
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
        if state._failures:
            before = state._failures[-1]
            last = before.error
            release = last is not error and not self._keeps_frames
            if release and isinstance(last, Exception):
                locations = drop_frames(last, None if alone else error)
                state._keep_locations(before.attempt, locations)
                reduced = reduce_error(last)
                has_dict = len(reduced) > WITHOUT_DICT
                if len(locations) > 1 or (has_dict and reduced[WITHOUT_DICT]):
                    # It has related errors, or attributes.
                    close_errors(last, error)
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
        return alone and len(reduce_error(error)) == WITHOUT_DICT

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
        call.state._record(evaluation.failure._replace(delay=None))

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
        failure, decision, retryable = evaluation
        if state._failures and (error is None or state._failures[-1].error is None):
            keeps = self._keeps_frames
            release_before(self.policy, state, error, failure.result, keeps=keeps)
        state._record(failure)
        if not isinstance(decision, str):
            if self._observers or events.process_observers:
                self._notify(call, events.AttemptFailed(state, failure))
                self._notify(call, events.RetryScheduled(state, decision))
            if self._checks_event_loop:
                self.check_event_loop()
            if self._logs and not self._logs_retries():
                event = events.RetryScheduled(state, decision)
                events.notify_one(log_retry, event, None)
            return decision
        if decision is StopReason.NESTED:
            state.nested_state = limit_nested_states(state_of(exhausted))
            warn_if_idle(self.policy, state)
        if decision is StopReason.GAVE_UP:
            detail: str | None = describe_give_up(error, hinted=retryable)
        else:
            detail = describe_limit(self.policy, state, decision, failure)
        state._end(decision, detail)
        return self._give_up(call, decision, failure, error, failed_now=True)

    def record_stop(self, call: RetryCall) -> Exception:
        """End a call whose wait was ended by the policy's event.

        Returns:
            The error to raise.
        """
        failure = call.state._failures[-1]
        error = failure.error if isinstance(failure.error, Exception) else None
        reason = StopReason.STOPPED
        call.state._end(reason)
        return self._give_up(call, reason, failure, error, failed_now=False)

    def kept_failure(self, call: RetryCall) -> Failure | None:
        """Return the last failure if its result is not released yet.

        A call that may be stopped while it waits gives up with that result.
        """
        if not self.can_be_stopped or not call.state._failures:
            return None
        last = call.state._failures[-1]
        return last if last.error is None else None

    def _give_up(
        self,
        call: RetryCall,
        reason: StopReason,
        failure: Failure,
        error: Exception | None,
        *,
        failed_now: bool,
    ) -> Exception:
        """Return the error to raise of a call that has ended."""
        policy, state = self.policy, call.state
        if policy.fallback is not NO_FALLBACK:
            retried = reason not in NEVER_RETRIED
            state.used_fallback = retried and has_value(policy.fallback, failure)
        call.controller = None
        if self._observers or events.process_observers:
            if failed_now:
                self._notify(call, events.AttemptFailed(state, failure))
            self._notify(call, events.GaveUp(state))
        nested = reason is StopReason.NESTED and policy.nested == "raise"
        cause = error.error if isinstance(error, Signal) else error
        final_error = build_final_error(
            "nested" if nested else policy.raises, state, cause
        )
        outer = None if call.before is None else outer_call(call)
        if outer is not None and has_exhausted_retries(state):
            mark_exhausted(final_error, outer)
        return final_error

    def start_next_attempt(self, call: RetryCall, *, waited: bool = True) -> None:
        """Record that the next attempt begins.

        Args:
            call: The call.
            waited: Whether this process has waited for the delay. Others wait for a
                durable job, which may begin before it is due.
        """
        state = call.state
        state._begin_attempt(state.elapsed)
        call.exhausted_marker, call.give_ups_before = None, give_ups.count
        if waited and self.policy.max_attempts is None:
            warn_of_frozen_time(call)
        if self._observers or events.process_observers:
            self._notify(call, events.AttemptStarted(state))

    def record_success(self, call: RetryCall, result: object) -> float | None:
        """Record that the call has its result.

        Returns:
            What its last retry cost the budget; None if there was no retry.
        """
        kind = type(result)
        known = kind is self.plain or self.is_plain(kind)
        if not known and not self.clock.awaited:
            rule = "a function that returns its result directly, under retry"
            reject_awaitable(self._name, result, rule, "decorate it with aretry")
        state = call.state
        call.controller = None
        state._end(StopReason.SUCCEEDED)
        if self._observers or events.process_observers:
            self._notify(call, events.Succeeded(state))
        return state.retry_cost

    def record_interruption(self, call: RetryCall, error: BaseException) -> None:
        """Record that the call was ended by something other than its attempts.

        Cancellation, Ctrl-C, or an `Exception` such as that of `on_result`.
        """
        if call.pending:
            events.discard(call.pending)
        if call.controller is None:
            if call.state.stop_reason is StopReason.STOPPED and self._driven:
                # It was raised anew, by the driver.
                trace = error.__traceback__
                with_traceback(error, trace and trace.tb_next)
            return
        call.controller = None
        # The frames of the error keep the call, and must not keep the other errors.
        state, call.state = call.state, _ENDED
        if state._read_clock is None:
            state._read_clock = self.clock.reader()
        cancelled = not isinstance(error, Exception)
        state._end(StopReason.CANCELLED if cancelled else StopReason.NOT_RETRYABLE)
        if cancelled and state._failures:
            # An outer timeout hides the error that was retried.
            text = f"{state.describe()}; {describe_last_failure(state)}"
            add_note_once(error, text)
        attach_state(error, state)
        self._notify(call, events.GaveUp(state))
        if call.pending:
            events.discard(call.pending)

    def record_suspension(self, call: RetryCall) -> None:
        """Record that the call goes on elsewhere, from its state."""
        call.controller = None
        self._notify(call, events.Suspended(call.state))

    def time_left(self, call: RetryCall) -> float | None:
        """Return the time that calls nested in this one may take, in seconds.

        None if it is unlimited, or cannot be known in this thread.
        """
        limit, state = self._time_limit, call.state
        if limit is None or self.policy.deadline == "overshoot":
            return None
        return None if state._read_clock is None else limit - state.elapsed

    def _logs_retries(self) -> bool:
        """Return whether an observer logs the retries."""
        others = (each.observer for each in events.process_observers[:])
        return any(map(logs_retries, (*self._observers, *others)))

    def _notify(self, call: RetryCall, event: events.Event) -> None:
        if self._awaits_observers and call.pending is None and self._observers:
            call.pending = []
        if self._function is not None:
            event.with_call((self._function, call.args, call.kwargs or {}))
        events.notify(self._observers, event, call.pending)


def _restore_controller(
    policy: "Policy",
    name: str,
    clock: ClockSource[Any],
    resumed: RetryState | None,
    function: Callable[..., Any] | None,
) -> RetryController:
    return RetryController(policy, name, clock, resumed, function=function)


_ENDED: Final = RetryState("", 0, 0.0)
"""Stands for the state of a call that was interrupted."""
