"""The gate for speed: ``python -m benchmarks.instructions [COMMIT]``.

Counts the machine instructions of a call in this version and in the one that it starts
from, in one run, for each row of the benchmark, as installed and quiet. Exits with 1 if
a row takes 5 % more, unless a commit in between explains it, in a last paragraph with
the line ``Slower: ROW: REASON``. Callgrind counts, so a busy machine changes nothing.
Where objects lie does: names that share a place in the interpreter's cache of
attributes cost up to 6 %, and the length of a path decides it. So if a row fails, both
versions are counted again with other hashes, and the least counts.
"""

import argparse
import ast
import compileall
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, final
from zipfile import ZipFile

from benchmarks.calls import ROWS
from benchmarks.contenders import STATES
from benchmarks.table import machine, markdown

__all__ = [
    "SEEDS",
    "Row",
    "compare",
    "excuses",
    "least",
    "start_of_series",
    "titles",
    "until_none_fails",
]

LIMIT = 1.05
"""A row that takes more than this many times the instructions of before fails."""

SEEDS = range(5)
"""Seeds of the hashes with which a version is counted, until no row fails."""

PAUSE = 6 * 3600
"""Seconds without a commit, after which another series of commits begins."""

_ROOT = Path(__file__).parent.parent

Counts = Mapping[tuple[str, str], float]
"""Instructions of a call, by the state of the logs and the title of the row."""

Compare = Callable[[Counts, Counts], list["Row"]]
"""Makes rows of the counts of both versions."""


@final
class Row(NamedTuple):
    """One row in one state of the logs.

    Attributes:
        state: The state.
        title: The title of the row.
        before: Instructions of a call in the version to compare with; None if it has
            no such row.
        now: The same in this version; None if the row is gone, or fails.
        excuse: Why it may be slower; empty if nobody said so.
    """

    state: str
    title: str
    before: float | None
    now: float | None
    excuse: str = ""

    @property
    def fails(self) -> bool:
        """Whether it is too slow, or gone, and nobody said so."""
        return (self.is_slower or self.now is None) and not self.excuse

    @property
    def is_slower(self) -> bool:
        """Whether it is slower than the limit."""
        if self.before is None or self.now is None:
            return False
        return self.now > LIMIT * self.before

    def __str__(self) -> str:
        if self.now is None:
            text = "gone"
        elif self.before is None:
            text = f"{self.now:,.0f}, a new row"
        else:
            change = self.now / self.before - 1
            text = f"{self.before:,.0f} to {self.now:,.0f} ({change:+.1%})"
        if self.fails:
            return f"{text} FAILS"
        return f"{text}, {self.excuse}" if self.is_slower or self.now is None else text


def compare(
    before: Counts, now: Counts, known: Iterable[str], excused: Mapping[str, str]
) -> list[Row]:
    """Return all rows.

    Args:
        before: The counts of the version to compare with.
        now: The counts of this version.
        known: The titles of both versions.
        excused: Why rows may be slower, by a pattern of their titles.
    """
    return [
        Row(
            state,
            title,
            before.get((state, title)),
            now.get((state, title)),
            next((y for x, y in excused.items() if fnmatchcase(title, x)), ""),
        )
        for title in known
        for state in STATES
    ]


def least(counts: Iterable[Counts]) -> Counts:
    """Return the least count of each row."""
    found: dict[tuple[str, str], float] = {}
    for one in counts:
        found |= {row: min(count, found.get(row, count)) for row, count in one.items()}
    return found


def until_none_fails(
    count: Callable[[int], Iterable[Counts]], rows: Compare
) -> list[Row]:
    """Return the rows of the least counts, of as many seeds as it takes, or of all.

    Args:
        count: Counts the version to compare with, and this one, with a seed.
        rows: Compares both.
    """
    counted: list[list[Counts]] = []
    for seed in SEEDS:
        counted.append([*count(seed)])
        then, here = map(least, zip(*counted, strict=True))
        found = rows(then, here)
        if not any(row.is_slower and row.fails for row in found):
            break
    return found


def excuses(trailers: str) -> dict[str, str]:
    """Return the reasons of ``ROW: REASON`` lines by row.

    Raises:
        ValueError: A line has another form.
    """
    found = {}
    for line in filter(None, trailers.splitlines()):
        title, colon, reason = line.partition(": ")
        if not colon or not reason.strip():
            msg = f"Slower must have the form `Slower: ROW: REASON`, got {line!r}"
            raise ValueError(msg)
        found[title.strip()] = reason.strip()
    return found


