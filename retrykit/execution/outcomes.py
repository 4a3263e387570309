"""Evaluates the outcome of an attempt: conditions, decision, budget.

The sync and the async functions differ in nothing but ``await``.
"""

from retrykit.budgets.base import adeposit, awithdrawal, deposit, withdrawal
from retrykit.execution.controller import Book
from retrykit.execution.nesting import Call
from retrykit.policy.conditions import (
    arejects,
    arelease,
    aruling,
    rejects,
    release,
    ruling,
)
from retrykit.state.final_error import ended_here

__all__ = ["aaccepts", "accepts", "afails", "fails"]


def fails(
    book: Book, call: Call, error: Exception | None, result: object = None
) -> float | None:
    """Write down an error, or a result that is refused, and what follows.

    Args:
        book: The book of the call.
        call: The call.
        error: What the attempt raised; None if its result is refused.
        result: The result that is refused.

    Returns:
        The delay before the next attempt, in seconds. None if the call has
        ended: what it lets out is then the last in *call*, if it `replaces` the
        error.
    """
    policy = book.policy
    own = policy.attempt_timeout is not None and ended_here(error)
    ruled = None if error is None else ruling(policy, error, own=own)
    judged = book.judged(call, error, ruled, result)
    if policy.budget is not None:
        try:
            cost = withdrawal(policy.budget, judged)
        except BaseException:
            book.broken_off(call, judged)
            raise
        judged = book.paid(call, judged, cost)
    delay = book.failed(call, error, judged)
    if delay is not None and error is None:
        release(policy, result)
    return delay


async def afails(
    book: Book, call: Call, error: Exception | None, result: object = None
) -> float | None:
    """Write down an error, or a result that is refused, as `fails` does."""
    policy = book.policy
    own = policy.attempt_timeout is not None and ended_here(error)
    ruled = None if error is None else await aruling(policy, error, own=own)
    judged = book.judged(call, error, ruled, result)
    if policy.budget is not None:
        try:
            cost = await awithdrawal(policy.budget, judged)
        except BaseException:
            book.broken_off(call, judged)
            raise
        judged = book.paid(call, judged, cost)
    delay = book.failed(call, error, judged)
    if delay is not None and error is None:
        await arelease(policy, result)
    return delay


def accepts(book: Book, call: Call, result: object) -> bool:
    """Write down that the call has its result, unless that is refused."""
    policy = book.policy
    if policy.on_result is not None and rejects(policy, result):
        return False
    paid = book.succeeded(call, result)
    if policy.budget is not None:
        deposit(policy.budget, paid)
    return True


async def aaccepts(book: Book, call: Call, result: object) -> bool:
    """Write down that the call has its result, as `accepts` does."""
    policy = book.policy
    if policy.on_result is not None and await arejects(policy, result):
        return False
    paid = book.succeeded(call, result)
    if policy.budget is not None:
        await adeposit(policy.budget, paid)
    return True
