"""Imports while a program runs, which no fork cuts in two.

In the child of a fork there is only the thread that forked: an import that another
thread had begun would never end there, and whoever needs the module would wait forever.
So a fork waits for these imports, and they wait for a fork.
"""

import os
from _thread import get_ident
from collections.abc import Callable
from importlib import import_module
from time import sleep
from typing import TYPE_CHECKING, Any, Final, final

__all__ = ["import_late", "inspect", "logging", "opcode", "traceback"]

# Changed by single operations: a lock could itself be copied while it is held.
importing: Final[list[int]] = []
forking: Final[list[int]] = []


def import_late(name: str) -> Any:
    """Import a module, by its full name, while no other thread forks."""
    thread = get_ident()
    # A fork that waits for an import waits for those within it, too.
    within = thread in importing
    importing.append(thread)
    try:
        if not within and _others(forking):
            importing.remove(thread)
            _wait_while(lambda: _others(forking))
            importing.append(thread)
        return import_module(name)
    finally:
        importing.remove(thread)


def _others(threads: list[int]) -> bool:
    return any(thread != get_ident() for thread in threads[:])


def _wait_while(condition: Callable[[], bool]) -> None:
    # Not forever: an import may wait for a lock that the forking thread holds.
    for _ in range(_MOST_WAITS):
        if not condition():
            return
        sleep(_WAIT)


# In seconds; 5 in all.
_WAIT: Final = 0.001
_MOST_WAITS: Final = 5000


def before_fork() -> None:
    forking.append(get_ident())
    _wait_while(lambda: _others(importing))


def after_fork() -> None:
    forking.remove(get_ident())


def after_fork_in_child() -> None:
    forking.clear()
    importing[:] = [thread for thread in importing if thread == get_ident()]


if hasattr(os, "register_at_fork"):  # pragma: no branch  (Windows has no fork)
    os.register_at_fork(
        before=before_fork,
        after_in_parent=after_fork,
        after_in_child=after_fork_in_child,
    )


@final
class LateModule:
    """A module that takes milliseconds to import, and is when it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            self._module = import_late(self._name)
        return getattr(self._module, name)


if TYPE_CHECKING:
    import inspect
    import logging
    import opcode
    import traceback
else:
    inspect, logging, opcode, traceback = map(LateModule, __all__[1:])
