"""Reading of source files: encodings, notebooks and limits."""

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator
from time import monotonic
from typing import Final, NamedTuple

from retrykit.audit._borrowed import (
    NOT_BORROWED,
    Borrowed,
    FunctionNode,
    functions_in,
)
from retrykit.audit._files import SourceFile
from retrykit.audit._findings import Problem
from retrykit.audit._libraries import WORDS
from retrykit.audit._module import Module
from retrykit.audit._module_reader import read_module
from retrykit.audit._notebooks import Cell, join_cells
from retrykit.audit._words import Interest

__all__ = ["LARGEST", "Reading", "read_file", "read_functions", "read_lines"]

LARGEST: Final = 4_000_000
"""The largest size of a file that is parsed, in bytes."""
_LARGEST_SEARCHED: Final = 64_000_000
"""The largest size of a file that is searched for words, in bytes."""
_LONGEST: Final = 10.0
"""The longest time to read the contents of a file, in seconds."""

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_ASCII = bytes(range(32, 127))
_COMMENT = re.compile(r"#\s*retrykit:\s*ignore\b(?:\s*\[([^\]]*)\])?")
_MARK = re.compile(rb"retrykit:\s*ignore")

_may_have_sites = Interest(WORDS)


class _UnreadableError(Exception):
    """A file is too large, or takes too long to read."""


class Reading(NamedTuple):
    """The result of reading a file.

    Attributes:
        module: What it contains; None if it was not parsed.
        lines: How many lines it has.
        problems: Why it, or a cell of it, could not be read.
        ignored: The codes of rules that comments ignore, keyed by line; an empty tuple
            stands for all.
        cells: The cells of a notebook; empty for other files.
    """

    module: Module | None
    lines: int
    problems: tuple[Problem, ...] = ()
    ignored: dict[int, tuple[str, ...]] = {}  # noqa: RUF012  never changed
    cells: tuple[Cell, ...] = ()


def read_file(  # noqa: PLR0911  one for each fault
    file: SourceFile,
    *,
    names_only: bool = False,
    longest: float = _LONGEST,
    borrowed: Borrowed = NOT_BORROWED,
) -> Reading:
    """Return the facts about a file; its faults become problems, and are not raised.

    Args:
        file: The file.
        names_only: Whether to parse the file even if its words show no site, for the
            values of its names and the calls in its functions; loops are left out.
        longest: The longest time to read its contents, in seconds.
        borrowed: Functions of other modules that its loops call.
    """
    try:
        with open(file.path, "rb") as opened:
            source = opened.read(_LARGEST_SEARCHED + 1)
    except OSError as error:
        return _failed(file, 0, error.strerror or str(error))
    if len(source) > _LARGEST_SEARCHED:
        return _failed(file, 0, _too_large(_LARGEST_SEARCHED))
    source = _with_unix_newlines(source)
    lines = source.count(b"\n") + (not source.endswith(b"\n") and source != b"")
    cells: tuple[Cell, ...] = ()
    told: tuple[Problem, ...] = ()
    if file.path.endswith(".ipynb"):
        try:
            text, cells, problems = join_cells(source)
        except (ValueError, RecursionError) as error:
            return _failed(file, 0, f"not a notebook: {error}", lines)
        told = tuple(Problem(f"{file.path}:{x}", y, z) for x, y, z in problems)
        source = text.encode("utf-8", "surrogatepass")
        lines = source.count(b"\n")
    if not (names_only or not _extends_ascii(source) or _may_have_sites(source)):
        return Reading(None, lines, told, {}, cells)
    try:
        module = _parse(file, source, longest, borrowed, loops=not names_only)
        ignored = dict(_comments(source)) if _MARK.search(source) else {}
    except _UnreadableError as error:
        return _failed(file, 0, str(error), lines)
    except (SyntaxError, ValueError, tokenize.TokenError) as error:
        reason = getattr(error, "msg", None) or str(error)
        line = getattr(error, "lineno", None) or 0
        return _failed(file, line, f"not Python: {reason}", lines)
    except (RecursionError, MemoryError):
        return _failed(file, 0, "nested too deeply", lines)
    return Reading(module, lines, told, ignored, cells)


def read_functions(path: str) -> list[FunctionNode]:
    """Return the functions of a file; empty if it cannot be parsed."""
    try:
        with open(path, "rb") as opened:
            return functions_in(ast.parse(opened.read(LARGEST)))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def read_lines(path: str) -> list[str]:
    """Return the lines of a file or of a notebook's code; empty if it is unreadable."""
    try:
        with open(path, "rb") as opened:
            source = _with_unix_newlines(opened.read(LARGEST))
        if path.endswith(".ipynb"):
            return join_cells(source)[0].split("\n")
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        return source.decode(encoding, "replace").split("\n")
    except (OSError, SyntaxError, ValueError):
        return []


def _with_unix_newlines(source: bytes) -> bytes:
    if b"\r" in source:
        return source.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return source


def _failed(file: SourceFile, line: int, reason: str, lines: int = 0) -> Reading:
    return Reading(None, lines, (Problem(file.path, line, reason),))


def _too_large(limit: int) -> str:
    return f"larger than {limit // 1_000_000} MB; not read"


def _extends_ascii(source: bytes) -> bool:
    """Return whether a file can be searched for words before it is decoded."""
    if b"\0" in source:
        return False
    for line in source.split(b"\n", 2)[:2]:
        found = _COOKIE.match(line)
        if found is not None:
            try:
                return _ASCII.decode(found[1].decode()) == _ASCII.decode()
            except (LookupError, ValueError):
                return False
    return True


def _parse(
    file: SourceFile,
    source: bytes,
    longest: float,
    borrowed: Borrowed,
    *,
    loops: bool,
) -> Module:
    if len(source) > LARGEST:
        raise _UnreadableError(_too_large(LARGEST))
    end = monotonic() + longest

    def check() -> None:
        if monotonic() > end:
            reason = f"takes more than {longest:g} s"
            raise _UnreadableError(reason)

    with warnings.catch_warnings():
        # Warnings about escapes in texts, which are not the auditor's subject.
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    return read_module(
        tree,
        file.path,
        file.module,
        file.package,
        check,
        borrowed=borrowed,
        loops=loops,
    )


def _comments(source: bytes) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the lines of comments that ignore rules, with the codes of the rules."""
    for each in tokenize.tokenize(io.BytesIO(source).readline):
        if each.type == tokenize.COMMENT:
            found = _COMMENT.search(each.string)
            if found is not None:
                words = (found[1] or "").split(",")
                codes = tuple(x.strip() for x in words if x.strip())
                yield each.start[0], codes
