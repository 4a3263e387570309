"""Builds the driver of a function: checks it, and adds its attempt timeout."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.user_facing import hide_own_frames
from retrykit._internal.validation import invalid_setting
from retrykit.errors import ConfigError
from retrykit.execution import sync_driver
from retrykit.execution.call import attempt_time_limit
from retrykit.execution.callables import (
    check_retryable,
    check_sync_compatible,
    ensure_awaitable,
    qualified_name,
)
from retrykit.policy.timeouts import AsArgument
from retrykit.policy.waiting import check_event_kind, check_sleep_kind
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
    """Return a function that calls *fn* under a policy."""
    try:
        factory = driver_factory(policy, fn, awaited=awaited)
    except ConfigError as error:
        hide_own_frames(error)
        raise
    return factory(qualified_name(fn), resumed, fn)


def driver_factory(
    policy: "Policy", fn: Callable[..., Any], *, awaited: bool
) -> Callable[..., Callable[..., Any]]:
    """Return a factory of drivers for *fn*, one per call name.

    Returns:
        A function of a name, which is used if the policy has none; of the state that
        every call continues, or None; and of the function that events name, by default
        none. It returns what `build_driver` returns.
    """
    attempt = prepare_attempt(policy, fn, awaited=awaited)
    if not awaited:
        return partial(sync_driver.make_driver, policy, attempt)
    # Imported here: sync code needs no event loop.
    from retrykit.execution import async_driver  # noqa: PLC0415

    return partial(async_driver.make_driver, policy, attempt)


def prepare_attempt(
    policy: "Policy", fn: Callable[..., Any], *, awaited: bool
) -> Callable[..., Any]:
    """Return a function that makes one attempt of *fn*, within its timeout."""
    check_retryable(fn)
    if not awaited and is_coroutine_function(fn):
        suggestion = "use acall or arun, or decorate it with retry or aretry"
        raise invalid_setting("fn", "a function that is not async", fn, suggestion)
    policy._derive(_check_async if awaited else _check_sync)
    timeout = policy.attempt_timeout
    if timeout is None:
        return ensure_awaitable(fn) if awaited else fn
    # Imported here: it needs an event loop, and few policies have a timeout.
    from retrykit.execution.attempt_timeout import with_timeout, with_timeout_argument  # noqa: PLC0415

    if not isinstance(timeout, AsArgument):
        return with_timeout(ensure_awaitable(fn), attempt_time_limit)
    attempt = with_timeout_argument(fn, timeout, attempt_time_limit)
    return ensure_awaitable(attempt) if awaited else attempt


def _check_sync(policy: "Policy") -> None:
    """Check that a policy suits a function that nothing awaits."""
    check_event_kind(policy.stop_event, awaited=False)
    check_sleep_kind(policy.sleep, awaited=False)
    check_sync_compatible(policy)


def _check_async(policy: "Policy") -> None:
    """Check that a policy suits a coroutine function."""
    check_event_kind(policy.stop_event, awaited=True)
    check_sleep_kind(policy.sleep, awaited=True)
