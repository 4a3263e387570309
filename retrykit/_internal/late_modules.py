"""Modules that are imported at their first use, since most programs never use them.

Before a fork they are imported at the latest: a child would hang in an import that
another thread had begun.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, final

__all__ = ["inspect", "late_module", "logging", "struct", "traceback"]


@final
class LateModule:
    """A module that is imported when one of its attributes is read."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            self._module = import_module(self._name)
        return getattr(self._module, name)


_names: list[str] = []


def late_module(name: str) -> Any:
    """Return the module with a full name, which is imported at its first use."""
    _names.append(name)
    return LateModule(name)


if TYPE_CHECKING:
    import inspect
    import logging
    import struct
    import traceback
else:
    # These take milliseconds to import.
    names = "inspect", "logging", "struct", "traceback"
    inspect, logging, struct, traceback = map(late_module, names)


def _import_all() -> None:
    for name in _names:
        import_module(name)


if hasattr(os, "register_at_fork"):  # pragma: no branch  (Windows has no fork)
    os.register_at_fork(before=_import_all)
