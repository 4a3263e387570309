"""What `benchmarks.durable` measures, each in a process of its own.

``python -m benchmarks.durable_jobs RUN`` does one thing with the database in a
folder, prints its figures as a line of JSON, and ends as if it were killed: the
next process finds what this one has left.
"""

import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import final

from dbos import DBOS

from retrykit import Policy
from retrykit.integrations import dbos as durable

__all__ = ["Figures", "Run", "postpone", "size"]

Figures = dict[str, float]

_HOUR = 3600
_POLICY = Policy(schedule=[_HOUR], max_elapsed=None, on=ConnectionError, name="hourly")

_attempted: list[int] = []
_asleep: list[int] = []


@final
@dataclass(frozen=True, kw_only=True)
class Run:
    """What a process does.

    Attributes:
        phase: The name of one of the functions below.
        path: The database, a file of SQLite.
        number: How many jobs or workflows there are.
        concurrency: How many attempts it makes at the same time.
        polling: How often it looks which jobs are due, in seconds.
        idle: For how long it is looked at while it does nothing, in seconds.
    """

    phase: str
    path: str
    number: int
    concurrency: int = 20
    polling: float = 1.0
    idle: float = 3.0


@durable.job(_POLICY, name="check")
def check(number: int) -> None:
    """Make an attempt that fails, so that the job waits for an hour."""
    _attempted.append(number)
    raise ConnectionError(_refused(number))


@DBOS.workflow()
async def sleeper(number: int) -> None:
    """Do the same in a loop that sleeps: the other design."""
    while True:
        await DBOS.run_step_async({"name": "check"}, _failed, number)
        _asleep.append(number)
        await DBOS.sleep_async(_HOUR)


async def _failed(number: int) -> str:
    return _refused(number)


def _refused(number: int) -> str:
    return f"job {number}: connection refused"


def start(run: Run) -> Figures:
    """Start jobs, in a process that attempts none."""
    begun = _now()
    for each in range(run.number):
        check.start_as(f"job-{each}", each)
    return _spent(run, begun)


def rest(run: Run) -> Figures:
    """Do nothing beside jobs that wait; then start some more, and attempt them."""
    time.sleep(run.idle)
    memory, (begun, cpu) = _memory(), _now()
    time.sleep(run.idle)
    busy = (time.process_time() - cpu) / (time.perf_counter() - begun)
    first = max(_attempt_of(run, number) for number in range(3))
    return {"memory": memory, "busy": busy, "first": first}


def attempt(run: Run) -> Figures:
    """Make an attempt of each job, when all have come due at once."""
    postpone(run.path, time.time())
    begun = _now()
    _until(run, lambda: len(_attempted) >= run.number)
    _until(run, lambda: _waiting(run.path) == run.number)
    if sorted(_attempted) != list(range(run.number)):
        msg = f"each of {run.number} jobs must be attempted once, got {_attempted}"
        raise RuntimeError(msg)
    return _spent(run, begun)


def sleep(run: Run) -> Figures:
    """Start workflows that sleep."""
    begun = _now()
    for each in range(run.number):
        DBOS.start_workflow(sleeper, each)
    _until(run, lambda: len(_asleep) == run.number)
    return _spent(run, begun)


def wake(run: Run) -> Figures:
    """Find workflows that slept when their process was killed, and let them sleep."""
    begun = time.perf_counter()
    _until(run, lambda: len(_asleep) == run.number)
    again = time.perf_counter() - begun
    time.sleep(run.idle)
    return {"again": again, "memory": _memory()}


_PHASES = {phase.__name__: phase for phase in (start, rest, attempt, sleep, wake)}


def postpone(path: str, when: float) -> None:
    """Let all jobs that wait be due at a time, in seconds since 1970."""
    with closing(sqlite3.connect(path, timeout=30)) as database, database:
        database.execute(
            "UPDATE workflow_status SET status = 'DELAYED', delay_until_epoch_ms = ?"
            " WHERE status IN ('DELAYED', 'ENQUEUED')",
            [int(when * 1000)],
        )


def size(path: str) -> int:
    """Return how many bytes of a database are in use."""
    with closing(sqlite3.connect(path)) as database:
        names = "page_count", "freelist_count", "page_size"
        pages, free, each = (
            database.execute(f"PRAGMA {name}").fetchone()[0] for name in names
        )
    return int((pages - free) * each)


def _attempt_of(run: Run, number: int) -> float:
    """Return how long a new job waits for its first attempt, in seconds."""
    begun = time.perf_counter()
    check.start_as(f"new-{number}", number)
    _until(run, lambda: number in _attempted)
    return time.perf_counter() - begun


def _waiting(path: str) -> int:
    """Return how many jobs wait for a time that has not come."""
    with closing(sqlite3.connect(path, timeout=30)) as database:
        [[number]] = database.execute(
            "SELECT count(*) FROM workflow_status"
            " WHERE status = 'DELAYED' AND delay_until_epoch_ms > ?",
            [int(time.time() * 1000)],
        ).fetchall()
    return int(number)


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _spent(run: Run, begun: tuple[float, float]) -> Figures:
    seconds, used = (now - before for now, before in zip(_now(), begun, strict=True))
    return {
        "rate": run.number / seconds,
        "cpu": used / run.number,
        "busy": used / seconds,
    }


def _memory() -> float:
    """Return the memory that this process holds, in bytes; 0 where it is not told."""
    told = Path("/proc/self/statm")
    pages = told.read_text(encoding="ascii").split()[1] if told.exists() else "0"
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _until(run: Run, holds: Callable[[], bool]) -> None:
    """Wait until something holds.

    Raises:
        TimeoutError: It took longer than a minute, and a second for four jobs.
    """
    end = time.monotonic() + 60 + run.number / 4
    while not holds():
        if time.monotonic() > end:
            msg = f"{run} made {len(_attempted)} attempts, {len(_asleep)} are asleep"
            raise TimeoutError(msg)
        time.sleep(0.02)


def _open(run: Run) -> None:
    database = f"sqlite:///{run.path}"
    settings = durable.config("benchmark", database=database, log_level="ERROR")
    if run.phase == "start":
        durable.connect(settings)
    elif run.phase in {"rest", "attempt"}:
        durable.listen(settings, concurrency=run.concurrency, polling=run.polling)
    else:
        DBOS(config=settings)
        DBOS.launch()


def main() -> None:
    """Do what the command line asks for, and end at once."""
    run = Run(**json.loads(sys.argv[1]))
    begun = time.perf_counter()
    _open(run)
    ready = time.perf_counter() - begun
    print(json.dumps({"ready": ready} | _PHASES[run.phase](run)), flush=True)
    # What sleeps would not let it end.
    os._exit(0)


if __name__ == "__main__":
    main()
