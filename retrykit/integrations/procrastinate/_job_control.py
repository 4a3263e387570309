"""Control of Procrastinate jobs: status, list, requeue, kill, reschedule."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple, Unpack

from procrastinate import App

from retrykit._internal.validation import check_aware, user_facing
from retrykit.durable import JobFilters, JobReport
from retrykit.durable._envelope import read_own_envelope
from retrykit.durable._job_engine import JobEngine, wrong_status
from retrykit.durable._job_report import JobStatus, check_started, parse_envelope
from retrykit.durable._job_selection import UNFINISHED, select_jobs
from retrykit.durable._json_payloads import from_json
from retrykit.integrations.procrastinate._store import (
    ALL,
    METADATA,
    RESCHEDULE,
    envelope_to_json,
    find_rows,
    query,
)
from retrykit.integrations.procrastinate._sync_async import DualCall, Step, arun, run
from retrykit.integrations.procrastinate._tasks import defer, find_task

__all__ = ["ajobs", "akill", "arequeue", "aretry_at", "astatus"]
__all__ += ["job_engine", "jobs", "kill", "requeue", "retry_at", "status"]

# Rows to read at once.
_BATCH_SIZE: Final = 500

_STATUSES: Final[dict[str, JobStatus]] = {
    "todo": "waiting",
    "doing": "running",
    "succeeded": "succeeded",
}


class _Row(NamedTuple):
    """A job in Procrastinate's table, with what retrykit stores about it."""

    id: int
    status: str
    task: str
    args: str
    queue: str
    priority: int
    envelope: str | None
    result: str | None
    reason: str | None
    ended: datetime | None

    @property
    def job_status(self) -> JobStatus:
        return _STATUSES.get(self.status, "dead")

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the task, keyed by name."""
        return _dict(from_json("args", self.args))

    @property
    def metadata(self) -> dict[str, Any]:
        """The argument that retrykit adds to the task's own; empty if it is missing."""
        return _dict(self.arguments.get(METADATA))

    @property
    def first_envelope(self) -> str | None:
        """The first envelope of this run, as JSON; None if it is missing."""
        envelope = self.metadata.get("envelope")
        return None if envelope is None else json.dumps(envelope)

    @property
    def run(self) -> int:
        """The number of this run; 0 if it is missing or unreadable."""
        run = _dict(self.metadata.get("envelope")).get("run")
        return run if isinstance(run, int) else 0

    @property
    def job(self) -> str:
        started = _dict(self.metadata.get("envelope"))
        return str(started.get("job", f"{self.task}@{self.id}"))


def _dict(value: Any) -> dict[str, Any]:
    # Someone may have edited the row.
    return value if isinstance(value, dict) else {}


@contextmanager
def job_engine(app: App) -> Iterator[JobEngine]:
    """Open an app for a ``with`` block, and yield its jobs as a `JobEngine`."""
    with app.open():
        yield JobEngine(
            jobs=partial(jobs, app),
            kill=partial(kill, app),
            requeue=partial(requeue, app),
            retry_at=partial(retry_at, app),
            status=partial(status, app),
        )


@user_facing
def status(app: App, job_id: str) -> JobReport:
    """Return a job's report: status, failures, and when its next attempt is due.

    >>> print(status(app, "verify-7").describe())  # doctest: +SKIP
    verify-7: waiting, 3 failed attempts, next due 2026-11-23 04:00:00 UTC

    Raises:
        ConfigError: There is no job with this id.
    """
    return run(_status(app, job_id))


async def astatus(app: App, job_id: str) -> JobReport:
    """Return a job's report from a coroutine, as `status` does."""
    return await arun(_status(app, job_id))


def jobs(
    app: App, *, limit: int | None = 100, **filters: Unpack[JobFilters]
) -> list[JobReport]:
    """Return jobs, the longest overdue first.

    >>> late = jobs(app, name="verify", overdue="10m")  # doctest: +SKIP

    Jobs that have ended come last, the newest first.
    A job that was deferred without `start` is listed only after its first attempt.

    Args:
        app: The Procrastinate application.
        limit: Maximum number of jobs. Count, >= 1; None returns all.
        **filters: Conditions that the jobs meet: see `retrykit.durable.JobFilters`.

    Raises:
        ConfigError: A filter is unknown or invalid.
    """
    return run(_jobs(app, limit, filters))


async def ajobs(
    app: App, *, limit: int | None = 100, **filters: Unpack[JobFilters]
) -> list[JobReport]:
    """Return jobs from a coroutine, as `jobs` does."""
    return await arun(_jobs(app, limit, filters))


@user_facing
def requeue(app: App, job_id: str) -> None:
    """Start a dead job again, with all attempts of its policy and new idempotency keys.

    The new run is a new Procrastinate job; the dead one stays in the table.

    Raises:
        ConfigError: There is no such job, it is not dead, or its task is not imported.
    """
    run(_requeue(app, job_id))


async def arequeue(app: App, job_id: str) -> None:
    """Start a dead job again from a coroutine, as `requeue` does."""
    await arun(_requeue(app, job_id))


