"""Charts of numbers over time, in cells of a terminal."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from retrykit._cli.chart import Scale

__all__ = ["build_time_chart"]

_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_PLAIN: Final = " #"
_ROWS: Final = 4
_MARGIN: Final = 7


def build_time_chart(
    title: str,
    numbers: Sequence[float],
    console: Console,
    *,
    color: str,
    most: float,
    shaded: tuple[float, float] | None = None,
) -> Table:
    """Return a chart of numbers, one for each second.

    Args:
        title: The text above it.
        numbers: The numbers, >= 0, one for each second, and at least one.
        console: Where it is printed.
        color: The color of the columns.
        most: The number at the top, > 0.
        shaded: The seconds between which a bar marks an outage; None for no outage.
    """
    width = min(max(console.width - _MARGIN, 20), 120)
    marks = _BLOCKS if (console.encoding or "").startswith("utf") else _PLAIN
    parts = len(marks) - 1
    heights = [
        round(min(mean / most, 1.0) * _ROWS * parts) for mean in _means(numbers, width)
    ]
    table = Table(box=None, title=title, title_justify="left", pad_edge=False)
    table.title_style, table.show_header = f"bold {color}", False
    table.add_column(justify="right", width=_MARGIN - 2, no_wrap=True)
    table.add_column(width=width, no_wrap=True)
    for row in range(_ROWS, 0, -1):
        label = {_ROWS: f"{most:.3g}", 1: "0"}.get(row, "")
        below = (row - 1) * parts
        cells = (marks[min(max(height - below, 0), parts)] for height in heights)
        table.add_row(label, Text("".join(cells), color))
    scale = Scale([0.0, float(len(numbers))], width, log=False)
    if shaded is not None:
        bar = _bar(scale, *shaded, outage="━" if marks is _BLOCKS else "=")
        table.add_row("", Text(bar, "dim"))
    table.add_row("", Text(scale.axis(), "dim"))
    return table


def _means(numbers: Sequence[float], width: int) -> list[float]:
    """Return the mean of the numbers that share each cell."""
    count = len(numbers)
    means = []
    for cell in range(width):
        first = cell * count // width
        part = numbers[first : max((cell + 1) * count // width, first + 1)]
        means.append(sum(part) / len(part))
    return means


def _bar(scale: Scale, begin: float, end: float, *, outage: str) -> str:
    first = int(scale.position(begin) * scale.width)
    last = max(int(scale.position(end) * scale.width), first + 1)
    return " " * first + outage * (last - first) + " outage"
