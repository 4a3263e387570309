"""Fork-safe locks.

A fork copies a lock as it is, locked or not, but not the thread that would release it.
"""

import os
from _thread import RLock
from weakref import WeakValueDictionary

__all__ = ["ForkSafe", "renew_locks"]


class ForkSafe:
    """Base class with a lock, which is replaced in a forked child process.

    A change that another thread was making at the fork stays incomplete there, so
    an incomplete change must do no lasting harm.
    """

    # Without slots, since Python 3.13 is slow to find attributes of objects that have
    # both slots and a dict.

    def __init__(self) -> None:
        self._renew()
        # By id, since a subclass may not be hashable.
        _living[id(self)] = self

    def _renew(self) -> None:
        # Reentrant, since a signal handler, a finalizer or the code of a key may
        # retry at any point.
        self._lock = RLock()


_living: WeakValueDictionary[int, ForkSafe] = WeakValueDictionary()


def renew_locks() -> None:
    """Replace all locks with released ones, in a forked child process."""
    for locked in list(_living.values()):
        locked._renew()  # noqa: SLF001  of this module


if hasattr(os, "register_at_fork"):  # pragma: no branch  (Windows has no fork)
    os.register_at_fork(after_in_child=renew_locks)
