"""What is written to the terminal: the console, tables and numbers.

Colour, width and encoding are rich's business; it heeds NO_COLOR.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from rich.console import Console, Group
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from retrykit._internal.durations import format_duration
from retrykit._internal.validation import escape_unprintable

__all__ = ["COLOURS", "aligned", "console", "decimal", "listed", "pairs"]
__all__ += ["print_figures", "progress", "span"]

COLOURS = ("blue", "yellow", "green", "magenta", "cyan", "red")
"""One for each policy of a chart."""


class _Console(Console):
    """A console that prints every text as one line without control characters.

    A file or a module may give its names any characters. Lines of our own are
    printed one by one, or as a `rich.console.Group`.
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text to be printed, in which nothing acts on the terminal."""
        return super().render_str(escape_unprintable(text), **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print without the blanks that fill up columns, but for a terminal."""
        if self.is_terminal:
            super().print(*objects, **options)
            return
        with self.capture() as printed:
            super().print(*objects, **options)
        self.file.write(re.sub(r" +$", "", printed.get(), flags=re.MULTILINE))


def console(*, to_stderr: bool = False) -> Console:
    """Return the console for what is printed."""
    return _Console(stderr=to_stderr, highlight=False, emoji=False, markup=False)


def progress() -> AbstractContextManager[Progress]:
    """Return a progress bar for long work, shown only where somebody watches."""
    out = console(to_stderr=True)
    return Progress(console=out, transient=True, disable=not out.is_terminal)


def decimal(number: float, digits: int = 6) -> str:
    """Return a number with at most so many digits after the point.

    >>> decimal(60.0), decimal(60 / 3600), decimal(3.5629999999999997)
    ('60', '0.016667', '3.563')
    """
    told = f"{number:.{digits}f}"
    return told.rstrip("0").rstrip(".") if "." in told else told


def span(low: float, high: float) -> str:
    """Return a duration, or the two that it lies between, for people to read.

    >>> span(60, 60), span(0.25, 0.75)
    ('1m', '250ms to 750ms')
    """
    first, last = format_duration(low), format_duration(high)
    return first if first == last else f"{first} to {last}"


def listed(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Sequence[str | Text]]],
    *,
    left: Iterable[int] = (),
) -> Table:
    """Return a table of figures, aligned to the right but for some columns.

    Args:
        columns: Their headings.
        rows: A text, or the lines of one, for each column.
        left: The places of columns that are text, from 0.
    """
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for place, column in enumerate(columns):
        text = place in set(left)
        table.add_column(
            column,
            justify="left" if text else "right",
            no_wrap=not text,
            overflow="fold",
        )
    for row in rows:
        table.add_row(
            *(cell if isinstance(cell, str) else Group(*cell) for cell in row)
        )
    return table


def aligned(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table of figures of one line each, of which there may be thousands."""
    # Of each column one cell of many lines: what rich measures and wraps are cells.
    told = [
        [Text("\n".join(map(escape_unprintable, column)))]
        for column in zip(*rows, strict=True)
    ]
    return listed(columns, [told] if told else [])


def print_figures(out: Console, table: Table) -> None:
    """Print a table of figures whole: no number is ever cut to the terminal."""
    width = out.width
    out.width = _ENDLESS
    out.print(table, crop=False)
    out.width = width


# Columns beyond which no table goes.
_ENDLESS = 10_000


def pairs(told: Iterable[Sequence[str]]) -> Table:
    """Return names and the lines that are said of each, side by side."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, *lines in told:
        table.add_row(name, Group(*lines))
    return table
