"""Controls the lifecycle of retried calls, shared by the sync and async drivers.

The drivers call, sleep and let errors out; all that they write down and all
that they tell is here, so that both do the same.
"""

import inspect
import logging
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, final

from retrykit._internal import fast_path
from retrykit._internal.clocks import AsyncClock, Clock, ClockSource, async_clock
from retrykit._internal.durations import format_duration
from retrykit._internal.validation import invalid_setting
from retrykit.execution.nesting import (
    Call,
    close,
    find_exhausted,
    has_exhausted_retries,
    limit_nested_states,
    mark_exhausted,
    state_lock,
)
from retrykit.execution.opening import new_state
from retrykit.execution.overrides import retry_overrides
from retrykit.hints.base import read_hint, requested_delay
from retrykit.policy.decision import decide
from retrykit.state import events
from retrykit.state.failures import Evaluation
from retrykit.state.fault_log import note_policy_fault
from retrykit.state.final_error import attach_state, build_final_error, state_of
from retrykit.state.retry_state import Failure, RetryState, StopReason
from retrykit.state.signals import RetryAfter, Signal
from retrykit.state.tracebacks import (
    after_timeouts,
    drop_frames,
    trim_traceback,
    with_traceback,
)

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["RetryController"]


@final
class RetryController:
    """Records and reports the calls of one function.

    Args:
        policy: The settings that every call is held to.
        name: What the calls are called, where the policy has no name.
        clock: Where their drivers get the time.
        resumed: The state that a call continues, if it began elsewhere.
        driven: Whether a driver calls the function: its frame is then the
            first in the traceback of every error.
        block: What lives no longer than the block of code that is a call, such
            as the iterator of its loop.
    """

    __slots__ = (
        "_block",
        "_clock",
        "_driven",
        "_name",
        "_observers",
        "_resumed",
        "_timed",
        "_whole",
        "plain",
        "policy",
        "watch",
    )

    def __init__(  # noqa: PLR0913  what every call of a function has in common
        self,
        policy: "Policy",
        name: str,
        clock: ClockSource[Clock] | ClockSource[AsyncClock],
        resumed: RetryState | None,
        *,
        driven: bool = True,
        block: object = None,
    ) -> None:
        self._driven = driven
        self._block = None if block is None else weakref.ref(block)
        self.policy = policy
        self._observers = policy.observers
        self._name = policy.name or name
        self._clock = clock
        self._resumed = resumed
        self._timed = policy.attempt_timeout is not None
        self._whole = policy.keep_tracebacks or policy.raises == "group"
        # What a driver looks at before a call: empty unless it is to be watched.
        watched = policy.observers or policy.on_result or resumed
        self.watch: Sequence[object] = (policy,) if watched else fast_path.blockers
        # The type of a result that is not awaitable: those of most calls have one.
        self.plain: type | None = None

    def with_overrides(self) -> "RetryController":
        """Return the book of a call that begins within the limits of tests."""
        policy = retry_overrides.get().apply_to(self.policy)
        if policy is self.policy:
            return self
        parts = self._name, self._clock, self._resumed
        block = None if self._block is None else self._block()
        return RetryController(policy, *parts, driven=self._driven, block=block)

    def abandoned(self) -> bool:
        """Return whether the block was left by an interrupt that it did not see."""
        return self._block is not None and self._block() is None

    def get_state(self, call: Call, *, watched: bool = False) -> RetryState:
        """Return the state of a call, made on first demand."""
        state = call[2]
        if not isinstance(state, RetryState):
            # Threads of the function that ask at once get one state, and so does
            # what asks for it while it is being opened.
            with state_lock:
                # A call that nobody watches began by the real clock.
                now = self._clock.reader() if watched else self._clock.real_reader()
                opened = new_state(call, self._name, self.policy, self._resumed, now)
                state = call[2] if isinstance(call[2], RetryState) else opened
                call[2] = state
        if state.now is None:
            state.now = self._clock.reader()
        return state

    def start(self, call: Call) -> float | None:
        """Open the book for a call that is watched, or that goes on.

        Returns:
            What is left of the delay before its next attempt, in seconds;
            None if an attempt begins.
        """
        call[1] = self._clock.now()
        state = self.get_state(call, watched=True)
        ended = state.failures and state.failures[-1].attempt == state.attempt
        if ended and state.next_delay is None:
            state.begin_attempt()
        if state.next_delay is None:
            if self._observers or events.process_observers:
                self._notify(events.AttemptStarted(state))
            return None
        waited = 0.0
        for last in state.failures[-1:]:
            waited = max(state.elapsed - (last.started + last.duration), 0.0)
        return max(state.next_delay - waited, 0.0)

    def evaluate_failure(
        self,
        call: Call,
        error: Exception | None,
        ruled: StopReason | int | None,
        result: object,
    ) -> Evaluation:
        """Return what the policy says of a failed attempt; nothing is written.

        Args:
            call: The call.
            error: What the attempt raised; None if its result is refused.
            ruled: What `retrykit.policy.conditions.match_error` says of it.
            result: The result that is refused.
        """
        policy, state = self.policy, call[2]
        if not isinstance(state, RetryState) or state.now is None:
            state = self.get_state(call)
        bare = error is not None and self._trim(state, error)
        now, attempt, started = state.now, state.attempt, state.attempt_started
        elapsed = now() - state.origin if now else state.elapsed
        # A reason is a text, which is found out sooner than an enumeration.
        hint, retryable = None, not isinstance(ruled, str)
        if retryable and not bare and self._nested(state, error, result):
            # To a budget, what the inner call was told of is no new failure.
            ruled, retryable = StopReason.NESTED, False
        elif policy.hint is not None and retryable and not isinstance(error, Signal):
            outcome = result if error is None else error
            hint = read_hint(policy.hint, outcome, error, state.warn)
        try:
            follows = decide(policy, state, attempt, elapsed, error, ruled, hint)
        except Exception as fault:
            if error is None:
                raise
            note_policy_fault(error, fault)
            follows = StopReason.NOT_RETRYABLE
        failure = _new(
            Failure,
            (
                attempt,
                error.error if isinstance(error, Signal) else error,
                result,
                started,
                elapsed - started,
                None if isinstance(follows, str) else follows,
                ruled if retryable else None,
                hint if hint is None else requested_delay(hint),
            ),
        )
        return failure, follows, retryable

    def apply_budget(
        self, call: Call, judged: Evaluation, cost: float | None
    ) -> Evaluation:
        """Return what follows where a budget was asked to pay for a retry."""
        failure, follows, retryable = judged
        if isinstance(follows, str):
            return judged
        call[2].retry_cost = cost
        if cost is not None:
            return judged
        return failure._replace(delay=None), StopReason.BUDGET, retryable

    def record_abandoned(self, call: Call, judged: Evaluation) -> None:
        """Write down a failed attempt, after which the call is left."""
        state: RetryState = call[2]
        state.record(judged[0]._replace(delay=None))

    def record_failure(
        self, call: Call, error: Exception | None, judged: Evaluation
    ) -> float | None:
        """Write down a failed attempt, and what follows.

        Returns:
            What `retrykit.execution.outcomes.handle_failure` returns.
        """
        state: RetryState = call[2]
        failure, follows, _ = judged
        if isinstance(follows, str):
            around = state.around
            self._finish(call, state, failure, follows)
            out = self._build_final_error(state, error)
            if around and has_exhausted_retries(state):
                mark_exhausted(out, around)
            if out is not error:
                call.append(out)
            return None
        state.record(failure)
        if self._observers or events.process_observers:
            self._notify(events.AttemptFailed(state, failure))
            self._notify(events.RetryScheduled(state, follows))
        return follows

    def start_next_attempt(self, call: Call) -> None:
        """Write down that the delay is over and an attempt begins."""
        state: RetryState = call[2]
        state.begin_attempt()
        if self.policy.max_attempts is None:
            _check_time_passed(state)
        if self._observers or events.process_observers:
            self._notify(events.AttemptStarted(state))

    def record_success(self, call: Call, result: object) -> float | None:
        """Write down that the call has its result.

        Returns:
            What its last retry had cost the budget; None if it made none.
        """
        if self._clock is not async_clock and hasattr(type(result), "__await__"):
            self._refuse_awaitable(result)
        state = call[2]
        if not isinstance(state, RetryState):
            state = self.get_state(call)
        close(call)
        state.end(StopReason.SUCCEEDED)
        if self._observers or events.process_observers:
            self._notify(events.Succeeded(state))
        return state.retry_cost

    def record_interruption(self, call: Call, exit_: BaseException) -> None:
        """Write down that the call is left by what is no failed attempt."""
        left = call[:]
        close(call)
        if not isinstance(left[2], RetryState):
            return
        state = self.get_state(left)
        cancelled = not isinstance(exit_, Exception)
        state.end(StopReason.CANCELLED if cancelled else StopReason.NOT_RETRYABLE)
        attach_state(exit_, state)
        self._notify(events.GaveUp(state))

    def time_left(self, call: Call) -> float | None:
        """Return how long calls inside of this one may wait, in seconds.

        None if that is unlimited, or cannot be known in this thread.
        """
        policy, state = self.policy, call[2]
        if policy.max_elapsed is None or policy.deadline == "overshoot":
            return None
        if isinstance(state, RetryState) and state.now is not None:
            return policy.max_elapsed - state.elapsed
        now = self._clock.real_reader()
        return None if now is None else policy.max_elapsed - (now() - call[1])

    def _trim(self, state: RetryState, error: Exception) -> bool:
        """Cut off of tracebacks what says nothing, and let go of the last one.

        Returns:
            Whether the error is bare: no other belongs to it, and nothing hangs on
            it, as the state of a call that has given up does.
        """
        alone = error.__context__ is None and error.__cause__ is None
        alone = alone and not isinstance(error, BaseExceptionGroup)
        last = None
        if state.failures:
            before = state.failures[-1]
            last = before.error
            if isinstance(last, Exception) and last is not error and not self._whole:
                places = drop_frames(last, None if alone else error)
                state.places += ((before.attempt, places),)
        left = error.__traceback__
        if self._driven and left is not None:
            left = left.tb_next
            if self._timed:
                left = after_timeouts(left)
            with_traceback(error, left)
        if last is error:
            trim_traceback(left, state.trace)
        state.trace = left
        # To look at its dict would make one: a pickle has it if it is there.
        return alone and len(_pickled(error)) == _WITHOUT_DICT

    def _nested(
        self, state: RetryState, error: Exception | None, result: object
    ) -> bool:
        """Return whether a call inside of this one has given up with the outcome."""
        if self.policy.nested == "retry":
            return False
        # Who asks for another attempt outright has seen where the error came from.
        deep = not isinstance(error, RetryAfter)
        outcome = result if error is None else error
        found = find_exhausted(outcome, state, deep=deep)
        if found is not None:
            state.nested_state = limit_nested_states(state_of(found))
        return found is not None

    def _build_final_error(
        self, state: RetryState, error: Exception | None
    ) -> Exception:
        """Build the exception to raise when the call gives up."""
        policy = self.policy
        nested = state.stop_reason is StopReason.NESTED and policy.nested == "raise"
        told = error.error if isinstance(error, Signal) else error
        return build_final_error("nested" if nested else policy.raises, state, told)

    def _finish(
        self, call: Call, state: RetryState, failure: Failure, reason: StopReason
    ) -> None:
        """Write down the last failure, and that the call has ended with it."""
        state.record(failure)
        close(call)
        state.end(reason)
        if self._observers or events.process_observers:
            self._notify(events.AttemptFailed(state, failure))
            self._notify(events.GaveUp(state))

    def _refuse_awaitable(self, result: object) -> NoReturn:
        if inspect.iscoroutine(result):
            result.close()
        rule = "a function that gives its result at once, under retry"
        raise invalid_setting(self._name, rule, result, "decorate it with aretry")

    def _notify(self, event: events.Event) -> None:
        events.notify(self._observers, event)


# Of its base, since the class of the error may have its own.
_pickled = BaseException.__reduce__
# The parts that a pickle of an error has, if nothing was ever hung on it.
_WITHOUT_DICT = 2

# As ``Failure(...)`` does it, without a function in between.
_new = tuple.__new__

# Shorter delays may seem to take no time, by clocks that tick seldom.
_NOTICED = 0.1


def _check_time_passed(state: RetryState) -> None:
    """Warn of a sleep that took no time: only time would end such a call."""
    last = state.failures[-1] if state.failures else None
    if last is None:
        return
    passed = state.attempt_started - last.started - last.duration
    if last.delay is None or last.delay < max(_NOTICED, 2 * passed) or state.warn():
        return
    log = logging.getLogger("retrykit")
    message = "%s waits %s for its next attempt, and the clock shows only %s: is "
    message += "sleep replaced, or time frozen? Without max_attempts it is called "
    message += "until its time is over; retrykit.testing.virtual_time moves that too"
    log.warning(
        message, state.name, format_duration(last.delay), format_duration(passed)
    )
