"""The attempts of a retried block of code: the loop and its context managers."""

import sys
from contextlib import suppress
from contextvars import Token
from typing import TYPE_CHECKING, NoReturn, final

from retrykit._internal.clocks import AsyncClock, Clock, ClockSource, sync_clock
from retrykit._internal.tracebacks import keep_context
from retrykit._internal.validation import invalid_setting
from retrykit.errors import Signal
from retrykit.execution.call import Entry, current_entry
from retrykit.execution.ineffective import warn_of_blocking, would_block
from retrykit.execution.manual import ManualCall
from retrykit.policy.policy import Policy
from retrykit.state.retry_state import RetryState

if TYPE_CHECKING:
    from retrykit.execution.attempt_timeout import TimeoutScope

__all__ = ["AsyncLoop", "Attempt", "Loop"]


class _BlockCall:
    """The retried call behind one loop over the attempts of a block."""

    def __init__(
        self,
        policy: Policy,
        name: str,
        state: RetryState | None,
        clock: ClockSource[Clock] | ClockSource[AsyncClock],
        loop: object,
    ) -> None:
        self.call = ManualCall(policy, name, clock, resumed=state, runner=loop)
        # Whether this iteration entered its ``with``; None before the first one.
        # Not a reference to the attempt, which may hold a result.
        self.entered: bool | None = None

    def has_next(self) -> bool:
        """Return whether there is another attempt."""
        if self.entered is False:
            _reject_entry(self.attempt())
        return self.call.running

    def delay(self) -> float | None:
        """Return the delay before this attempt, in seconds; None before the first."""
        if self.entered is None:
            return self.call.start()
        return self.call.next_delay

    def attempt(self) -> "Attempt":
        """Return the attempt of this iteration."""
        self.entered = False
        return Attempt(self, self.call.attempt)


class Loop:
    """Iterator over the attempts of one call, which sleeps between them.

    Only the ``for`` statement refers to it, so an interrupt between two attempts ends
    the call, too.
    """

    def __init__(self, policy: Policy, name: str, state: RetryState | None) -> None:
        self._block = _BlockCall(policy, name, state, sync_clock, self)

    def __iter__(self) -> "Loop":
        return self

    def __next__(self) -> "Attempt":
        block = self._block
        if not block.has_next():
            raise StopIteration
        delay = block.delay()
        if delay is not None:
            if block.call.attempt == 1 and delay > 0 and would_block(sync_clock):
                warn_of_blocking(block.call.state.name)
            try:
                stopped = block.call.pause(delay)
            except BaseException as error:
                block.call.abort(error)
                raise
            if stopped is not None:
                raise stopped
        return block.attempt()


class AsyncLoop:
    """Async iterator over the attempts of one call, as `Loop`."""

    def __init__(self, policy: Policy, name: str, state: RetryState | None) -> None:
        # Imported here: sync code needs no event loop.
        from retrykit._internal.loop_clock import async_clock  # noqa: PLC0415

        self._clock = async_clock
        self._block = _BlockCall(policy, name, state, async_clock, self)

    def __aiter__(self) -> "AsyncLoop":
        return self

    async def __anext__(self) -> "Attempt":
        block = self._block
        if not block.has_next():
            raise StopAsyncIteration
        delay = block.delay()
        if delay is not None:
            try:
                stopped = await block.call.apause(delay)
            except BaseException as error:
                block.call.abort(error)
                raise
            if stopped is not None:
                raise stopped
        return block.attempt()


_NO_RESULT = object()


def _reject_entry(attempt: "Attempt") -> NoReturn:
    """Reject an iteration that does not enter its attempt exactly once."""
    rule = "entered exactly once, in its own iteration"
    raise invalid_setting("attempt", rule, attempt, "write with attempt: in the loop")


@final
class Attempt:
    """One attempt of a retried block; enter it with ``with``.

    Attributes:
        number: Its number, from 1.
        entered: Whether its ``with`` was reached.
    """

    def __init__(self, block: _BlockCall, number: int) -> None:
        self.number = number
        self.entered = False
        self._block = block
        self._result: object = _NO_RESULT
        self._timeout: TimeoutScope | None = None
        self._handled: BaseException | None = None

    @property
    def state(self) -> RetryState:
        """The state of the block's call.

        Raises:
            LookupError: The block is over; `state_of` has the state of the
                error that it gave up with.
        """
        if not self._block.call.running:
            msg = "attempt.state is only available until the block ends"
            raise LookupError(msg)
        return self._block.call.state

    def set_result(self, result: object) -> None:
        """Set the result of this attempt, for the policy's `on_result`."""
        self._result = result

    def __enter__(self) -> "Attempt":
        if self.entered:
            _reject_entry(self)
        self.entered = self._block.entered = True
        self._handled = sys.exception()
        call = self._block.call
        self._token: Token[Entry | None] = call.enter()
        if call.policy.attempt_timeout is not None:
            # Imported here: it needs an event loop, which sync code does not have.
            from retrykit.execution.attempt_timeout import timeout_scope  # noqa: PLC0415

            self._timeout = timeout_scope(call.attempt_time_limit())
            self._timeout.__enter__()
        return self

    def __exit__(
        self, _: object, error: BaseException | None, trace: object, /
    ) -> bool:
        raised = error if self._timeout is None else self._timeout.exit_with(error)
        # An async generator may be left in another context than entered.
        with suppress(ValueError):
            current_entry.reset(self._token)
        if self._handled is not None and isinstance(raised, Signal):
            raised.around = self._handled
        self._handled = None
        if raised is None:
            outcome = self._succeed()
        elif isinstance(raised, Exception):
            outcome = self._fail(raised)
        else:
            self._block.call.abort(raised)
            outcome = raised
        if not isinstance(outcome, BaseException):
            return raised is not None
        if outcome is error:
            return False
        # The final error has this frame in its traceback.
        del error, trace, raised
        with keep_context(outcome):
            try:
                raise outcome
            finally:
                del outcome

    def _succeed(self) -> BaseException | float:
        """Return the delay after a rejected result, the final error, or 0."""
        call, result = self._block.call, self._result
        try:
            if result is _NO_RESULT:
                call.accept()
                return 0.0
            accepted = call.succeed(result)
        except BaseException as fault:
            call.abort(fault)
            raise
        return 0.0 if accepted else self._fail(None, result)

    def _fail(
        self, error: Exception | None, result: object = None
    ) -> BaseException | float:
        call = self._block.call
        try:
            return call.fail(error, result)
        except BaseException as fault:
            call.abort(fault)
            raise

    def __repr__(self) -> str:
        return f"<Attempt {self.number}>"
