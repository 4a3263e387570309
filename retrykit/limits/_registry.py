"""Limits by key: one for each host, tenant or other unit that fails on its own."""

from collections.abc import Callable, Hashable
from typing import TypeVar, final

from retrykit._internal.keyed_objects import KeyedObjects
from retrykit._internal.validation import user_facing
from retrykit.limits._base import Limit

__all__ = ["Registry"]

L = TypeVar("L", bound=Limit)


@final
class Registry(KeyedObjects[L]):
    """Limits by key, each built on first use. Threads may share a registry.

    >>> from retrykit.limits import CircuitBreaker
    >>> hosts = Registry(CircuitBreaker)
    >>> hosts["api.example"] is hosts["api.example"]
    True
    >>> hosts["other.example"].isolate()
    >>> hosts.states()
    {'api.example': 'closed', 'other.example': 'isolated'}

    Errors of a limit without a name show its key. When there are too many limits, the
    least recently used limit is dropped: callers that hold it keep it, and its key gets
    a new one.

    Args:
        make: Builds a limit: a class, or a function without parameters. Several
            threads may call it at once, and only one result is kept.
        at_most: Maximum number of limits kept. Count, >= 1.
    """

    __slots__ = ()

    kind = Limit
    noun = "limit"
    example = "CircuitBreaker(...)"

    @user_facing
    def __init__(self, make: Callable[[], L], *, at_most: int = 1024) -> None:
        super().__init__(make, at_most)

    def prepare(self, built: L, key: Hashable) -> None:
        """Set the key of a new limit."""
        built.key = str(key)

    def states(self) -> dict[Hashable, str]:
        """Return the state of each limit by its key, for gauges."""
        return {key: limit.state for key, limit in self.items()}
