"""Introspection of callables, without calling them."""

import functools
from collections.abc import Awaitable, Callable
from types import FunctionType, GeneratorType, MethodType
from typing import Any, TypeGuard

from retrykit._internal.late_modules import inspect

__all__ = ["accepts_no_argument", "accepts_one_argument", "is_awaitable"]
__all__ += ["is_coroutine_function", "matches_underlying"]


def is_coroutine_function(value: object) -> bool:
    """Return whether calling *value* returns a coroutine.

    True for coroutine functions, partials of them, and objects whose ``__call__`` is
    one.
    """
    # Most conditions are types, or left out.
    if value is None or type(value) in {type, tuple}:
        return False
    return matches_underlying(inspect.iscoroutinefunction, value)


def is_awaitable(value: object) -> TypeGuard[Awaitable[Any]]:
    """Return whether a value can be awaited, as `inspect.isawaitable`, but quickly."""
    if isinstance(value, GeneratorType):
        # Before ``async def``, coroutines were marked generators.
        return bool(value.gi_code.co_flags & _ITERABLE_COROUTINE)
    return value is not None and isinstance(value, Awaitable)


_ITERABLE_COROUTINE = 0x100


def accepts_no_argument(value: Callable[..., object]) -> bool:
    """Return whether *value* can be called without arguments; True if unknown."""
    try:
        inspect.signature(value).bind()
    except TypeError:
        return False
    except ValueError:
        # A built-in function may have no signature.
        return True
    return True


def accepts_one_argument(value: Callable[..., object]) -> bool:
    """Return whether *value* can be called with one argument.

    True for all callables that are not Python functions or methods.
    """
    plain = type(value) in {FunctionType, MethodType}
    # A ``__signature__`` may differ from the real one.
    if not plain or hasattr(value, "__signature__"):
        return True
    try:
        inspect.signature(value, follow_wrapped=False).bind(None)
    except TypeError:
        return False
    except ValueError:
        # A bound built-in function may have no signature.
        return True
    return True


def matches_underlying(test: Callable[[Any], bool], value: object) -> bool:
    """Return whether the function behind a callable passes a test."""
    while isinstance(value, functools.partial):
        value = value.func
    if test(value):
        return True
    call = getattr(type(value), "__call__", None)  # noqa: B004
    return type(value) is not FunctionType and test(call)
