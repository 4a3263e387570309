"""Decorators and blocks that ask a limit."""

import functools
from collections.abc import Callable
from types import CoroutineType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

from retrykit._conditions import default_condition, reject_awaitable
from retrykit._internal.error_texts import error_text, log_fault, type_name
from retrykit._internal.introspection import (
    is_coroutine_function,
    is_generator_function,
)
from retrykit._internal.late_modules import logging
from retrykit._internal.tracebacks import add_note_once
from retrykit._internal.validation import invalid_setting
from retrykit.errors import NestingError, RefusedError, Signal
from retrykit.limits._leases import Lease, Refusal

if TYPE_CHECKING:
    from retrykit.limits._base import Limit

__all__ = ["Guard", "guard_function", "judge_error"]

F = TypeVar("F", bound=Callable[..., Any])


@final
class Guard:
    """A ``with`` or ``async with`` block that counts as one call under a limit."""

    __slots__ = ("_lease", "_limit")

    def __init__(self, limit: "Limit") -> None:
        self._limit = limit
        self._lease: Lease | None = None

    def __enter__(self) -> Lease:
        lease = self._acquire()
        if lease.delay:
            _wait(self._limit, lease)
        self._lease = cast("Lease", lease)
        return self._lease

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        # It was entered, since it is a block.
        lease = cast("Lease", self._lease)
        if error is None:
            lease.succeeded()
        else:
            _report(self._limit, lease, error)

    async def __aenter__(self) -> Lease:
        lease = self._acquire()
        if lease.delay:
            await _wait_async(self._limit, lease)
        self._lease = cast("Lease", lease)
        return self._lease

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self.__exit__(kind, error, trace)

    def _acquire(self) -> Lease | Refusal:
        if self._lease is not None:
            msg = "a guard is entered once; write limit.guard() for each block"
            raise NestingError(msg)
        return self._limit.acquire()


def guard_function(limit: "Limit", fn: F) -> F:
    """Return a function that asks a limit before it calls *fn*.

    Raises:
        ConfigError: *fn* is a generator function, or not a function.
    """
    if isinstance(fn, classmethod | staticmethod):
        kind = type(fn).__name__
        rule = "a function"
        raise invalid_setting(
            "fn", rule, fn, f"write @{kind} above the limit", code="not-retryable"
        )
    if not callable(fn):
        raise invalid_setting("fn", "a function", fn, code="not-retryable")
    if is_generator_function(fn):
        suggestion = "write with limit.guard(): in its body"
        raise invalid_setting(
            "fn", "no generator function", fn, suggestion, code="not-retryable"
        )
    guard = _guard_coroutine if is_coroutine_function(fn) else _guard_sync
    return cast("F", functools.update_wrapper(guard(limit, fn), fn))


def _guard_sync(limit: "Limit", fn: Callable[..., Any]) -> Callable[..., Any]:
    acquire, judges_results = limit.acquire, limit.judges_results

    def call(*args: Any, **kwargs: Any) -> Any:
        lease: Any = acquire()
        if lease.delay:
            _wait(limit, lease)
        try:
            result = fn(*args, **kwargs)
        except BaseException as error:
            _report(limit, lease, error)
            raise
        if type(result) is CoroutineType or judges_results:
            _report_result(limit, lease, result)
        else:
            lease.succeeded()
        return result

    return call


def _guard_coroutine(limit: "Limit", fn: Callable[..., Any]) -> Callable[..., Any]:
    acquire, judges_results = limit.acquire, limit.judges_results

    async def call(*args: Any, **kwargs: Any) -> Any:
        lease: Any = acquire()
        if lease.delay:
            await _wait_async(limit, lease)
        try:
            result = await fn(*args, **kwargs)
        except BaseException as error:
            _report(limit, lease, error)
            raise
        if type(result) is CoroutineType or judges_results:
            _report_result(limit, lease, result)
        else:
            lease.succeeded()
        return result

    return call


def _wait(limit: "Limit", answer: Lease | Refusal) -> None:
    """Wait until a call may be made; raise the error of a refusal."""
    refusal = answer if isinstance(answer, Refusal) else answer.wait()
    if refusal is not None:
        raise limit.error_of(refusal)


async def _wait_async(limit: "Limit", answer: Lease | Refusal) -> None:
    """Wait until a call may be made, as `_wait` does."""
    refusal = answer if isinstance(answer, Refusal) else await answer.wait_async()
    if refusal is not None:
        raise limit.error_of(refusal)


def _report(limit: "Limit", lease: Lease, error: BaseException) -> None:
    """Report what a call raised; an error that is not a failure is ignored."""
    if isinstance(error, Exception) and _is_failure(limit, error):
        lease.failed(error)
    else:
        lease.ignored()


def _is_failure(limit: "Limit", error: Exception) -> bool:
    judged = judge_error(limit, error)
    if judged is None:
        return default_condition(error.error if isinstance(error, Signal) else error)
    return judged


def judge_error(limit: "Limit", error: Exception) -> bool | None:
    """Return whether an error is a failure for a limit; None leaves it to the policy.

    Another limit's refusal is not a failure, nor is an error for which the limit's own
    condition fails.
    """
    if isinstance(error, RefusedError):
        # From another limit: a call that was not made does not count.
        return False
    try:
        return limit.is_failure(error.error if isinstance(error, Signal) else error)
    except Exception as fault:  # noqa: BLE001  it must not hide the error of the call
        text = f"{type_name(type(fault))}: {error_text(fault)}"
        add_note_once(error, f"ignored, because its limit failed with {text}")
        text = "an error was ignored, because the condition of its limit failed"
        log_fault(logging.ERROR, fault, text)
        return False


def _report_result(limit: "Limit", lease: Lease, result: object) -> None:
    """Report what a call returned; raise a ConfigError if it is awaitable."""
    try:
        reject_awaitable(
            "the result",
            result,
            "no coroutine",
            "declare the function with async def, and await it there",
        )
        failed = limit.judges_results and limit.is_failed_result(result)
    except BaseException:
        lease.ignored()
        raise
    if failed:
        lease.failed()
    else:
        lease.succeeded()
