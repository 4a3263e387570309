"""Decorators and blocks that ask a circuit breaker."""

import functools
from collections.abc import Callable
from types import CoroutineType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

from retrykit._conditions import matches_condition, read_answer, reject_awaitable
from retrykit._internal.error_texts import error_text, log_fault, type_name
from retrykit._internal.introspection import (
    is_coroutine_function,
    is_generator_function,
)
from retrykit._internal.late_modules import logging
from retrykit._internal.tracebacks import add_note_once
from retrykit._internal.validation import invalid_setting
from retrykit.errors import CircuitOpenError, NestingError, Signal
from retrykit.limits._base import Lease, Refusal

if TYPE_CHECKING:
    from retrykit.limits._circuit_breaker import CircuitBreaker

__all__ = ["Guard", "guard_function"]

F = TypeVar("F", bound=Callable[..., Any])


@final
class Guard:
    """A block that is a call of a breaker, with ``with`` or ``async with``."""

    __slots__ = ("_breaker", "_lease")

    def __init__(self, breaker: "CircuitBreaker") -> None:
        self._breaker = breaker
        self._lease: Lease | None = None

    def __enter__(self) -> Lease:
        if self._lease is not None:
            msg = "a guard is entered once; write breaker.guard() for each block"
            raise NestingError(msg)
        answer = self._breaker.acquire()
        if isinstance(answer, Refusal):
            raise _refuse(self._breaker, answer)
        self._lease = answer
        return answer

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
            _report(self._breaker, lease, error)

    async def __aenter__(self) -> Lease:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self.__exit__(kind, error, trace)


def guard_function(breaker: "CircuitBreaker", fn: F) -> F:
    """Return a function that asks a breaker before it calls another one."""
    if isinstance(fn, classmethod | staticmethod):
        kind = type(fn).__name__
        rule = "a function"
        raise invalid_setting("fn", rule, fn, f"write @{kind} above the breaker")
    if not callable(fn):
        raise invalid_setting("fn", "a function", fn)
    if is_generator_function(fn):
        suggestion = "write with breaker.guard(): in its body"
        raise invalid_setting("fn", "no generator function", fn, suggestion)
    guard = _guard_coroutine if is_coroutine_function(fn) else _guard_sync
    return cast("F", functools.update_wrapper(guard(breaker, fn), fn))


def _guard_sync(
    breaker: "CircuitBreaker", fn: Callable[..., Any]
) -> Callable[..., Any]:
    acquire, judges_results = breaker.acquire, breaker.on_result is not None

    def call(*args: Any, **kwargs: Any) -> Any:
        lease = acquire()
        if isinstance(lease, Refusal):
            raise _refuse(breaker, lease)
        try:
            result = fn(*args, **kwargs)
        except BaseException as error:
            _report(breaker, lease, error)
            raise
        if judges_results or isinstance(result, CoroutineType):
            _report_result(breaker, lease, result)
        else:
            lease.succeeded()
        return result

    return call


def _guard_coroutine(
    breaker: "CircuitBreaker", fn: Callable[..., Any]
) -> Callable[..., Any]:
    acquire, judges_results = breaker.acquire, breaker.on_result is not None

    async def call(*args: Any, **kwargs: Any) -> Any:
        lease = acquire()
        if isinstance(lease, Refusal):
            raise _refuse(breaker, lease)
        try:
            result = await fn(*args, **kwargs)
        except BaseException as error:
            _report(breaker, lease, error)
            raise
        if judges_results or isinstance(result, CoroutineType):
            _report_result(breaker, lease, result)
        else:
            lease.succeeded()
        return result

    return call


def _refuse(breaker: "CircuitBreaker", refusal: Refusal) -> CircuitOpenError:
    return CircuitOpenError(breaker.label, refusal.reason, refusal.retry_in)


def _report(breaker: "CircuitBreaker", lease: Lease, error: BaseException) -> None:
    """Report what a call raised."""
    if isinstance(error, Exception) and _is_failure(breaker, error):
        lease.failed(error)
    else:
        lease.ignored()


def _is_failure(breaker: "CircuitBreaker", error: Exception) -> bool:
    if isinstance(error, CircuitOpenError):
        # Of another breaker: a call that was not made says nothing.
        return False
    judged = error.error if isinstance(error, Signal) else error
    try:
        return matches_condition("on", breaker.on, judged)
    except Exception as fault:  # noqa: BLE001  it must not hide the error of the call
        text = f"{type_name(type(fault))}: {error_text(fault)}"
        add_note_once(error, f"ignored, because its breaker failed with {text}")
        text = "an error was ignored, because the condition of its breaker failed"
        log_fault(logging.ERROR, fault, text)
        return False


def _report_result(breaker: "CircuitBreaker", lease: Lease, result: object) -> None:
    """Report what a call returned."""
    predicate = breaker.on_result
    try:
        reject_awaitable(
            "the result",
            result,
            "no coroutine",
            "declare the function with async def, and await it there",
        )
        failed = predicate is not None and read_answer(
            "on_result", predicate, predicate(result)
        )
    except BaseException:
        lease.ignored()
        raise
    if failed:
        lease.failed()
    else:
        lease.succeeded()
