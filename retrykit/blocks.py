"""The block form, for code that is no function of its own.

A block is left by what it raises, like any other: only an error that is
retried stays inside.
"""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from contextvars import Token
from types import TracebackType
from typing import NoReturn, Unpack, final

from retrykit._call import Book, Call, current
from retrykit.callables import check_colour, check_resumable
from retrykit.checks import instance, refuse
from retrykit.clocks import AsyncClock, Clock, Source, task, thread
from retrykit.conditions import refusal, rejects
from retrykit.policy import Policy
from retrykit.settings import Changes
from retrykit.state import RetryState

__all__ = ["AsyncAttempts", "Attempt", "Attempts", "aretrying", "retrying"]


def retrying(
    policy: Policy | None = None,
    /,
    *,
    state: RetryState | None = None,
    **changes: Unpack[Changes],
) -> "Attempts":
    """Retry a block of code: one turn of the loop is one attempt.

    >>> numbers = iter([0, 0, 4])
    >>> for attempt in retrying(Policy(schedule=[0, 0], on=ZeroDivisionError)):
    ...     with attempt:
    ...         quotient = 8 / next(numbers)
    >>> attempt.number, quotient
    (3, 2.0)

    Args:
        policy: What the block is held to; `Policy()` by default. Its name is
            what logs call the block; by default, the function around it.
        state: The state to go on from, of a block that was interrupted.
        **changes: Settings that differ from the policy, as for `Policy`.

    Returns:
        An iterable of attempts, each to be entered with ``with``. Every loop
        over it is a call of its own.

    Raises:
        ConfigError: A setting is wrong, or a predicate is async: ``with`` cannot
            await it.
    """
    return Attempts(policy, changes, _caller(), state)


def aretrying(
    policy: Policy | None = None,
    /,
    *,
    state: RetryState | None = None,
    **changes: Unpack[Changes],
) -> "AsyncAttempts":
    """Retry a block of code in a coroutine: ``async for``, then ``with``.

    >>> import asyncio
    >>> async def divide():
    ...     async for attempt in aretrying():
    ...         with attempt:
    ...             return 8 / 4
    >>> asyncio.run(divide())
    2.0

    Args:
        policy: What the block is held to, as for `retrying`.
        state: The state to go on from, of a block that was interrupted.
        **changes: Settings that differ from the policy, as for `Policy`.

    Returns:
        An async iterable of attempts, each to be entered with ``with``. Every
        loop over it is a call of its own.

    Raises:
        ConfigError: A setting is wrong, or a predicate is async: ``with`` cannot
            await it.
    """
    return AsyncAttempts(policy, changes, _caller(), state)


class _Block:
    """What a block is held to, whatever its colour."""

    def __init__(
        self,
        policy: Policy | None,
        changes: Changes,
        name: str,
        state: RetryState | None,
    ) -> None:
        held = Policy() if policy is None else instance("policy", policy, Policy)
        held = held.replace(**changes)
        way_out = "put the block into a function under aretry"
        check_colour(held, awaited=False, way_out=way_out)
        if state is not None:
            check_resumable(state)
        self._parts = held, name, state

    def __repr__(self) -> str:
        policy, name, _ = self._parts
        return f"<{type(self).__name__} of {name}, {policy!r}>"


@final
class Attempts(_Block):
    """The attempts of a block, afresh for every loop."""

    def __iter__(self) -> Iterator["Attempt"]:
        return _Loop(*self._parts, thread)


@final
class AsyncAttempts(_Block):
    """The attempts of a block in a coroutine, afresh for every loop."""

    def __aiter__(self) -> AsyncIterator["Attempt"]:
        return _AsyncLoop(*self._parts, task)


