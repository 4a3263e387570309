"""Retried blocks of code: `retrying` and `aretrying`.

An error that is not retried leaves the block as it would leave any other block.
"""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import Token
from typing import TYPE_CHECKING, ClassVar, NoReturn, Unpack, final

from retrykit._core.call import Entry, current_entry
from retrykit._core.decorators import list_settings
from retrykit._core.drivers import (
    check_limits_of,
    check_no_hedge,
    check_resumable,
    check_sync_compatible,
)
from retrykit._core.final_error import check_no_fallback
from retrykit._core.ineffective import warn_of_blocking, would_block
from retrykit._core.manual import ManualCall
from retrykit._core.policy import Policy
from retrykit._core.retry_state import RetryState
from retrykit._core.setting_types import PolicySettings
from retrykit._core.settings import check_event_kind, check_sleep_kind, takes_settings
from retrykit._core.timeouts import AsArgument
from retrykit._core.wrapping import as_source, ask_policy
from retrykit._internal.clocks import AsyncClock, Clock, ClockSource, sync_clock
from retrykit._internal.tracebacks import keep_context
from retrykit._internal.validation import invalid_setting
from retrykit.errors import Signal

if TYPE_CHECKING:
    from retrykit._core.attempt_timeout import TimeoutScope

__all__ = ["AsyncAttempts", "AsyncLoop", "Attempt", "Attempts", "Loop", "aretrying"]
__all__ += ["retrying"]


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
        """Return whether the loop continues; raise an error after a skipped attempt."""
        if self.entered is False:
            _reject_entry(self.attempt())
        return self.call.running

    def attempt(self) -> "Attempt":
        """Return a new `Attempt` for this iteration."""
        self.entered = False
        return Attempt(self, self.call.attempt)


class Loop:
    """Iterator over the attempts of one call, which sleeps between them.

    Only the ``for`` statement refers to it, so an interrupt between two attempts also
    ends the call.
    """

    def __init__(self, policy: Policy, name: str, state: RetryState | None) -> None:
        self._block = _BlockCall(policy, name, state, sync_clock, self)

    def __iter__(self) -> "Loop":
        return self

    def __next__(self) -> "Attempt":
        block = self._block
        if not block.has_next():
            raise StopIteration
        call, delay = block.call, block.call.next_delay
        if delay and call.attempt == 1 and would_block(sync_clock):
            warn_of_blocking(call.state.name)
        try:
            stopped = call.begin() if block.entered is None else call.pause(delay or 0)
        except BaseException as error:
            call.abort(error)
            raise
        if stopped is not None:
            raise stopped
        return block.attempt()


class AsyncLoop:
    """Async iterator over the attempts of one call, like `Loop`."""

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
        call, is_first = block.call, block.entered is None
        try:
            stopped = await (
                call.abegin() if is_first else call.apause(call.next_delay or 0.0)
            )
        except BaseException as error:
            call.abort(error)
            raise
        if stopped is not None:
            raise stopped
        return block.attempt()


_NO_RESULT = object()


def _reject_entry(attempt: "Attempt") -> NoReturn:
    """Raise a ConfigError, since an iteration must enter its attempt exactly once."""
    rule = "entered exactly once, in its own iteration"
    raise invalid_setting(
        "attempt", rule, attempt, "write with attempt: in the loop", code="wrong-state"
    )


