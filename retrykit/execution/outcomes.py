"""Evaluates the outcome of an attempt: conditions, decision, budget.

The sync and the async functions differ in nothing but ``await``.
"""

from retrykit.budgets.base import (
    adeposit_safely,
    awithdraw_safely,
    deposit_safely,
    withdraw_safely,
)
from retrykit.execution.controller import RetryController
from retrykit.execution.nesting import Call
from retrykit.policy.conditions import (
    amatch_error,
    arejects_result,
    arelease_result,
    match_error,
    rejects_result,
    release_result,
)
from retrykit.state.final_error import is_own_timeout

__all__ = ["ahandle_failure", "ahandle_result", "handle_failure", "handle_result"]


def handle_failure(
    book: RetryController, call: Call, error: Exception | None, result: object = None
) -> float | None:
    """Write down an error, or a result that is refused, and what follows.

    Args:
        book: The book of the call.
        call: The call.
        error: What the attempt raised; None if its result is refused.
        result: The result that is refused.

    Returns:
        The delay before the next attempt, in seconds. None if the call has
        ended: what it raises is then the last in *call*, if it
        `raises_another_error`.
    """
    policy = book.policy
    own = policy.attempt_timeout is not None and is_own_timeout(error)
    ruled = None if error is None else match_error(policy, error, own=own)
    judged = book.evaluate_failure(call, error, ruled, result)
    if policy.budget is not None:
        try:
            cost = withdraw_safely(policy.budget, judged)
        except BaseException:
            book.record_abandoned(call, judged)
            raise
        judged = book.apply_budget(call, judged, cost)
    delay = book.record_failure(call, error, judged)
    if delay is not None and error is None:
        release_result(policy, result)
    return delay


async def ahandle_failure(
    book: RetryController, call: Call, error: Exception | None, result: object = None
) -> float | None:
    """Write down an error, or a result that is refused, as `handle_failure` does."""
    policy = book.policy
    own = policy.attempt_timeout is not None and is_own_timeout(error)
    ruled = None if error is None else await amatch_error(policy, error, own=own)
    judged = book.evaluate_failure(call, error, ruled, result)
    if policy.budget is not None:
        try:
            cost = await awithdraw_safely(policy.budget, judged)
        except BaseException:
            book.record_abandoned(call, judged)
            raise
        judged = book.apply_budget(call, judged, cost)
    delay = book.record_failure(call, error, judged)
    if delay is not None and error is None:
        await arelease_result(policy, result)
    return delay


def handle_result(book: RetryController, call: Call, result: object) -> bool:
    """Write down that the call has its result, unless that is refused."""
    policy = book.policy
    if policy.on_result is not None and rejects_result(policy, result):
        return False
    paid = book.record_success(call, result)
    if policy.budget is not None:
        deposit_safely(policy.budget, paid)
    return True


async def ahandle_result(book: RetryController, call: Call, result: object) -> bool:
    """Write down that the call has its result, as `handle_result` does."""
    policy = book.policy
    if policy.on_result is not None and await arejects_result(policy, result):
        return False
    paid = book.record_success(call, result)
    if policy.budget is not None:
        await adeposit_safely(policy.budget, paid)
    return True
