"""Source files: where they are, and the names by which they are imported."""

import os
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from retrykit._internal.validation import did_you_mean, invalid_setting
from retrykit.audit._findings import Problem

__all__ = ["SUFFIXES", "SourceFile", "find_files", "is_excluded"]
__all__ += ["nearest_path", "relative_path"]

SUFFIXES = (".py", ".pyw", ".ipynb")
"""The suffixes of the files that are read in a folder."""

_SKIPPED = frozenset(
    ["__pycache__", "__pypackages__", "buck-out", "node_modules", "site-packages"]
)
# Folders that are not packages, although code lies in them.
_SOURCE_FOLDERS = frozenset(["lib", "python", "src"])
_ENVIRONMENTS = ("pyvenv.cfg", "conda-meta")
_MOST_FOLDERS = 100
"""Folders nested more deeply than this are not read."""


class SourceFile(NamedTuple):
    """A file of source code.

    Attributes:
        path: Its path, as the user would write it.
        module: The dotted name by which it is imported.
        package: The package that its relative imports start from.
        alias: Another name by which files beside it may import it, or "".
    """

    path: str
    module: str
    package: str
    alias: str


def find_files(
    paths: Iterable[str | Path], exclude: Sequence[str] = (), root: Path | None = None
) -> tuple[list[SourceFile], list[Problem]]:
    """Return the given files and the source files in the given folders, each once.

    In folders, virtual environments, caches, ``node_modules``, builds, and hidden or
    excluded paths are skipped; a given path is read whatever its name is.

    Args:
        paths: Files and folders.
        exclude: Patterns of paths relative to *root*, or of names: ``tests``,
            ``*_pb2.py``, ``src/generated/*``.
        root: The folder that patterns are relative to; by default the current one.

    Returns:
        The files, in the order of paths and names, and a problem for each folder or
        link that cannot be read, or that is nested too deeply.

    Raises:
        ConfigError: A path does not exist, or is neither a file nor a folder.
    """
    walk = _Walk(exclude, root)
    files: list[SourceFile] = []
    for path in paths:
        given = os.fspath(path)
        if os.path.isdir(given):
            files += (walk.describe(each, given) for each in walk.files_in(given))
        elif os.path.isfile(given):
            if walk.is_new(given):
                files.append(walk.describe(given, os.path.dirname(given)))
        else:
            rule = "a file or a folder that exists"
            raise invalid_setting(
                "path", rule, given, nearest_path(given), code="unreadable-file"
            )
    return files, walk.problems


def nearest_path(path: str | Path) -> str:
    """Return a suggestion for a missing path, or "" if there is none."""
    if os.path.lexists(path):
        return ""
    folder, name = os.path.split(os.path.normpath(path))
    while folder and not os.path.exists(folder):
        folder, name = os.path.split(folder)
    try:
        return did_you_mean(name, sorted(os.listdir(folder or ".")))
    except (OSError, ValueError):
        return ""


def is_excluded(path: str, patterns: Sequence[str]) -> bool:
    """Return whether a path, or a folder that it is in, matches a pattern.

    >>> is_excluded("src/app/tests/test_a.py", ["tests"])
    True
    >>> is_excluded("src/app/main.py", ["app/*.py", "src/*.py"])
    True
    >>> is_excluded("src/app/main.py", ["main"])
    False

    Args:
        path: A path with slashes, relative to the folder of the patterns.
        patterns: Patterns of paths or names, as `fnmatch` reads them.
    """
    parts = path.split("/")
    heads = ["/".join(parts[: each + 1]) for each in range(len(parts))]
    return any(
        fnmatch(each, pattern)
        for pattern in (x.removeprefix("./").rstrip("/") for x in patterns)
        for each in (*parts, *heads)
    )


def relative_path(path: str, root: str | Path) -> str:
    """Return a path with slashes, relative to *root*, or absolute on another drive."""
    try:
        relative = os.path.relpath(path, root)
    except ValueError:
        # On another drive.
        relative = os.path.abspath(path)
    return relative.replace(os.sep, "/")


