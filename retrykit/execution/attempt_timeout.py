"""Attempt timeouts: cancel a coroutine in time, or pass the timeout as an argument.

The timeout is read anew for every attempt, since the remaining time shrinks.
"""

import asyncio
import inspect
import math
from collections.abc import Callable, Coroutine
from inspect import Parameter
from types import TracebackType
from typing import Any, Self, final

from retrykit._internal.clocks import AsyncClock
from retrykit._internal.loop_clock import async_clock, running_trio
from retrykit._internal.validation import invalid_setting
from retrykit.errors import AttemptTimeout
from retrykit.policy.timeouts import AsArgument

__all__ = ["TimeoutScope", "Timer", "timeout_scope"]
__all__ += ["with_timeout", "with_timeout_argument"]


def timeout_scope(timeout: float, clock: AsyncClock | None = None) -> "TimeoutScope":
    """Return a ``with`` block of a coroutine that takes at most *timeout* seconds.

    Args:
        timeout: How long it may take, in seconds of the clock.
        clock: Whose time counts; by default that of this context's tasks. Its
            method `limit` makes the block; without one, the loop's time counts.
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


def with_timeout(
    fn: Callable[..., Any], timeout_for: Callable[[], float]
) -> Callable[..., Any]:
    """Return a coroutine function that ends each call of *fn* in time.

    Args:
        fn: What is awaited.
        timeout_for: What says how long the next call may take, in seconds of
            the clock of its context.

    Returns:
        A function whose calls raise `AttemptTimeout` when their time is up.
    """

    async def ending(*args: Any, **kwargs: Any) -> Any:
        with timeout_scope(timeout_for()):
            return await fn(*args, **kwargs)

    return ending


def with_timeout_argument(
    fn: Callable[..., Any], argument: AsArgument, timeout_for: Callable[[], float]
) -> Callable[..., Any]:
    """Return *fn* with its timeout given, unless its caller gives one.

    Args:
        fn: A function of either colour.
        argument: Which parameter takes the timeout.
        timeout_for: What says how long the next call may take, in seconds.

    Returns:
        A function that returns what *fn* does: a coroutine, if it is async.

    Raises:
        ConfigError: *fn* has no such parameter, or does not show which it has.
    """
    name, place = argument.name, _place(fn, argument)

    def filling(*args: Any, **kwargs: Any) -> Any:
        if name not in kwargs and len(args) <= place:
            kwargs[name] = timeout_for()
        return fn(*args, **kwargs)

    return filling


_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_NOWHERE = math.inf


def _place(fn: Callable[..., Any], argument: AsArgument) -> float:
    """Return how many arguments come before it; no number if it has no place."""
    name = argument.name
    rule = f"a function with a parameter {name!r} that takes its timeout"
    try:
        parameters = inspect.signature(fn).parameters
    except (TypeError, ValueError):
        suggestion = (
            "it does not show what it takes: call it in a function that has one"
        )
        raise invalid_setting("fn", rule, fn, suggestion) from None
    by_place = [each.name for each in parameters.values() if each.kind in _BY_PLACE]
    found = parameters.get(name)
    if found is not None and found.kind in _BY_NAME:
        return by_place.index(name) if name in by_place else _NOWHERE
    if any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values()):
        return _NOWHERE
    suggestion = f"name the one that it has: AsArgument({argument.seconds:g}, name=...)"
    raise invalid_setting("fn", rule, fn, suggestion)
