"""The processes that `benchmarks.durable` measures.

``python -m benchmarks.durable_jobs RUN`` runs one phase with a database, prints its
figures as a line of JSON, and exits as if it were killed. The next process continues
with that database.
"""

import json
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import final

from dbos import DBOS
from sqlalchemy import event
from sqlalchemy.pool import Pool

from retrykit import Policy
from retrykit.integrations import dbos as durable

__all__ = ["Figures", "Run", "postpone", "size"]

Figures = dict[str, float]

_HOUR = 3600
_POLICY = Policy(schedule=[_HOUR], on=ConnectionError, name="hourly")

_attempted: list[int] = []
_recorded: list[float] = []
_asleep: list[int] = []
_attempt = threading.local()


@final
@dataclass(frozen=True, kw_only=True)
class Run:
    """The task of a process.

    Attributes:
        phase: The name of one of the functions below.
        path: The SQLite database.
        number: The number of jobs or workflows.
        concurrency: The number of concurrent attempts.
        polling: The interval between polls for due jobs, in seconds.
        idle: How long the idle process is measured, in seconds.
    """

    phase: str
    path: str
    number: int
    concurrency: int = 20
    polling: float = 1.0
    idle: float = 3.0


@durable.job(_POLICY, name="check")
def check(number: int) -> None:
    """Fail, so that the job waits for an hour."""
    _attempted.append(number)
    _attempt.ended = time.perf_counter()
    raise ConnectionError(_message(number))


@DBOS.workflow()
async def sleeper(number: int) -> None:
    """Do the same in a loop that sleeps, as the usual design."""
    while True:
        await DBOS.run_step_async({"name": "check"}, _fail, number)
        _asleep.append(number)
        await DBOS.sleep_async(_HOUR)


async def _fail(number: int) -> str:
    return _message(number)


def _message(number: int) -> str:
    return f"job {number}: connection refused"


def start(run: Run) -> Figures:
    """Start jobs, in a process that attempts none."""
    started = _now()
    for each in range(run.number):
        check.start_as(f"job-{each}", each)
    return _spent(run, started)


def rest(run: Run) -> Figures:
    """Idle while jobs wait; then start some new jobs, and attempt them."""
    time.sleep(run.idle)
    memory, (started, cpu) = _memory(), _now()
    time.sleep(run.idle)
    busy = (time.process_time() - cpu) / (time.perf_counter() - started)
    first = max(_attempt_of(run, number) for number in range(3))
    return {"memory": memory, "busy": busy, "first": first}


def attempt(run: Run) -> Figures:
    """Make one attempt of each job, when all are due at once."""
    postpone(run.path, time.time())
    started = _now()
    _until(run, lambda: len(_attempted) >= run.number)
    _until(run, lambda: _waiting(run.path) == run.number)
    if sorted(_attempted) != list(range(run.number)):
        msg = f"each of {run.number} jobs must be attempted once, got {_attempted}"
        raise RuntimeError(msg)
    return _spent(run, started) | _recorded_after()


def sleep(run: Run) -> Figures:
    """Start workflows that sleep."""
    started = _now()
    for each in range(run.number):
        DBOS.start_workflow(sleeper, each)
    _until(run, lambda: len(_asleep) == run.number)
    return _spent(run, started)


def wake(run: Run) -> Figures:
    """Recover workflows that slept when their process was killed."""
    started = time.perf_counter()
    _until(run, lambda: len(_asleep) == run.number)
    again = time.perf_counter() - started
    time.sleep(run.idle)
    return {"again": again, "memory": _memory()}


_PHASES = {phase.__name__: phase for phase in (start, rest, attempt, sleep, wake)}


def postpone(path: str, when: float) -> None:
    """Make all waiting jobs due at a time, in seconds since 1970."""
    with closing(sqlite3.connect(path, timeout=30)) as database, database:
        database.execute(
            "UPDATE workflow_status SET status = 'DELAYED', delay_until_epoch_ms = ?"
            " WHERE status IN ('DELAYED', 'ENQUEUED')",
            [int(when * 1000)],
        )


def size(path: str) -> int:
    """Return the bytes of a database that are in use."""
    with closing(sqlite3.connect(path)) as database:
        names = "page_count", "freelist_count", "page_size"
        pages, free, each = (
            database.execute(f"PRAGMA {name}").fetchone()[0] for name in names
        )
    return int((pages - free) * each)


def _recorded_after() -> Figures:
    """Return how long after the end of a function its outcome is recorded, in ms."""
    cuts = quantiles((delay * 1e3 for delay in _recorded), n=100)
    return {"median": cuts[49], "p99": cuts[98]}


@event.listens_for(Pool, "checkin")
def _recorded_now(*_: object) -> None:
    # The outcome is what the thread of an attempt stores next.
    ended = vars(_attempt).pop("ended", None)
    if ended is not None:
        _recorded.append(time.perf_counter() - ended)


def _attempt_of(run: Run, number: int) -> float:
    """Return the seconds that a new job waits for its first attempt."""
    started = time.perf_counter()
    check.start_as(f"new-{number}", number)
    _until(run, lambda: number in _attempted)
    return time.perf_counter() - started


def _waiting(path: str) -> int:
    """Return the number of jobs that are due in the future."""
    with closing(sqlite3.connect(path, timeout=30)) as database:
        [[number]] = database.execute(
            "SELECT count(*) FROM workflow_status"
            " WHERE status = 'DELAYED' AND delay_until_epoch_ms > ?",
            [int(time.time() * 1000)],
        ).fetchall()
    return int(number)


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _spent(run: Run, started: tuple[float, float]) -> Figures:
    seconds, used = (now - before for now, before in zip(_now(), started, strict=True))
    return {
        "rate": run.number / seconds,
        "cpu": used / run.number,
        "busy": used / seconds,
    }


def _memory() -> float:
    """Return the RSS of this process in bytes, or 0 where that is unknown."""
    statm = Path("/proc/self/statm")
    pages = statm.read_text(encoding="ascii").split()[1] if statm.exists() else "0"
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _until(run: Run, holds: Callable[[], bool]) -> None:
    """Wait until a condition holds.

    Raises:
        TimeoutError: It took longer than a minute, and a second for every four jobs.
    """
    end = time.monotonic() + 60 + run.number / 4
    while not holds():
        if time.monotonic() > end:
            msg = f"{run} made {len(_attempted)} attempts, {len(_asleep)} sleep"
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
    """Run the phase of the command line, and exit at once."""
    run = Run(**json.loads(sys.argv[1]))
    started = time.perf_counter()
    _open(run)
    ready = time.perf_counter() - started
    print(json.dumps({"ready": ready} | _PHASES[run.phase](run)), flush=True)
    # Sleeping workflows would keep it alive.
    os._exit(0)


if __name__ == "__main__":
    main()
