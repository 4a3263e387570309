"""Chains: functions that are called in order until one of them succeeds.

A chain is a retried call whose attempts call different functions.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast, final, overload

from retrykit._conditions import Condition, default_condition, format_value
from retrykit._core.call import TAPE, Entry, RetryCall, current_entry, running_call
from retrykit._core.controller import CHAIN_MARK
from retrykit._core.decorators import retry
from retrykit._core.final_error import NO_FALLBACK, check_fallback
from retrykit._core.policy import Policy
from retrykit._core.retry_log import describe_failure
from retrykit._core.wrapping import find_wrapped
from retrykit._internal.durations import Duration
from retrykit._internal.introspection import (
    LateSignature,
    is_async_generator_function,
    is_coroutine_function,
    is_generator_function,
    matches_underlying,
    qualified_name,
)
from retrykit._internal.late_modules import inspect
from retrykit._internal.tracebacks import add_note_once
from retrykit._internal.validation import invalid_setting, user_facing
from retrykit.errors import RetryAfter

__all__ = ["chain"]

Function = Callable[..., Any]

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import ParamSpec

    from retrykit._core.retry_state import RetryState

    P = ParamSpec("P")
    R = TypeVar("R")
    V = TypeVar("V")


if TYPE_CHECKING:

    @overload
    def chain(
        first: Callable[P, R],
        second: Callable[P, R],
        /,
        *others: Callable[P, R],
        on: Condition = ...,
        max_elapsed: Duration | None = None,
        name: str | None = None,
    ) -> Callable[P, R]: ...
    @overload
    def chain(
        first: Callable[P, Coroutine[Any, Any, R]],
        second: Callable[P, Coroutine[Any, Any, R]],
        /,
        *others: Callable[P, Coroutine[Any, Any, R]],
        default: Callable[[RetryState], V],
        on: Condition = ...,
        max_elapsed: Duration | None = None,
        name: str | None = None,
    ) -> Callable[P, Coroutine[Any, Any, R | V]]: ...
    @overload
    def chain(
        first: Callable[P, Coroutine[Any, Any, R]],
        second: Callable[P, Coroutine[Any, Any, R]],
        /,
        *others: Callable[P, Coroutine[Any, Any, R]],
        default: V,
        on: Condition = ...,
        max_elapsed: Duration | None = None,
        name: str | None = None,
    ) -> Callable[P, Coroutine[Any, Any, R | V]]: ...
    @overload
    def chain(
        first: Callable[P, R],
        second: Callable[P, R],
        /,
        *others: Callable[P, R],
        default: Callable[[RetryState], V],
        on: Condition = ...,
        max_elapsed: Duration | None = None,
        name: str | None = None,
    ) -> Callable[P, R | V]: ...
    @overload
    def chain(
        first: Callable[P, R],
        second: Callable[P, R],
        /,
        *others: Callable[P, R],
        default: V,
        on: Condition = ...,
        max_elapsed: Duration | None = None,
        name: str | None = None,
    ) -> Callable[P, R | V]: ...


@user_facing
def chain(  # noqa: PLR0913  what a chain may have
    first: Any,
    second: Any,
    /,
    *others: Any,
    default: Any = NO_FALLBACK,
    on: Condition = default_condition,
    max_elapsed: Duration | None = None,
    name: str | None = None,
) -> Any:
    """Return a function that calls others in order until one succeeds.

    Each function may be retried under its own policy before the next one is called; a
    function whose circuit breaker is open fails at once. In a chain of generator
    functions, the next one is called only after a failure before the first item.

    >>> def primary(city):
    ...     raise ConnectionError("down")
    >>> def secondary(city):
    ...     return f"sunny in {city}"
    >>> forecast = chain(primary, secondary)
    >>> forecast("Oslo")
    'sunny in Oslo'

    Args:
        first: A function, retried or not. All functions must be sync, or all coroutine
            functions, or all generator functions of one kind.
        second: A function that takes the same arguments.
        *others: Further such functions.
        default: The value to return if all of them fail, or a function of the
            `RetryState`, like the `fallback` of a policy. Not for generator functions:
            let the last one yield it.
        on: Condition on the errors after which the next function is called; by default
            all errors except programming errors.
        max_elapsed: Time within which functions may be called, from the start of the
            first call. A duration, >= 0; by default unlimited.
        name: The name in logs and states; by default the names of the functions.

    Returns:
        A function with the signature of the first one. It raises the error of the last
        function called; the other errors are in its notes, and all of them in the
        state: ``state_of(error).errors``.

    Raises:
        ConfigError: An argument is invalid, or the functions are of different kinds.
    """
    functions = first, second, *others
    kinds = [_kind_of(each) for each in functions]
    for kind, each in zip(kinds, functions, strict=True):
        if kind != kinds[0]:
            rule = f"functions of one kind: {format_value(first)} is {kinds[0]}"
            raise invalid_setting(
                "chain", rule, each, f"it is {kind}", code="contradiction"
            )
    makes_stream = kinds[0] in {_GENERATOR, _ASYNC_GENERATOR}
    if makes_stream and default is not NO_FALLBACK:
        rule = "left out for generators"
        suggestion = "add a generator function that yields it"
        raise invalid_setting("default", rule, default, suggestion, code="not-here")
    if default is not NO_FALLBACK:
        check_fallback("default", default)
    names = [_name_of(each) for each in functions]
    policy = Policy(
        schedule=[0] * (len(functions) - 1),
        max_attempts=len(functions),
        max_elapsed=max_elapsed,
        on=on,
        nested="retry",
        fallback=default,
        name=name or f"chain({', '.join(names)})",
    )
    call = _CALLERS[kinds[0]](functions)
    call.__name__ = call.__qualname__ = "chain"
    call.__dict__[CHAIN_MARK] = names
    call.__dict__["__signature__"] = LateSignature(lambda: inspect.signature(first))
    if makes_stream:
        return retry(policy, stream="until-first-item")(call)
    return retry(policy)(call)


_GENERATOR, _ASYNC_GENERATOR = "a generator function", "an async generator function"
_COROUTINE, _SYNC = "a coroutine function", "a sync function"


def _kind_of(function: Any) -> str:
    if not callable(function):
        raise invalid_setting("chain", "functions", function)
    found = find_wrapped(function)
    if found is not None and found.stream is not None:
        return _ASYNC_GENERATOR if found.awaited else _GENERATOR
    if found is not None and found.awaited:
        return _COROUTINE
    if matches_underlying(is_async_generator_function, function):
        return _ASYNC_GENERATOR
    if matches_underlying(is_generator_function, function):
        return _GENERATOR
    return _COROUTINE if is_coroutine_function(function) else _SYNC


def _name_of(function: Function) -> str:
    """Return the name of a function's policy, or else of the function."""
    found = find_wrapped(function)
    own = None
    if found is not None and isinstance(found.source, Policy):
        own = found.source.name
    return own or qualified_name(function)


