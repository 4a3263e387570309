"""Controls the lifecycle of retried calls, shared by the sync and async drivers.

The drivers call, sleep and let errors out; all that they write down and all
that they tell is here, so that both do the same.
"""

import inspect
import logging
import weakref
from collections.abc import Sequence
from typing import NoReturn, final

from retrykit._internal import fast_path
from retrykit._internal.clocks import AsyncClock, Clock, Source, task
from retrykit._internal.durations import readable
from retrykit._internal.validation import refuse
from retrykit.execution.nesting import (
    Call,
    close,
    exhausted,
    given_up_with,
    leave_mark,
    opening,
    shortened,
)
from retrykit.execution.opening import open_state
from retrykit.execution.overrides import limits
from retrykit.hints.base import ask, asked_delay
from retrykit.policy.decision import decide
from retrykit.policy.settings import Settings
from retrykit.state import events
from retrykit.state.failures import Judged
from retrykit.state.fault_log import report
from retrykit.state.final_error import attach, ending, state_of
from retrykit.state.retry_state import Failure, RetryState, StopReason
from retrykit.state.signals import RetryAfter, Signal
from retrykit.state.tracebacks import after_timeouts, cut, drop_frames, with_traceback

__all__ = ["Book"]


@final
class Book:
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
        policy: Settings,
        name: str,
        clock: Source[Clock] | Source[AsyncClock],
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
        self.watch: Sequence[object] = (policy,) if watched else fast_path.reasons
        # The type of a result that is not awaitable: those of most calls have one.
        self.plain: type | None = None

    def limited(self) -> "Book":
        """Return the book of a call that begins within the limits of tests."""
        policy = limits.get().applied(self.policy)
        if policy is self.policy:
            return self
        parts = self._name, self._clock, self._resumed
        block = None if self._block is None else self._block()
        return Book(policy, *parts, driven=self._driven, block=block)

    def abandoned(self) -> bool:
        """Return whether the block was left by an interrupt that it did not see."""
        return self._block is not None and self._block() is None

    def state(self, call: Call, *, watched: bool = False) -> RetryState:
        """Return the state of a call, made on first demand."""
        state = call[2]
        if not isinstance(state, RetryState):
            # Threads of the function that ask at once get one state, and so does
            # what asks for it while it is being opened.
            with opening:
                # A call that nobody watches began by the real clock.
                now = self._clock.reader() if watched else self._clock.real_reader()
                opened = open_state(call, self._name, self.policy, self._resumed, now)
                state = call[2] if isinstance(call[2], RetryState) else opened
                call[2] = state
        if state.now is None:
            state.now = self._clock.reader()
        return state

    def begin(self, call: Call) -> float | None:
        """Open the book for a call that is watched, or that goes on.

        Returns:
            What is left of the delay before its next attempt, in seconds;
            None if an attempt begins.
        """
        call[1] = self._clock.now()
        state = self.state(call, watched=True)
        ended = state.failures and state.failures[-1].attempt == state.attempt
        if ended and state.next_delay is None:
            state.begin_attempt()
        if state.next_delay is None:
            if self._observers or events.everyone:
                self._tell(events.AttemptStarted(state))
            return None
        waited = 0.0
        for last in state.failures[-1:]:
            waited = max(state.elapsed - (last.started + last.duration), 0.0)
        return max(state.next_delay - waited, 0.0)

    def judged(
        self,
        call: Call,
        error: Exception | None,
        ruled: StopReason | int | None,
        result: object,
    ) -> Judged:
        """Return what the policy says of a failed attempt; nothing is written.

        Args:
            call: The call.
            error: What the attempt raised; None if its result is refused.
            ruled: What `retrykit.policy.conditions.ruling` says of it.
            result: The result that is refused.
        """
        policy, state = self.policy, call[2]
        if not isinstance(state, RetryState) or state.now is None:
            state = self.state(call)
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
            hint = ask(policy.hint, outcome, error, state.warn)
        try:
            follows = decide(policy, state, attempt, elapsed, error, ruled, hint)
        except Exception as fault:
            if error is None:
                raise
            report(error, fault)
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
                hint if hint is None else asked_delay(hint),
            ),
        )
        return failure, follows, retryable

    def paid(self, call: Call, judged: Judged, cost: float | None) -> Judged:
        """Return what follows where a budget was asked to pay for a retry."""
        failure, follows, retryable = judged
        if isinstance(follows, str):
            return judged
        call[2].paid = cost
        if cost is not None:
            return judged
        return failure._replace(delay=None), StopReason.BUDGET, retryable

    def broken_off(self, call: Call, judged: Judged) -> None:
        """Write down a failed attempt, after which the call is left."""
        state: RetryState = call[2]
        state.record(judged[0]._replace(delay=None))

    def failed(
        self, call: Call, error: Exception | None, judged: Judged
    ) -> float | None:
        """Write down a failed attempt, and what follows.

        Returns:
            What `retrykit.execution.outcomes.fails` returns.
        """
        state: RetryState = call[2]
        failure, follows, _ = judged
        if isinstance(follows, str):
            around = state.around
            self._ended(call, state, failure, follows)
            out = self._let_out(state, error)
            if around and exhausted(state):
                leave_mark(out, around)
            if out is not error:
                call.append(out)
            return None
        state.record(failure)
        if self._observers or events.everyone:
            self._tell(events.AttemptFailed(state, failure))
            self._tell(events.RetryScheduled(state, follows))
        return follows

    def again(self, call: Call) -> None:
        """Write down that the delay is over and an attempt begins."""
        state: RetryState = call[2]
        state.begin_attempt()
        if self.policy.max_attempts is None:
            _check_time_passed(state)
        if self._observers or events.everyone:
            self._tell(events.AttemptStarted(state))

    def succeeded(self, call: Call, result: object) -> float | None:
        """Write down that the call has its result.

        Returns:
            What its last retry had cost the budget; None if it made none.
        """
        if self._clock is not task and hasattr(type(result), "__await__"):
            self._refuse_awaitable(result)
        state = call[2]
        if not isinstance(state, RetryState):
            state = self.state(call)
        close(call)
        state.end(StopReason.SUCCEEDED)
        if self._observers or events.everyone:
            self._tell(events.Succeeded(state))
        return state.paid

    def interrupted(self, call: Call, exit_: BaseException) -> None:
        """Write down that the call is left by what is no failed attempt."""
        left = call[:]
        close(call)
        if not isinstance(left[2], RetryState):
            return
        state = self.state(left)
        cancelled = not isinstance(exit_, Exception)
        state.end(StopReason.CANCELLED if cancelled else StopReason.NOT_RETRYABLE)
        attach(exit_, state)
        self._tell(events.GaveUp(state))

    def left(self, call: Call) -> float | None:
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
            cut(left, state.trace)
        state.trace = left
        # To look at its dict would make one: a pickle has it if it is there.
        return alone and len(_pickled(error)) == _WITHOUT_DICT

    def _nested(
        self, state: RetryState, error: Exception | None, result: object
    ) -> bool:
        """Return whether a call inside of this one has given up with the outcome."""
        if self.policy.outer == "retry":
            return False
        # Who asks for another attempt outright has seen where the error came from.
        deep = not isinstance(error, RetryAfter)
        outcome = result if error is None else error
        found = given_up_with(outcome, state, deep=deep)
        if found is not None:
            state.inner = shortened(state_of(found))
        return found is not None

    def _let_out(self, state: RetryState, error: Exception | None) -> Exception:
        """Build the exception to raise when the call gives up."""
        policy = self.policy
        nested = state.stop_reason is StopReason.NESTED and policy.outer == "raise"
        told = error.error if isinstance(error, Signal) else error
        return ending("nested" if nested else policy.raises, state, told)

    def _ended(
        self, call: Call, state: RetryState, failure: Failure, reason: StopReason
    ) -> None:
        """Write down the last failure, and that the call has ended with it."""
        state.record(failure)
        close(call)
        state.end(reason)
        if self._observers or events.everyone:
            self._tell(events.AttemptFailed(state, failure))
            self._tell(events.GaveUp(state))

    def _refuse_awaitable(self, result: object) -> NoReturn:
        if inspect.iscoroutine(result):
            result.close()
        rule = "a function that gives its result at once, under retry"
        raise refuse(self._name, rule, result, "decorate it with aretry")

    def _tell(self, event: events.Event) -> None:
        events.tell(self._observers, event)


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
    log.warning(message, state.name, readable(last.delay), readable(passed))
