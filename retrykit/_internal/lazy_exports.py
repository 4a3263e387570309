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
