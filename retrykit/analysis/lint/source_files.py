"""Which modules a target names, found without importing one.

A target is a module, a file or a folder, as it is written on a command line.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import final

from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting

__all__ = ["A_PLACE", "Source", "below", "iter_source_files", "split"]

A_PLACE = "a module, a .py file or a folder"
"""What a target must be."""

_NOBODYS = {"__pycache__", "node_modules", "site-packages", "build", "dist"}
_TESTS = {"test", "tests"}
# Of a package, the first runs it; of a project, the second builds it.
_PROGRAMS = {"__main__.py", "setup.py"}


@final
class Source(Frozen):
    """A module that can be imported.

    Attributes:
        name: Its name, with dots.
        file: Its file.
        root: The folder that its name is told from: what must be searched for
            it.
    """

    __slots__ = ("file", "name", "root")
    name: str
    file: Path
    root: Path


def split(target: str) -> tuple[str, str]:
    """Return what a target names, and the name in it that stands after a colon.

    >>> split("shop.orders:Client.fetch"), split("shop/orders.py")
    (('shop.orders', 'Client.fetch'), ('shop/orders.py', ''))
    """
    place, _, name = target.rpartition(":")
    return (place, name) if place and _is_dotted(name) else (target, "")


def iter_source_files(place: str) -> list[Source] | None:
    """Return the modules of a path; None for what is the name of a module.

    A path that exists goes before a module of the same name. Of a folder it is
    every file below it, but for the tests (unless the path is one of tests),
    virtual environments, caches and what is hidden.

    Raises:
        ConfigError: It is neither a path that exists nor a name.
    """
    path = Path(place).absolute()
    if path.is_file() and path.suffix == ".py":
        return [_source(path, path.parent)]
    if path.is_dir():
        tests = not _TESTS.isdisjoint(Path(place).parts)
        found = (_source(file, path) for file in _files(path, tests=tests))
        return sorted(found, key=_place)
    if _is_dotted(place):
        return None
    raise invalid_setting("target", A_PLACE, place, "there is none")


def below(name: str, folder: Path) -> list[Source]:
    """Return the modules below a package, whose parts lie in a folder."""
    tests = not _TESTS.isdisjoint(name.split("."))
    files = (file for file in _files(folder, tests=tests))
    named = (Source(_named(file, folder, name), file, folder) for file in files)
    return sorted((each for each in named if each.name != name), key=_place)


def _files(top: Path, *, tests: bool) -> Iterator[Path]:
    for at, folders, names in os.walk(top):
        here = Path(at)
        folders[:] = (
            each
            for each in folders
            if not _is_skipped(here / each) and (tests or each not in _TESTS)
        )
        yield from (
            here / name
            for name in names
            if name.endswith(".py")
            and not name.startswith(".")
            and name not in _PROGRAMS
            and (tests or not _is_of_tests(name))
        )


def _is_skipped(folder: Path) -> bool:
    hidden = folder.name.startswith(".") or (folder / "pyvenv.cfg").exists()
    return hidden or (folder.name in _NOBODYS and not _is_package(folder))


def _is_of_tests(name: str) -> bool:
    stem = name.removesuffix(".py")
    return stem.startswith("test_") or stem.endswith("_test") or stem == "conftest"


def _source(file: Path, top: Path) -> Source:
    root = file.parent
    for folder in file.parents:
        # Below a package, a folder is a part of it, whatever it has in it.
        if folder.is_relative_to(top) and _is_package(folder):
            root = folder
    while _is_package(root):
        root = root.parent
    return Source(_named(file, root), file, root)


def _named(file: Path, root: Path, prefix: str = "") -> str:
    parts = file.relative_to(root).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join((prefix, *parts) if prefix else parts)


def _place(source: Source) -> tuple[Path, str]:
    return source.root, source.name


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").exists()


def _is_dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))
