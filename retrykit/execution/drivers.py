"""A function put under a policy: checked, and driven in one of the two colours.

Everything that calls under a policy, decorated or not, goes through here.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.validation import invalid_setting
from retrykit.execution import async_driver, sync_driver
from retrykit.execution.attempt_timeout import with_timeout, with_timeout_argument
from retrykit.execution.callables import (
    check_retryable,
    check_sync_compatible,
    ensure_awaitable,
    qualified_name,
)
from retrykit.execution.nesting import attempt_time_limit
from retrykit.policy.timeouts import AsArgument
from retrykit.state.retry_state import RetryState

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["build_driver", "driver_factory", "prepare_attempt"]


def build_driver(
    policy: "Policy",
    fn: Callable[..., Any],
    *,
    awaited: bool,
    resumed: RetryState | None = None,
) -> Callable[..., Any]:
    """Return *fn* under a policy, in one of the two colours.

    Args:
        policy: What the calls are held to.
        fn: What is called.
        awaited: Whether the function that is returned is to be awaited.
        resumed: The state that every call goes on from, if there is one.

    Raises:
        ConfigError: *fn* cannot be retried, or not in that colour.
    """
    return driver_factory(policy, fn, awaited=awaited)(qualified_name(fn), resumed)


def driver_factory(
    policy: "Policy", fn: Callable[..., Any], *, awaited: bool
) -> Callable[[str, RetryState | None], Callable[..., Any]]:
    """Return what makes drivers of *fn*, for calls of several names.

    Args:
        policy: What the calls are held to.
        fn: What is called.
        awaited: Whether the calls are to be awaited.

    Returns:
        A function of a name, which is told where the policy has none, and of
        the state that every call goes on from or None. It returns what `build_driver`
        returns.

    Raises:
        ConfigError: *fn* cannot be retried, or not in that colour.
    """
    called = prepare_attempt(policy, fn, awaited=awaited)
    return partial(
        async_driver.make_driver if awaited else sync_driver.make_driver, policy, called
    )


def prepare_attempt(
    policy: "Policy", fn: Callable[..., Any], *, awaited: bool
) -> Callable[..., Any]:
    """Return what makes one attempt of *fn*, within its timeout.

    Args:
        policy: What the calls are held to.
        fn: What is called.
        awaited: Whether what is returned is to be awaited.

    Raises:
        ConfigError: *fn* cannot be retried, or not in that colour.
    """
    check_retryable(fn)
    if not awaited and is_coroutine_function(fn):
        suggestion = "use acall or arun, or decorate it with retry or aretry"
        raise invalid_setting("fn", "a function that is not async", fn, suggestion)
    if not awaited:
        check_sync_compatible(policy)
    called, timeout = fn, policy.attempt_timeout
    if isinstance(timeout, AsArgument):
        called = with_timeout_argument(fn, timeout, attempt_time_limit)
    if not awaited:
        return called
    called = ensure_awaitable(called)
    return (
        with_timeout(called, attempt_time_limit)
        if isinstance(timeout, float)
        else called
    )
