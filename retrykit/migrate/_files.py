"""Files and folders to migrate: found, read, translated, and written back."""

import os
import re
import tempfile
import tokenize
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import copymode
from stat import S_ISREG
from typing import Final, NamedTuple

import libcst as cst

from retrykit._internal.processes import Progress, Work
from retrykit.migrate._findings import Migration, Usage
from retrykit.migrate._migration import migrate_text
from retrykit.migrate._source import LIBRARIES, Surroundings, imports_library
from retrykit.migrate._width import find_width

__all__ = ["FileMigration", "Problem", "Report", "migrate_paths", "write_file"]


class Problem(NamedTuple):
    """A file or folder that was not read, translated or written, and why."""

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
    """The files that have usages, or that change; and the problems with others."""

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
_ATTRIBUTE: Final = re.compile(
    r"\b\w+\.(?:retry|retry_with|statistics)\b|\bmax_retries\.\w+"
)
"""Matches an attribute that tenacity adds to functions, or any of ``max_retries``, with
its owner."""

_RENAMED: Final = re.compile(
    r"\b(\w+) as (\w+)|^[ \t]*(\w+) = (?:\w+\.)*(\w+)$", re.MULTILINE
)

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


class _Task(NamedTuple):
    """A file to translate.

    Attributes:
        file: The file, with its text and the words in it.
        elsewhere: The words of other files that its translation may look up.
        complete: The libraries whose usages are all translated.
    """

    file: _Text
    elsewhere: frozenset[str]
    complete: frozenset[str]


def _say_nothing(_done: int, _count: int) -> None:
    return


def migrate_paths(
    paths: Iterable[str | Path],
    progress: Progress = _say_nothing,
    processes: int = 1,
) -> Report:
    """Translate the usages of other libraries in files and folders; write nothing.

    Args:
        paths: Files, and folders, in which all ``*.py`` files are read, except in
            hidden folders and in folders with names such as ``venv`` and ``build``.
        progress: Called with the number of files translated so far, and the number of
            all files to translate. Afterwards, files that have the word ``RetryError``
            are translated, and counted, a second time.
        processes: How many processes translate. Count, >= 1. Fewer than eight files are
            translated by this process.

    Returns:
        The files that have usages, or that change; and the problems, which do not stop
        the translation of other files.
    """
    problems: list[Problem] = []
    counts: Counter[str] = Counter()
    using: list[_Text] = []
    for each in _read_all(paths, problems):
        counts.update(each.words)
        if imports_library(each.text):
            using.append(each)
    asked = {word for word in counts if "." in word} | _ASKED

    def migrate(files: Sequence[_Text], complete: Iterable[str]) -> list[_Result]:
        tasks = [
            _Task(each, _words_elsewhere(each, asked, counts), frozenset(complete))
            for each in files
        ]
        return _WORK.map(tasks, processes, progress)

    results = dict(zip(using, migrate(using, ()), strict=True))
    left = {
        usage.library
        for each in results.values()
        if isinstance(each, FileMigration)
        for usage in each.migration.usages
        if usage.reason is not None
    }
    # Files that catch the errors of a library may no longer need it.
    catching = [
        each
        for each, result in results.items()
        if "RetryError" in each.words and isinstance(result, FileMigration)
    ]
    again = migrate(catching, {*LIBRARIES} - left)
    results |= dict(zip(catching, again, strict=True))
    problems += [each for each in results.values() if isinstance(each, Problem)]
    found = [
        each
        for each in results.values()
        if isinstance(each, FileMigration)
        and (each.migration.usages or each.migration.changed)
    ]
    return Report(tuple(found), tuple(problems))


_ASKED: Final = frozenset({*LIBRARIES, "RetryError", "last_attempt", "raise TryAgain"})
"""Words that a file may look up in other files even if it does not contain them."""


def _words_elsewhere(
    own: _Text, asked: Collection[str], counts: Mapping[str, int]
) -> frozenset[str]:
    words = own.words.union(asked)
    return frozenset(word for word in words if counts[word] > (word in own.words))


def _migrate(task: _Task) -> "_Result":
    file, elsewhere, complete = task
    around = Surroundings(elsewhere.__contains__, complete, find_width(file.path))
    try:
        found = migrate_text(file.text, around)
        if found.changed:
            cst.parse_module(found.after)
    except SyntaxError as error:
        reason = f"is not Python: line {error.lineno}: {error.msg}"
        return Problem(file.path, reason)
    except RecursionError:
        return Problem(file.path, "has expressions that are too deep")
    except Exception as error:  # noqa: BLE001  one file must not end the others
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Problem(file.path, f"cannot be translated: {text[:200]}")
    return FileMigration(file.path, file.content, file.encoding, found)


def _ended(task: _Task) -> "_Result":
    return Problem(task.file.path, "ends the process that translates it")


_Result = FileMigration | Problem
_WORK: Final[Work[_Task, _Result]] = Work(_migrate, _ended, chunk=2, few=8)


def _read_all(paths: Iterable[str | Path], problems: list[Problem]) -> Iterator[_Text]:
    seen: set[tuple[int, int]] = set()
    for path in paths:
        for file in _files_of(Path(path), problems):
            try:
                status = file.stat()
                if (status.st_dev, status.st_ino) in seen:
                    continue
                seen.add((status.st_dev, status.st_ino))
                if not S_ISREG(status.st_mode):
                    # Reading a pipe may never end.
                    problems.append(Problem(file, "is not a file"))
                    continue
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
    return _Text(path, content, encoding, text, frozenset(_words(text)))


def _words(text: str) -> set[str]:
    """Return the words, and attributes with owners, that other files may look up."""
    words = {*_WORD.findall(text)}
    found = {*_ATTRIBUTE.findall(text)}
    owners: dict[str, set[str]] = {}
    for name, alias, left, right in _RENAMED.findall(text) if found else ():
        owners.setdefault(alias or left, set()).add(name or right)
    for each in found:
        owner, _, attribute = each.partition(".")
        names = {"", owner, *owners.get(owner, ())}
        words |= {f"{name}.{attribute}" for name in names}
    if "TryAgain" in words and words.isdisjoint(_RETRYING):
        words.add("raise TryAgain")
    return words


_RETRYING: Final = frozenset({"retry", "Retrying", "AsyncRetrying"})


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
