"""What a retry costs, by the error that it is made for."""

from collections.abc import Iterable, Mapping
from typing import Any, Self, final

from retrykit.checks import refuse, whole
from retrykit.conditions import check_condition
from retrykit.inspection import is_coroutine_function
from retrykit.records import type_name
from retrykit.type_names import text_of, type_of

__all__ = ["Costs"]

_RULE = "pairs of a condition and what it costs"
_PAIR = 2


@final
class Costs(tuple[tuple[Any, int], ...]):
    """Pairs of a condition and a cost; the first condition that holds counts.

    >>> Costs.checked([(TimeoutError, 10), (OSError, 3)])
    ((TimeoutError, 10), (OSError, 3))
    """

    __slots__ = ()

    @classmethod
    def checked(cls, value: object) -> Self:
        """Return pairs as their user wrote them.

        Raises:
            ConfigError: They are no such pairs; or a condition is none, or must
                be awaited; or a cost is no whole number >= 0.
        """
        way_out = "write ((TimeoutError, 10),), with both commas"
        if not isinstance(value, Iterable) or isinstance(value, str | Mapping):
            raise refuse("costs", _RULE, value, way_out)
        pairs = tuple(value)
        for place, pair in enumerate(pairs):
            if not isinstance(pair, tuple | list) or len(pair) != _PAIR:
                raise refuse("costs", _RULE, value, way_out)
            name = f"costs[{place}]"
            if is_coroutine_function(check_condition(name, pair[0])):
                raise refuse(name, "a predicate that answers at once", pair[0])
            whole(name, pair[1], at_least=0)
        return cls((condition, cost) for condition, cost in pairs)

    @classmethod
    def read(cls, data: object) -> Self:
        """Return the costs that `to_dict` wrote.

        Raises:
            ConfigError: *data* is no dict, or names a type that is not known.
        """
        if not isinstance(data, Mapping):
            way_out = 'write {"TimeoutError": 10}'
            raise refuse("costs", "a dict of costs by exception type", data, way_out)
        return cls((type_of("costs", text), cost) for text, cost in data.items())

    def to_dict(self) -> dict[str, int]:
        """Return the costs by the names of the types, in their order.

        Raises:
            ConfigError: A condition is no type that is found by its name.
        """
        data: dict[str, int] = {}
        for condition, cost in self:
            kinds = condition if isinstance(condition, tuple) else (condition,)
            for kind in kinds:
                data.setdefault(text_of("costs", kind), cost)
        return data

    def of(self, error: Exception | None, otherwise: int) -> int:
        """Return what a retry costs after an error; None is a refused result."""
        for condition, cost in self if error is not None else ():
            if isinstance(condition, type | tuple):
                holds = isinstance(error, condition)
            else:
                holds = condition(error)
            if holds:
                return cost
        return otherwise

    def __repr__(self) -> str:
        pairs = [f"({_shown(condition)}, {cost})" for condition, cost in self]
        return f"({', '.join(pairs)}{',' * (len(pairs) == 1)})"


def _shown(condition: object) -> str:
    if isinstance(condition, tuple):
        kinds = [_shown(kind) for kind in condition]
        return f"({', '.join(kinds)}{',' * (len(kinds) == 1)})"
    if isinstance(condition, type):
        return type_name(condition)
    return getattr(condition, "__qualname__", None) or repr(condition)
