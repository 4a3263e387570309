"""Immutable values that compare, hash, copy and pickle by their fields.

They replace frozen dataclasses, which take half a millisecond each to define: the
package has dozens of such classes, and its import must be fast.
"""

from typing import Any, ClassVar, NoReturn, SupportsIndex, dataclass_transform

__all__ = ["Frozen", "fields_of"]


_set = object.__setattr__


@dataclass_transform(frozen_default=True)
class Frozen:
    """An immutable value; its fields are its annotated, public slots.

    >>> class Point(Frozen):
    ...     __slots__ = ("x", "y")
    ...     x: float
    ...     y: float
    >>> Point(1, y=2) == Point(1, 2), hash(Point(1, 2)) == hash(Point(1, 2))
    (True, True)
    >>> Point(1, 2)
    Point(x=1, y=2)
    >>> Point(1)
    Traceback (most recent call last):
    ...
    TypeError: Point takes x, y
    """

    __slots__ = ()
    _field_names: ClassVar[tuple[str, ...]] = ()
    """The names of the fields."""
    _untyped_slots: ClassVar[tuple[str, ...]] = ()
    """The names of slots without a type: compared, but not fields."""

    def __init_subclass__(cls) -> None:
        """Collect the fields that a class declares, after the fields of its bases."""
        super().__init_subclass__()
        slots = vars(cls).get("__slots__", ())
        slots = (slots,) if isinstance(slots, str) else tuple(slots)
        if not slots:
            return
        declared = cls.__annotations__
        own = [name for name in declared if name in slots and name[0] != "_"]
        untyped = [x for x in slots if x not in declared and x[:2] != "__"]
        # Only if they change: each assignment to a class looks at all its methods.
        if own:
            cls._field_names += tuple(own)
        if untyped:
            cls._untyped_slots += tuple(untyped)
        if cls._field_names and "__match_args__" not in vars(cls):
            # Type checkers infer it, and reject an assignment.
            type.__setattr__(cls, "__match_args__", cls._field_names)

    def __init__(self, *values: Any, **named: Any) -> None:
        names = self._field_names
        if len(values) == len(names) and not named:
            # Most are made so, among them every event.
            for name, value in zip(names, values):  # noqa: B905  quicker
                _set(self, name, value)
            return
        given = dict(zip(self._field_names, values, strict=False)) | named
        if len(values) + len(named) != len(given) or given.keys() != {
            *self._field_names
        }:
            msg = f"{type(self).__name__} takes {', '.join(self._field_names)}"
            raise TypeError(msg)
        for name in self._field_names:
            object.__setattr__(self, name, given[name])

    def replace(self, **changes: Any) -> Any:
        """Return a copy with some fields changed."""
        return type(self)(**fields_of(self) | changes)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return _comparison_key(self) == _comparison_key(other)

    def __repr__(self) -> str:
        if not type(self)._field_names:
            return super().__repr__()
        fields = (f"{name}={value!r}" for name, value in fields_of(self).items())
        return f"{type(self).__qualname__}({', '.join(fields)})"

    def __hash__(self) -> int:
        return hash((type(self), *fields_of(self).values()))

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> str | tuple[Any, ...]:
        # A user's subclass is pickled like any object.
        if hasattr(self, "__dict__") or type(self)._untyped_slots:
            return super().__reduce_ex__(protocol)
        return type(self), tuple(fields_of(self).values())

    def __setstate__(self, state: Any) -> None:
        # As for any object: its dict, or its dict and its slots.
        for values in state if isinstance(state, tuple) else (state,):
            for name, value in (values or {}).items():
                object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        if name in type(self)._field_names:
            msg = f"{type(self).__name__} is frozen: {name} cannot be set"
            raise AttributeError(msg)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> NoReturn:
        msg = f"{type(self).__name__} is frozen: {name} cannot be deleted"
        raise AttributeError(msg)


def fields_of(value: Frozen) -> dict[str, Any]:
    """Return the fields of a value, keyed by name."""
    return {name: getattr(value, name) for name in type(value)._field_names}


def _comparison_key(value: Frozen) -> list[object]:
    untyped = [getattr(value, name, None) for name in type(value)._untyped_slots]
    return [*fields_of(value).values(), *untyped, getattr(value, "__dict__", None)]
