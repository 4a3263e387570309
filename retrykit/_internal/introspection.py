"""What can be seen of a callable without calling it.

It judges nothing: what may be retried is said in `retrykit.execution.callables`.
"""

import functools
import inspect
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

__all__ = ["accepts_one_argument", "is_coroutine_function", "underlying_call"]


def is_coroutine_function(value: object) -> bool:
    """Return whether calling *value* plainly gives a coroutine.

    True for coroutine functions, partials of them, and objects whose
    ``__call__`` is one.
    """
    return underlying_call(inspect.iscoroutinefunction, value)


def accepts_one_argument(value: Callable[..., object]) -> bool:
    """Return whether a function can be called with one argument.

    Functions written in Python are asked; of other callables it is assumed.
    """
    plain = type(value) in {FunctionType, MethodType}
    # What is said of a signature need not be true of the function that says it.
    if not plain or hasattr(value, "__signature__"):
        return True
    try:
        inspect.signature(value, follow_wrapped=False).bind(None)
    except TypeError:
        return False
    except ValueError:
        # A built-in function that is bound to something says nothing.
        return True
    return True


def underlying_call(test: Callable[[Any], bool], value: object) -> bool:
    """Return whether a test of functions holds for what a callable runs."""
    while isinstance(value, functools.partial):
        value = value.func
    # An object with a coroutine method __call__ is one as much as a function.
    return test(value) or test(getattr(type(value), "__call__", None))  # noqa: B004