class _Turns:
    """One call that is made turn by turn."""

    def __init__(
        self,
        policy: Policy,
        name: str,
        state: RetryState | None,
        clock: Source[Clock] | Source[AsyncClock],
    ) -> None:
        self.policy = policy
        self.book = Book(policy, name, clock, state, driven=False)
        self.call: Call = [self.book, clock.now(), None]
        self.attempt: Attempt | None = None

    def pending(self) -> bool:
        """Return whether there is another turn."""
        if self.attempt is None:
            return True
        if not self.attempt.entered:
            _refuse_entry(self.attempt)
        return bool(self.call)

    def upcoming(self) -> float | None:
        """Return the delay before this turn, in seconds; None before the first."""
        if self.attempt is None:
            return self.book.begin(self.call)
        return self.book.state(self.call).next_delay

    def turn(self) -> "Attempt":
        """Return the attempt of this turn."""
        self.attempt = Attempt(self, self.book.state(self.call).attempt)
        return self.attempt


@final
class _Loop(_Turns):
    def __iter__(self) -> "_Loop":
        return self

    def __next__(self) -> "Attempt":
        if not self.pending():
            raise StopIteration
        delay = self.upcoming()
        if delay is not None:
            try:
                thread.sleep(delay)
            except BaseException as exit_:
                self.book.interrupted(self.call, exit_)
                raise
            self.book.again(self.call)
        return self.turn()


@final
class _AsyncLoop(_Turns):
    def __aiter__(self) -> "_AsyncLoop":
        return self

    async def __anext__(self) -> "Attempt":
        if not self.pending():
            raise StopAsyncIteration
        delay = self.upcoming()
        if delay is not None:
            try:
                await task.sleep(delay)
            except BaseException as exit_:
                self.book.interrupted(self.call, exit_)
                raise
            self.book.again(self.call)
        return self.turn()


_NOTHING = object()


def _refuse_entry(attempt: "Attempt") -> NoReturn:
    """Refuse a loop that leaves out its ``with``, or repeats it."""
    rule = "entered once in its turn"
    raise refuse("attempt", rule, attempt, "write with attempt: in the loop")


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

    @property
    def state(self) -> RetryState:
        """The state of the block's call.

        Raises:
            LookupError: The block is over; `state_of` has the state of the
                error that it gave up with.
        """
        if not self._turns.call:
            msg = "the block is over, and its state is gone with it"
            raise LookupError(msg)
        return self._turns.book.state(self._turns.call)

    def set_result(self, result: object) -> None:
        """Name the result of this attempt, for the policy's `on_result`."""
        self._result = result

    def __enter__(self) -> "Attempt":
        if self.entered:
            _refuse_entry(self)
        self.entered = True
        self._token: Token[Call] = current.set(self._turns.call)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> bool:
        # An async generator may be left in another context than entered.
        with suppress(ValueError):
            current.reset(self._token)
        book, call = self._turns.book, self._turns.call
        if error is None:
            self._succeed()
        elif not isinstance(error, Exception):
            book.interrupted(call, error)
        else:
            refused = refusal(self._turns.policy, error)
            if book.failed(call, error, refused) is not None:
                return True
        # What goes out will have this frame in its traceback.
        del error, trace
        if len(call) == 1:
            ending = call.pop()
            context = ending.__context__
            try:
                raise ending
            finally:
                BaseException.__setattr__(ending, "__context__", context)
                del ending, context
        return False

    def _succeed(self) -> None:
        book, call = self._turns.book, self._turns.call
        try:
            rejected = self._rejected()
        except Exception as exit_:
            book.interrupted(call, exit_)
            raise
        if rejected:
            book.failed(call, None, None, self._result)
        else:
            book.succeeded(call, None)

    def _rejected(self) -> bool:
        policy = self._turns.policy
        if policy.on_result is not None and self._result is _NOTHING:
            way_out = "call attempt.set_result(value) in the block"
            raise refuse("result", "named where on_result asks", None, way_out)
        return rejects(policy, self._result)

    def __repr__(self) -> str:
        return f"<Attempt {self.number}>"


def _caller() -> str:
    """Return the name of the function that a block is written in."""
    frame = sys._getframe(2)  # noqa: SLF001  documented, and logging does it too
    module, name = frame.f_globals.get("__name__"), frame.f_code.co_qualname
    return name if module in {None, "__main__"} else f"{module}.{name}"
