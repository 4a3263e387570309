"""The base class of registries: a bounded number of objects, built on first use."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import ClassVar, Generic, TypeVar, cast

from retrykit._internal.locks import ForkSafe
from retrykit._internal.validation import check_integer, invalid_setting

__all__ = ["KeyedObjects"]

T = TypeVar("T")


class KeyedObjects(ForkSafe, Generic[T]):
    """Keyed objects; if there are too many, the least recently used one is dropped.

    Attributes:
        at_most: Maximum number of objects kept. Count, >= 1.
        kind: The base class of the objects.
        noun: The word for such an object.
        example: An expression that builds one.
    """

    __slots__ = ("_make", "_objects", "at_most")

    kind: ClassVar[type]
    noun: ClassVar[str]
    example: ClassVar[str]

    def __init__(self, make: Callable[[], T], at_most: int) -> None:
        if not callable(make):
            suggestion = f"name the class, or write lambda: {self.example}"
            raise invalid_setting(
                "make", f"a function that builds a {self.noun}", make, suggestion
            )
        self._make = make
        self.at_most: int = check_integer("at_most", at_most, at_least=1)
        self._objects: OrderedDict[Hashable, T] = OrderedDict()
        super().__init__()

    def __getitem__(self, key: Hashable) -> T:
        with self._lock:
            if key in self._objects:
                self._objects.move_to_end(key)
                return self._objects[key]
        # The user's code runs outside the lock.
        made: object = self._make()
        if not isinstance(made, self.kind):
            rule = f"a new {self.kind.__name__}"
            raise invalid_setting("make()", rule, made, "return one")
        # *make* builds objects of the type that the caller named.
        built = cast("T", made)
        self.prepare(built, key)
        return self.setdefault(key, built)

    def __len__(self) -> int:
        return len(self._objects)

    def __repr__(self) -> str:
        return f"<Registry of {len(self)} {self.noun}s, at most {self.at_most}>"

    def prepare(self, built: T, key: Hashable) -> None:
        """Prepare an object that was built for a key; do nothing by default."""

    def setdefault(self, key: Hashable, value: T) -> T:
        """Return the object of this key, which is *value* if there was none."""
        with self._lock:
            found = self._objects.setdefault(key, value)
            self._objects.move_to_end(key)
            while len(self._objects) > self.at_most:
                self._objects.popitem(last=False)
            return found

    def items(self) -> list[tuple[Hashable, T]]:
        """Return the keys and their objects, the most recently used ones last."""
        with self._lock:
            return list(self._objects.items())
