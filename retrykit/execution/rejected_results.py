"""Rejected results, and the errors between them: all but the last are released."""

from typing import TYPE_CHECKING, cast

from retrykit._internal.tracebacks import close_errors, drop_frames
from retrykit.execution.call import RetryCall
from retrykit.policy.conditions import rejecting_predicate
from retrykit.state.failures import Failure
from retrykit.state.records import without_bulk

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["release_before"]


def release_before(
    policy: "Policy",
    call: RetryCall,
    error: Exception | None,
    result: object,
    *,
    keeps: bool,
) -> None:
    """Release what the last failure keeps, where it or the next one is a result.

    Args:
        policy: The policy of the call.
        call: The call, to which the next failure is added.
        error: The error of the next failure; None if its result was rejected.
        result: That result.
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
