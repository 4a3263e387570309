"""Code of Jupyter notebooks."""

import ast
import json
import re
import warnings
from typing import Any, NamedTuple

__all__ = ["Cell", "cell_of", "file_of", "join_cells"]

# Magics whose cell is Python.
_PYTHON = frozenset(["capture", "prun", "time", "timeit"])
_CELL = re.compile(r"(?<=\.ipynb):cell (\d+)$")
_LINE_MAGIC = re.compile(r"^(\s*)(?:[%!?].*|\S.*\?\s*)$")
_ASSIGNED_MAGIC = re.compile(r"^(\s*\w[\w., ]*=\s*)[%!].*$")


class Cell(NamedTuple):
    """A cell of code.

    Attributes:
        number: Its number among all cells, from 1.
        line: Its first line in the code of all cells, from 1.
    """

    number: int
    line: int


def join_cells(
    source: bytes,
) -> tuple[str, tuple[Cell, ...], list[tuple[str, int, str]]]:
    """Return the code of a notebook.

    Commands of IPython and of the shell, and cells in other languages, are left out.

    Args:
        source: The contents of the file.

    Returns:
        The code; its cells; and for each cell that cannot be parsed, its name, the line
        of the error or 0, and the reason.

    Raises:
        ValueError: The file is not a notebook.
    """
    notebook: Any = json.loads(source)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        msg = "it has no list of cells"
        raise ValueError(msg)  # noqa: TRY004  of a file
    parts: list[str] = []
    found: list[Cell] = []
    problems: list[tuple[str, int, str]] = []
    line = 1
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        text = cell.get("source", "")
        if isinstance(text, list):
            text = "".join(map(str, text))
        code = _code(str(text).replace("\r\n", "\n"))
        try:
            _parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            place = getattr(error, "lineno", 0) or 0
            reason = getattr(error, "msg", None) or str(error)
            problems.append((f"cell {number}", place, f"not Python: {reason}"))
            continue
        found.append(Cell(number, line))
        parts.append(code + "\n")
        line += code.count("\n") + 1
    return "".join(parts), tuple(found), problems


def file_of(place: str) -> str:
    """Return the file of a place, which may be in a cell of a notebook.

    >>> file_of("plots.ipynb:cell 3"), file_of("plots.py")
    ('plots.ipynb', 'plots.py')
    """
    return _CELL.sub("", place)


def cell_of(place: str) -> int:
    """Return the cell number of a place in a notebook; 0 in other files.

    >>> cell_of("plots.ipynb:cell 3"), cell_of("plots.py")
    (3, 0)
    """
    found = _CELL.search(place)
    return 0 if found is None else int(found[1])


def _code(text: str) -> str:
    """Return the Python code of a cell; "" if a magic command takes it as text."""
    first, _, rest = text.lstrip("\n").partition("\n")
    if first.startswith("%%"):
        name = first[2:].split(maxsplit=1)
        if not name or name[0] not in _PYTHON:
            return ""
        text = text.replace(first, "pass", 1)
        return _code(text) if rest.startswith("%%") else _without_magics(text)
    return _without_magics(text)


def _parse(code: str) -> None:
    with warnings.catch_warnings():
        # Warnings about escapes and numbers, which are not the auditor's subject.
        warnings.simplefilter("ignore")
        ast.parse(code)


def _without_magics(text: str) -> str:
    try:
        _parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        lines = text.split("\n")
        for index, each in enumerate(lines):
            line = _LINE_MAGIC.sub(r"\1pass", each)
            lines[index] = _ASSIGNED_MAGIC.sub(r"\1None", line)
        return "\n".join(lines)
    return text
