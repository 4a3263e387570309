"""Output to the terminal: console, progress, tables and numbers.

rich chooses color, width and encoding, and respects NO_COLOR.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console, Group
from rich.padding import Padding
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from retrykit._internal.durations import format_duration
from retrykit._internal.validation import escape_unprintable

__all__ = ["build_figures", "build_pairs", "build_table", "console", "format_decimal"]
__all__ += ["format_range", "print_paragraph", "print_records", "print_uncut"]
__all__ += ["show_progress"]

# Columns, more than any table has.
_UNCUT: Final = 10_000


class _Console(Console):
    """Console that escapes control characters and line breaks in strings.

    The name of a file or a module may contain any character. Intended line breaks are
    separate prints, or a `rich.console.Group`.
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string with its control characters escaped, ready to print."""
        return super().render_str(escape_unprintable(text), **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, without trailing spaces unless the output is a terminal."""
        if self.is_terminal:
            super().print(*objects, **options)
            return
        with self.capture() as printed:
            super().print(*objects, **options)
        self.file.write(re.sub(r" +$", "", printed.get(), flags=re.MULTILINE))


def console(*, stderr: bool = False) -> Console:
    """Return a console for stdout, or for stderr."""
    return _Console(stderr=stderr, highlight=False, emoji=False, markup=False)


@contextmanager
def show_progress(
    title: str, *, after: float = 0.25
) -> Iterator[Callable[[float, float], None]]:
    """Show a progress bar on a terminal, unless the work is done soon.

    Args:
        title: What is being done.
        after: Seconds before the bar is drawn, and between its updates.

    Yields:
        A function that takes how much has been done, and how much there is.
    """
    out = console(stderr=True)
    # Not drawn by a thread, since processes may be forked meanwhile.
    bar = Progress(
        console=out,
        transient=True,
        auto_refresh=False,
        disable=not out.is_interactive,
    )
    task = bar.add_task(title, total=None)
    drawn = bar.get_time()

    def tell(done: float, count: float) -> None:
        nonlocal drawn
        bar.update(task, completed=done, total=count)
        if bar.get_time() - drawn >= after:
            bar.start()
            bar.refresh()
            drawn = bar.get_time()

    try:
        yield tell
    finally:
        bar.stop()


def format_decimal(number: float, digits: int = 6) -> str:
    """Return a number rounded to some decimals, without trailing zeros.

    >>> format_decimal(60.0), format_decimal(60 / 3600), format_decimal(3.5629999999)
    ('60', '0.016667', '3.563')
    """
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_range(low: float, high: float) -> str:
    """Return a range of durations, in seconds, as text for people.

    >>> format_range(60, 60), format_range(0.25, 0.75)
    ('1m', '250ms to 750ms')
    """
    first, last = format_duration(low), format_duration(high)
    return first if first == last else f"{first} to {last}"


def build_table(
    columns: Sequence[str], rows: Iterable[Sequence[str | Sequence[str]]]
) -> Table:
    """Return a table of text, each cell a string or a sequence of lines."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(
            *(cell if isinstance(cell, str) else Group(*cell) for cell in row)
        )
    return table


def build_figures(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table of figures, aligned to the right; fast for thousands of rows."""
    table = build_table([], [])
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    # A single cell per column, since rich measures and wraps each cell.
    cells = ["\n".join(map(escape_unprintable, x)) for x in zip(*rows, strict=True)]
    if cells:
        table.add_row(*map(Text, cells))
    return table


def build_pairs(pairs: Iterable[Sequence[str]]) -> Table:
    """Return a table of labels and the lines beside each."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, *lines in pairs:
        table.add_row(label, Group(*lines))
    return table


def print_uncut(out: Console, table: Table) -> None:
    """Print a table at its full width, so that no figure is cut off."""
    width = out.width
    out.width = _UNCUT
    out.print(table, crop=False)
    out.width = width


def print_paragraph(out: Console, text: str) -> None:
    """Print a line of text: wrapped at its indent in a terminal, otherwise as it is."""
    if not out.is_terminal:
        out.print(text, soft_wrap=True)
        return
    bare = text.lstrip()
    out.print(Padding(bare, (0, 0, 0, len(text) - len(bare))))


def print_records(
    out: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Print a table whose last column may hold long texts, and cut off nothing.

    If a terminal is too narrow for the table, each of these texts is printed below its
    row.
    """
    table = build_table(columns, rows)
    needed = out.measure(table, options=out.options.update(max_width=_UNCUT)).maximum
    if not out.is_terminal or needed <= out.width:
        print_uncut(out, table)
        return
    with out.capture() as printed:
        print_uncut(out, build_table(columns[:-1], [row[:-1] for row in rows]))
    lines = printed.get().splitlines()
    texts = ["", *(row[-1] for row in rows)]
    for line, text in zip(lines, texts, strict=True):
        cells = Text.from_ansi(line)
        cells.rstrip()
        out.print(cells, soft_wrap=True)
        if text:
            print_paragraph(out, f"    {text}")
