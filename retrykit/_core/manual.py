"""A call driven step by step, for code that makes the attempts itself."""

from contextvars import Token
from typing import TYPE_CHECKING, Any, final

from retrykit._core import events
from retrykit._core.call import (
    OWNER,
    START,
    Entry,
    RetryCall,
    attempt_time_limit,
    current_entry,
    innermost_running,
)
from retrykit._core.call_record import give_ups
from retrykit._core.controller import RetryController
from retrykit._core.final_error import check_no_fallback
from retrykit._core.ineffective import warn_once
from retrykit._core.retry_state import RetryState
from retrykit._core.steps import (
    abegin,
    ahandle_failure,
    ahandle_result,
    apause,
    begin,
    handle_failure,
    handle_result,
    pause,
)
from retrykit._internal.clocks import AsyncClock, Clock, ClockSource

if TYPE_CHECKING:
    from retrykit._core.policy import Policy

__all__ = ["ManualCall"]


@final
class ManualCall:
    """One retried call: `start`, then `succeed` or `fail`, then `next`, and so on.

    `begin` and `pause` replace `start` and `next` where this process waits for delays
    and limits. Code within the attempts of the call belongs between `enter` and the
    reset of the token that it returns. If a step raises, or an attempt is interrupted,
    `abort` ends the call. After the end no other step may follow.

    Args:
        policy: The policy of the call.
        name: The name of the call, if the policy has none.
        clock: The clock of the call.
        resumed: The state to continue, or None.
        driven: Whether the caller's frame is the first one in tracebacks, and is
            removed from them.
        runner: The loop of a retried block, or the attempt of a job; the call ends
            when it is gone. Referred to weakly.

    Attributes:
        policy: The policy, changed by the overrides of tests if there are any.
    """

    __slots__ = ("_call", "_controller", "_entry", "policy")

    def __init__(  # noqa: PLR0913  all that a driver knows of a call
        self,
        policy: "Policy",
        name: str,
        clock: ClockSource[Clock] | ClockSource[AsyncClock],
        *,
        resumed: RetryState | None = None,
        driven: bool = False,
        runner: object = None,
    ) -> None:
        check_no_fallback(policy)
        controller = RetryController(
            policy, name, clock, resumed, driven=driven, runner=runner
        )
        before, read_clock = innermost_running(current_entry.get()), clock.real_reader()
        # It may begin before there is an event loop.
        started = 0.0 if read_clock is None else read_clock()
        self._entry: Entry = [controller, started, before, give_ups.count]
        # As in a driver, most calls end before anybody needs their state.
        self._call: RetryCall | None = None
        if controller.watch or read_clock is None:
            controller = controller.with_overrides()
            self._call = controller.begin(self._entry)
        self._controller, self.policy = controller, controller.policy

    @property
    def running(self) -> bool:
        """True until the call has ended."""
        return self._entry[0] is not None

    @property
    def state(self) -> RetryState:
        """The state of the running call."""
        return self._ensure_call().state

    @property
    def attempt(self) -> int:
        """Number of the running or last attempt, from 1."""
        return 1 if self._call is None else self._call.attempt

    @property
    def next_delay(self) -> float | None:
        """The delay before the next attempt, in seconds; None if none is scheduled."""
        return None if self._call is None else self._call.next_delay

    def start(self) -> float | None:
        """Begin the call, without asking limits.

        Returns:
            The remaining delay of a resumed call, in seconds, after which `next` is
            due; None if an attempt begins.
        """
        if self._call is None:
            return None
        delay = self._controller.resumed_delay(self._call)
        if delay is None:
            self._controller.start(self._call)
        return delay

    def begin(self) -> Exception | None:
        """Wait for a resumed call's remaining delay or for limits; begin an attempt.

        Returns:
            None, or the error to raise if the call has ended already.
        """
        if self._call is None:
            return None
        outcome = begin(self._controller, self._call)
        return None if outcome is None else self._end_with(outcome)

    async def abegin(self) -> Exception | None:
        """Wait, and begin an attempt, as `begin` does."""
        if self._call is None:
            return None
        outcome = await abegin(self._controller, self._call)
        return None if outcome is None else self._end_with(outcome)

    def enter(self) -> Token[Entry | None]:
        """Make this the current call; reset `current_entry` with the token."""
        return current_entry.set(self._entry)

    def attempt_time_limit(self) -> float:
        """Return the time limit of the attempt that begins, in seconds."""
        return attempt_time_limit(self._ensure_call())

    def fail(self, error: Exception | None, result: object = None) -> float | Exception:
        """Handle a failed attempt.

        Args:
            error: The error that it raised; None if its result was rejected.
            result: The rejected result.

        Returns:
            The delay before `next`, in seconds; or the error to raise, which may be
            *error* itself, if the call has given up.
        """
        call = self._ensure_call()
        # Conditions and hints may ask for the current call, as in a function.
        token = self.enter()
        try:
            ended = handle_failure(self._controller, call, error, result)
        finally:
            current_entry.reset(token)
        outcome: float | Exception = self._end_with(ended)
        return outcome

    async def afail(
        self, error: Exception | None, result: object = None
    ) -> float | Exception:
        """Handle a failed attempt, as `fail` does."""
        call = self._ensure_call()
        token = self.enter()
        try:
            ended = await ahandle_failure(self._controller, call, error, result)
        finally:
            current_entry.reset(token)
        outcome: float | Exception = self._end_with(ended)
        return outcome

    def accept(self) -> None:
        """End the call as a success that has no result to judge."""
        policy, controller = self.policy, self._controller
        stateless = self._entry[OWNER] is controller
        if stateless and not controller.judges and policy.budget is None:
            self._end()
            return
        call = self._ensure_call()
        # A predicate of a client matches its errors as well.
        judges = controller.judges and policy.on is not policy.on_result
        if judges and all(each.error is not None for each in call.failures):
            message = "%s: on_result had no result to judge; hand it over by "
            warn_once(call.terms.name, message + "attempt.set_result(...)")
        controller.judges = ()
        self.succeed(None)

    def succeed(self, result: object) -> bool:
        """Return whether a result is accepted; if so, end the call with it."""
        call = self._ensure_call()
        token = self.enter()
        try:
            accepted = handle_result(self._controller, call, result)
        finally:
            current_entry.reset(token)
        if accepted:
            self._end()
        return accepted

    async def asucceed(self, result: object) -> bool:
        """Return whether a result is accepted, as `succeed` does."""
        call = self._ensure_call()
        token = self.enter()
        try:
            accepted = await ahandle_result(self._controller, call, result)
        finally:
            current_entry.reset(token)
        if accepted:
            self._end()
        return accepted

    def pause(self, delay: float) -> Exception | None:
        """Wait for a delay in seconds, and begin the next attempt.

        Returns:
            None; or the error to raise, if a limit or the policy's `stop_event` ended
            the call.
        """
        outcome = pause(self._controller, self._ensure_call(), delay)
        return None if outcome is None else self._end_with(outcome)

    async def apause(self, delay: float) -> Exception | None:
        """Wait for a delay, and begin the next attempt, as `pause` does."""
        outcome = await apause(self._controller, self._ensure_call(), delay)
        return None if outcome is None else self._end_with(outcome)

    def next(self) -> None:
        """Begin the next attempt at once, since its delay has passed elsewhere."""
        self._controller.start_next_attempt(self._ensure_call(), waited=False)

    def suspend(self) -> None:
        """End the call here; it is resumed elsewhere from its state."""
        call = self._ensure_call()
        self._controller.record_suspension(call)
        self._end()

    async def asuspend(self) -> None:
        """End the call here, as `suspend` does."""
        call = self._ensure_call()
        self._controller.record_suspension(call)
        if call.pending:
            await events.deliver(call.pending)
        self._end()

    def abort(self, error: BaseException) -> None:
        """End the call with an error that is not retried, unless it has ended."""
        if self.running:
            self._controller.record_interruption(self._ensure_call(), error)
            self._end()

    def _ensure_call(self) -> RetryCall:
        """Return the `RetryCall`, created if nobody has needed it before."""
        if self._call is None:
            self._call = self._controller.ensure_call(self._entry)
        return self._call

    def _end_with(self, outcome: object) -> Any:
        """Return the outcome of a step, and end the call if it is an error."""
        if isinstance(outcome, Exception):
            self._end()
        return outcome

    def _end(self) -> None:
        """Release the call, since contexts that outlive it keep its entry."""
        if self._call is None:
            self._entry[START] = self._entry[OWNER] = None
        else:
            self._call.release()
            self._call = None
