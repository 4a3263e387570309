"""Lazy imports of the public names of a package."""

import sys
from collections.abc import Callable, Iterable, Mapping

from retrykit._internal.late_modules import import_late

__all__ = ["lazy_exports"]


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
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        value = getattr(import_late(f"retrykit.{home[name]}"), name)
        vars(sys.modules[package])[name] = value
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home, *modules})

    return get, names
