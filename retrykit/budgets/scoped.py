"""Budgets that say how they were made, and those that are found by a scope.

How a budget counts is not known here.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

from retrykit._internal.locks import ForkSafe
from retrykit._internal.validation import check_encodable, invalid_setting
from retrykit.budgets.base import Budget
from retrykit.budgets.lru import LeastRecentlyUsed

__all__ = ["ScopedBudget", "balances", "shared"]


class ScopedBudget(ForkSafe, Budget):
    """A budget that is told as an expression, as data, and in a pickle.

    What is told are its settings. What it has left is not: copied, pickled or
    written it comes back as a new one, which is full, since what is left
    belongs to the calls of one process. One with a scope comes back as the
    budget of that scope. Budgets are equal if they are the same object.

    Attributes:
        kind: Its name in data.
        scope: By what `shared` finds it; None if that was not asked for it.
    """

    kind: ClassVar[str]
    scope: str | None = None

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What it was made with, by the names of the parameters."""

    @property
    def expression(self) -> str:
        """The expression that makes one like it, without its scope."""
        plain = type(self)().settings
        settings = self.settings.items()
        told = [f"{name}={x!r}" for name, x in settings if x != plain[name]]
        return f"{type(self).__name__}({', '.join(told)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the budget as plain data, for JSON and TOML.

        Returns:
            A dict of numbers, texts and dicts, to be read by `budget_from`.

        Raises:
            ConfigError: It is made with code: a predicate.
        """
        data = {"kind": self.kind, **self.settings}
        return data | ({"scope": self.scope} if self.scope else {})

    def __repr__(self) -> str:
        if self.scope is None:
            return self.expression
        name, _, told = self.expression.partition("(")
        make = name if told == ")" else f"lambda: {self.expression}"
        return f"shared({self.scope!r}, make={make})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.settings, self.scope)


D = TypeVar("D", bound=ScopedBudget)

_SHARED: LeastRecentlyUsed[ScopedBudget] = LeastRecentlyUsed(1024)


def shared(scope: str, make: Callable[[], D]) -> D:
    """Return the budget of this process that has this scope.

    It is made when its scope is first asked for.

    >>> from retrykit.budgets import RatioBudget, TokenBucket
    >>> shared("host:api.example", make=TokenBucket)
    shared('host:api.example', make=TokenBucket)
    >>> _ is shared("host:api.example", make=TokenBucket)
    True
    >>> shared("host:api.example", make=RatioBudget)
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: make must be what makes TokenBucket(), as for this \
scope before, got RatioBudget(); another budget needs another scope

    1,024 scopes are kept; of more, the one that was not asked for longest is
    forgotten, though not by the policies that have its budget.

    Args:
        scope: For what it is: ``"process"``, ``"host:..."`` or ``"key:..."``.
        make: What makes a budget like it: a class of `retrykit.budgets`, or a
            function without parameters.

    Raises:
        ConfigError: *scope* is no such text, *make* makes no new budget, or the
            budget of this scope has other settings.
    """
    made = _made(make)
    found = _found(_checked(scope), made)
    if type(found) is not type(made) or found.settings != made.settings:
        rule = f"what makes {found.expression}, as for this scope before"
        raise invalid_setting("make", rule, made, "another budget needs another scope")
    # It is of the type of what was made, as was just seen.
    return cast("D", found)


def balances() -> dict[str, float]:
    """Return the balance of each shared budget by its scope, as gauges show them.

    Returns:
        A new dict; the scope that was asked for last is at its end.
    """
    return {str(scope): budget.balance for scope, budget in _SHARED.items()}


def _made(make: object) -> ScopedBudget:
    made = make() if callable(make) else make
    if not callable(make) or not isinstance(made, ScopedBudget):
        rule = "what makes a budget of retrykit.budgets when called"
        suggestion = "name the class, or write lambda: TokenBucket(...)"
        raise invalid_setting("make", rule, made, suggestion)
    return made


def _checked(scope: object) -> str:
    area, _, name = scope.partition(":") if isinstance(scope, str) else ("", "", "")
    named = area in {"host", "key"} and name.strip()
    if not isinstance(scope, str) or not (named or scope == "process"):
        rule = "'process', or a text such as 'host:api.example' or 'key:orders'"
        raise invalid_setting("scope", rule, scope)
    return check_encodable("scope", scope)


def _found(scope: str, made: ScopedBudget) -> ScopedBudget:
    found = _SHARED.setdefault(scope, made)
    # Whoever finds it names it, so that no thread sees it without its name.
    found.scope = scope
    return found


def _again(kind: type[D], settings: dict[str, Any], scope: str | None) -> ScopedBudget:
    made = kind(**settings)
    # What is shared in this process stays, whatever it was where it comes from.
    return made if scope is None else _found(scope, made)
