"""The use of a budget by a call, whose errors and results its faults must not lose."""

from collections.abc import Awaitable

from retrykit._core.failures import Evaluation, StopReason
from retrykit._internal.error_texts import log_fault, note_policy_fault
from retrykit._internal.late_modules import logging
from retrykit.budgets._base import Budget
from retrykit.schedules._randomness import MAX_DELAY

__all__ = ["adeposit_safely", "awithdraw_safely", "deposit_safely"]
__all__ += ["withdraw_safely"]


def withdraw_safely(budget: Budget, evaluation: Evaluation) -> float | None:
    """Return the cost of a retry; None if it is not allowed, or the budget fails."""
    try:
        # An async budget was rejected when the function was decorated.
        return _check_cost(_ask_budget(budget, evaluation))
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        _note_fault(evaluation.failure.error, fault)
        return None


async def awithdraw_safely(budget: Budget, evaluation: Evaluation) -> float | None:
    """Return the cost of a retry; None if it is not allowed, or the budget fails."""
    try:
        cost = _ask_budget(budget, evaluation)
        return _check_cost(await cost if isinstance(cost, Awaitable) else cost)
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        _note_fault(evaluation.failure.error, fault)
        return None


def _ask_budget(
    budget: Budget, evaluation: Evaluation
) -> float | Awaitable[float | None] | None:
    failure, decision, retryable = evaluation
    budget.failed(first=failure.attempt == 1, retryable=retryable)
    if isinstance(decision, StopReason):
        return None
    error = failure.error if isinstance(failure.error, Exception) else None
    return budget.withdraw(error)


def _check_cost(cost: object) -> float | None:
    """Return the cost of a retry as `withdraw` returned it."""
    if cost is None:
        return None
    if isinstance(cost, int | float) and 0 <= cost <= MAX_DELAY:
        return float(cost)
    msg = f"withdraw() must give None or a number >= 0, got {cost!r}"
    raise TypeError(msg)


def deposit_safely(budget: Budget, cost: float | None) -> None:
    """Record a success with a budget; log its fault rather than lose the result."""
    try:
        budget.deposit(cost)
    except Exception as fault:  # noqa: BLE001  the result must come through
        log_fault(logging.ERROR, fault, "the budget failed on a result")


async def adeposit_safely(budget: Budget, cost: float | None) -> None:
    """Record a success with a budget; log its fault rather than lose the result."""
    try:
        deposited = budget.deposit(cost)
        if deposited is not None:
            await deposited
    except Exception as fault:  # noqa: BLE001  the result must come through
        log_fault(logging.ERROR, fault, "the budget failed on a result")


def _note_fault(error: object, fault: Exception) -> None:
    """Report that a retry was not made because the budget failed."""
    if isinstance(error, Exception):
        note_policy_fault(error, fault)
    else:
        log_fault(logging.ERROR, fault, "not retried, because the budget failed")
