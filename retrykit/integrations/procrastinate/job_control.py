"""How jobs stand, and what can be done about them from outside."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from procrastinate import App

from retrykit._internal.validation import check_instance, check_integer, invalid_setting
from retrykit.durable import Envelope, JobReport
from retrykit.durable.job_report import JobStatus
from retrykit.durable.json_payloads import from_json
from retrykit.integrations.procrastinate.store import (
    CARRIED,
    DEAD,
    MOVE,
    asked,
    rows_of,
    type_to_name,
)
from retrykit.integrations.procrastinate.sync_async import DualCall, Step, arun, run
from retrykit.integrations.procrastinate.tasks import defer, found

__all__ = ["adead", "akill", "arequeue", "aretry_at", "astatus"]
__all__ += ["dead", "kill", "requeue", "retry_at", "status"]

_STANDINGS: Final[dict[str, JobStatus]] = {
    "todo": "waiting",
    "doing": "running",
    "succeeded": "succeeded",
}


class _Row(NamedTuple):
    """A job in the table of Procrastinate, and what is kept beside it."""

    id: int
    status: str
    task: str
    args: str
    queue: str
    priority: int
    envelope: str | None
    result: str | None
    why: str | None

    @property
    def standing(self) -> JobStatus:
        return _STANDINGS.get(self.status, "dead")

    @property
    def arguments(self) -> dict[str, Any]:
        """What the task was deferred with."""
        return _dict(from_json("args", self.args))

    @property
    def carried(self) -> dict[str, Any]:
        """What of that is ours."""
        return _dict(self.arguments.get(CARRIED))

    @property
    def first(self) -> str | None:
        """What the job was started with."""
        envelope = self.carried.get("envelope")
        return None if envelope is None else json.dumps(envelope)

    @property
    def job(self) -> str:
        started = _dict(self.carried.get("envelope"))
        return str(started.get("job", f"{self.task}@{self.id}"))


def _dict(value: Any) -> dict[str, Any]:
    # What was changed by hand may be anything.
    return value if isinstance(value, dict) else {}


def status(app: App, job_id: str) -> JobReport:
    """Return how a job stands: its errors, and when it goes on.

    >>> print(status(app, "verify-7").describe())  # doctest: +SKIP
    verify-7: waiting, 3 failed attempts, next due 2026-11-23 04:00:00 UTC

    Raises:
        ConfigError: There is no job of that id.
    """
    return run(_status(app, job_id))


async def astatus(app: App, job_id: str) -> JobReport:
    """Return how a job stands, as `status` does, from a coroutine."""
    return await arun(_status(app, job_id))


def dead(app: App, *, limit: int = 100) -> list[JobReport]:
    """Return the jobs that have died and were not queued again, newest first.

    Args:
        app: Where they are kept.
        limit: How many at most. Count, >= 1.
    """
    return run(_dead(app, limit))


async def adead(app: App, *, limit: int = 100) -> list[JobReport]:
    """Return the jobs that have died, as `dead` does, from a coroutine."""
    return await arun(_dead(app, limit))


def requeue(app: App, job_id: str) -> None:
    """Begin a dead job anew: with all attempts of its policy, and new keys.

    It is a new job of Procrastinate's; what the dead one was is still there.

    Raises:
        ConfigError: There is no such job, it is not dead, or its task is not
            imported.
    """
    run(_requeue(app, job_id))


async def arequeue(app: App, job_id: str) -> None:
    """Begin a dead job anew, as `requeue` does, from a coroutine."""
    await arun(_requeue(app, job_id))


def kill(app: App, job_id: str) -> None:
    """Let a job make no further attempt.

    One of a blocking function that is being made goes to its end; one of a coroutine
    function is cancelled.

    Raises:
        ConfigError: There is no job of that id.
    """
    run(_kill(app, job_id))


async def akill(app: App, job_id: str) -> None:
    """Let a job make no further attempt, as `kill` does, from a coroutine."""
    await arun(_kill(app, job_id))


def retry_at(app: App, job_id: str, when: datetime) -> None:
    """Let the next attempt of a waiting job be made at another time.

    Args:
        app: Where it is kept.
        job_id: The id of the job.
        when: The time, with its zone; what is past means now.

    Raises:
        ConfigError: There is no such job, it does not wait, or *when* has no
            zone.
    """
    run(_retry_at(app, job_id, when))


async def aretry_at(app: App, job_id: str, when: datetime) -> None:
    """Let the next attempt be made at another time, as `retry_at` does."""
    await arun(_retry_at(app, job_id, when))


def _status(app: App, job_id: str) -> DualCall[JobReport]:
    row = yield from _newest(app, job_id)
    return _report(row)


def _dead(app: App, limit: int) -> DualCall[list[JobReport]]:
    rows = yield asked(app, DEAD, limit=check_integer("limit", limit, at_least=1))
    return [_report(_Row(**row)) for row in rows]


def _requeue(app: App, job_id: str) -> DualCall[None]:
    row = yield from _newest(app, job_id)
    if row.standing != "dead":
        rule, suggestion = "the id of a dead job", f"it is {row.standing}"
        raise invalid_setting("job_id", rule, job_id, suggestion)
    registered, made = found(app, row.task)
    run_before = 1 if row.first is None else Envelope.from_dict(row.first).run
    args, named = row.carried.get("args", []), row.arguments
    named.pop(CARRIED, None)
    deferrer = registered.configure(queue=row.queue, priority=row.priority)
    yield from defer(deferrer, made.envelope(job_id, run_before + 1), args, named)


def _kill(app: App, job_id: str) -> DualCall[None]:
    row = yield from _newest(app, job_id)
    jobs = app.job_manager
    yield Step(
        lambda: jobs.cancel_job_by_id(row.id, abort=True),
        lambda: jobs.cancel_job_by_id_async(row.id, abort=True),
    )


def _retry_at(app: App, job_id: str, when: datetime) -> DualCall[None]:
    if check_instance("when", when, datetime).tzinfo is None:
        raise invalid_setting(
            "when", "a time with a zone", when, "write datetime.now(UTC)"
        )
    row = yield from _newest(app, job_id)
    if row.standing == "waiting":
        kept = row.envelope or row.first
        made = found(app, row.task)[1]
        envelope = Envelope.from_dict(kept) if kept else made.envelope(job_id)
        envelope = replace(envelope, due=max(when.timestamp(), 0.0))
        told = {"envelope": type_to_name(envelope), "before": row.envelope}
        if (yield asked(app, MOVE, place=row.id, when=when, **told)):
            return
    # One that waited until now is attempted by now.
    standing = "running" if row.standing == "waiting" else row.standing
    rule, suggestion = "the id of a job that waits", f"it is {standing}"
    raise invalid_setting("job_id", rule, job_id, suggestion)


def _report(row: _Row) -> JobReport:
    standing, result, why, kept = row.standing, None, "", row.envelope or row.first
    if standing == "succeeded" and row.result is not None:
        result = from_json("result", row.result)
    elif standing == "dead":
        why = _why(row) if row.why is None else str(from_json("why", row.why))
    envelope = None
    try:
        envelope = None if kept is None else Envelope.from_dict(kept)
    except ValueError as error:
        why = why or str(error)
    return JobReport(
        job=row.job,
        status=standing,
        envelope=envelope,
        result=result,
        why=why,
        place=str(row.id),
    )


def _why(row: _Row) -> str:
    """Return why a job is dead of which no attempt tells it."""
    if row.status == "failed":
        return f"it was killed, or its worker does not import the task {row.task!r}"
    return row.status


def _newest(app: App, job_id: str) -> DualCall[_Row]:
    """Return what a job was begun as most recently."""
    rows = yield from rows_of(app, job_id)
    if not rows:
        raise invalid_setting("job_id", "the id of a job that was started", job_id)
    return _Row(**rows[-1])
