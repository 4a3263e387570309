"""Admission: limits allow each attempt, and hear of its outcome.

They are asked in order, and their leases are reported or given back in reverse.
"""

from typing import TYPE_CHECKING, Any

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
    from retrykit._core.policy import Policy

__all__ = ["at_host", "check_admission", "foresee", "give_back", "join_limits"]
__all__ += ["log_fault_of_lease", "report_failure", "report_success"]


def check_admission(name: str, value: object) -> tuple[Limit | Registry[Any], ...]:
    """Return the limits of a list of them, and registries of one for each host.

    Raises:
        ConfigError: *value* is no list of limits, or has one twice.
    """
    # Not a tuple of a tuple: a limit is no iterable.
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
            raise invalid_setting(item, rule, each, suggestion)
        if any(each is other for other in value[:index]):
            rule = "in the list once, since each attempt would ask it twice"
            raise invalid_setting(item, rule, each)
    return tuple(value)


def join_limits(policy: "Policy") -> None:
    """Check that the limits of a policy are asked by none that judges differently."""
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
            raise invalid_setting("admission", rule, limit, suggestion)
        limit.join(conditions)


def at_host(policy: "Policy", host: str | None) -> "Policy":
    """Return a policy with the limits of a host in place of registries.

    Without them, if there is no host.
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
    """Return leases whose attempt was not made, or says nothing."""
    while leases:
        lease = leases.pop()
        try:
            lease.ignored()
        except Exception as fault:  # noqa: BLE001  the call is not about it
            log_fault(logging.ERROR, fault, "a limit failed on a lease")


def report_success(
    limits: tuple[Limit, ...], leases: list[Lease], result: object
) -> None:
    """Report an attempt whose result was accepted."""
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
    """Report an attempt that failed.

    By the policy's judgement it is a failure if its conditions allow a retry. A limit
    with conditions of its own judges for itself.
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


def foresee(limits: tuple[Limit, ...], delay: float) -> tuple[Limit, Refusal] | None:
    """Return the limit that will still refuse after a delay, and its refusal."""
    for limit in limits:
        try:
            refusal = limit.refusal_after(delay)
        except Exception as fault:  # noqa: BLE001  it is asked again after the delay
            log_fault(logging.ERROR, fault, "a limit failed on a delay")
            continue
        if refusal is not None:
            return limit, refusal
    return None
