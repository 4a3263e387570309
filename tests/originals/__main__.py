"""``python -m tests.originals [--write] [PRESET]...`` compares presets with originals.

The exit code is 1 if a preset differs, or if docs/presets.md has another table than the
one that is printed. With ``--write`` the table is written there.
"""

import sys
from importlib import import_module
from pathlib import Path

from retrykit.config._preset_names import BUILT_IN
from tests.originals.comparison import ORIGINALS, Row, compare

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent.parent / "docs" / "presets.md"
BEGIN, END = "<!-- originals -->\n\n", "\n<!-- end -->"
HEADER = Row("preset", "original", "compared", "verdict")


def main(words: list[str]) -> int:
    """Compare, print and write; return the exit code."""
    write = "--write" in words
    chosen = [word for word in words if word != "--write"]
    for path in sorted(FOLDER.glob("originals_of_*.py")):
        import_module(f"tests.originals.{path.stem}")
    order = [*BUILT_IN]
    every = sorted(ORIGINALS, key=lambda each: order.index(each.preset))
    missing = BUILT_IN.keys() - {each.preset for each in every}
    rows = [compare(each) for each in every if not chosen or each.preset in chosen]
    lines = [
        HEADER,
        Row(*["---"] * 4),
        *(x._replace(preset=f"`{x.preset}`") for x in rows),
    ]
    table = "".join(f"| {' | '.join(row)} |\n" for row in lines)
    print(table)
    wrong = [row for row in rows if row.verdict not in {"equal", "as documented"}]
    for row in wrong:
        print(f"{row.preset} differs from {row.original}: {row.verdict}")
    if missing:
        print("no original:", ", ".join(sorted(missing)))
    before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
    old, end, after = rest.partition(END)
    if write and not chosen:
        PAGE.write_text(f"{before}{begin}{table}{end}{after}", "utf-8")
    outdated = not chosen and not write and old != table
    if outdated:
        print("docs/presets.md has another table; write --write")
    return 1 if wrong or missing or outdated else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
