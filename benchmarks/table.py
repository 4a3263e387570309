"""Tables as Markdown that is also readable in a terminal."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.calls import Row
from benchmarks.contenders import CONTENDERS, Contender, importable
from retrykit._internal.distribution import NAME

__all__ = ["format_table", "machine", "markdown", "number", "versions"]

_UNITS = {"us": "µs"}


def format_table(contenders: list[Contender], rows: list[Row]) -> str:
    """Return the table, and which library is missing.

    Args:
        contenders: One for each column; the others are compared with the first.
        rows: The rows.
    """
    cells = [
        [
            f"{row.title} ({_UNITS.get(row.unit, row.unit)})",
            *(_cell(x, row.figures[0]) for x in row.figures),
            f"{row.spread:.0%}" if row.spread else "",
        ]
        for row in rows
    ]
    absent = [c.name for c in CONTENDERS if c.module and not importable(c.module)]
    missing = f"\n\nNot installed: {', '.join(absent)}." if absent else ""
    return f"{markdown(['', *(c.name for c in contenders), 'spread'], cells)}{missing}"


def markdown(heads: list[str], rows: list[list[str]], words: int = 1) -> str:
    """Return a table.

    Args:
        heads: The head of each column.
        rows: The cells of each row.
        words: The number of columns with words, which come first; the others have
            numbers.
    """
    table = Table(*heads, box=box.MARKDOWN)
    for column in table.columns[words:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row)
    console = Console(width=400)
    with console.capture() as capture:
        console.print(table)
    lines = [line.rstrip() for line in capture.get().splitlines() if line.strip()]
    return "\n".join(lines)


def _cell(figure: float, reference: float) -> str:
    if not figure:
        return ""
    if not reference:
        return number(figure)
    ratio = figure / reference
    return f"{number(figure)} ({ratio:.{1 if ratio < 9.95 else 0}f})"  # noqa: PLR2004


def number(figure: float) -> str:
    """Return a number with three digits, or all of its integer part."""
    digits = max(0, 3 - len(f"{figure:.0f}")) if figure >= 1 else 3
    return f"{figure:,.{digits}f}"


def machine() -> str:
    """Return the Python, the system and the processor of this computer."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python}, {_system()}, {os.cpu_count()} x {_processor()}"


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    named = (line.split(":")[1].strip() for line in lines if "model name" in line)
    return next(named, platform.processor() or platform.machine())


def versions(names: list[str]) -> str:
    """Return the versions of distributions, and of wrapt."""
    return ", ".join(_version(name) for name in [*names, "wrapt"])


def _version(name: str) -> str:
    try:
        return f"{name} {version(NAME if name == 'retrykit' else name)}"
    except PackageNotFoundError:
        return f"{name} (from its source folder)"
