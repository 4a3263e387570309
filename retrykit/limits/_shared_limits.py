"""Base class of the built-in limits, and limits that a process shares by scope."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

from retrykit._internal.keyed_objects import KeyedObjects
from retrykit._internal.shareable import Shareable, find_shared
from retrykit._internal.validation import user_facing
from retrykit.limits._base import Limit
from retrykit.limits._registry import Registry

__all__ = ["SerializableLimit", "shared", "states"]


_SHARED: Registry[Any] = Registry(cast("Any", Limit))


class SerializableLimit(Shareable, Limit):
    """A limit with settings that can be printed, written as data and pickled.

    Only the settings are written, never the state: copied, pickled or read back, a
    limit is new. A limit with a scope comes back as the shared limit of that scope.
    Limits are equal only if they are the same object.

    Attributes:
        kind: Its name in data.
        scope: The scope under which `shared` returns it; None without a scope.
    """

    shared_objects: ClassVar[KeyedObjects[Any]] = _SHARED


L = TypeVar("L", bound=SerializableLimit)


@user_facing
def shared(scope: str, make: Callable[[], L]) -> L:
    """Return this process's limit for a scope, making it on first use.

    >>> from retrykit.limits import CircuitBreaker
    >>> shared("host:api.example", make=CircuitBreaker)
    shared('host:api.example', make=CircuitBreaker)
    >>> _ is shared("host:api.example", make=CircuitBreaker)
    True

    1,024 scopes are kept; beyond that the least recently used one is dropped, though
    functions keep the limit they have.

    Args:
        scope: ``"process"``, ``"host:..."`` or ``"key:..."``.
        make: Builds the limit, and one to compare with it at each later call: a class
            of `retrykit.limits`, or a function without parameters.

    Raises:
        ConfigError: *scope* has another form, *make* builds no new limit, or the limit
            of this scope has other settings.
    """
    rule = "a function that builds a limit of retrykit.limits"
    # It has the type of what was made.
    return cast("L", find_shared(scope, make, SerializableLimit, rule))


def states() -> dict[str, str]:
    """Return the state of each shared limit by its scope, for gauges.

    Returns:
        A new dict, with the most recently used scope at its end.
    """
    every = _SHARED.states()
    return {str(scope): state for scope, state in every.items()}
