"""``python -m benchmarks.comparison [--write | --newest]`` runs the claims.

The exit code is 1 if docs/comparison.md says something else than the programs find;
each claim that differs is named. ``--write`` writes the tables there. ``--newest`` asks
the newest releases, each in an environment of its own, which it makes with uv.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.comparison.answers import LIBRARIES, VERSION, Found, ask
from benchmarks.comparison.claims import CLAIMS, Answer
from benchmarks.comparison.documents import DOCUMENTS
from benchmarks.comparison.page import PAGE, Rows, differences, put, read_rows
from benchmarks.comparison.releases import find_dates

__all__ = ["HEADS", "RELEASE", "build_tables", "main"]

RELEASE = "Release"
"""The title of the row with the version and the month of each release."""

HEADS = {"programs": LIBRARIES, "documents": [*DOCUMENTS]}
"""The heads of each table by its name."""

# What the programs need besides the library.
TOOLS = ["mypy", "trio", "wrapt", "prometheus-client"]


def main(options: Iterable[str]) -> int:
    """Run the claims, print what differs, and return the exit code."""
    chosen = set(options)
    text = PAGE.read_text("utf-8")
    found = _ask_newest() if "--newest" in chosen else ask()
    tables = build_tables(found)
    versions = {name: found[name][VERSION].verdict for name in LIBRARIES[1:]}
    dated = _date(versions) if chosen else read_rows(text, "programs").get(RELEASE, [])
    tables["programs"][RELEASE] = _current(dated, ["none yet", *versions.values()])
    if "--write" in chosen:
        for name, rows in tables.items():
            text = put(text, name, HEADS[name], rows)
        PAGE.write_text(text, "utf-8")
    problems = [
        each
        for name, rows in tables.items()
        for each in differences(read_rows(text, name), rows, HEADS[name])
    ]
    print(*problems, sep="\n")
    return 1 if problems else 0


def _date(versions: Mapping[str, str]) -> list[str]:
    dates = find_dates(versions)
    return ["none yet", *(f"{x}, {dates[name]}" for name, x in versions.items())]


def _current(dated: list[str], versions: list[str]) -> list[str]:
    """Return versions with their months, or alone if another release has a month."""
    months = {cell.partition(", ")[0]: cell for cell in dated}
    return [months.get(number, number) for number in versions]


def build_tables(found: Found) -> dict[str, Rows]:
    """Return the table of the programs, and that of the documents."""
    documented = [claim for claim in CLAIMS if claim in DOCUMENTS["Polly 8"]]
    return {
        "programs": _rows(found, CLAIMS),
        "documents": _rows(DOCUMENTS, documented),
    }


def _rows(answers: Mapping[str, Mapping[str, Answer]], claims: Iterable[str]) -> Rows:
    return {
        CLAIMS[claim]: [str(each[claim]) for each in answers.values()]
        for claim in claims
    }


def _ask_newest() -> Found:
    environ = {key: x for key, x in os.environ.items() if "CONSTRAINT" not in key}
    with tempfile.TemporaryDirectory() as folder:
        pythons = {}
        for name in LIBRARIES[1:]:
            python = Path(folder, name, "bin", "python")
            install = ["uv", "pip", "install", "--quiet", "--python", str(python)]
            for command in (
                ["uv", "venv", "--quiet", str(python.parents[1])],
                [*install, name, *TOOLS],
            ):
                subprocess.run(command, check=True, env=environ)  # noqa: S603
            pythons[name] = str(python)
        return ask(pythons)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
