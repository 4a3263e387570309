"""``python -m tests.originals [--write] [PRESET]...`` compares presets with originals.

It also measures how many requests SDKs make by themselves, and compares the adaptive
rate limit with that of botocore. The exit code is 1 if anything differs, or if a page
has another table than the one that is printed. With ``--write`` the tables are written
there.
"""

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

from retrykit.config._preset_names import BUILT_IN
from tests.originals.adaptive_rate import compare_rates
from tests.originals.comparison import ORIGINALS, Row, compare
from tests.originals.own_retries import SdkRow, measure_sdks

FOLDER = Path(__file__).parent
DOCS = FOLDER.parent.parent / "docs"


def main(words: list[str]) -> int:
    """Compare, print and write; return the exit code."""
    write = "--write" in words
    chosen = {word for word in words if word != "--write"}
    for path in sorted(FOLDER.glob("originals_of_*.py")):
        import_module(f"tests.originals.{path.stem}")
    order = [*BUILT_IN]
    every = sorted(ORIGINALS, key=lambda each: order.index(each.preset))
    found = [compare(each) for each in every if not chosen or each.preset in chosen]
    rows = [each._replace(preset=f"`{each.preset}`") for each in found]
    tables = {
        "presets.md": build_table(
            Row("preset", "original", "compared", "verdict"), rows
        )
    }
    if not chosen:
        header = SdkRow("client", "requests", "measured with")
        tables["transient_errors.md"] = build_table(header, measure_sdks())
    problems = [
        f"{row.preset} differs from {row.original}: {row.verdict}"
        for row in found
        if row.verdict not in {"equal", "as documented", "equal then"}
    ]
    missing = BUILT_IN.keys() - {each.preset for each in every}
    problems += [f"{name} has no original" for name in sorted(missing)]
    if not chosen and (difference := compare_rates()):
        problems.append(f"AdaptiveRateLimit: {difference}")
    for page, table in tables.items():
        print(table)
        if not chosen and not put(DOCS / page, table, write=write):
            problems.append(f"docs/{page} has another table: --write renews it")
    print(*problems, sep="\n")
    return 1 if problems else 0


def build_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def put(page: Path, table: str, *, write: bool) -> bool:
    """Return whether a page has a table between its marks; write it if told to."""
    begin, end = "<!-- originals -->\n\n", "\n<!-- end -->"
    before, _, rest = page.read_text("utf-8").partition(begin)
    old, _, after = rest.partition(end)
    if write:
        page.write_text(f"{before}{begin}{table}{end}{after}", "utf-8")
    return write or old == table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
