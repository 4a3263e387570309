"""Tables as Markdown that is also readable in a terminal."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.calls import Row
from benchmarks.contenders import ATTEMPTS, CONTENDERS, Contender
from benchmarks.memory import CALLS

__all__ = ["format_table", "machine", "markdown", "versions"]

_NOTES = """\
Times are processor time, the best of {rounds} laps, run in turns; brackets show the
multiple of the hand-written loop, and the spread how much longer the median lap of any
library took. Every library was first checked to make up to {attempts} attempts with
jittered delays; google-api-core has only a time limit. In the rows with failures,
`time.sleep` and `asyncio.sleep` are replaced and nothing sleeps. "With rules" is a
policy with two rules, a hint and a budget; its loop has none. Imports are the best
of {rounds} fresh interpreters with compiled modules. Memory is counted by tracemalloc,
including task and timer, with {calls:,} calls at once.
"""


def format_table(contenders: list[Contender], rows: list[Row], rounds: int) -> str:
    """Return the table, with notes on how to read it.

    Args:
        contenders: One for each column; the others are compared with the first.
        rows: The rows.
        rounds: Laps of each of them.
    """
    cells = [
        [
            f"{row.title} ({row.unit})",
            *(_cell(x, row.figures[0]) for x in row.figures),
            f"{row.spread:.0%}" if row.spread else "",
        ]
        for row in rows
    ]
    notes = _NOTES.format(rounds=rounds, attempts=ATTEMPTS, calls=CALLS)
    absent = [c.name for c in CONTENDERS if c not in contenders]
    missing = (
        f"Not installed, and not measured: {', '.join(absent)}.\n" if absent else ""
    )
    named = [c.name for c in contenders if c.module]
    return (
        f"{markdown(['', *(c.name for c in contenders), 'spread'], cells)}\n\n"
        f"{notes}{missing}\n{machine()}\n\n{versions(named)}\n"
    )


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
        return f"{figure:,.1f}"
    return f"{figure:,.0f} ({figure / reference:.1f})"


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
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} (from its source folder)"
