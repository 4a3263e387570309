"""Cost of durable jobs that wait: ``python -m benchmarks.durable``.

On DBOS with SQLite. Ten thousand jobs are started, wait while a new process starts, and
come due at once. Compared with the usual way to wait for days: a workflow for each job,
which sleeps.
"""

import argparse
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.durable_jobs import Figures, Run, postpone, size
from benchmarks.table import machine, markdown, versions

__all__ = ["SETTINGS", "Setting", "due", "waiting"]

_HOUR = 3600

_NOTES = """\
Each figure is measured once, in a separate process. Memory is RSS, including imported
modules; "for each", the difference to a process without jobs. Of three new jobs, the
slowest counts. The file keeps each attempt until its workflow is deleted: here one for
each job that came due, and none for those that wait.
"""


class Setting(NamedTuple):
    """Settings of a process that attempts jobs.

    Attributes:
        concurrency: The number of concurrent attempts.
        polling: The interval between polls for due jobs, in seconds.
        journal: The journal mode of SQLite.
    """

    concurrency: int = 20
    polling: float = 1.0
    journal: str = "delete"


SETTINGS = [
    Setting(),
    Setting(polling=0.2),
    Setting(polling=0.05),
    Setting(concurrency=100),
    Setting(concurrency=1, polling=0.05),
    Setting(polling=0.2, journal="wal"),
]


def waiting(folder: Path, jobs: int, sleeping: int, idle: float) -> str:
    """Return the table of waiting jobs and sleeping workflows.

    Args:
        folder: For databases.
        jobs: The number of jobs.
        sleeping: The number of workflows.
        idle: How long idle processes are measured, in seconds.
    """
    empty, rows, asleep = (str(folder / name) for name in ("empty", "rows", "asleep"))
    without = _figures(Run(phase="rest", path=empty, number=0, idle=idle))
    started = _figures(Run(phase="start", path=rows, number=jobs))
    postpone(rows, time.time() + _HOUR)
    rest = _figures(Run(phase="rest", path=rows, number=jobs, idle=idle))
    slept = _figures(Run(phase="sleep", path=asleep, number=sleeping))
    awake = _figures(Run(phase="wake", path=asleep, number=sleeping, idle=idle))
    memory = [each["memory"] for each in (without, rest, awake)]
    beyond = [(memory[1] - memory[0]) / jobs, (memory[2] - memory[0]) / sleeping]
    again = rest["ready"], awake["ready"] + awake["again"]
    sizes = size(rows) / jobs, size(asleep) / sleeping
    return markdown(
        ["", "nothing waits", f"{jobs:,} jobs wait", f"{sleeping:,} workflows sleep"],
        [
            _row("started a second", None, started["rate"], slept["rate"], form=",.0f"),
            _row("memory of the process (MB)", *(each / 1e6 for each in memory)),
            _row("memory for each (kB)", None, *(each / 1e3 for each in beyond)),
            _row("file for each (kB)", None, *(each / 1e3 for each in sizes)),
            _row(
                "listens after (s)", without["ready"], rest["ready"], None, form=".2f"
            ),
            _row("all wait again after (s)", None, *again, form=".2f"),
            _row("new jobs are attempted after (s)", without["first"], rest["first"]),
            _row("CPU while idle (%)", without["busy"] * 100, rest["busy"] * 100),
        ],
    )


def _row(title: str, *figures: float | None, form: str = ",.1f") -> list[str]:
    cells = ["-" if each is None else format(each, form) for each in figures]
    return [title, *cells, *["-"] * (3 - len(cells))]


def due(folder: Path, jobs: int, sample: int) -> str:
    """Return the table of jobs that come due at once.

    Args:
        folder: For databases.
        jobs: The number of jobs, under the second of the settings.
        sample: The number of jobs under each of the settings.
    """
    runs = [*((sample, setting) for setting in SETTINGS), (jobs, SETTINGS[1])]
    rows = []
    for row, (number, setting) in enumerate(runs):
        path = str(folder / f"due-{row}")
        measured, bytes_each = _attempt_all(path, number, setting)
        figures = [
            measured["rate"],
            measured["busy"] * 100,
            measured["cpu"] * 1e3,
            bytes_each / 1e3,
            measured["median"],
            measured["p99"],
        ]
        words = [setting.journal, f"{number:,}", *map(str, setting[:2])]
        rows.append([*words, *(f"{figure:.1f}" for figure in figures)])
    heads = ["journal", "jobs due", "concurrency", "polling (s)", "attempts a second"]
    heads += ["CPU (%)", "CPU for each (ms)", "file for each (kB)"]
    return markdown([*heads, "recorded after (ms), p50", "p99"], rows)


def _attempt_all(path: str, number: int, setting: Setting) -> tuple[Figures, float]:
    with closing(sqlite3.connect(path)) as database:
        # Stored in the file, for every process that opens it.
        database.execute(f"PRAGMA journal_mode = {setting.journal}")
    _figures(Run(phase="start", path=path, number=number))
    postpone(path, time.time() + _HOUR)
    concurrency, polling, _ = setting
    run = Run(
        phase="attempt",
        path=path,
        number=number,
        concurrency=concurrency,
        polling=polling,
    )
    return _figures(run), size(path) / number


def _figures(run: Run) -> Figures:
    """Return the figures that a process has measured."""
    print(f"measuring: {run}", file=sys.stderr)
    command = [sys.executable, "-m", "benchmarks.durable_jobs", json.dumps(asdict(run))]
    done = subprocess.run(  # noqa: S603  this interpreter, and a module of ours
        command, check=True, stdout=subprocess.PIPE, text=True
    )
    figures: Figures = json.loads(done.stdout)
    return figures


def _tables(options: argparse.Namespace) -> Iterator[str]:
    with TemporaryDirectory() as folder:
        yield waiting(Path(folder), options.jobs, options.sleeping, options.idle)
        yield due(Path(folder), options.jobs, options.sample)
    yield _NOTES
    yield f"{machine()}, {versions(['dbos', 'sqlalchemy'])}"


def main() -> None:
    """Print the tables, each as soon as it is measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.durable")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--sleeping", type=int, default=1_000)
    parser.add_argument("--sample", type=int, default=400)
    parser.add_argument("--idle", type=float, default=3.0, help="seconds (3)")
    for table in _tables(parser.parse_args()):
        print(f"{table}\n", flush=True)


if __name__ == "__main__":
    main()
