"""The band of a policy as bars in a terminal: a row for each retry."""

import math
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from retrykit._internal.durations import format_duration
from retrykit.analysis.duration_ticks import suits_log, ticks
from retrykit.cli.terminal import COLOURS, span

__all__ = ["bars"]

Bands = Sequence[tuple[int, float, float]]
"""The number of each retry, and the two ends of its band, in seconds."""

# What is left for the bars of a narrow terminal.
_LEAST = 20


def bars(
    bands: Mapping[str, Bands], console: Console, *, log: bool | None
) -> list[Table]:
    """Return one table of bars for each policy, all on one scale.

    Args:
        bands: The band of each policy, by its name.
        console: Where they will be printed: its width and encoding count.
        log: Whether the scale is logarithmic; None is where that suits them.
    """
    told = {
        name: [(str(n), span(low, high)) for n, low, high in band]
        for name, band in bands.items()
    }
    cells = [pair for lines in told.values() for pair in lines]
    room = [max((len(pair[i]) for pair in cells), default=0) for i in (0, 1)]
    width = max(console.width - max(room[0], len("retry")) - room[1] - 4, _LEAST)
    ends = [
        end for band in bands.values() for _, low, high in band for end in (low, high)
    ]
    scale = _Scale(ends, width, log=suits_log(ends) if log is None else log)
    tables = []
    for place, (name, band) in enumerate(bands.items()):
        colour = COLOURS[place % len(COLOURS)]
        table = Table(box=None, title=name, title_justify="left", pad_edge=False)
        table.title_style = f"bold {colour}"
        table.add_column("retry", justify="right", no_wrap=True)
        table.add_column(Text(scale.axis(), style="dim"), width=width, no_wrap=True)
        table.add_column(justify="right", no_wrap=True)
        for (number, text), (_, low, high) in zip(told[name], band, strict=True):
            bar = scale.bar(
                low, high, blocks=(console.encoding or "").startswith("utf")
            )
            table.add_row(number, Text(bar, colour), text)
        tables.append(table)
    return tables


class _Scale:
    """Which part of a row a duration falls into."""

    def __init__(self, ends: Sequence[float], width: int, *, log: bool) -> None:
        self.width = width
        self.log = log
        self.high = max(ends, default=0.0)
        positive = [end for end in ends if end > 0]
        self.low = min(positive, default=0.0) if log else 0.0

    def share(self, duration: float) -> float:
        """Return how far along the scale a duration lies, 0 to 1."""
        if not self.high > self.low or duration <= self.low:
            return 0.0
        if self.log:
            length = math.log(self.high) - math.log(self.low)
            return (math.log(duration) - math.log(self.low)) / length
        return duration / self.high

    def bar(self, low: float, high: float, *, blocks: bool) -> str:
        """Return a row of cells, filled from one duration to the other.

        Args:
            low: Seconds.
            high: Seconds, >= *low*.
            blocks: Whether the terminal can show halves of a cell.
        """
        halves = 2 * self.width
        first, last = (
            min(int(self.share(end) * halves), halves - 1) for end in (low, high)
        )
        filled = [first <= half <= last for half in range(halves)]
        cells = zip(filled[::2], filled[1::2], strict=True)
        if not blocks:
            return "".join("#" if any(cell) else " " for cell in cells)
        return "".join(_CELLS[cell] for cell in cells)

    def axis(self) -> str:
        """Return the marks above the bars, as many as find room."""
        line = [" "] * self.width
        if self.high > self.low:
            for mark in ticks(self.low, self.high, log=self.log, most=self.width // 9):
                tick = format_duration(mark)
                place = min(int(self.share(mark) * self.width), self.width - len(tick))
                if not "".join(line[max(place - 1, 0) : place + len(tick) + 1]).strip():
                    line[place : place + len(tick)] = tick
        return "".join(line)


_CELLS = {
    (False, False): " ",
    (True, False): "▌",
    (False, True): "▐",
    (True, True): "█",
}
