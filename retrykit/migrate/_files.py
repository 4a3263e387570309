"""Files and folders to migrate: found, read, and written back."""

import os
import re
import tempfile
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from shutil import copymode
from typing import Final, NamedTuple

import libcst as cst

from retrykit.migrate._findings import Migration, Usage
from retrykit.migrate._migration import migrate_text
from retrykit.migrate._source import LIBRARIES, Surroundings, imports_library

__all__ = ["FileMigration", "Problem", "Report", "migrate_paths", "write_file"]


class Problem(NamedTuple):
    """A file that was not read, or not written, and why."""

    path: Path
    reason: str


class FileMigration(NamedTuple):
    """A file before and after its migration.

    Attributes:
        path: The file.
        content: Its bytes when it was read.
        encoding: Its encoding.
        migration: Its text before and after, and the usages in it.
    """

    path: Path
    content: bytes
    encoding: str
    migration: Migration


class Report(NamedTuple):
    """The files with usages of other libraries, and those that could not be read."""

    files: tuple[FileMigration, ...]
    problems: tuple[Problem, ...]

    @property
    def usages(self) -> tuple[tuple[Path, Usage], ...]:
        """The usages of all files, each with its path."""
        return tuple(
            (each.path, usage) for each in self.files for usage in each.migration.usages
        )


_LARGEST: Final = 2_000_000
_WORD: Final = re.compile(r"[^\W\d]\w*")
_ATTRIBUTE: Final = re.compile(r"\b\w+\.(?:retry|retry_with|statistics)\b")
"""What tenacity adds to functions, with their names."""

_NOT_SOURCES: Final = {
    *("__pycache__", "node_modules", "site-packages", "dist-packages"),
    *("venv", "env", "build", "dist"),
}


class _Text(NamedTuple):
    path: Path
    content: bytes
    encoding: str
    text: str
    words: frozenset[str]


def migrate_paths(
    paths: Iterable[str | Path],
    progress: Callable[[Path, int], object] = lambda _path, _count: None,
) -> Report:
    """Translate the usages of other libraries in files and folders; write nothing.

    Args:
        paths: Files, and folders, in which all files ``*.py`` are read, but for hidden
            folders and those of installed packages.
        progress: Called with each file that is translated, and their number.

    Returns:
        The files that have usages, or that change; and the problems, which end nothing.
    """
    problems: list[Problem] = []
    texts = [*_read_all(paths, problems)]
    counts = Counter(word for each in texts for word in each.words)
    mentioned = [each for each in texts if imports_library(each.text)]

    def around(own: _Text, complete: Iterable[str]) -> Surroundings:
        return Surroundings(
            lambda word: counts[word] > (word in own.words), {*complete}
        )

    def migrate(own: _Text, complete: Iterable[str]) -> FileMigration | None:
        progress(own.path, len(mentioned))
        try:
            found = migrate_text(own.text, around(own, complete))
            if found.changed:
                cst.parse_module(found.after)
        except SyntaxError as error:
            reason = f"is not Python: line {error.lineno}: {error.msg}"
            problems.append(Problem(own.path, reason))
            return None
        except RecursionError:
            problems.append(Problem(own.path, "has expressions that are too deep"))
            return None
        except Exception as error:  # noqa: BLE001  one file must not end the others
            text = " ".join(f"{type(error).__name__}: {error}".split())
            problems.append(Problem(own.path, f"cannot be translated: {text[:200]}"))
            return None
        return FileMigration(own.path, own.content, own.encoding, found)

    files = {each.path: migrate(each, ()) for each in mentioned}
    left = {
        usage.library
        for each in files.values()
        if each is not None
        for usage in each.migration.usages
        if usage.reason is not None
    }
    complete = {*LIBRARIES} - left
    for each in mentioned:
        # Whoever catches the errors of a library need not know it any more.
        if "RetryError" in each.words and files[each.path] is not None:
            files[each.path] = migrate(each, complete)
    found = [
        each
        for each in files.values()
        if each is not None and (each.migration.usages or each.migration.changed)
    ]
    return Report(tuple(found), tuple(problems))


def _read_all(paths: Iterable[str | Path], problems: list[Problem]) -> Iterator[_Text]:
    seen: set[Path] = set()
    for path in paths:
        for file in _files_of(Path(path), problems):
            real = file.resolve()
            if real in seen:
                continue
            seen.add(real)
            try:
                yield _read(file)
            except OSError as error:
                problems.append(Problem(file, str(error.strerror or error)))
            except (SyntaxError, UnicodeError, LookupError) as error:
                problems.append(Problem(file, f"cannot be decoded: {error}"))
            except ValueError as error:
                problems.append(Problem(file, str(error)))


def _files_of(path: Path, problems: list[Problem]) -> Iterator[Path]:
    if not path.is_dir():
        if not path.exists():
            problems.append(Problem(path, "does not exist"))
        else:
            yield path
        return

    def unreadable(error: OSError) -> None:
        problems.append(Problem(Path(error.filename), str(error.strerror)))

    for folder, folders, files in os.walk(path, onerror=unreadable):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in _NOT_SOURCES
        )
        yield from (
            Path(folder, name) for name in sorted(files) if name.endswith(".py")
        )


def _read(path: Path) -> _Text:
    content = path.read_bytes()
    if len(content) > _LARGEST:
        msg = f"is larger than {_LARGEST // 1_000_000} MB"
        raise ValueError(msg)
    lines = iter(content.splitlines(keepends=True))
    encoding, _ = tokenize.detect_encoding(lambda: next(lines, b""))
    text = content.decode(encoding)
    words = {*_WORD.findall(text), *_ATTRIBUTE.findall(text)}
    return _Text(path, content, encoding, text, frozenset(words))


def write_file(file: FileMigration) -> Problem | None:
    """Write a file in one step, unless it has changed since it was read.

    Returns:
        Why it was not written; None if it was.
    """
    path = file.path.resolve()
    try:
        if path.read_bytes() != file.content:
            return Problem(file.path, "has changed since it was read; run again")
        content = file.migration.after.encode(file.encoding)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            copymode(path, name)
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except (OSError, UnicodeError) as error:
        return Problem(file.path, f"cannot be written: {error}")
    return None
