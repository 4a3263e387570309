"""Attempt timeouts, which cancel a coroutine or are passed as an argument.

The timeout is computed for every attempt, since the remaining time shrinks.
"""

import math
from collections.abc import Callable
from inspect import Parameter
from typing import Any, Self

from retrykit._core.timeouts import AsArgument
from retrykit._internal.clocks import AsyncClock
from retrykit._internal.late_modules import inspect
from retrykit._internal.loop_clock import async_clock, move_on_after
from retrykit._internal.tracebacks import keep_context
from retrykit._internal.validation import invalid_setting
from retrykit.errors import AttemptTimeout

__all__ = ["TimeoutScope", "Timer", "timeout_scope"]
__all__ += ["with_timeout", "with_timeout_argument"]


def timeout_scope(timeout: float, clock: AsyncClock | None = None) -> "TimeoutScope":
    """Return a context manager that cancels its block after *timeout* seconds.

    Args:
        timeout: The time limit, in seconds of the clock.
        clock: The clock; by default the clock of this context's tasks. Its method
            `timeout_scope` makes the context manager; if the clock has no such method,
            the event loop's time counts.
    """
    build: Callable[[float], TimeoutScope] = getattr(
        clock or async_clock.current(), "timeout_scope", TimeoutScope
    )
    return build(timeout)


Timer = Callable[[float, Callable[[BaseException | None], None]], Callable[[], None]]
"""Calls a function after some seconds; returns a function that cancels the call.

The function is called in the event loop that set the timer, with None, or with the
error that ended the waiting.
"""


class TimeoutScope:
    """Cancels an async block that exceeds its timeout.

    >>> import asyncio
    >>> async def main():
    ...     with TimeoutScope(0.01):
    ...         await asyncio.sleep(3600)
    >>> asyncio.run(main())
    Traceback (most recent call last):
    ...
    retrykit.errors.AttemptTimeout: the attempt took longer than 10 ms

    It raises `AttemptTimeout` only if its own cancellation leaves the block; other
    errors pass, and a cancellation from outside takes precedence. It wraps an asyncio
    timeout or a trio cancel scope, so the task that entered it must leave it.

    Args:
        timeout: The time limit, in seconds. 0 or less cancels at the first await that
            suspends the task.
        timer: Calls back after the timeout; by default the event loop does.

    Attributes:
        timeout: The time limit, in seconds, >= 0.
        kind: The type of the error.
    """

    __slots__ = ("_fault", "_scope", "_stop", "_timer", "kind", "timeout")

    def __init__(self, timeout: float, timer: Timer | None = None) -> None:
        self.timeout: float = max(timeout, 0.0)
        # A timeout of 0 needs no timer.
        self._timer = timer if self.timeout else None
        delay = self.timeout if self._timer is None else math.inf
        self._scope: Any = move_on_after(delay)
        self._stop: Callable[[], None] | None = None
        self._fault: BaseException | None = None
        self.kind: type[AttemptTimeout] = AttemptTimeout

    def __enter__(self) -> Self:
        self._scope.__enter__()
        if self._timer is not None:
            self._stop = self._timer(self.timeout, self._cancel)
        return self

    def __exit__(
        self, _: object, error: BaseException | None, trace: object, /
    ) -> None:
        final_error = self.exit_with(error)
        if final_error is None or final_error is error:
            return
        # Not the cancellation, which is an implementation detail.
        with keep_context(final_error):
            try:
                raise final_error
            finally:
                del final_error, error, trace

    def exit_with(self, error: BaseException | None) -> BaseException | None:
        """Leave the block, and return the error to raise.

        Returns:
            *error*, or what trio leaves of a group; or, if the timeout has cancelled
            the block, an error of type `kind` with the same traceback and context, or
            the error of the timer.
        """
        stop, self._stop = self._stop, None
        if stop is not None:
            stop()
        trace = None if error is None else error.__traceback__
        try:
            ours = self._scope.__exit__(error and type(error), error, trace)
        except BaseException as rest:  # noqa: BLE001  a group without trio's own errors
            return rest.with_traceback(trace)
        if error is None or not ours:
            return error
        if self._fault is not None:
            return self._fault
        expired = self.kind(self.timeout).with_traceback(trace)
        expired.__context__ = error.__context__
        return expired

    def _cancel(self, fault: BaseException | None) -> None:
        self._fault = fault
        self._scope.cancel()


def with_timeout(
    fn: Callable[..., Any], timeout_for: Callable[[], float]
) -> Callable[..., Any]:
    """Return a coroutine function that cancels each call of *fn* after a timeout.

    *timeout_for* returns the timeout of the call that begins, in seconds.
    """

    async def call_with_timeout(*args: Any, **kwargs: Any) -> Any:
        with timeout_scope(timeout_for()):
            return await fn(*args, **kwargs)

    return call_with_timeout


def with_timeout_argument(
    fn: Callable[..., Any], argument: AsArgument, timeout_for: Callable[[], float]
) -> Callable[..., Any]:
    """Return *fn* with the timeout as an argument, unless its caller passes one.

    *timeout_for* returns the timeout of the call that begins, in seconds.
    """
    name, index = argument.name, _parameter_index(fn, argument)

    def call_with_timeout(*args: Any, **kwargs: Any) -> Any:
        if name not in kwargs and len(args) <= index:
            kwargs[name] = timeout_for()
        return fn(*args, **kwargs)

    return call_with_timeout


_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def _parameter_index(fn: Callable[..., Any], argument: AsArgument) -> float:
    """Return the position of the parameter; infinity if it is passed by name only."""
    name = argument.name
    rule = f"a function with a parameter {name!r} that takes its timeout"
    try:
        parameters = inspect.signature(fn).parameters
    except (TypeError, ValueError):
        suggestion = "it has no signature: call it in a function that has one"
        raise invalid_setting(
            "fn", rule, fn, suggestion, code="not-retryable"
        ) from None
    positional = [each.name for each in parameters.values() if each.kind in _POSITIONAL]
    found = parameters.get(name)
    if found is not None and found.kind in _BY_NAME:
        return positional.index(name) if name in positional else math.inf
    if any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values()):
        return math.inf
    suggestion = f"name its parameter: AsArgument({argument.seconds:g}, name=...)"
    raise invalid_setting("fn", rule, fn, suggestion, code="not-retryable")
