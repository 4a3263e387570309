"""Admission control: limits that must allow each attempt, and are told its outcome.

The limits are asked in order; their leases are told the outcome, or are given
back, in reverse order.
"""

import math
from typing import TYPE_CHECKING, Any, Final, cast

from retrykit._conditions import format_value
from retrykit._core.failures import Evaluation, StopReason
from retrykit._core.limits import override
from retrykit._internal.error_texts import log_fault
from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.late_modules import logging
from retrykit._internal.validation import invalid_setting
from retrykit.errors import Signal
from retrykit.limits._base import Conditions, Limit
from retrykit.limits._leases import Lease, Refusal
from retrykit.limits._registry import Registry
from retrykit.limits._standalone import judge_error

if TYPE_CHECKING:
    from retrykit._core.call import RetryCall
    from retrykit._core.controller import Asked, RetryController
    from retrykit._core.policy import Policy

__all__ = ["ask", "at_host", "check_admission", "foresee", "give_back", "join_limits"]
__all__ += ["log_fault_of_lease", "note_refusal", "refuse", "report", "report_failure"]
__all__ += ["report_success", "time_left"]


def check_admission(name: str, value: object) -> tuple[Limit | Registry[Any], ...]:
    """Return a list of limits, or of registries of limits, as a tuple.

    Raises:
        ConfigError: *value* is not such a list, has an item twice, or has a limit whose
            `acquire` is async.
    """
    # Not a tuple of a tuple: a limit is not an iterable.
    if isinstance(value, Limit):
        raise invalid_setting(name, "a list of limits", value, "put brackets around it")
    if not isinstance(value, list | tuple):
        rule = "a list of limits"
        raise invalid_setting(name, rule, value, "see retrykit.limits")
    for index, each in enumerate(value):
        item, suggestion = f"{name}[{index}]", "use one of retrykit.limits"
        if not isinstance(each, Limit | Registry):
            if isinstance(each, type) and issubclass(each, Limit):
                suggestion = f"create one: {each.__name__}()"
            raise invalid_setting(item, "a limit", each, suggestion)
        if isinstance(each, Limit) and is_coroutine_function(each.acquire):
            rule = "a limit whose acquire() is sync"
            suggestion = "return a lease whose wait_async() waits"
            raise invalid_setting(item, rule, each, suggestion, code="async-mismatch")
        if any(each is other for other in value[:index]):
            rule = "in the list once, since each attempt would ask it twice"
            raise invalid_setting(item, rule, each, code="not-here")
    return tuple(value)


def join_limits(policy: "Policy") -> None:
    """Tell the limits of a policy how it judges failures.

    Raises:
        ConfigError: A policy that judges failures differently has the same limit, or
            there is a `Registry` outside an HTTP client.
    """
    conditions: Conditions = {
        "on": format_value(policy.on),
        "give_up_on": format_value(policy.give_up_on),
        "on_result": format_value(policy.on_result),
        "rules": ", ".join(format_value(each.on) for each in policy.rules),
    }
    for limit in policy.admission:
        if isinstance(limit, Registry):
            rule = "limits, and a Registry only in an HTTP client, which has hosts"
            suggestion = "take the limit of a key: registry[key]"
            raise invalid_setting("admission", rule, limit, suggestion, code="not-here")
        limit.join(conditions)


def at_host(policy: "Policy", host: str | None) -> "Policy":
    """Return a policy with the limits of a host in place of registries.

    If *host* is None, the registries are left out.
    """
    if not any(isinstance(each, Registry) for each in policy.admission):
        return policy
    limits = [
        each[host] if isinstance(each, Registry) else each
        for each in policy.admission
        if host is not None or not isinstance(each, Registry)
    ]
    return override(policy, admission=tuple(limits))


def give_back(leases: list[Lease]) -> None:
    """Hand back leases whose attempt was not made, or does not count."""
    while leases:
        lease = leases.pop()
        try:
            lease.ignored()
        except Exception as fault:  # noqa: BLE001  the call is not about it
            log_fault(logging.ERROR, fault, "a limit failed on a lease")


def report_success(
    limits: tuple[Limit, ...], leases: list[Lease], result: object
) -> None:
    """Report an accepted result to the limits, which may judge it as a failure."""
    while leases:
        lease, limit = leases.pop(), limits[len(leases)]
        try:
            if limit.judges_results and limit.is_failed_result(result):
                lease.failed()
            else:
                lease.succeeded()
        except Exception as fault:  # noqa: BLE001  the result must come through
            log_fault_of_lease(fault)


def log_fault_of_lease(fault: Exception) -> None:
    """Log an error that a limit raised when a result was reported to it."""
    log_fault(logging.ERROR, fault, "a limit failed on a result")


