"""A budget that is paid by success, as in the AWS SDKs."""

from collections.abc import Iterable
from typing import Any, final

from retrykit._internal.error_conditions import Condition
from retrykit._internal.validation import check_integer
from retrykit.budgets.costs import Costs
from retrykit.budgets.scoped import ScopedBudget

__all__ = ["TokenBucket"]

_SUGGESTION = "to pay with parts of a token multiply all tokens by the same number"


@final
class TokenBucket(ScopedBudget):
    """Tokens that retries take, and that success brings back.

    A retry takes its cost, or is not made if fewer tokens are left. A call that
    succeeds after retries gives the cost of its last one back, one that
    succeeds at once gives *reward*. So short outages are retried through, and
    in a long one a caller soon makes as many calls as it would without
    retrying. Choose it when nothing is known of the rate of the calls.

    >>> bucket = TokenBucket(capacity=12)
    >>> bucket.withdraw(OSError()), bucket.withdraw(OSError())
    (5, 5)
    >>> bucket.withdraw(OSError()) is None, bucket.balance
    (True, 2.0)
    >>> bucket.deposit(5)  # the last cost of a call that has its result
    >>> bucket.deposit(None)  # a call that was never retried
    >>> bucket.balance
    8.0

    Since 2026 the SDKs take 14 tokens for a retry, and 5 for one that was
    throttled: ``TokenBucket(cost=14, costs=((Throttled, 5),))``, where
    ``Throttled`` is your client's error.

    Args:
        capacity: Most tokens there are; the bucket starts full. Count, 0 to
            2**53 - 1.
        cost: What a retry takes. Tokens, 0 to 2**53 - 1.
        costs: Pairs of a condition (an Exception type, a tuple of them, or a
            predicate of the error) and what a retry takes after such an error.
            The first condition that holds counts; if none does, *cost*.
        reward: What a call gives that succeeds at its first attempt.
            Tokens, 0 to 2**53 - 1.

    Raises:
        ConfigError: A parameter is none of these.

    Source:
        "Retry behavior", AWS SDKs and Tools Reference Guide; the numbers of
        before 2026 are those of the standard mode of the SDKs themselves.
    """

    kind = "token_bucket"

    def __init__(
        self,
        capacity: int = 500,
        *,
        cost: int = 5,
        costs: Iterable[tuple[Condition, int]] = ((TimeoutError, 10),),
        reward: int = 1,
    ) -> None:
        self.capacity = _tokens("capacity", capacity)
        self.cost = _tokens("cost", cost)
        self.costs = Costs.checked(costs)
        self.reward = _tokens("reward", reward)
        self._tokens: float = self.capacity
        super().__init__()

    @property
    def settings(self) -> dict[str, Any]:
        """What it was made with, by the names of the parameters."""
        names = ("capacity", "cost", "costs", "reward")
        return {name: getattr(self, name) for name in names}

    @property
    def balance(self) -> float:
        """Tokens that are left, from 0 to *capacity*."""
        return float(self._tokens)

    def withdraw(self, error: Exception | None, /) -> float | None:
        """Take what a retry after this error costs, if there is as much."""
        # A predicate is the user's code: it may fail, and runs without the lock.
        cost = self.costs.of(error, self.cost)
        with self._lock:
            if self._tokens < cost:
                return None
            self._tokens -= cost
        return cost

    def deposit(self, cost: float | None, /) -> None:
        """Give back what the last retry had taken, or the reward for none."""
        # To a full bucket nothing is added, so calls that never fail never wait.
        if self._tokens < self.capacity:
            gain = self.reward if cost is None else cost
            with self._lock:
                self._tokens = min(self._tokens + gain, self.capacity)

    def to_dict(self) -> dict[str, Any]:
        """Return the bucket as plain data; its costs are named by their types."""
        return super().to_dict() | {"costs": self.costs.to_dict()}


def _tokens(name: str, value: object) -> int:
    return check_integer(name, value, at_least=0, suggestion=_SUGGESTION)
