"""A block of code that is retried: its turns, and their attempts.

It knows nothing of how a block is written; `retrykit.execution.blocks` does.
"""

import sys
from contextlib import suppress
from contextvars import Token
from types import TracebackType
from typing import NoReturn, final

from retrykit._internal.clocks import (
    AsyncClock,
    Clock,
    ClockSource,
    async_clock,
    sync_clock,
)
from retrykit._internal.validation import invalid_setting
from retrykit.budgets.base import deposit_safely
from retrykit.execution.attempt_timeout import TimeoutScope, timeout_scope
from retrykit.execution.controller import RetryController
from retrykit.execution.nesting import (
    Call,
    attempt_time_limit,
    current_call,
    innermost_running,
    raises_another_error,
)
from retrykit.execution.outcomes import handle_failure
from retrykit.policy.conditions import rejects_result
from retrykit.policy.policy import Policy
from retrykit.state.retry_state import RetryState
from retrykit.state.signals import Signal

__all__ = ["AsyncLoop", "Attempt", "Loop"]


class _Turns:
    """One call that is made turn by turn."""

    def __init__(
        self,
        policy: Policy,
        name: str,
        state: RetryState | None,
        clock: ClockSource[Clock] | ClockSource[AsyncClock],
        loop: object,
    ) -> None:
        book = RetryController(policy, name, clock, state, driven=False, block=loop)
        self.book = book.with_overrides()
        self.call: Call = [
            self.book,
            clock.now(),
            innermost_running(current_call.get()),
        ]
        # Whether the ``with`` of this turn was reached; None before the first. The
        # attempt itself has the turns: it would be kept, and its result too.
        self.entered: bool | None = None

    def pending(self) -> bool:
        """Return whether there is another turn."""
        if self.entered is False:
            _refuse_entry(self.turn())
        return self.call[0] is not None

    def upcoming(self) -> float | None:
        """Return the delay before this turn, in seconds; None before the first."""
        if self.entered is None:
            return self.book.start(self.call)
        return self.book.get_state(self.call).next_delay

    def turn(self) -> "Attempt":
        """Return the attempt of this turn."""
        self.entered = False
        return Attempt(self, self.book.get_state(self.call).attempt)


@final
class Loop:
    """The attempts of a block, one after the other.

    A ``for`` statement has it for as long as it runs, and nothing else does: an
    interrupt that comes where no ``with`` is told of it ends the call, too.
    """

    def __init__(self, policy: Policy, name: str, state: RetryState | None) -> None:
        self._turns = _Turns(policy, name, state, sync_clock, self)

    def __iter__(self) -> "Loop":
        return self

    def __next__(self) -> "Attempt":
        turns = self._turns
        if not turns.pending():
            raise StopIteration
        delay = turns.upcoming()
        if delay is not None:
            try:
                sync_clock.sleep(delay)
            except BaseException as exit_:
                turns.book.record_interruption(turns.call, exit_)
                raise
            turns.book.start_next_attempt(turns.call)
        return turns.turn()


@final
class AsyncLoop:
    """The attempts of a block in a coroutine, one after the other, as in `Loop`."""

    def __init__(self, policy: Policy, name: str, state: RetryState | None) -> None:
        self._turns = _Turns(policy, name, state, async_clock, self)

    def __aiter__(self) -> "AsyncLoop":
        return self

    async def __anext__(self) -> "Attempt":
        turns = self._turns
        if not turns.pending():
            raise StopAsyncIteration
        delay = turns.upcoming()
        if delay is not None:
            try:
                await async_clock.sleep(delay)
            except BaseException as exit_:
                turns.book.record_interruption(turns.call, exit_)
                raise
            turns.book.start_next_attempt(turns.call)
        return turns.turn()


_NOTHING = object()


def _refuse_entry(attempt: "Attempt") -> NoReturn:
    """Refuse a loop that leaves out its ``with``, or repeats it."""
    rule = "entered once in its turn"
    raise invalid_setting("attempt", rule, attempt, "write with attempt: in the loop")


@final
class Attempt:
    """One turn of a retried block; enter it with ``with``.

    Attributes:
        number: Which attempt it is, from 1.
        entered: Whether its ``with`` was reached.
    """

    def __init__(self, turns: _Turns, number: int) -> None:
        self.number = number
        self.entered = False
        self._turns = turns
        self._result: object = _NOTHING
        self._limit: TimeoutScope | None = None
        self._handled: BaseException | None = None

    @property
    def state(self) -> RetryState:
        """The state of the block's call.

        Raises:
            LookupError: The block is over; `state_of` has the state of the
                error that it gave up with.
        """
        if self._turns.call[0] is None:
            msg = "the block is over, and its state is gone with it"
            raise LookupError(msg)
        return self._turns.book.get_state(self._turns.call)

    def set_result(self, result: object) -> None:
        """Name the result of this attempt, for the policy's `on_result`."""
        self._result = result

    def __enter__(self) -> "Attempt":
        if self.entered:
            _refuse_entry(self)
        self.entered = self._turns.entered = True
        self._handled = sys.exception()
        book, call = self._turns.book, self._turns.call
        self._token: Token[Call | None] = current_call.set(call)
        if book.policy.attempt_timeout is not None:
            self._limit = timeout_scope(attempt_time_limit(call))
            self._limit.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> bool:
        left_by = error if self._limit is None else self._limit.exit_with(error)
        # An async generator may be left in another context than entered.
        with suppress(ValueError):
            current_call.reset(self._token)
        if self._handled is not None and isinstance(left_by, Signal):
            left_by.around = self._handled
        self._handled = None
        book, call = self._turns.book, self._turns.call
        if left_by is None:
            self._succeed()
        elif not isinstance(left_by, Exception):
            book.record_interruption(call, left_by)
        elif self._fail(left_by) is not None:
            return True
        out: BaseException | None = (
            call.pop() if raises_another_error(call) else left_by
        )
        if out is None or out is error:
            return False
        # What goes out has this frame in its traceback.
        del error, trace, left_by
        context = out.__context__
        try:
            raise out
        finally:
            BaseException.__setattr__(out, "__context__", context)
            del out, context

    def _succeed(self) -> None:
        book, call = self._turns.book, self._turns.call
        try:
            rejected = self._rejected()
        except BaseException as exit_:
            book.record_interruption(call, exit_)
            raise
        if rejected:
            self._fail(None)
        else:
            paid = book.record_success(call, None)
            if book.policy.budget is not None:
                deposit_safely(book.policy.budget, paid)

    def _fail(self, error: Exception | None) -> float | None:
        book, call = self._turns.book, self._turns.call
        result = self._result if error is None else None
        try:
            return handle_failure(book, call, error, result)
        except BaseException as exit_:
            book.record_interruption(call, exit_)
            raise

    def _rejected(self) -> bool:
        policy = self._turns.book.policy
        if policy.on_result is not None and self._result is _NOTHING:
            suggestion = "call attempt.set_result(value) in the block"
            raise invalid_setting(
                "result", "named where on_result asks", None, suggestion
            )
        return rejects_result(policy, self._result)

    def __repr__(self) -> str:
        return f"<Attempt {self.number}>"
