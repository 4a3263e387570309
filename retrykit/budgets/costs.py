"""Costs of a retry by the error that caused it."""

from collections.abc import Iterable, Mapping
from typing import Any, Self, final

from retrykit._internal.error_conditions import (
    check_condition,
    format_condition,
    matches_condition,
)
from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.type_names import type_from_name, type_to_name
from retrykit._internal.validation import check_integer, invalid_setting

__all__ = ["Costs"]

_RULE = "pairs of a condition and what it costs"
_SUGGESTION = "write ((TimeoutError, 10),), with both commas"
_TWO = 2


@final
class Costs(tuple[tuple[Any, int], ...]):
    """Pairs of a condition and a cost; the first condition that matches counts.

    A tuple of types becomes one pair for each type, as in data.

    >>> Costs.checked([(TimeoutError, 10), ((OSError, EOFError), 3)])
    ((TimeoutError, 10), (OSError, 3), (EOFError, 3))
    """

    __slots__ = ()

    @classmethod
    def checked(cls, value: object) -> Self:
        """Return the pairs that a user wrote."""
        if not isinstance(value, Iterable) or isinstance(value, str | Mapping):
            raise invalid_setting("costs", _RULE, value, _SUGGESTION)
        costs: list[tuple[Any, int]] = []
        for index, pair in enumerate(value):
            if not isinstance(pair, tuple | list) or len(pair) != _TWO:
                raise invalid_setting("costs", _RULE, value, _SUGGESTION)
            name, (condition, cost) = f"costs[{index}]", pair
            if is_coroutine_function(check_condition(name, condition)):
                raise invalid_setting(
                    name, "a predicate that answers at once", condition
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
        """Return the costs by the names of their types, in order."""
        return {type_to_name("costs", kind): cost for kind, cost in self}

    def of(self, error: Exception | None, default: int) -> int:
        """Return the cost of a retry after an error, or None for a rejected result."""
        for condition, cost in self:
            if error is not None and matches_condition("costs", condition, error):
                return cost
        return default

    def __repr__(self) -> str:
        pairs = [f"({format_condition(condition)}, {cost})" for condition, cost in self]
        return f"({', '.join(pairs)}{',' * (len(pairs) == 1)})"
