"""What a budget is: what must pay for each retry, and is shared by many calls.

A budget is asked by the drivers, before they sleep; no decision knows one. The
budgets that there are stand in `retrykit.budgets`.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable

from retrykit.schedules.randomness import MAX_DELAY
from retrykit.state.failures import Evaluation, StopReason
from retrykit.state.fault_log import log_fault, note_policy_fault

__all__ = ["Budget", "adeposit_safely", "awithdraw_safely", "deposit_safely"]
__all__ += ["withdraw_safely"]


class Budget(ABC):
    """What pays for the retries of many calls, threads and tasks.

    The calls of one policy share its budget, and so do all policies that are
    given the same object. For a budget of your own write these methods; where
    `withdraw` and `deposit` are coroutine functions, it is for `aretry` alone.
    They may be called by many threads at once.
    """

    @property
    @abstractmethod
    def balance(self) -> float:
        """What is left, in the budget's own unit; a gauge, which may be shown."""

    @abstractmethod
    def withdraw(
        self, error: Exception | None, /
    ) -> float | Awaitable[float | None] | None:
        """Pay for one retry, if there is enough.

        Args:
            error: What the attempt raised; None if its result was refused.

        Returns:
            What it cost, >= 0; None if the retry is not to be made.
        """

    @abstractmethod
    def deposit(self, cost: float | None, /) -> Awaitable[None] | None:
        """Take note that a call has its result.

        Args:
            cost: What its last retry had cost; None if the first attempt
                succeeded.
        """

    def failed(self, *, first: bool, retryable: bool) -> None:  # noqa: B027  few ask
        """Take note of a failed attempt, before it may be paid for.

        Args:
            first: Whether it was the first of its call.
            retryable: Whether its outcome is one to retry, by the policy's
                conditions and not by its limits.
        """


def withdraw_safely(budget: Budget, judged: Evaluation) -> float | None:
    """Return what a retry cost; None if there is none, or the budget fails."""
    try:
        # Where it must be awaited, it was refused when the function was decorated.
        return _cost(_ask_budget(budget, judged))
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        _refuse(judged[0].error, fault)
        return None


async def awithdraw_safely(budget: Budget, judged: Evaluation) -> float | None:
    """Return what a retry cost; None if there is none, or the budget fails."""
    try:
        cost = _ask_budget(budget, judged)
        return _cost(await cost if isinstance(cost, Awaitable) else cost)
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        _refuse(judged[0].error, fault)
        return None


def _ask_budget(
    budget: Budget, judged: Evaluation
) -> float | Awaitable[float | None] | None:
    failure, follows, retryable = judged
    budget.failed(first=failure.attempt == 1, retryable=retryable)
    if isinstance(follows, StopReason):
        return None
    error = failure.error if isinstance(failure.error, Exception) else None
    return budget.withdraw(error)


def _cost(told: object) -> float | None:
    """Return the cost of a retry, in tokens, as `withdraw` returned it.

    Raises:
        TypeError: It is neither None nor a number >= 0.
    """
    if told is None:
        return None
    if isinstance(told, int | float) and 0 <= told <= MAX_DELAY:
        return float(told)
    msg = f"withdraw() must give None or a number >= 0, got {told!r}"
    raise TypeError(msg)


def deposit_safely(budget: Budget, cost: float | None) -> None:
    """Tell a budget of a call that has its result, which is not to be lost."""
    try:
        budget.deposit(cost)
    except Exception as fault:  # noqa: BLE001  the result must come through
        _log("the budget failed on a result", fault)


async def adeposit_safely(budget: Budget, cost: float | None) -> None:
    """Tell a budget of a call that has its result, which is not to be lost."""
    try:
        taken = budget.deposit(cost)
        if taken is not None:
            await taken
    except Exception as fault:  # noqa: BLE001  the result must come through
        _log("the budget failed on a result", fault)


def _refuse(error: object, fault: Exception) -> None:
    """Say that a budget failed: what it would have paid for is not made."""
    if isinstance(error, Exception):
        note_policy_fault(error, fault)
    else:
        _log("not retried, because the budget failed", fault)


def _log(text: str, fault: Exception) -> None:
    log_fault(logging.ERROR, fault, text)