class _Walk:
    """A search that finds each file once, even if links lead to it.

    Attributes:
        problems: What could not be read.
    """

    def __init__(self, exclude: Sequence[str], root: Path | None) -> None:
        self.problems: list[Problem] = []
        self._exclude = exclude
        self._root = os.path.abspath(root or ".")
        self._seen: set[tuple[int, int] | str] = set()
        self._packages: dict[str, bool] = {}

    def is_new(self, path: str) -> bool:
        """Return whether a file or folder is found for the first time, and note it."""
        try:
            found = os.stat(path)
        except OSError:
            # It is gone; whoever opens it tells.
            return True
        # Some file systems have no numbers.
        key = (found.st_dev, found.st_ino) if found.st_ino else os.path.realpath(path)
        new = key not in self._seen
        self._seen.add(key)
        return new

    def add_problem(self, path: str, error: OSError) -> None:
        """Note a path that cannot be read."""
        self.problems.append(Problem(path, 0, error.strerror or str(error)))

    def files_in(self, path: str) -> Iterator[str]:
        """Yield the source files in a folder, and then those in its subfolders."""
        linked: list[str] = []
        waiting = [(path, 0)]
        while waiting or linked:
            # Links come last, so that files have their own paths if they have two.
            folder, depth = waiting.pop() if waiting else (linked.pop(0), 1)
            if not self.is_new(folder):
                continue
            if depth > _MOST_FOLDERS:
                reason = f"more than {_MOST_FOLDERS} folders deep; not read"
                self.problems.append(Problem(folder, 0, reason))
                continue
            entries = self._entries(folder)
            folders = []
            for entry in entries:
                if self._is_skipped(entry):
                    continue
                try:
                    is_folder = entry.is_dir()
                    if is_folder and entry.is_symlink():
                        linked.append(entry.path)
                    elif is_folder:
                        folders.append((entry.path, depth + 1))
                    elif entry.name.endswith(SUFFIXES) and self._is_file(entry):
                        yield entry.path
                except OSError as error:
                    self.add_problem(entry.path, error)
            waiting += reversed(folders)

    def _is_file(self, entry: "os.DirEntry[str]") -> bool:
        if entry.is_file():
            return self.is_new(entry.path)
        if entry.is_symlink():
            self.problems.append(Problem(entry.path, 0, "a link to nothing"))
        return False

    def _entries(self, folder: str) -> "list[os.DirEntry[str]]":
        try:
            with os.scandir(folder) as entries:
                return sorted(entries, key=lambda each: each.name)
        except OSError as error:
            self.add_problem(folder, error)
            return []

    def _is_skipped(self, entry: "os.DirEntry[str]") -> bool:
        name, path = entry.name, entry.path
        if name.startswith(".") or name in _SKIPPED:
            return True
        if self._exclude and is_excluded(
            relative_path(path, self._root), self._exclude
        ):
            return True
        if "." in name:
            return False
        if any(os.path.exists(os.path.join(path, each)) for each in _ENVIRONMENTS):
            return True
        return name == "build" and os.path.isdir(os.path.join(path, "lib"))

    def describe(self, path: str, root: str) -> SourceFile:
        """Return a file with the names by which it is imported.

        Args:
            path: The path of the file.
            root: The folder at which the names of files outside packages begin, if
                there is no folder such as ``src`` in between.
        """
        folder, name = os.path.split(os.path.abspath(path))
        parts = [] if name.startswith("__init__.") else [name.partition(".")[0]]
        top = os.path.abspath(root)
        in_package = False
        while self._is_package(folder):
            in_package = True
            folder, last = os.path.split(folder)
            parts.insert(0, last)
        alias = ""
        if not in_package:
            # A package without a file of its own, or a script.
            alias = parts[0] if parts else ""
            while folder != top and folder.startswith(top):
                folder, last = os.path.split(folder)
                if last in _SOURCE_FOLDERS:
                    break
                parts.insert(0, last)
        module = ".".join(parts)
        package = module if name.startswith("__init__.") else ".".join(parts[:-1])
        return SourceFile(path, module, package, "" if alias == module else alias)

    def _is_package(self, folder: str) -> bool:
        if folder not in self._packages:
            found = os.path.isfile(os.path.join(folder, "__init__.py"))
            # The root of a file system is not one.
            self._packages[folder] = found and os.path.dirname(folder) != folder
        return self._packages[folder]
