"""Token bucket that successes refill, as in the AWS SDKs."""

from collections.abc import Iterable, Mapping
from typing import Any, Self, final

from retrykit._conditions import (
    Condition,
    check_condition,
    find_members,
    format_value,
    matches_condition,
)
from retrykit._internal.error_texts import type_from_name, type_to_name
from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.validation import check_integer, invalid_setting, user_facing
from retrykit.budgets._shared_budgets import SerializableBudget

__all__ = ["Costs", "TokenBucket"]

_SUGGESTION = "for fractions of a token multiply all counts by the same number"


@final
class TokenBucket(SerializableBudget):
    """Tokens that retries take and successes return.

    A retry takes its cost, and is not made if fewer tokens are left. A call that
    succeeds after retries returns the cost of its last one; a call that succeeds
    at once adds *reward*. Retries bridge a short outage; in a long one, the load soon
    drops to the load of a caller without retries. Each process has a bucket of its own,
    so many processes together may retry as much as all buckets hold: if there are many,
    choose a `FleetBudget` or a small *capacity*.

    >>> bucket = TokenBucket(capacity=12)
    >>> bucket.withdraw(OSError()), bucket.withdraw(OSError())
    (5, 5)
    >>> bucket.withdraw(OSError()) is None, bucket.balance
    (True, 2.0)
    >>> bucket.deposit(5)  # a call succeeded, and its last retry cost 5
    >>> bucket.deposit(None)  # a call succeeded at its first attempt
    >>> bucket.balance
    8.0

    Since 2026 the SDKs take 14 tokens for a retry, and 5 for one that was
    throttled: ``TokenBucket(cost=14, costs=((Throttled, 5),))``, where
    ``Throttled`` is your client's error. Brooker's bucket of ten retries, to which each
    success adds a tenth of one, is
    ``TokenBucket(100, cost=10, costs=(), refunds=False)``.

    Args:
        capacity: Size of the bucket, which starts full. Tokens, 0 to 2**53 - 1.
        cost: Cost of a retry. Tokens, 0 to 2**53 - 1.
        costs: Pairs of a condition (an Exception type, a tuple of them, or a
            predicate of the error) and the cost of a retry after such an error.
            The first condition that matches counts; if none does, *cost*. A retry
            after an ExceptionGroup costs as much as after the most expensive error
            in it, unless a condition matches the group itself.
        reward: Tokens added by a call that succeeds at its first attempt, 0 to
            2**53 - 1.
        refunds: Whether a call that succeeds after retries returns the cost of its last
            one; if False, it also adds *reward*.

    Source:
        "Retry behavior", AWS SDKs and Tools Reference Guide. The defaults are
        those of the SDKs' standard mode before 2026. M. Brooker, "Fixing retries with
        token buckets and circuit breakers", 2022.
    """

    kind = "token_bucket"

    @user_facing
    def __init__(
        self,
        capacity: int = 500,
        *,
        cost: int = 5,
        costs: Iterable[tuple[Condition, int]] = ((TimeoutError, 10),),
        reward: int = 1,
        refunds: bool = True,
    ) -> None:
        self.capacity: int = _tokens("capacity", capacity)
        self.cost: int = _tokens("cost", cost)
        self.costs: Costs = Costs.checked(costs)
        self.reward: int = _tokens("reward", reward)
        if not isinstance(refunds, bool):
            raise invalid_setting("refunds", "True or False", refunds)
        self.refunds: bool = refunds
        self._tokens: float = self.capacity
        super().__init__()

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that the budget was made with, keyed by name."""
        names = ("capacity", "cost", "costs", "reward", "refunds")
        return {name: getattr(self, name) for name in names}

    @property
    def balance(self) -> float:
        """Tokens left, from 0 to *capacity*."""
        return float(self._tokens)

    def withdraw(self, error: Exception | None, /) -> float | None:
        """Take the cost of a retry, and return it; None if too few tokens are left."""
        # A predicate is the user's code: it may fail, and runs outside the lock.
        cost = self.costs.cost_after(error, self.cost)
        with self._lock:
            if self._tokens < cost:
                return None
            self._tokens -= cost
        return cost

    def deposit(self, cost: float | None, /) -> None:
        """Refund the cost of the last retry, or add the reward.

        The reward is added if there was no retry, or if *refunds* is False.
        """
        # A full bucket takes no lock, so calls that never fail never wait.
        if self._tokens < self.capacity:
            gain = cost if cost is not None and self.refunds else self.reward
            with self._lock:
                self._tokens = min(self._tokens + gain, self.capacity)

    def refund(self, cost: float, /) -> None:
        """Refund the cost of a retry that was not made."""
        with self._lock:
            self._tokens = min(self._tokens + cost, self.capacity)

    @user_facing
    def to_dict(self) -> dict[str, Any]:
        """Return the bucket as plain data, with its costs keyed by error type name.

        Raises:
            ConfigError: *costs* has a predicate, or a type that is not importable.
        """
        return super().to_dict() | {"costs": self.costs.to_dict()}


def _tokens(name: str, value: object) -> int:
    return check_integer(name, value, at_least=0, suggestion=_SUGGESTION)


_COSTS_RULE = "pairs of a condition and what it costs"
_COSTS_SUGGESTION = "write ((TimeoutError, 10),), with both commas"
_PAIR_LENGTH = 2


class Costs(tuple[tuple[Any, int], ...]):
    """Pairs of a condition and a cost; the first condition that matches counts.

    A tuple of types becomes one pair for each type, as in data.

    >>> Costs.checked([(TimeoutError, 10), ((OSError, EOFError), 3)])
    ((TimeoutError, 10), (OSError, 3), (EOFError, 3))
    """

    __slots__ = ()

    @classmethod
    def checked(cls, value: object) -> Self:
        """Return the pairs that a user wrote, one for each type or predicate.

        Raises:
            ConfigError: The value does not consist of pairs, or a pair is invalid.
        """
        if not isinstance(value, Iterable) or isinstance(value, str | Mapping):
            raise invalid_setting("costs", _COSTS_RULE, value, _COSTS_SUGGESTION)
        costs: list[tuple[Any, int]] = []
        for index, pair in enumerate(value):
            if not isinstance(pair, tuple | list) or len(pair) != _PAIR_LENGTH:
                raise invalid_setting("costs", _COSTS_RULE, value, _COSTS_SUGGESTION)
            name, (condition, cost) = f"costs[{index}]", pair
            if is_coroutine_function(check_condition(name, condition)):
                raise invalid_setting(
                    name, "a sync predicate", condition, code="async-mismatch"
                )
            cost = check_integer(name, cost, at_least=0)
            for each in condition if isinstance(condition, tuple) else (condition,):
                # If a type is written twice, its first cost counts.
                if each not in [known for known, _ in costs]:
                    costs.append((each, cost))
        return cls(costs)

    @classmethod
    def read(cls, data: object) -> Self:
        """Return the costs that `to_dict` wrote."""
        if not isinstance(data, Mapping):
            suggestion = 'write {"TimeoutError": 10}'
            raise invalid_setting(
                "costs", "a dict of costs by exception type", data, suggestion
            )
        return cls((type_from_name("costs", text), cost) for text, cost in data.items())

    def to_dict(self) -> dict[str, int]:
        """Return the costs, keyed by exception type name, in order."""
        return {type_to_name("costs", kind): cost for kind, cost in self}

    def cost_after(self, error: Exception | None, default: int) -> int:
        """Return the cost of a retry.

        It is *default* if there is no error, or if no condition matches the error. For
        a group that no condition matches, it is the highest cost of the errors in it.
        """
        if error is None:
            return default
        for condition, cost in self:
            if matches_condition("costs", condition, error):
                return cost
        if isinstance(error, ExceptionGroup):
            return max(self.cost_after(each, default) for each in find_members(error))
        return default

    def __repr__(self) -> str:
        pairs = [f"({format_value(condition)}, {cost})" for condition, cost in self]
        return f"({', '.join(pairs)}{',' * (len(pairs) == 1)})"
