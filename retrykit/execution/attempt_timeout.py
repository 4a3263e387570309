"""What takes too long is ended: a block of a task, by the loop that runs it.

It knows nothing of attempts. What ends a block on a clock that is handed in is
said by that clock.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, final

from retrykit._internal.clocks import AsyncClock, async_clock, running_trio
from retrykit.errors import AttemptTimeout

__all__ = ["TimeoutScope", "Timer", "timeout_scope"]


def timeout_scope(timeout: float, clock: AsyncClock | None = None) -> "TimeoutScope":
    """Return a ``with`` block of a coroutine that takes at most *timeout* seconds.

    Args:
        timeout: How long it may take, in seconds of the clock.
        clock: Whose time counts; by default that of this context's tasks. Its
            method `timeout_scope` makes the block; without one, the loop's time counts.
    """
    made: Callable[[float], TimeoutScope] = getattr(
        clock or async_clock.current(), "limit", TimeoutScope
    )
    return made(timeout)


Timer = Callable[[float, Callable[[BaseException | None], None]], Callable[[], None]]
"""What calls a function when so many seconds are over, and returns what stops it.

The function is called in the loop that set it, with None, or with an error that
waiting ended with.
"""


@final
class TimeoutScope:
    """A block of a task that is cancelled when its time is up.

    >>> async def main():
    ...     with TimeoutScope(0.01):
    ...         await asyncio.sleep(3600)
    >>> asyncio.run(main())
    Traceback (most recent call last):
    ...
    retrykit.errors.AttemptTimeout: the attempt took longer than 0.01s

    It is left by `AttemptTimeout` if nothing but its own cancellation goes out of
    it; its value and its errors stay what they are. A cancellation from outside
    comes first. It is asyncio's timeout, or trio's cancel scope, that cancels,
    so both must be left by the task that entered: asyncio would cancel the task
    that entered, wherever it is by then, and trio refuses it.

    Args:
        timeout: How long it may take, in seconds. 0 or less ends it at the first
            await that has to wait.
        alarm: What rings when time is up, where that is not the loop itself.
    """

    __slots__ = ("_alarm", "_fault", "_scope", "_stop", "timeout")

    def __init__(self, timeout: float, alarm: Timer | None = None) -> None:
        self.timeout = max(timeout, 0.0)
        # What is over already needs nobody who waits for it.
        self._alarm = alarm if self.timeout else None
        delay = self.timeout if self._alarm is None else math.inf
        trio = running_trio()
        self._scope: Any = trio.move_on_after(delay) if trio else _Scope(delay)
        self._stop: Callable[[], None] | None = None
        self._fault: BaseException | None = None

    def __enter__(self) -> Self:
        self._scope.__enter__()
        if self._alarm is not None:
            self._stop = self._alarm(self.timeout, self._ring)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        left = self.exit_with(error)
        if left is None or left is error:
            return
        context = left.__context__
        try:
            raise left
        finally:
            # The cancellation is ours: nobody was handling it.
            BaseException.__setattr__(left, "__context__", context)
            del left, error, trace, context

    def exit_with(self, error: BaseException | None) -> BaseException | None:
        """End the block, and return what it is left by.

        Args:
            error: What goes out of the block; None if it came to its end.

        Returns:
            The same; or, if the block was ended for its time, `AttemptTimeout`
            in its place: with its traceback, and its context.
        """
        stop, self._stop = self._stop, None
        if stop is not None:
            stop()
        trace = None if error is None else error.__traceback__
        try:
            ours = self._scope.__exit__(error and type(error), error, trace)
        except BaseException as rest:  # noqa: BLE001  of a group, without trio's own
            return rest.with_traceback(trace)
        if error is None or not ours:
            return error
        if self._fault is not None:
            return self._fault
        expired = AttemptTimeout(self.timeout).with_traceback(trace)
        expired.__context__ = error.__context__
        return expired

    def _ring(self, fault: BaseException | None) -> None:
        self._fault = fault
        self._scope.cancel()


@final
class _Scope:
    """A timeout of asyncio, in the manner of a cancel scope of trio."""

    def __init__(self, delay: float) -> None:
        self._timeout = asyncio.timeout(None if delay == math.inf else delay)
        self._entered = False

    def __enter__(self) -> None:
        _run_to_completion(self._timeout.__aenter__())
        self._entered = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> bool:
        self._entered = False
        try:
            _run_to_completion(self._timeout.__aexit__(kind, error, trace))
        except TimeoutError:
            return True
        return False

    def cancel(self) -> None:
        """End the block as soon as it awaits something, if it is not over."""
        if self._entered:
            self._timeout.reschedule(-math.inf)


def _run_to_completion(coroutine: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine that awaits nothing."""
    try:  # noqa: SIM105  half a microsecond quicker, at every attempt
        coroutine.send(None)
    except StopIteration:
        pass
