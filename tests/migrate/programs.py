"""Programs before and after their migration, as texts in files of this folder.

``python -m tests.migrate.programs`` writes the texts after: check the diff.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

from retrykit.migrate import migrate_text

__all__ = ["FOLDER", "PROGRAMS", "Program"]

FOLDER = Path(__file__).parent / "programs"


class Program(NamedTuple):
    """A program, the scripts that its server follows, or why it is left as it is."""

    library: str
    name: str
    scripts: str
    left: str
    before: str
    after: str

    def __str__(self):
        return f"{self.library}: {self.name}"


def read(path):
    """Yield the programs of a file."""
    for part in re.split(r"^=== ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        head, before, after = [*part.split("\n--- before\n"), ""][:3]
        before, _, after = before.partition("\n--- after\n")
        name, _, rest = head.partition("\n")
        fields = dict(re.findall(r"^(\w+): (.+)$", rest, re.MULTILINE))
        yield Program(
            path.stem,
            name,
            fields.get("scripts", ""),
            fields.get("left", ""),
            f"{before.rstrip()}\n",
            f"{after.rstrip()}\n" if after else "",
        )


PROGRAMS = [program for path in sorted(FOLDER.glob("*.txt")) for program in read(path)]


def write():
    """Write the texts after the migration into the files."""
    for path in sorted(FOLDER.glob("*.txt")):
        texts = []
        for program in read(path):
            after = migrate_text(program.before).after
            field = "scripts" if program.scripts else "left"
            texts.append(
                f"=== {program.name}\n{field}: {getattr(program, field)}\n"
                f"--- before\n{program.before}--- after\n{after}"
            )
        path.write_text("".join(texts), "utf-8")


if __name__ == "__main__":
    sys.exit(write())
