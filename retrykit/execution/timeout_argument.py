"""A callable whose calls take only so long: each attempt with its timeout.

It knows nothing of policies. What calls under one reads the timeout anew for
every attempt, since less and less of the time remains.
"""

import inspect
import math
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from retrykit._internal.validation import invalid_setting
from retrykit.execution.attempt_timeout import timeout_scope
from retrykit.policy.timeouts import AsArgument

__all__ = ["with_timeout", "with_timeout_argument"]


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
