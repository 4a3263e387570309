"""A bounded mapping that lets go of what was not used for longest.

What is kept is not known here.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar, final

from retrykit._internal.locks import ForkSafe
from retrykit._internal.validation import check_integer

__all__ = ["LeastRecentlyUsed"]

T = TypeVar("T")


@final
class LeastRecentlyUsed(ForkSafe, Generic[T]):
    """What was used last, by key. Threads may share it.

    Args:
        at_most: How many are kept. Count, >= 1.

    Raises:
        ConfigError: *at_most* is no such number.
    """

    __slots__ = ("_kept", "at_most")

    def __init__(self, at_most: int) -> None:
        self.at_most = check_integer("at_most", at_most, at_least=1)
        self._kept: OrderedDict[Hashable, T] = OrderedDict()
        super().__init__()

    def get(self, key: Hashable) -> T | None:
        """Return what is kept by this key, if anything, and keep it longer."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def setdefault(self, key: Hashable, value: T) -> T:
        """Return what is kept by this key, longer now; *value*, if nothing was."""
        with self._lock:
            kept = self._kept.setdefault(key, value)
            self._kept.move_to_end(key)
            while len(self._kept) > self.at_most:
                self._kept.popitem(last=False)
            return kept

    def items(self) -> list[tuple[Hashable, T]]:
        """Return what is kept now, the one used last at the end."""
        with self._lock:
            return list(self._kept.items())
