"""Introspection of callables, without calling them."""

import functools
from collections.abc import Awaitable, Callable
from types import FunctionType, GeneratorType, MethodType
from typing import Any, SupportsIndex, TypeGuard, final

from retrykit._internal.late_modules import inspect
from retrykit._internal.validation import undecorated

__all__ = ["LateSignature", "accepts_no_argument", "accepts_one_argument"]
__all__ += ["is_async_generator_function", "is_awaitable", "is_coroutine_function"]
__all__ += ["is_generator_function", "is_plain_function", "matches_underlying"]
__all__ += ["qualified_name", "raises_errors"]

# Flags of code objects, as in `inspect`, which takes milliseconds to import.
_GENERATOR = 0x20
_COROUTINE = 0x80
_ITERABLE_COROUTINE = 0x100
_ASYNC_GENERATOR = 0x200
_LATER = _GENERATOR | _COROUTINE | _ITERABLE_COROUTINE | _ASYNC_GENERATOR


def is_plain_function(value: object) -> bool:
    """Return whether *value* is a Python function that runs when it is called.

    A function with attributes does not count: it may be marked as something else.
    """
    return (
        type(value) is FunctionType
        and not value.__dict__
        and not value.__code__.co_flags & _LATER
    )


def is_coroutine_function(value: object) -> bool:
    """Return whether calling *value* returns a coroutine.

    True for coroutine functions, partials of them, and objects whose ``__call__`` is
    one.
    """
    # Most conditions are types, or left out; most functions are plain.
    if value is None or type(value) in {type, tuple} or is_plain_function(value):
        return False
    return matches_underlying(_makes_coroutine, value)


def _makes_coroutine(value: object) -> bool:
    flags = _code_flags(value)
    if flags is None:
        return inspect.iscoroutinefunction(value)
    return bool(flags & _COROUTINE)


def is_generator_function(value: object) -> bool:
    """Return whether calling *value* returns a generator, sync or async."""
    flags = _code_flags(value)
    if flags is None:
        return inspect.isgeneratorfunction(value) or inspect.isasyncgenfunction(value)
    return bool(flags & (_GENERATOR | _ASYNC_GENERATOR))


def is_async_generator_function(value: object) -> bool:
    """Return whether calling *value* returns an async generator."""
    flags = _code_flags(value)
    if flags is None:
        return inspect.isasyncgenfunction(value)
    return bool(flags & _ASYNC_GENERATOR)


def _code_flags(value: object) -> int | None:
    """Return the flags of a function's code; None if `inspect` must be asked.

    They are 0 if *value* has no code. Functions with attributes may be marked as
    coroutine functions, and other objects with code may resemble functions.
    """
    if type(value) is FunctionType and not value.__dict__:
        return value.__code__.co_flags
    if not callable(value):
        return 0
    marks = ("__code__", "_is_coroutine_mark")
    return None if any(hasattr(value, mark) for mark in marks) else 0


def is_awaitable(value: object) -> TypeGuard[Awaitable[Any]]:
    """Return whether a value can be awaited, like `inspect.isawaitable` but quicker."""
    if isinstance(value, GeneratorType):
        # Before ``async def``, coroutines were marked generators.
        return bool(value.gi_code.co_flags & _ITERABLE_COROUTINE)
    return value is not None and isinstance(value, Awaitable)


def raises_errors(value: object) -> bool:
    """Return whether an observer or a hint ends the call when it fails.

    If so, it has an attribute `raises_errors` that is True; the errors of others are
    logged.
    """
    return getattr(value, "raises_errors", False) is True


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

    Also true for all callables that are not Python functions or methods, and for all
    with a ``__signature__``.
    """
    plain = type(value) in {FunctionType, MethodType}
    # A ``__signature__`` may differ from the real one.
    if not plain or hasattr(value, "__signature__"):
        return True
    value = undecorated(value) if type(value) is FunctionType else value
    try:
        inspect.signature(value, follow_wrapped=False).bind(None)
    except TypeError:
        return False
    except ValueError:
        # A bound built-in function may have no signature.
        return True
    return True


def matches_underlying(test: Callable[[Any], bool], value: object) -> bool:
    """Return whether a callable passes a test, or the ``__call__`` of its class does.

    Partials are replaced by their functions.
    """
    while isinstance(value, functools.partial):
        value = value.func
    if test(value):
        return True
    call = getattr(type(value), "__call__", None)  # noqa: B004
    return type(value) is not FunctionType and test(call)


def qualified_name(fn: object) -> str:
    """Return the qualified name of a callable, with its module.

    The module is left out if it is ``builtins`` or ``__main__``. A partial has the name
    of its function, and an object without a name has the name of its class.

    >>> qualified_name(functools.partial(functools.wraps, qualified_name))
    'functools.wraps'
    """
    while isinstance(fn, functools.partial):
        fn = fn.func
    named: Any = fn if hasattr(fn, "__qualname__") else type(fn)
    name: str = named.__qualname__
    module = getattr(named, "__module__", None)
    return name if module in {None, "builtins", "__main__"} else f"{module}.{name}"


@final
class LateSignature:
    """A signature that is made when it is first read, since few ever are.

    `inspect.signature` takes it for an `inspect.Signature`.

    >>> late = LateSignature(lambda: inspect.signature(is_awaitable))
    >>> late == inspect.signature(is_awaitable), isinstance(late, inspect.Signature)
    (True, True)

    Args:
        make: Returns the signature.
    """

    __slots__ = ("_made", "_make")

    def __init__(self, make: "Callable[[], inspect.Signature]") -> None:
        self._make = make
        # Without a lock, which a fork could copy: two threads make equal signatures.
        self._made: inspect.Signature | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        return inspect.Signature

    def __getattr__(self, name: str) -> Any:
        return getattr(self._signature, name)

    def __eq__(self, other: object) -> bool:
        return self._signature == other

    def __hash__(self) -> int:
        return hash(self._signature)

    def __repr__(self) -> str:
        return repr(self._signature)

    def __str__(self) -> str:
        return str(self._signature)

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> str | tuple[Any, ...]:
        return self._signature.__reduce_ex__(protocol)

    @property
    def _signature(self) -> "inspect.Signature":
        if self._made is None:
            self._made = self._make()
        return self._made
