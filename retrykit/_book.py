"""The book that is kept of one call, in whatever colour it runs.

The drivers call, sleep and let errors out; all that they write down and all
that they tell is here, so that both do the same.
"""

import inspect
from collections.abc import Sequence
from typing import NoReturn, final

from retrykit import attention, events
from retrykit._decide import decide
from retrykit._nesting import (
    Call,
    exhausted,
    find,
    leave_mark,
    opening,
)
from retrykit._opening import open_state
from retrykit.checks import refuse
from retrykit.clocks import AsyncClock, Clock, Source, task
from retrykit.conditions import report
from retrykit.failures import Judged
from retrykit.hint import ask, asked_delay
from retrykit.limits import limits
from retrykit.settings import Settings
from retrykit.signals import RetryAfter, Signal
from retrykit.state import Failure, RetryState, StopReason
from retrykit.verdicts import attach, ending, state_of, trim

__all__ = ["Book"]


@final
class Book:
    """What is written down about the calls of one function, and who is told.

    Args:
        policy: The settings that every call is held to.
        name: What the calls are called, where the policy has no name.
        clock: Where their drivers get the time.
        resumed: The state that a call continues, if it began elsewhere.
        driven: Whether a driver calls the function: its frame is then the
            first in the traceback of every error.
    """

    __slots__ = (
        "_clock",
        "_driven",
        "_name",
        "_observers",
        "_resumed",
        "policy",
        "watch",
    )

    def __init__(
        self,
        policy: Settings,
        name: str,
        clock: Source[Clock] | Source[AsyncClock],
        resumed: RetryState | None,
        *,
        driven: bool = True,
    ) -> None:
        self._driven = driven
        self.policy = policy
        self._observers = policy.observers
        self._name = policy.name or name
        self._clock = clock
        self._resumed = resumed
        # What a driver looks at before a call: empty unless it is to be watched.
        watched = policy.observers or policy.on_result or resumed
        self.watch: Sequence[object] = (policy,) if watched else attention.reasons

    def limited(self) -> "Book":
        """Return the book of a call that begins within the limits of tests."""
        policy = limits.get().applied(self.policy)
        if policy is self.policy:
            return self
        parts = self._name, self._clock, self._resumed
        return Book(policy, *parts, driven=self._driven)

    def state(self, call: Call, *, watched: bool = False) -> RetryState:
        """Return the state of a call, made on first demand."""
        if not isinstance(call[2], RetryState):
            # Threads of the function that ask at once get one state, and so does
            # what asks for it while it is being opened.
            with opening:
                # A call that nobody watches began by the real clock.
                now = self._clock.reader() if watched else self._clock.real_reader()
                opened = open_state(call, self._name, self.policy, self._resumed, now)
                if not isinstance(call[2], RetryState):
                    call[2] = opened
        state: RetryState = call[2]
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
            ruled: What `retrykit.conditions.ruling` says of it.
            result: The result that is refused.
        """
        policy, state = self.policy, call[2]
        if not isinstance(state, RetryState) or state.now is None:
            state = self.state(call)
        if error is not None:
            self._trim(state, error)
        now, attempt, started = state.now, state.attempt, state.attempt_started
        elapsed = now() - state.origin if now else state.elapsed
        # A reason is a text, which is found out sooner than an enumeration.
        hint, retryable = None, not isinstance(ruled, str)
        if retryable and state.mark is not None and self._nested(state, error, result):
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
        failure = Failure(
            attempt,
            error.error if isinstance(error, Signal) else error,
            result,
            started,
            elapsed - started,
            None if isinstance(follows, str) else follows,
            None if isinstance(ruled, str) else ruled,
            hint if hint is None else asked_delay(hint),
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
            What `retrykit._outcomes.fails` returns.
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
        if self._observers or events.everyone:
            self._tell(events.AttemptStarted(state))

    def succeeded(self, call: Call, result: object) -> float | None:
        """Write down that the call has its result.

        Returns:
            What its last retry had cost the budget; None if it made none.
        """
        if self._clock is not task and hasattr(type(result), "__await__"):
            self._refuse_awaitable(result)
        state: RetryState = call[2]
        state.end(StopReason.SUCCEEDED)
        call.clear()
        if self._observers or events.everyone:
            self._tell(events.Succeeded(state))
        return state.paid

    def interrupted(self, call: Call, exit_: BaseException) -> None:
        """Write down that the call is left by what is no failed attempt."""
        if not call or not isinstance(call[2], RetryState):
            call.clear()
            return
        state = self.state(call)
        cancelled = not isinstance(exit_, Exception)
        state.end(StopReason.CANCELLED if cancelled else StopReason.NOT_RETRYABLE)
        attach(exit_, state)
        call.clear()
        self._tell(events.GaveUp(state))

    def left(self, call: Call) -> float | None:
        """Return how long calls inside of this one may wait, in seconds.

        None if that is unlimited, or cannot be known in this thread.
        """
        policy, state = self.policy, call[2]
        if policy.max_elapsed is None or policy.deadline == "overshoot":
            return None
        if isinstance(state, RetryState):
            return policy.max_elapsed - state.elapsed
        now = self._clock.real_reader()
        return None if now is None else policy.max_elapsed - (now() - call[1])

    def _trim(self, state: RetryState, error: Exception) -> None:
        last = state.failures[-1].error if state.failures else None
        timed = self.policy.attempt_timeout is not None
        state.trace = trim(error, last, state.trace, driven=self._driven, timed=timed)

    def _nested(self, state: RetryState, error: object, result: object) -> bool:
        """Return whether a call inside of this one has given up with the outcome."""
        if self.policy.outer == "retry":
            return False
        # Who asks for another attempt outright has seen where the error came from.
        outcome = result if error is None else error
        found = find(outcome, state.mark, deep=not isinstance(error, RetryAfter))
        if found is not None:
            state.inner = state_of(found)
        return found is not None

    def _let_out(self, state: RetryState, error: Exception | None) -> Exception:
        """Return what a call lets out that has given up, with all that it bears."""
        policy = self.policy
        nested = state.stop_reason is StopReason.NESTED and policy.outer == "raise"
        told = error.error if isinstance(error, Signal) else error
        return ending("nested" if nested else policy.raises, state, told)

    def _ended(
        self, call: Call, state: RetryState, failure: Failure, reason: StopReason
    ) -> None:
        """Write down the last failure, and that the call has ended with it."""
        state.record(failure)
        state.end(reason)
        call.clear()
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
