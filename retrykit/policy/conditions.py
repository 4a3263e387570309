"""Conditions of a policy: which results to reject, and checks of all predicates.

The sync and async functions differ in ``await`` alone.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from retrykit._internal.error_conditions import (
    aread_answer,
    format_value,
    read_answer,
    reject_awaitable,
)
from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.validation import invalid_setting
from retrykit.state.fault_log import log_fault

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["NEEDS_ARETRY", "ResultCondition", "arejects_result", "arelease_result"]
__all__ += ["check_predicates", "format_value"]
__all__ += ["rejects_result", "release_result"]

ResultCondition = Callable[[Any], bool] | Callable[[Any], Awaitable[bool]]
"""A predicate of the result: true rejects it. It may be async under `aretry`.

If it has a method ``release(result)``, that is called with each rejected result that
another attempt replaces, to close what the result holds open.
"""

NEEDS_ARETRY: Final = "async functions need aretry"
"""The usual suggestion where nothing can be awaited."""


def check_predicates(policy: "Policy", suggestion: str = NEEDS_ARETRY) -> None:
    """Check that no predicate of a policy is async."""
    predicates = [("on", policy.on), ("give_up_on", policy.give_up_on)]
    predicates += [("on", rule.on) for rule in policy.rules]
    for name, predicate in [*predicates, ("on_result", policy.on_result)]:
        if is_coroutine_function(predicate):
            rule = "a sync function where nothing can await it"
            raise invalid_setting(name, rule, predicate, suggestion)


def rejects_result(policy: "Policy", result: object) -> bool:
    """Return whether a result is to be treated as a failure."""
    predicate = policy.on_result
    return predicate is not None and read_answer(
        "on_result", predicate, predicate(result)
    )


async def arejects_result(policy: "Policy", result: object) -> bool:
    """Return whether a result is to be treated as a failure."""
    predicate = policy.on_result
    return predicate is not None and await aread_answer(
        "on_result", predicate, predicate(result)
    )


def release_result(policy: "Policy", result: object) -> None:
    """Release the resources of a rejected result.

    An open response would hold its connection for as long as the delay lasts.
    """
    release = getattr(policy.on_result, "release", None)
    if release is not None:
        try:
            reject_awaitable("release", release(result))
        except Exception as fault:  # noqa: BLE001  the call goes on without it
            _log_release_fault(fault)


async def arelease_result(policy: "Policy", result: object) -> None:
    """Release the resources of a rejected result, as `release_result` does."""
    release = getattr(policy.on_result, "release", None)
    if release is not None:
        try:
            released = release(result)
            if inspect.isawaitable(released):
                await released
        except Exception as fault:  # noqa: BLE001  the call goes on without it
            _log_release_fault(fault)


def _log_release_fault(fault: Exception) -> None:
    log_fault(logging.WARNING, fault, "a rejected result could not be released")