def _next_of(functions: tuple[Function, ...]) -> Function:
    """Return the function that the running attempt calls."""
    entry = cast("Entry", current_entry.get())
    if len(entry) <= TAPE:
        return functions[0]
    attempt = cast("RetryCall", running_call(entry)).attempt
    # Under another policy there may be more attempts than functions.
    return functions[(attempt - 1) % len(functions)]


@final
class _Noting:
    """Adds a note to a function's error, with the errors of the functions before it.

    The delay of a `RetryAfter` is dropped if another function follows.
    """

    def __init__(self, functions: tuple[Function, ...]) -> None:
        self._functions = functions

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object, /) -> None:
        if not isinstance(error, Exception):
            return
        call = cast("RetryCall", running_call(cast("Entry", current_entry.get())))
        functions, redact = self._functions, call.terms.redact
        others = [
            f"{_name_of(functions[(each.attempt - 1) % len(functions)])} failed with "
            f"{describe_failure(each, redact)}"
            for each in call.failures
        ]
        if others:
            add_note_once(error, f"before that, {'; '.join(others)}")
        if isinstance(error, RetryAfter) and call.attempt < len(functions):
            # What a function asks for is no reason to keep the next one waiting.
            raise RetryAfter(0, error.error) from None


def _call_each(functions: tuple[Function, ...]) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        with _Noting(functions):
            return _next_of(functions)(*args, **kwargs)

    return call


def _await_each(functions: tuple[Function, ...]) -> Any:
    async def call(*args: Any, **kwargs: Any) -> Any:
        with _Noting(functions):
            return await _next_of(functions)(*args, **kwargs)

    return call


def _iterate_each(functions: tuple[Function, ...]) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        with _Noting(functions):
            return (yield from _next_of(functions)(*args, **kwargs))

    return call


def _iterate_each_async(functions: tuple[Function, ...]) -> Any:
    async def call(*args: Any, **kwargs: Any) -> Any:
        items = _next_of(functions)(*args, **kwargs)
        step: Any = items.__anext__
        with _Noting(functions):
            while True:
                try:
                    item = await step()
                except StopAsyncIteration:
                    return
                try:
                    sent = yield item
                except GeneratorExit:
                    await items.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001  forwarded
                    step = partial(items.athrow, error)
                else:
                    step = partial(items.asend, sent)

    return call


_CALLERS: dict[str, Callable[[tuple[Function, ...]], Any]] = {
    _SYNC: _call_each,
    _COROUTINE: _await_each,
    _GENERATOR: _iterate_each,
    _ASYNC_GENERATOR: _iterate_each_async,
}
