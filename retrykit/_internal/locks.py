"""Locks of what threads share, which no fork leaves held.

A fork copies a lock as it is, and not the thread that would release it. What
a lock guards is not known here.
"""

import os
import threading
from weakref import WeakValueDictionary

__all__ = ["ForkSafe", "renew_locks"]


class ForkSafe:
    """What has a lock of its own, and in the child of a fork a new one.

    What another thread was changing at the fork stays half changed there, so
    no change may do lasting harm if it is stopped in its midst.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._renew()
        # By identity, since a class derived from it may not be hashable.
        _living[id(self)] = self

    def _renew(self) -> None:
        # Reentrant, since a signal handler, a finaliser or a key's own code may
        # retry in the midst of anything.
        self._lock = threading.RLock()


_living: WeakValueDictionary[int, ForkSafe] = WeakValueDictionary()


def renew_locks() -> None:
    """Give all that lives a lock that nobody holds, as the child of a fork must."""
    for locked in list(_living.values()):
        locked._renew()  # noqa: SLF001  of this module


if hasattr(os, "register_at_fork"):  # pragma: no branch  (Windows has no fork)
    os.register_at_fork(after_in_child=renew_locks)
