"""Conditions on results, release of rejected results, and checks of predicates."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, cast

from retrykit._conditions import (
    aread_answer,
    format_value,
    read_answer,
    reject_awaitable,
)
from retrykit._core.call import RetryCall
from retrykit._core.events import function_of
from retrykit._core.failures import Failure, without_bulk
from retrykit._internal.error_texts import log_fault
from retrykit._internal.introspection import (
    accepts_one_argument,
    is_awaitable,
    is_coroutine_function,
)
from retrykit._internal.late_modules import logging
from retrykit._internal.tracebacks import close_errors, drop_frames
from retrykit._internal.validation import invalid_setting

if TYPE_CHECKING:
    from retrykit._core.policy import Policy
    from retrykit._core.rules import Rule

__all__ = ["NEEDS_ARETRY", "ResultCondition", "amatch_result", "arelease_result"]
__all__ += ["check_predicates", "check_result_condition", "format_value"]
__all__ += ["Judges", "Rejection", "judges_of", "match_result"]
__all__ += ["arelease_with", "rejecting_predicate", "release_before"]
__all__ += ["release_result", "release_with"]


ResultCondition = Callable[[Any], bool] | Callable[[Any], Awaitable[bool]]
"""A predicate of the result: true rejects it. It may be async under `aretry`.

If it has a method ``release(result)``, that is called with each rejected result that
another attempt replaces, to close what the result holds open.
"""

NEEDS_ARETRY: Final = "async functions need aretry"
"""The usual suggestion where nothing can be awaited."""


def check_result_condition(name: str, value: object) -> object:
    """Return *value* if it is a predicate of the result, else raise a ConfigError."""
    if isinstance(value, type) or not callable(value):
        rule, suggestion = "a predicate of the result", "write a function"
        raise invalid_setting(name, rule, value, suggestion)
    if not accepts_one_argument(value):
        raise invalid_setting(name, "a predicate that takes the result", value)
    return value


def check_predicates(policy: "Policy", suggestion: str = NEEDS_ARETRY) -> None:
    """Raise an error if a function of a policy is async."""
    predicates: list[tuple[str, object]] = [("give_up_on", policy.give_up_on)]
    conditions: tuple[Rule | Policy, ...] = (policy, *policy.rules)
    for each in conditions:
        predicates += [("on", each.on), ("on_result", each.on_result)]
    predicates += [("fallback", policy.fallback), ("sleep", policy.sleep)]
    predicates += [("observers", function_of(each)) for each in policy.observers]
    for name, predicate in predicates:
        if is_coroutine_function(predicate):
            rule = "a sync function where nothing can await it"
            raise invalid_setting(
                name, rule, predicate, suggestion, code="async-mismatch"
            )


Rejection = tuple[int | None]
"""The index of the rule that rejects a result, from 0, or None if the policy's own
`on_result` does; as a tuple, since None would mean that the result is accepted."""

Judges = tuple[tuple[Rejection, ResultCondition], ...]
"""A policy's conditions on results: those of its rules, then its own."""


def judges_of(policy: "Policy") -> Judges:
    """Return a policy's conditions on results."""
    conditions: list[tuple[int | None, ResultCondition | None]]
    conditions = [(index, rule.on_result) for index, rule in enumerate(policy.rules)]
    conditions.append((None, policy.on_result))
    return tuple(((index,), each) for index, each in conditions if each is not None)


def match_result(judges: Judges, result: object) -> Rejection | None:
    """Return the rejection of a result, or None if all conditions accept it."""
    for rejection, predicate in judges:
        if read_answer("on_result", predicate, predicate(result)):
            return rejection
    return None


async def amatch_result(judges: Judges, result: object) -> Rejection | None:
    """Return the rejection of a result, as `match_result` does."""
    for rejection, predicate in judges:
        if await aread_answer("on_result", predicate, predicate(result)):
            return rejection
    return None


def release_result(policy: "Policy", rule: int | None, result: object) -> None:
    """Release the resources of a result that a rule or the policy itself rejected.

    An open response would hold its connection for as long as the delay lasts.
    """
    release = getattr(rejecting_predicate(policy, rule), "release", None)
    if release is not None:
        release_with(release, result)


def release_with(release: Callable[[Any], object], result: object) -> None:
    """Release the resources of a result with a function; log its error."""
    try:
        reject_awaitable("release", release(result))
    except Exception as fault:  # noqa: BLE001  the call goes on without it
        _log_release_fault(fault)


async def arelease_result(policy: "Policy", rule: int | None, result: object) -> None:
    """Release the resources of a rejected result, as `release_result` does."""
    release = getattr(rejecting_predicate(policy, rule), "release", None)
    if release is not None:
        await arelease_with(release, result)


async def arelease_with(release: Callable[[Any], object], result: object) -> None:
    """Release the resources of a result with a function, as `release_with` does."""
    try:
        released = release(result)
        if is_awaitable(released):
            await released
    except Exception as fault:  # noqa: BLE001  the call goes on without it
        _log_release_fault(fault)


def rejecting_predicate(policy: "Policy", rule: int | None) -> object:
    """Return the `on_result` of a rule, or of the policy itself."""
    return policy.on_result if rule is None else policy.rules[rule].on_result


def _log_release_fault(fault: Exception) -> None:
    log_fault(logging.WARNING, fault, "a rejected result could not be released")


def release_before(
    policy: "Policy",
    call: RetryCall,
    error: Exception | None,
    result: object,
    *,
    keeps: bool,
) -> None:
    """Release what the last failure keeps, if it or the next one is a rejected result.

    Args:
        policy: The policy of the call.
        call: The call, to which the next failure is added.
        error: The error of the next failure; None if its result was rejected.
        result: The result of the next failure.
        keeps: Whether errors keep their frames.
    """
    before = cast("Failure", call.last_failure)
    last = before.error
    if last is None:
        rejecting = rejecting_predicate(policy, before.rule)
        if before.result is not result and not hasattr(rejecting, "release"):
            small = without_bulk(before.result, redact=policy.redact)
            call.tape[-2] = before._replace(result=small)
    elif error is None and isinstance(last, Exception) and not keeps:
        call.keep_locations(before.attempt, drop_frames(last, None))
        close_errors(last, None)
