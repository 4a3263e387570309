"""The table of the cells, and its place in the documents."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from retrykit.simulate import Simulation
from tests.reality.cell import Cell
from tests.reality.comparison import MOST_LAG, Comparison
from tests.reality.rig import Recording

__all__ = ["Row", "build_table", "put", "row"]

BEGIN, END = "<!-- reality -->\n\n", "<!-- end of reality -->"


class Row(NamedTuple):
    """A line of the table; the fields have the heads of its columns."""

    cell: str
    recovers: str
    attempts: str
    peak: str
    lag: str
    date: str
    cause: str


HEAD = Row(
    "cell",
    "recovers",
    "attempts per call",
    "peak",
    "lag",
    "date",
    "where they differ",
)


def row(cell: Cell, recording: Recording, found: Comparison) -> Row:
    real, simulated, differences = found
    cause = "; ".join(filter(None, [*differences, differences and cell.cause]))
    if recording.lag >= MOST_LAG:
        cause = f"timers too late to count{cause and ': '}{cause}"
    if recording.unexpected:
        cause = f"{cause}{cause and '; '}other errors: {recording.unexpected}"
    return Row(
        cell.name,
        f"{recovery(real)} / {recovery(simulated)}",
        f"{real.amplification:.2f} / {simulated.amplification:.2f}",
        f"{real.peak:.2f} / {simulated.peak:.2f}",
        f"{1000 * recording.lag:.0f} ms",
        recording.date,
        cause,
    )


def recovery(result: Simulation) -> str:
    if result.recovery is None:
        return "never"
    late = " (late)" if result.outcome == "not decided" else ""
    return f"{result.recovery:.2f} s{late}" if result.recovery else "at once"


def build_table(rows: Iterable[Row]) -> str:
    """Return a table in Markdown."""
    lines = [HEAD, ["---"] * len(HEAD), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def put(page: Path, table: str, *, write: bool) -> bool:
    """Return whether a page has a table between its marks; write it if told to."""
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    old, end, after = rest.partition(END)
    assert end, "the page must have both marks"
    table = f"{table}\n"
    if write:
        page.write_text(f"{before}{BEGIN}{table}{END}{after}", "utf-8")
    return write or old == table
