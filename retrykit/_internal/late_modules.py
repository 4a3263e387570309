"""Standard modules that take milliseconds to import, imported at their first use.

Before a fork they are imported at the latest: a child would hang in an import that
another thread had begun.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, final

__all__ = ["inspect", "logging", "struct", "traceback"]


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


if TYPE_CHECKING:
    import inspect
    import logging
    import struct
    import traceback
else:
    inspect, logging, struct, traceback = map(LateModule, __all__)


def _import_all() -> None:
    for name in __all__:
        import_module(name)


if hasattr(os, "register_at_fork"):  # pragma: no branch  (Windows has no fork)
    os.register_at_fork(before=_import_all)
