"""Frozen values that compare, hash, copy and pickle by their parts.

What frozen dataclasses are, without the half a millisecond that each of them
takes to be made: there are some thirty kinds of schedule, and a program that
never fails should not wait for them.
"""

import inspect
from typing import Any, ClassVar, NoReturn, SupportsIndex

__all__ = ["Value"]


class Value:
    """A value made of the slots that its classes declare with a type.

    >>> class Point(Value):
    ...     __slots__ = ("x", "y")
    ...     x: float
    ...     y: float
    >>> Point(1, y=2) == Point(1, 2), hash(Point(1, 2)) == hash(Point(1, 2))
    (True, True)
    """

    __slots__ = ()
    parts: ClassVar[tuple[str, ...]] = ()
    """The names of its parts."""

    def __init_subclass__(cls) -> None:
        """Take what a class declares as parts, after those of its bases."""
        declared = inspect.get_annotations(cls)
        own = (name for name in declared if name in vars(cls).get("__slots__", ()))
        cls.parts += tuple(name for name in own if not name.startswith("_"))

    def __init__(self, *values: Any, **named: Any) -> None:
        given = dict(zip(self.parts, values, strict=False)) | named
        for name in self.parts:
            object.__setattr__(self, name, given[name])

    def replaced(self, **changes: Any) -> Any:
        """Return the same value with some parts changed."""
        return type(self)(
            **{name: getattr(self, name) for name in self.parts} | changes
        )

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return _facts(self) == _facts(other)

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self.parts)))

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> str | tuple[Any, ...]:
        # A class of the user's that needs no slots is pickled as any object is.
        if hasattr(self, "__dict__"):
            return super().__reduce_ex__(protocol)
        return type(self), tuple(getattr(self, name) for name in self.parts)

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.parts:
            msg = f"{type(self).__name__} is frozen: {name} cannot be set"
            raise AttributeError(msg)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> NoReturn:
        msg = f"{type(self).__name__} is frozen: {name} cannot be deleted"
        raise AttributeError(msg)


def _facts(value: Value) -> list[object]:
    own = [getattr(value, name) for name in value.parts]
    return [*own, getattr(value, "__dict__", None)]
