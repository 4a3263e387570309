"""What a retry costs, by the error that it is made for."""

from collections.abc import Iterable, Mapping
from typing import Any, Self, final

from retrykit._internal.error_conditions import check_condition, matches_condition
from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.type_names import type_from_name, type_name, type_to_name
from retrykit._internal.validation import check_integer, invalid_setting

__all__ = ["Costs"]

_RULE = "pairs of a condition and what it costs"
_SUGGESTION = "write ((TimeoutError, 10),), with both commas"
_TWO = 2


@final
class Costs(tuple[tuple[Any, int], ...]):
    """Pairs of a condition and a cost; the first condition that holds counts.

    Of several types each has a pair of its own, as in data.

    >>> Costs.checked([(TimeoutError, 10), ((OSError, EOFError), 3)])
    ((TimeoutError, 10), (OSError, 3), (EOFError, 3))
    """

    __slots__ = ()

    @classmethod
    def checked(cls, value: object) -> Self:
        """Return pairs as their user wrote them.

        Raises:
            ConfigError: They are no such pairs; or a condition is none, or must
                be awaited; or a cost is no whole number from 0 to 2**53 - 1.
        """
        if not isinstance(value, Iterable) or isinstance(value, str | Mapping):
            raise invalid_setting("costs", _RULE, value, _SUGGESTION)
        return cls._apart(_pair(n, pair, value) for n, pair in enumerate(value))

    @classmethod
    def read(cls, data: object) -> Self:
        """Return the costs that `to_dict` wrote.

        Raises:
            ConfigError: *data* is no dict, or names a type that is not known.
        """
        if not isinstance(data, Mapping):
            suggestion = 'write {"TimeoutError": 10}'
            raise invalid_setting(
                "costs", "a dict of costs by exception type", data, suggestion
            )
        return cls((type_from_name("costs", text), cost) for text, cost in data.items())

    @classmethod
    def _apart(cls, pairs: Iterable[tuple[Any, int]]) -> Self:
        single: list[tuple[Any, int]] = []
        for condition, cost in pairs:
            for kind in condition if isinstance(condition, tuple) else (condition,):
                # Of a type that is written twice the first cost counts.
                if kind not in [known for known, _ in single]:
                    single.append((kind, cost))
        return cls(single)

    def to_dict(self) -> dict[str, int]:
        """Return the costs by the names of the types, in their order.

        Raises:
            ConfigError: A condition is no type that is found by its name.
        """
        return {type_to_name("costs", kind): cost for kind, cost in self}

    def of(self, error: Exception | None, otherwise: int) -> int:
        """Return what a retry costs after an error; None is a refused result."""
        for condition, cost in self:
            if error is not None and matches_condition("costs", condition, error):
                return cost
        return otherwise

    def __repr__(self) -> str:
        pairs = [f"({_shown(condition)}, {cost})" for condition, cost in self]
        return f"({', '.join(pairs)}{',' * (len(pairs) == 1)})"


def _pair(place: int, pair: object, value: object) -> tuple[object, int]:
    if not isinstance(pair, tuple | list) or len(pair) != _TWO:
        raise invalid_setting("costs", _RULE, value, _SUGGESTION)
    name, (condition, cost) = f"costs[{place}]", pair
    if is_coroutine_function(check_condition(name, condition)):
        raise invalid_setting(name, "a predicate that answers at once", condition)
    return condition, check_integer(name, cost, at_least=0)


def _shown(condition: object) -> str:
    if isinstance(condition, type):
        return type_name(condition)
    return getattr(condition, "__qualname__", None) or repr(condition)
