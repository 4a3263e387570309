"""Checks whether a callable can be retried, sync or async."""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from retrykit._internal.introspection import (
    is_awaitable,
    is_coroutine_function,
    is_generator_function,
    matches_underlying,
)
from retrykit._internal.validation import check_instance, invalid_setting
from retrykit.policy.conditions import NEEDS_ARETRY, check_predicates
from retrykit.state.retry_state import RetryState

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["check_resumable", "check_retryable", "check_sync_compatible"]
__all__ += ["ensure_awaitable", "qualified_name"]


def check_retryable(fn: object) -> None:
    """Check that *fn* can be retried by calling it again."""
    if not callable(fn):
        raise invalid_setting("fn", "a function or another callable", fn)
    entered = matches_underlying(_makes_context_manager, fn)
    if entered or matches_underlying(is_generator_function, fn):
        rule = "a function that runs when it is called, not a generator function"
        used = "entered" if entered else "iterated"
        suggestion = f"its errors are raised where it is {used}: retry that code, or "
        suggestion += "write a block, for attempt in retrying(...), in it"
        raise invalid_setting("fn", rule, fn, suggestion)


def check_sync_compatible(
    policy: "Policy", *, can_cancel: bool = False, suggestion: str = NEEDS_ARETRY
) -> None:
    """Check that a policy needs no event loop."""
    check_predicates(policy, suggestion)
    budget, timeout = policy.budget, policy.attempt_timeout
    if is_coroutine_function(budget and budget.withdraw):
        rule = "a sync budget where nothing can await it"
        raise invalid_setting("budget", rule, budget, suggestion)
    if isinstance(timeout, float) and not can_cancel:
        rule = "None for sync code, which cannot be cancelled"
        suggestion = "give the client timeout=current_state().remaining, or write "
        suggestion += (
            f"attempt_timeout=AsArgument({timeout:g}), which fills a parameter"
        )
        raise invalid_setting("attempt_timeout", rule, timeout, suggestion)


def check_resumable(state: RetryState) -> None:
    """Check that a call can be resumed from a state."""
    check_instance("state", state, RetryState, "RetryState.from_dict makes one")
    if state.status == "succeeded":
        rule = "of a call that has not succeeded"
        raise invalid_setting("state", rule, state, "there is nothing to resume")


def ensure_awaitable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return *fn* for the async driver, with a check that its results are awaitable."""
    if is_coroutine_function(fn):
        return fn
    annotations = getattr(fn, "__annotations__", None)
    # Objects with dynamic attributes, such as remote ones, have any attribute.
    known: dict[str, object] = annotations if isinstance(annotations, dict) else {}
    returns = known.get("return", Any)
    if returns is None or (isinstance(returns, type) and not _awaitable(returns)):
        rule = "a coroutine function, or one that returns an awaitable, under aretry"
        raise invalid_setting("fn", rule, fn, "decorate it with retry")

    async def awaiting(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        if not is_awaitable(result):
            rule = "a function that returns an awaitable, under aretry"
            raise invalid_setting("fn", rule, fn, "decorate it with retry")
        return await result

    return awaiting


def qualified_name(fn: object) -> str:
    """Return the module and the qualified name of a callable.

    >>> qualified_name(functools.partial(functools.wraps, qualified_name))
    'functools.wraps'
    """
    while isinstance(fn, functools.partial):
        fn = fn.func
    named = fn if hasattr(fn, "__qualname__") else type(fn)
    name: str = getattr(named, "__qualname__", repr(named))
    module = getattr(named, "__module__", None)
    return name if module in {None, "builtins", "__main__"} else f"{module}.{name}"


def _awaitable(kind: type) -> bool:
    return kind in {Any, object} or hasattr(kind, "__await__")


def _makes_context_manager(fn: Any) -> bool:
    """Return whether contextlib made a function from a generator function."""
    if not isinstance(fn, FunctionType):
        return False
    module = fn.__globals__.get("__name__")
    return module == "contextlib" and is_generator_function(
        getattr(fn, "__wrapped__", None)
    )
