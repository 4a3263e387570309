"""Late imports, which no fork interrupts, and lazy names of packages.

A forked child process has only the thread that forked: an import that another thread
had begun would never end there, and whoever needs the module would wait forever. So a
fork waits for these imports to end, and they do not begin during a fork.
"""

import os
import sys
from _thread import get_ident
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from time import sleep
from typing import TYPE_CHECKING, Any, Final, final

__all__ = [
    "LateModule",
    "import_late",
    "inspect",
    "lazy_exports",
    "logging",
    "opcode",
    "traceback",
]

# Changed by single operations: a lock could itself be copied while it is held.
importing: list[int] = []
forking: list[int] = []


def import_late(name: str) -> Any:
    """Import a module, by its full name, while no other thread forks.

    It waits for a fork for at most 5 s.
    """
    thread = get_ident()
    # A fork that waits for an import also waits for those within it.
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
    return any(thread != get_ident() for thread in [*threads])


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


def lazy_exports(
    package: str, homes: Mapping[str, str], modules: Iterable[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` for a package.

    Args:
        package: The full name of the package.
        homes: Maps a module, relative to ``retrykit``, to the public names that it
            defines, separated by spaces.
        modules: The public submodules of the package.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> object:
        if name in modules:
            return import_late(f"{package}.{name}")
        if name not in home:
            raise _unknown_name(package, name, [*home, *modules])
        value = getattr(import_late(f"retrykit.{home[name]}"), name)
        vars(sys.modules[package])[name] = value
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home, *modules})

    return get, names


def _unknown_name(package: str, name: str, known: list[str]) -> Exception:
    """Return the error for a name that a package does not have."""
    text = f"module {package!r} has no attribute {name!r}"
    if name[:1] == "_":
        # Among them the private modules of a package, until they are imported.
        return AttributeError(text)
    # Imported here: only unknown names need them.
    from importlib.util import find_spec  # noqa: PLC0415

    from retrykit._internal.foreign_names import suggest_import  # noqa: PLC0415

    if find_spec(f"{package}.{name}") is not None:
        return AttributeError(f"{text}; write import {package}.{name}")
    suggestion = suggest_import(package, name, known)
    # The frame that looks for the names of ``from package import ...``. Python would
    # replace an AttributeError there.
    code = sys._getframe(2).f_code  # noqa: SLF001
    if suggestion and code.co_name == "_handle_fromlist":
        text = f"cannot import name {name!r} from {package!r}"
        return ImportError(f"{text}; {suggestion}", name=name, path=package)
    return AttributeError(f"{text}; {suggestion}" if suggestion else text)


@final
class LateModule:
    """A module that takes milliseconds to import, imported on first use."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            self._module = import_late(self._name)
        return getattr(self._module, name)

    def __reduce__(self) -> tuple[type["LateModule"], tuple[str]]:
        # With a function that is pickled by value, whose module has it.
        return LateModule, (self._name,)


if TYPE_CHECKING:
    import inspect
    import logging
    import opcode
    import traceback
else:
    _NAMES = ("inspect", "logging", "opcode", "traceback")
    inspect, logging, opcode, traceback = map(LateModule, _NAMES)
