"""Budgets by key: one for each host, tenant or other unit that fails on its own."""

from collections.abc import Callable, Hashable
from typing import TypeVar, final

from retrykit._internal.keyed_objects import KeyedObjects
from retrykit._internal.validation import user_facing
from retrykit.budgets._base import Budget

__all__ = ["Registry"]

B = TypeVar("B", bound=Budget)


@final
class Registry(KeyedObjects[B]):
    """Budgets by key, each built on first use. Threads may share a registry.

    >>> from retrykit.budgets import TokenBucket
    >>> hosts = Registry(TokenBucket)
    >>> hosts["api.example"].withdraw(OSError())
    5
    >>> hosts["api.example"] is hosts["api.example"]
    True
    >>> hosts["other.example"].balance
    500.0
    >>> hosts.balances()
    {'api.example': 495.0, 'other.example': 500.0}

    When there are too many budgets, the least recently used one is dropped: callers
    that hold it keep it, and its key gets a new, full budget.

    Args:
        make: Builds a budget: a class, or a function without parameters.
            Several threads may call it at once, and only one result is kept.
        at_most: Maximum number of budgets kept. Count, >= 1.
    """

    __slots__ = ()

    kind = Budget
    noun = "budget"
    example = "TokenBucket(...)"

    @user_facing
    def __init__(self, make: Callable[[], B], *, at_most: int = 1024) -> None:
        super().__init__(make, at_most)

    def balances(self) -> dict[Hashable, float]:
        """Return the balance of each budget by its key, for gauges."""
        return {key: budget.balance for key, budget in self.items()}
