"""Budgets by key: one for each host, tenant or whatever fails on its own."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, cast, final

from retrykit._internal.validation import invalid_setting
from retrykit.budgets.base import Budget
from retrykit.budgets.lru import LeastRecentlyUsed

__all__ = ["Registry"]

B = TypeVar("B", bound=Budget)


@final
class Registry(Generic[B]):
    """Budgets by key, made when they are first asked for.

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

    Threads may share it. When there are too many, the one that was not asked
    for longest goes; whoever holds it keeps it, and who asks for its key gets
    a new one, which is full.

    Args:
        make: What makes a budget: a class, or a function without parameters.
            It may be called by several threads at once, and not all of what
            it makes is kept.
        at_most: How many are kept. Count, >= 1.

    Raises:
        ConfigError: A parameter is none of these.
    """

    __slots__ = ("_kept", "_make")

    def __init__(self, make: Callable[[], B], *, at_most: int = 1024) -> None:
        if not callable(make):
            suggestion = "name the class, or write lambda: TokenBucket(...)"
            raise invalid_setting(
                "make", "what makes a budget when called", make, suggestion
            )
        self._make = make
        self._kept: LeastRecentlyUsed[B] = LeastRecentlyUsed(at_most)

    def __getitem__(self, key: Hashable) -> B:
        kept = self._kept.get(key)
        if kept is not None:
            return kept
        # The user's code runs outside of the lock.
        return self._kept.setdefault(key, self._made())

    def __len__(self) -> int:
        return len(self._kept.items())

    def __repr__(self) -> str:
        return f"<Registry of {len(self)} budgets, at most {self._kept.at_most}>"

    def balances(self) -> dict[Hashable, float]:
        """Return the balance of each budget by its key, as gauges show them.

        Returns:
            A new dict; the key that was asked for last is at its end.
        """
        return {key: budget.balance for key, budget in self._kept.items()}

    def _made(self) -> B:
        made: object = self._make()
        if not isinstance(made, Budget):
            rule = "a Budget that is made at each call"
            raise invalid_setting("make()", rule, made, "return one")
        # What it makes is a budget of its own type, which the caller named.
        return cast("B", made)
