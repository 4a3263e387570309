"""Compare two runs of the main benchmark: ``python -m benchmarks.compare OLD NEW``.

OLD and NEW are files that ``python -m benchmarks -o FILE`` wrote on the same machine.
It prints the column of retrykit in both, and how many times as much the new one takes.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from benchmarks.contenders import RETRYKIT
from benchmarks.table import markdown

__all__ = ["compare", "read_column"]


def main() -> None:
    """Print a table of the rows that both files have."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    arguments = parser.parse_args()
    texts = (path.read_text("utf-8") for path in (arguments.old, arguments.new))
    print(compare(*texts))


def compare(old: str, new: str) -> str:
    """Return a table of the rows that two outputs of the benchmark have."""
    before, after = dict(read_column(old)), dict(read_column(new))
    rows = [
        [
            *row,
            before[row],
            after[row],
            f"{_number(after[row]) / _number(before[row]):.2f}",
        ]
        for row in after
        if row in before
    ]
    return markdown(["logs", "row", "before", "after", "times"], rows, words=2)


def read_column(text: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the logs and the title of each row, and the figure of retrykit."""
    state, column = "", 0
    for line in text.splitlines():
        cells = [each.strip() for each in line.strip("|").split("|")]
        if line.startswith("## "):
            state = line.removeprefix("## ").lower()
        elif RETRYKIT.name in cells:
            column = cells.index(RETRYKIT.name)
        elif line.startswith("| ") and cells[column]:
            title = f"{cells[0]}, {cells[1]} (µs)" if column == _CLIENTS else cells[0]
            yield (state, title), cells[column].partition(" ")[0]


_CLIENTS = 4
"""The column of retrykit in the tables of HTTP clients."""


def _number(figure: str) -> float:
    return float(figure.replace(",", ""))


if __name__ == "__main__":
    main()
