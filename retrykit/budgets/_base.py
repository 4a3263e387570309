"""Base class of retry budgets; the built-in ones are in `retrykit.budgets`."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable

__all__ = ["Budget"]


class Budget(ABC):
    """Limits the retries of many calls, threads and tasks together.

    The calls of one policy share its budget, and so do all policies that are given the
    same object. A budget of your own must have `balance`, `withdraw` and `deposit`; if
    the last two are coroutine functions, it works for async functions only. Many
    threads may call its methods at once.
    """

    @property
    @abstractmethod
    def balance(self) -> float:
        """The current balance in the budget's own unit, for gauges."""

    @abstractmethod
    def withdraw(
        self, error: Exception | None, /
    ) -> float | Awaitable[float | None] | None:
        """Pay for one retry, if the balance allows it.

        Args:
            error: The error of the attempt; None if its result was rejected, or to pay
                for a hedge.

        Returns:
            The cost, >= 0; None to prevent the retry.
        """

    @abstractmethod
    def deposit(self, cost: float | None, /) -> Awaitable[None] | None:
        """Record that a call succeeded.

        Args:
            cost: The cost of its last retry; None if no retry was paid for.
        """

    def refund(self, cost: float, /) -> None:  # noqa: B027  optional
        """Refund the cost of a retry that was not made because a limit refused it.

        Args:
            cost: The cost that `withdraw` returned, >= 0.
        """

    def failed(self, *, first: bool, retryable: bool) -> None:  # noqa: B027  optional
        """Record a failed attempt, before its retry is paid for.

        Of a hedged attempt, each failed send is recorded.

        Args:
            first: Whether it was the first attempt of its call.
            retryable: Whether the policy's conditions, as opposed to its
                limits, allow a retry.
        """