def titles(source: str) -> list[str]:
    """Return the titles in the dictionary `ROWS` of a module, given as its text."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "ROWS":
            rows = node.value
            assert isinstance(rows, ast.Dict)  # noqa: S101  it is written as one
            return [ast.literal_eval(key) for key in rows.keys if key is not None]
    return []


def start_of_series(log: str) -> str | None:
    """Return the commit before a series of commits; None if there is none.

    Args:
        log: A line for each commit, the newest first: its time in seconds since the
            epoch, and its name.
    """
    commits = [line.split() for line in log.splitlines()]
    for (later, _), (earlier, name) in pairwise(commits):
        if int(later) - int(earlier) >= PAUSE:
            return name
    return None


def _base(given: str | None) -> str:
    """Return the commit to compare with."""
    head = _git("rev-parse", "HEAD")
    if given:
        return _git("rev-parse", f"{given}^{{commit}}")
    for branch in filter(None, (os.environ.get("GITHUB_BASE_REF"), "main")):
        start = _git("merge-base", "HEAD", f"origin/{branch}", check=False)
        if start not in {"", head}:
            return start
    found = start_of_series(_git("log", "--format=%ct %H"))
    if found is None:
        sys.exit("No older commit to compare with; give one: nox -s speed -- COMMIT")
    return found


def _git(*arguments: str, check: bool = True) -> str:
    done = subprocess.run(  # noqa: S603  arguments from above
        ["git", *arguments],  # noqa: S607  as in a terminal
        cwd=_ROOT,
        check=check,
        stdout=subprocess.PIPE,
        stderr=None if check else subprocess.DEVNULL,
        text=True,
    )
    return done.stdout.strip()


def _export(commit: str, folder: Path) -> None:
    """Write the package of a commit to a folder."""
    done = subprocess.run(  # noqa: S603  a commit from above
        ["git", "archive", "--format=zip", commit, "retrykit"],  # noqa: S607  as in a terminal
        cwd=_ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    with ZipFile(BytesIO(done.stdout)) as archive:
        archive.extractall(folder)


def _count(folder: Path, seed: int) -> Counts:
    """Return the counts of the version in a folder."""
    out = folder / "out"
    command = ["valgrind", "--tool=callgrind", "--dump-before=ctermid"]
    command += [f"--callgrind-out-file={out}", sys.executable]
    # Not the folder of the module, so that the version is the one of the path.
    command += ["-P", "-m", "benchmarks.counted"]
    done = subprocess.run(  # noqa: S603  this interpreter, and this package
        # Addresses are hashed, so they must be the same in each run.
        ["setarch", "-R", *command],  # noqa: S607  as in a terminal
        env={
            **os.environ,
            "PYTHONHASHSEED": str(seed),
            "PYTHONPATH": os.pathsep.join([str(folder), str(_ROOT)]),
        },
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{folder.name} must be counted, got:\n{done.stderr}")
    sys.stderr.write(re.sub(r"^==.*\n", "", done.stderr, flags=re.MULTILINE))
    return {
        (state, title): (_total(out, last) - _total(out, last - 1)) / calls
        for state, title, calls, last in json.loads(done.stdout)
    }


def _total(out: Path, number: int) -> int:
    text = Path(f"{out}.{number}").read_text("utf-8")
    found = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
    assert found is not None  # noqa: S101  callgrind writes it
    return int(found[1])


def main() -> None:
    """Print a row for each kind of call, and exit with 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions")
    parser.add_argument("commit", nargs="?", help="the commit to compare with")
    given = parser.parse_args().commit
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is missing; on Debian: apt install valgrind")
    base = _base(given)
    excused = excuses(
        _git("log", "--format=%(trailers:key=Slower,valueonly)", f"{base}..HEAD")
    )
    before = titles(_git("show", f"{base}:benchmarks/calls.py", check=False))
    with TemporaryDirectory() as temporary:
        # Names of the same length, which the instructions that read them depend on.
        folders = [Path(temporary, name) for name in ("then", "here")]
        _export(base, folders[0])
        shutil.copytree(_ROOT / "retrykit", folders[1] / "retrykit")
        for folder in folders:
            compileall.compile_dir(folder, quiet=1)
        with ThreadPoolExecutor() as both:
            rows = until_none_fails(
                lambda seed: both.map(_count, folders, [seed, seed]),
                lambda then, here: compare(
                    then, here, dict.fromkeys([*ROWS, *before]), excused
                ),
            )
    print(
        f"Instructions of a call, {_git('log', '-1', '--format=%h (%s)', base)} to here"
    )
    cells = [[row.title, row.state, str(row)] for row in rows]
    print(markdown(["call", "logs", "instructions"], cells, words=3))
    print(machine())
    failed = [f"{row.title} ({row.state})" for row in rows if row.fails]
    if failed:
        sys.exit(f"More than {LIMIT - 1:.0%} slower, or gone: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
