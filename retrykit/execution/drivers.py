"""A function put under a policy: checked, and driven in one of the two colours.

Everything that calls under a policy, decorated or not, goes through here.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.validation import refuse
from retrykit.execution import async_driver, sync_driver
from retrykit.execution.callables import (
    check_colour,
    check_retryable,
    name_of,
    with_await,
)
from retrykit.execution.nesting import allowance
from retrykit.execution.timeout_argument import bounded, filled
from retrykit.policy.settings import Settings
from retrykit.policy.timeouts import AsArgument
from retrykit.state.retry_state import RetryState

__all__ = ["driver", "drivers", "prepared"]


def driver(
    policy: Settings,
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
    return drivers(policy, fn, awaited=awaited)(name_of(fn), resumed)


def drivers(
    policy: Settings, fn: Callable[..., Any], *, awaited: bool
) -> Callable[[str, RetryState | None], Callable[..., Any]]:
    """Return what makes drivers of *fn*, for calls of several names.

    Args:
        policy: What the calls are held to.
        fn: What is called.
        awaited: Whether the calls are to be awaited.

    Returns:
        A function of a name, which is told where the policy has none, and of
        the state that every call goes on from or None. It returns what `driver`
        returns.

    Raises:
        ConfigError: *fn* cannot be retried, or not in that colour.
    """
    called = prepared(policy, fn, awaited=awaited)
    return partial(async_driver.drive if awaited else sync_driver.drive, policy, called)


def prepared(
    policy: Settings, fn: Callable[..., Any], *, awaited: bool
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
        way_out = "use acall or arun, or decorate it with retry or aretry"
        raise refuse("fn", "a function that is not async", fn, way_out)
    if not awaited:
        check_colour(policy)
    called, timeout = fn, policy.attempt_timeout
    if isinstance(timeout, AsArgument):
        called = filled(fn, timeout, allowance)
    if not awaited:
        return called
    called = with_await(called)
    return bounded(called, allowance) if isinstance(timeout, float) else called
