"""Budgets by key: one for each host, tenant or other unit that fails on its own."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, cast, final

from retrykit._internal.locks import ForkSafe
from retrykit._internal.validation import check_integer, invalid_setting, user_facing
from retrykit.budgets._base import Budget

__all__ = ["Registry"]

B = TypeVar("B", bound=Budget)


@final
class Registry(ForkSafe, Generic[B]):
    """Budgets by key, built on first use. Threads may share it.

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

    When there are too many, the least recently used budget is dropped: callers
    that hold it keep it, and its key gets a new, full one.

    Args:
        make: Builds a budget: a class, or a function without parameters.
            Several threads may call it at once, and only one result is kept.
        at_most: Maximum number of budgets kept. Count, >= 1.
    """

    __slots__ = ("_budgets", "_make", "at_most")

    @user_facing
    def __init__(self, make: Callable[[], B], *, at_most: int = 1024) -> None:
        if not callable(make):
            suggestion = "name the class, or write lambda: TokenBucket(...)"
            raise invalid_setting(
                "make", "a function that builds a budget", make, suggestion
            )
        self._make = make
        self.at_most: int = check_integer("at_most", at_most, at_least=1)
        self._budgets: OrderedDict[Hashable, B] = OrderedDict()
        super().__init__()

    def __getitem__(self, key: Hashable) -> B:
        with self._lock:
            if key in self._budgets:
                self._budgets.move_to_end(key)
                return self._budgets[key]
        # The user's code runs outside the lock.
        budget: object = self._make()
        if not isinstance(budget, Budget):
            rule = "a new Budget"
            raise invalid_setting("make()", rule, budget, "return one")
        # *make* builds budgets of the type that the caller named.
        return self.setdefault(key, cast("B", budget))

    def __len__(self) -> int:
        return len(self._budgets)

    def __repr__(self) -> str:
        return f"<Registry of {len(self)} budgets, at most {self.at_most}>"

    def setdefault(self, key: Hashable, budget: B) -> B:
        """Return the budget of this key, which is *budget* if there was none."""
        with self._lock:
            found = self._budgets.setdefault(key, budget)
            self._budgets.move_to_end(key)
            while len(self._budgets) > self.at_most:
                self._budgets.popitem(last=False)
            return found

    def balances(self) -> dict[Hashable, float]:
        """Return the balance of each budget by its key, for gauges."""
        with self._lock:
            budgets = list(self._budgets.items())
        return {key: budget.balance for key, budget in budgets}
