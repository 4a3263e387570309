"""Base class of the built-in budgets, and budgets that a process shares by scope."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

from retrykit._internal.clocks import sync_clock
from retrykit._internal.fast_path import blockers
from retrykit._internal.keyed_objects import KeyedObjects
from retrykit._internal.shareable import Shareable, find_shared
from retrykit._internal.validation import invalid_setting, user_facing
from retrykit.budgets._base import Budget
from retrykit.budgets._registry import Registry

__all__ = ["SerializableBudget", "balances", "check_clock", "shared"]


_SHARED: Registry[Any] = Registry(cast("Any", Budget))


class SerializableBudget(Shareable, Budget):
    """A budget with settings that can be printed, written as data and pickled.

    Only the settings are written, never the balance: copied, pickled or read
    back, a budget is new and full, since a balance belongs to the calls of one
    process. A budget with a scope comes back as the budget of that scope. Budgets are
    equal only if they are the same object.

    Attributes:
        kind: The name of its class in data.
        scope: The scope under which `shared` returns it; None without a scope.
    """

    shared_objects: ClassVar[KeyedObjects[Any]] = _SHARED


def check_clock(clock: object) -> Callable[[], float]:
    """Return *clock*; if it is None, a function that reads the clock of calls."""
    if clock is None:
        return _read_clock
    if not callable(clock):
        rule = "a function that returns seconds"
        raise invalid_setting("clock", rule, clock, "write time.monotonic")
    return cast("Callable[[], float]", clock)


def _read_clock() -> float:
    return sync_clock.now() if blockers else sync_clock.real.now()


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
before in this scope, got RatioBudget(); give another budget another scope  \
[contradiction]

    1,024 scopes are kept; beyond that the least recently used one is dropped,
    though policies keep the budget they have.

    Args:
        scope: ``"process"``, ``"host:..."`` or ``"key:..."``.
        make: Builds the budget, and one to compare with it at each later call: a class
            of `retrykit.budgets`, or a function without parameters.

    Raises:
        ConfigError: *scope* has another form, *make* builds no budget of
            `retrykit.budgets`, or the budget of this scope is not equivalent.
    """
    rule = "a function that builds a budget of retrykit.budgets"
    # It has the type of what was made.
    return cast("D", find_shared(scope, make, SerializableBudget, rule))


def balances() -> dict[str, float]:
    """Return the balance of each shared budget, keyed by scope, for gauges.

    Returns:
        A new dict, with the most recently used scope at its end.
    """
    every = _SHARED.balances()
    return {str(scope): balance for scope, balance in every.items()}
