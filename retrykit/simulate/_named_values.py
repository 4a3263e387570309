"""Immutable values whose fields are given by name."""

from functools import partial
from typing import Any, SupportsIndex

from retrykit._internal.frozen import Frozen, fields_of

__all__ = ["NamedValue"]


class NamedValue(Frozen):
    """An immutable value that is copied and pickled by the names of its fields."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> str | tuple[Any, ...]:
        return partial(type(self), **fields_of(self)), ()
