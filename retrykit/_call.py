"""The book that is kept of one call, in whatever colour it runs.

The drivers call, sleep and let errors out; all that they write down and all
that they tell is here, so that both do the same.
"""

import inspect
import os
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from types import TracebackType
from typing import Any, NoReturn, final

from retrykit import attention, events
from retrykit._decide import decide
from retrykit.checks import refuse
from retrykit.clocks import AsyncClock, Clock, Source, task, wall
from retrykit.conditions import report
from retrykit.jitter import new_seed
from retrykit.limits import limits
from retrykit.settings import Settings
from retrykit.signals import Signal
from retrykit.state import Failure, RetryState, StopReason
from retrykit.verdicts import attach, ending

__all__ = ["Book", "Call", "current", "current_state"]

Call = list[Any]
"""A call while it runs: [its book, clock reading at its start, its state].

A list, because nothing is cheaper to make and most calls need nothing more:
the state is None until an attempt fails or somebody asks for it. The list of
a call that has ended is empty, so that nothing keeps its errors.
"""

current: ContextVar[Call] = ContextVar("retrykit call")
"""The innermost retried call of this context."""


def current_state() -> RetryState:
    """Return the state of the retried call that this code runs in.

    >>> from retrykit import Policy
    >>> Policy().call(lambda: current_state().attempt)
    1

    Returns:
        The state of the innermost call: the number of the attempt, the
        failures so far, the time that remains. It changes as the call goes on.
        Use it in place: a local variable that holds it holds the errors, they
        hold the frames of their attempts, and those such a variable, until
        the garbage collector runs.

    Raises:
        LookupError: No retried call runs in this context.
    """
    call = current.get([])
    try:
        book: Book = call[0]
        return book.state(call)
    except IndexError:
        msg = "current_state() is for functions that are being retried; none is"
        raise LookupError(msg) from None


def _cut(trace: TracebackType | None, old: TracebackType | None) -> None:
    """Cut off what an error that is raised again still has from its last time.

    Python puts the new traceback before the old one: an error object that is
    raised at every attempt would keep the frames of all of them.
    """
    while trace is not None and trace.tb_next is not old:
        trace = trace.tb_next
    if trace is not None:
        trace.tb_next = None


# A signal handler or a finaliser in the middle of it may make calls of its own,
# and a fork must not copy it while another thread has it.
_opening = threading.RLock()
if hasattr(os, "register_at_fork"):  # pragma: no branch  (Windows has no fork)
    os.register_at_fork(
        before=_opening.acquire,
        after_in_parent=_opening.release,
        after_in_child=_opening.release,
    )


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
        state: RetryState | None = call[2]
        if state is None:
            # Threads of the function that ask at once get one state, and so does
            # what asks for it while it is being opened.
            with _opening:
                # A call that nobody watches began by the real clock.
                now = self._clock.reader() if watched else self._clock.real_reader()
                opened = self._opened(call[1], now)
                earlier: RetryState | None = call[2]
                state = call[2] = earlier or opened
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
            self._tell(events.AttemptStarted(state))
            return None
        waited = 0.0
        for last in state.failures[-1:]:
            waited = max(state.elapsed - (last.started + last.duration), 0.0)
        return max(state.next_delay - waited, 0.0)

    def failed(
        self,
        call: Call,
        error: Exception | None,
        refusal: StopReason | None,
        result: object = None,
    ) -> float | None:
        """Write down an error, or a result that is refused.

        Returns:
            The delay before the next attempt, in seconds. None if the call has
            ended: what it lets out is then the one thing left in *call*, and
            the error itself if there is nothing.
        """
        state: RetryState | None = call[2]
        if state is None or state.now is None:
            state = self.state(call)
        now, failures = state.now, state.failures
        elapsed = now() - state.origin if now else state.elapsed
        if error is not None:
            trace = error.__traceback__
            if self._driven and trace is not None:
                # The driver's own frame says nothing to a reader.
                trace = trace.tb_next
                error.with_traceback(trace)
            if failures and failures[-1].error is error:
                _cut(trace, state.trace)
            state.trace = trace
        attempt, started = state.attempt, state.attempt_started
        try:
            follows = decide(self.policy, state, attempt, elapsed, error, refusal)
        except Exception as fault:
            if error is None:
                raise
            report(error, fault)
            follows = StopReason.NOT_RETRYABLE
        told = error.error if isinstance(error, Signal) else error
        taken = elapsed - started
        if isinstance(follows, str):
            failure = Failure(attempt, told, result, started, taken, None)
            self._ended(call, state, failure, follows)
            out = ending(self.policy.raises, state, told)
            if out is not error:
                call.append(out)
            return None
        failure = Failure(attempt, told, result, started, taken, follows)
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

    def succeeded(self, call: Call, result: object) -> None:
        """Write down that the call has its result."""
        if self._clock is not task and hasattr(type(result), "__await__"):
            self._refuse_awaitable(result)
        state: RetryState = call[2]
        state.end(StopReason.SUCCEEDED)
        call.clear()
        if self._observers or events.everyone:
            self._tell(events.Succeeded(state))

    def interrupted(self, call: Call, exit_: BaseException) -> None:
        """Write down that the call is left by what is no failed attempt."""
        if not call or call[2] is None:
            call.clear()
            return
        state = self.state(call)
        cancelled = not isinstance(exit_, Exception)
        state.end(StopReason.CANCELLED if cancelled else StopReason.NOT_RETRYABLE)
        attach(exit_, state)
        call.clear()
        self._tell(events.GaveUp(state))

    def _opened(self, started: float, now: Callable[[], float] | None) -> RetryState:
        policy, resumed = self.policy, self._resumed
        if resumed is not None:
            # It goes on from the time that it had spent before.
            origin = started - resumed.spent
            return replace(
                resumed,
                stop_reason=None,
                max_elapsed=policy.max_elapsed,
                max_failures=policy.max_failures,
                now=now,
                origin=origin,
            )
        return RetryState(
            self._name,
            new_seed() if policy.seed is None else policy.seed,
            wall() - (now() - started) if now else wall(),
            policy.max_elapsed,
            policy.max_failures,
            now=now,
            origin=started,
        )

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