@user_facing
def kill(app: App, job_id: str) -> None:
    """Stop a job: it makes no further attempt.

    A running attempt finishes if the function is sync, and is cancelled if it is async.

    Raises:
        ConfigError: There is no job with this id, or it has ended.
    """
    run(_kill(app, job_id))


async def akill(app: App, job_id: str) -> None:
    """Stop a job from a coroutine, as `kill` does."""
    await arun(_kill(app, job_id))


@user_facing
def retry_at(app: App, job_id: str, when: datetime) -> None:
    """Reschedule the next attempt of a waiting job.

    Args:
        app: The Procrastinate application.
        job_id: The id of the job.
        when: An aware datetime; a past one means now.

    Raises:
        ConfigError: There is no such job, it is not waiting, its task is not imported,
            its envelope is unreadable, or *when* is naive.
    """
    run(_retry_at(app, job_id, when))


async def aretry_at(app: App, job_id: str, when: datetime) -> None:
    """Reschedule the next attempt from a coroutine, as `retry_at` does."""
    await arun(_retry_at(app, job_id, when))


def _status(app: App, job_id: str) -> DualCall[JobReport]:
    row = yield from _find_latest(app, job_id)
    return _build_report(row)


def _jobs(
    app: App, limit: int | None, filters: JobFilters
) -> DualCall[list[JobReport]]:
    found = select_jobs([], filters, limit)
    after = 0
    while rows := (yield query(app, ALL, after=after, limit=_BATCH_SIZE)):
        reports = (_build_report(_Row(**row)) for row in rows)
        found = select_jobs([*found, *reports], filters, limit)
        after = rows[-1]["id"]
    return found


def _requeue(app: App, job_id: str) -> DualCall[None]:
    rows = yield from _find_all(app, job_id)
    row = rows[-1]
    if row.job_status != "dead":
        raise wrong_status(job_id, "dead", row.job_status)
    task, job = find_task(app, row.task)
    # It may be dead because its first envelope is damaged.
    last_run = max(len(rows), *(each.run for each in rows))
    args, kwargs = row.metadata.get("args", []), row.arguments
    kwargs.pop(METADATA, None)
    deferrer = task.configure(queue=row.queue, priority=row.priority)
    yield from defer(deferrer, job.envelope(job_id, last_run + 1), args, kwargs)


def _kill(app: App, job_id: str) -> DualCall[None]:
    row, jobs = (yield from _find_latest(app, job_id)), app.job_manager
    cancel = Step(
        lambda: jobs.cancel_job_by_id(row.id, abort=True),
        lambda: jobs.cancel_job_by_id_async(row.id, abort=True),
    )
    if row.job_status in UNFINISHED and (yield cancel):
        return
    # Its attempt may have ended it meanwhile.
    last = yield from _find_latest(app, job_id)
    raise wrong_status(job_id, "unfinished", last.job_status)


def _retry_at(app: App, job_id: str, when: datetime) -> DualCall[None]:
    check_aware("when", when)
    row = yield from _find_latest(app, job_id)
    if row.job_status == "waiting":
        stored = row.envelope or row.first_envelope
        job = find_task(app, row.task)[1]
        fresh = job.envelope(job_id)
        envelope = read_own_envelope(stored, job_id) if stored else fresh
        envelope = replace(envelope, due=max(when.timestamp(), 0.0))
        texts = {"envelope": envelope_to_json(envelope), "before": row.envelope}
        if (yield query(app, RESCHEDULE, row_id=row.id, when=when, **texts)):
            return
    # If it was waiting, a worker has taken it in the meantime.
    status = "running" if row.job_status == "waiting" else row.job_status
    raise wrong_status(job_id, "waiting", status)


def _build_report(row: _Row) -> JobReport:
    status, stored = row.job_status, row.envelope or row.first_envelope
    envelope, unreadable = (
        (None, "") if stored is None else parse_envelope(stored, row.job)
    )
    result, reason = None, ""
    if status == "succeeded" and row.result is not None:
        result = from_json("result", row.result)
    elif status == "dead":
        reason = _find_reason(row)
    return JobReport(
        job=row.job,
        status=status,
        envelope=envelope,
        result=result,
        reason=reason or unreadable,
        engine_id=str(row.id),
        name=row.task,
        ended=None if row.ended is None else row.ended.astimezone(UTC),
    )


def _find_reason(row: _Row) -> str:
    """Return why a job is dead, even if no attempt has recorded the reason."""
    if row.reason is not None:
        return str(from_json("reason", row.reason))
    if row.status == "failed":
        return f"it was killed, or its worker does not import the task {row.task!r}"
    return row.status


def _find_latest(app: App, job_id: str) -> DualCall[_Row]:
    """Return the latest row of a job."""
    rows = yield from _find_all(app, job_id)
    return rows[-1]


def _find_all(app: App, job_id: str) -> DualCall[list[_Row]]:
    """Return all rows of a job, at least one, oldest first."""
    rows = yield from find_rows(app, job_id)
    return [_Row(**row) for row in check_started(job_id, rows)]