@final
class Attempt:
    """One attempt of a retried block; enter it with ``with``.

    Attributes:
        number: The number of the attempt, from 1.
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
            LookupError: The block is over; use `state_of` on the error that it gave up
                with.
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
            from retrykit._core.attempt_timeout import timeout_scope  # noqa: PLC0415

            self._timeout = timeout_scope(call.attempt_time_limit())
            self._timeout.__enter__()
        return self

    def __exit__(
        self, _: object, error: BaseException | None, trace: object, /
    ) -> bool:
        raised = error if self._timeout is None else self._timeout.exit_with(error)
        try:  # noqa: SIM105  quicker
            current_entry.reset(self._token)
        except ValueError:
            # An async generator may be left in another context than entered.
            pass
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
        """Return 0 if the result is accepted or missing, else what `_fail` returns."""
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


@takes_settings
def retrying(
    policy: Policy | Callable[[], Policy] | None = None,
    /,
    *,
    state: RetryState | None = None,
    **changes: Unpack[PolicySettings],
) -> "Attempts":
    """Retry a block of code: each iteration of the loop is one attempt.

    A generator must not yield inside the ``with``: the code of its consumer would
    run inside that attempt. A policy with `on_result` judges what the block hands to
    ``attempt.set_result``; a block that hands over nothing has succeeded, which is
    logged as a warning.

    >>> numbers = iter([0, 0, 4])
    >>> for attempt in retrying(Policy(schedule=[0, 0], on=ZeroDivisionError)):
    ...     with attempt:
    ...         quotient = 8 / next(numbers)
    >>> attempt.number, quotient
    (3, 2.0)

    Args:
        policy: The policy, `Policy()` by default; or a function without parameters that
            returns the policy, called once for each loop. Logs show the name of the
            policy or, by default, the name of the function around the block.
        state: The state of an interrupted block, which is to be resumed.
        **changes: Settings of `Policy` that differ from those of *policy*.

    Returns:
        An iterable of attempts, each to be entered with ``with``. Every loop over it is
        a separate call.

    Raises:
        ConfigError: A setting is invalid or does not suit a block, such as an async
            predicate, which ``with`` cannot await.
    """
    return Attempts(policy, changes, _caller(), state)


@takes_settings
def aretrying(
    policy: Policy | Callable[[], Policy] | None = None,
    /,
    *,
    state: RetryState | None = None,
    **changes: Unpack[PolicySettings],
) -> "AsyncAttempts":
    """Retry a block of code in a coroutine: ``async for``, then ``with``.

    It takes the arguments of `retrying`, and raises the same errors.

    >>> import asyncio
    >>> async def divide():
    ...     async for attempt in aretrying():
    ...         with attempt:
    ...             return 8 / 4
    >>> asyncio.run(divide())
    2.0
    """
    return AsyncAttempts(policy, changes, _caller(), state)


for _each in (retrying, aretrying):
    list_settings(_each)


class _RetriedBlock:
    """The policy and the state of a block."""

    _can_cancel: ClassVar[bool] = False
    """Whether attempts of the block can be cancelled."""

    def __init__(
        self,
        policy: Policy | Callable[[], Policy] | None,
        changes: PolicySettings,
        name: str,
        state: RetryState | None,
    ) -> None:
        self._source = as_source(policy, changes)
        if isinstance(self._source, Policy):
            self._source._derive(self._check)
        else:
            self._source.check_alone()
        if state is not None:
            check_resumable(state)
        self._name, self._state = name, state

    def _parts(self) -> tuple[Policy, str, RetryState | None]:
        """Return the policy, the name and the resumed state of a new loop."""
        policy = ask_policy(self._source)
        if policy is not self._source:
            policy._derive(self._check)
        return policy, self._name, self._state

    @classmethod
    def _check(cls, policy: Policy) -> None:
        """Raise a ConfigError if a policy does not suit a block."""
        suggestion = "put the block into a function under aretry"
        check_sync_compatible(policy, can_cancel=cls._can_cancel, suggestion=suggestion)
        if isinstance(policy.attempt_timeout, AsArgument):
            rule = "a duration where there is no function with a timeout parameter"
            suggestion = "use current_state().remaining in the block"
            raise invalid_setting(
                "attempt_timeout",
                rule,
                policy.attempt_timeout,
                suggestion,
                code="not-here",
            )
        check_no_fallback(policy)
        check_limits_of(policy)
        check_no_hedge(policy)
        check_event_kind(policy.stop_event, awaited=cls._can_cancel)
        check_sleep_kind(policy.sleep, awaited=cls._can_cancel)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._name}, {self._source!r}>"


@final
class Attempts(_RetriedBlock):
    """Iterable of the attempts of a block; each loop is a separate call."""

    def __iter__(self) -> Iterator[Attempt]:
        return Loop(*self._parts())


@final
class AsyncAttempts(_RetriedBlock):
    """Async iterable of the attempts of a block, like `Attempts`."""

    _can_cancel = True

    def __aiter__(self) -> AsyncIterator[Attempt]:
        return AsyncLoop(*self._parts())


def _caller() -> str:
    """Return the name of the function around a block.

    The frames of `retrying` and its decorator are skipped.
    """
    frame = sys._getframe(3)  # noqa: SLF001  documented, and logging does it too
    module, name = frame.f_globals.get("__name__"), frame.f_code.co_qualname
    return name if module in {None, "__main__"} else f"{module}.{name}"