def report_failure(
    limits: tuple[Limit, ...],
    leases: list[Lease],
    evaluation: Evaluation,
    error: Exception | None,
) -> None:
    """Report a failed attempt to the limits.

    It counts as a failure if the policy's conditions allow a retry, or if a nested call
    gave up. A limit with conditions of its own judges for itself.
    """
    failure, decision, retryable = evaluation
    by_policy = retryable or decision is StopReason.NESTED
    while leases:
        lease, limit = leases.pop(), limits[len(leases)]
        try:
            own = None
            if error is not None:
                own = judge_error(limit, error)
            elif limit.judges_results:
                own = limit.is_failed_result(failure.result)
            if by_policy if own is None else own:
                lease.failed(error.error if isinstance(error, Signal) else error)
            else:
                lease.ignored()
        except Exception as fault:  # noqa: BLE001  the error must come through
            log_fault(logging.ERROR, fault, "a limit failed on an error")


def ask(
    controller: "RetryController", call: "RetryCall", asked: "Asked | None" = None
) -> Lease | float | Exception | None:
    """Ask the limits that have not given a lease yet for the attempt that is due.

    Args:
        controller: The controller of the call.
        call: The call.
        asked: The leases that were given already, and the next limit's answer.

    Returns:
        None if all limits have given a lease; a lease that is a place in a queue; a
        delay in seconds, after which the limits are asked again; or the error to raise,
        if the call has ended.
    """
    leases, limits = call.leases, controller.limits
    if leases is None:
        leases = call.leases = []
    if asked is not None:
        leases += asked[0]
    for limit in limits[len(leases) :]:
        answer = limit.acquire() if asked is None else asked[1]
        asked = None
        if isinstance(answer, Refusal):
            return _refuse(controller, call, limit, answer)
        leases.append(answer)
        if answer.delay == math.inf:
            return answer
        if answer.delay:
            refusal = answer.refuse_long_wait(time_left(controller, call))
            if refusal is not None:
                return refuse(controller, call, refusal)
            return answer.delay
    return None


def refuse(
    controller: "RetryController", call: "RetryCall", refusal: Refusal
) -> float | Exception:
    """Handle a refusal by the limit that gave the last lease, as `ask` does."""
    leases = cast("list[Lease]", call.leases)
    # It was given back.
    leases.pop()
    return _refuse(controller, call, controller.limits[len(leases)], refusal)


def _refuse(
    controller: "RetryController", call: "RetryCall", limit: Limit, refusal: Refusal
) -> float | Exception:
    """Hand back the leases; return a time to wait, or the error that ends the call."""
    controller.give_back(call)
    delay = _delay_until_allowed(controller, call, refusal)
    return controller.record_refusal(call, limit, refusal) if delay is None else delay


def report(
    controller: "RetryController",
    call: "RetryCall",
    evaluation: Evaluation,
    error: Exception | None,
) -> Evaluation:
    """Report a failed attempt to the limits.

    Returns:
        The evaluation. If a limit will still refuse after the delay, the call stops or,
        under ``on_refused="wait"``, waits longer if it has the time.
    """
    failure, decision, retryable = evaluation
    # It has been admitted.
    leases = cast("list[Lease]", call.leases)
    report_failure(controller.limits, leases, evaluation, error)
    if isinstance(decision, str):
        return evaluation
    refused = foresee(controller.limits, decision)
    if refused is None:
        return evaluation
    limit, refusal = refused
    delay = _delay_until_allowed(controller, call, refusal)
    if delay is not None:
        delay = max(delay, decision)
        return Evaluation(failure._replace(delay=delay), delay, retryable)
    note_refusal(call, limit, refusal)
    return Evaluation(failure._replace(delay=None), StopReason.REFUSED, retryable)


def note_refusal(call: "RetryCall", limit: Limit, refusal: Refusal) -> Exception:
    """Record why a limit ended a call, and return the limit's error."""
    error = limit.error_of(refusal)
    call.stop_detail, call.retry_in = str(error), refusal.retry_in
    return error


def _delay_until_allowed(
    controller: "RetryController", call: "RetryCall", refusal: Refusal
) -> float | None:
    """Return how long to wait before a limit is asked again, in seconds.

    None if the policy does not wait for limits, or too little time is left.
    """
    if controller.policy.on_refused != "wait":
        return None
    delay = _POLLING if refusal.retry_in is None else refusal.retry_in
    left = time_left(controller, call)
    return None if left is not None and delay > left else delay


# In seconds: the pause before a limit is asked again, if it cannot tell when it will
# allow an attempt.
_POLLING: Final = 0.25


def time_left(controller: "RetryController", call: "RetryCall") -> float | None:
    """Return how long a call may wait for its limits, in seconds; None if unlimited."""
    ends = [controller.time_left(call)]
    if call.outer_deadline is not None:
        ends.append(call.outer_deadline - call.elapsed)
    known = [end for end in ends if end is not None]
    return max(min(known), 0.0) if known else None


def foresee(limits: tuple[Limit, ...], delay: float) -> tuple[Limit, Refusal] | None:
    """Return the first limit that will refuse after a delay, and its refusal.

    None if no limit will refuse, as far as is known now.
    """
    for limit in limits:
        try:
            refusal = limit.refusal_after(delay)
        except Exception as fault:  # noqa: BLE001  it is asked again after the delay
            log_fault(logging.ERROR, fault, "a limit failed on a delay")
            continue
        if refusal is not None:
            return limit, refusal
    return None
