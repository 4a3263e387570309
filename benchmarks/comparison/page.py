"""Tables of docs/comparison.md, between marks."""

from collections.abc import Sequence
from pathlib import Path

__all__ = ["PAGE", "Rows", "differences", "put", "read_rows"]

PAGE = Path(__file__).parents[2] / "docs/comparison.md"

Rows = dict[str, list[str]]
"""The cells of each row of a table by its title."""


def read_rows(text: str, name: str) -> Rows:
    """Return the rows of a table of a page, without its head.

    Args:
        text: The page.
        name: The name of the table, which is its mark.
    """
    begin, end = _marks(name)
    table = text.partition(begin)[2].partition(end)[0].strip().splitlines()
    rows = [line.removeprefix("| ").removesuffix(" |") for line in table[2:]]
    return {title: cells for title, *cells in (row.split(" | ") for row in rows)}


def put(text: str, name: str, heads: Sequence[str], rows: Rows) -> str:
    """Return a page with another table.

    Args:
        text: The page.
        name: The name of the table, which is its mark.
        heads: The head of each column after the first.
        rows: The rows.
    """
    begin, end = _marks(name)
    before, _, rest = text.partition(begin)
    lines = [["", *heads], ["---"] * (len(heads) + 1)]
    lines += [[title, *cells] for title, cells in rows.items()]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"{before}{begin}{table}\n{end}{rest.partition(end)[2]}"


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name} -->\n\n", "<!-- end -->"


def differences(old: Rows, new: Rows, heads: Sequence[str]) -> list[str]:
    """Return each cell of a table that should be another one, with its row and head.

    Args:
        old: The rows of the page.
        new: The rows as they are found.
        heads: The head of each column after the first.
    """
    return [
        f"{head}, {title}: the page says {was!r}, and it is {now!r}"
        for title in {**old, **new}
        for head, was, now in zip(
            heads, _cells(old, title, heads), _cells(new, title, heads), strict=True
        )
        if was != now
    ]


def _cells(rows: Rows, title: str, heads: Sequence[str]) -> list[str]:
    cells = rows.get(title, [])
    return cells + [""] * (len(heads) - len(cells))
