"""Base class of the built-in budgets, and budgets found by a scope."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

from retrykit._internal.locks import ForkSafe
from retrykit._internal.validation import check_encodable, invalid_setting, user_facing
from retrykit.budgets._base import Budget
from retrykit.budgets._registry import Registry

__all__ = ["SerializableBudget", "balances", "shared"]


class SerializableBudget(ForkSafe, Budget):
    """A budget with settings that can be printed, written as data and pickled.

    Only the settings are written, never the balance: copied, pickled or read
    back, a budget is new and full, since a balance belongs to the calls of one
    process. One with a scope comes back as the budget of that scope. Budgets
    are equal only if they are the same object.

    Attributes:
        kind: Its name in data.
        scope: The scope that `shared` was given for it; None without one.
    """

    kind: ClassVar[str]
    scope: str | None = None

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The arguments it was made with, by name."""

    @property
    def expression(self) -> str:
        """The expression that makes an equivalent budget, without its scope."""
        defaults = type(self)().settings
        settings = self.settings.items()
        arguments = [f"{name}={x!r}" for name, x in settings if x != defaults[name]]
        return f"{type(self).__name__}({', '.join(arguments)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the budget as plain data, for JSON and TOML.

        Raises:
            ConfigError: A setting is code: a predicate.
        """
        data = {"kind": self.kind, **self.settings}
        return data | ({"scope": self.scope} if self.scope else {})

    def __repr__(self) -> str:
        if self.scope is None:
            return self.expression
        name, _, arguments = self.expression.partition("(")
        make = name if arguments == ")" else f"lambda: {self.expression}"
        return f"shared({self.scope!r}, make={make})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.settings, self.scope)


D = TypeVar("D", bound=SerializableBudget)


@user_facing
def shared(scope: str, make: Callable[[], D]) -> D:
    """Return this process's budget for a scope, making it on first use.

    >>> from retrykit.budgets import RatioBudget, TokenBucket
    >>> shared("host:api.example", make=TokenBucket)
    shared('host:api.example', make=TokenBucket)
    >>> _ is shared("host:api.example", make=TokenBucket)
    True
    >>> shared("host:api.example", make=RatioBudget)
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: make must be a function that builds TokenBucket(), as \
before in this scope, got RatioBudget(); give another budget another scope

    1,024 scopes are kept; beyond that the least recently used one is dropped,
    though policies keep the budget they have.

    Args:
        scope: ``"process"``, ``"host:..."`` or ``"key:..."``.
        make: Builds an equivalent budget: a class of `retrykit.budgets`, or a
            function without parameters.

    Raises:
        ConfigError: *scope* has another form, *make* builds no new budget, or
            the budget of this scope has other settings.
    """
    budget = _build(make)
    found = _find(_check_scope(scope), budget)
    if type(found) is not type(budget) or found.settings != budget.settings:
        rule = f"a function that builds {found.expression}, as before in this scope"
        suggestion = "give another budget another scope"
        raise invalid_setting("make", rule, budget, suggestion)
    # It has the type of what was made.
    return cast("D", found)


def balances() -> dict[str, float]:
    """Return the balance of each shared budget by its scope, for gauges.

    Returns:
        A new dict, with the most recently used scope at its end.
    """
    return {str(scope): balance for scope, balance in _SHARED.balances().items()}


_SHARED: Registry[SerializableBudget] = Registry(cast("Any", SerializableBudget))


def _build(make: object) -> SerializableBudget:
    budget = make() if callable(make) else make
    if not callable(make) or not isinstance(budget, SerializableBudget):
        rule = "a function that builds a budget of retrykit.budgets"
        suggestion = "name the class, or write lambda: TokenBucket(...)"
        raise invalid_setting("make", rule, budget, suggestion)
    return budget


def _check_scope(scope: object) -> str:
    area, _, name = scope.partition(":") if isinstance(scope, str) else ("", "", "")
    named = area in {"host", "key"} and name.strip()
    if not isinstance(scope, str) or not (named or scope == "process"):
        rule = "'process', or a string such as 'host:api.example' or 'key:orders'"
        raise invalid_setting("scope", rule, scope)
    return check_encodable("scope", scope)


def _find(scope: str, budget: SerializableBudget) -> SerializableBudget:
    found = _SHARED.setdefault(scope, budget)
    # Set by every finder, so that no thread sees a shared budget without scope.
    found.scope = scope
    return found


def _restore(
    kind: type[SerializableBudget], settings: dict[str, Any], scope: str | None
) -> SerializableBudget:
    budget = kind(**settings)
    # The shared budget of this process wins, whatever the settings of the pickle.
    return budget if scope is None else _find(scope, budget)
