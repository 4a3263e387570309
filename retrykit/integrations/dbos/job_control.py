"""How jobs stand, and what can be done about them from outside.

What is here waits for the database. A coroutine calls it in a thread: ``await
asyncio.to_thread(status, "verify-7")``.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from dbos import DBOS, WorkflowStatus

from retrykit._internal.validation import check_instance, check_integer, invalid_setting
from retrykit.durable import Envelope, JobReport
from retrykit.durable.job_report import JobStatus
from retrykit.errors import ConfigError
from retrykit.integrations.dbos.jobs import WORKFLOW, enqueue, found
from retrykit.integrations.dbos.settings import QUEUE, check_launched
from retrykit.integrations.dbos.workflow_ids import (
    attempts_of,
    last_ones,
    newest,
    place_of,
)

__all__ = ["dead", "forget", "kill", "requeue", "retry_at", "status", "take_over"]

_STANDINGS: Final[dict[str, JobStatus]] = {
    "DELAYED": "waiting",
    "ENQUEUED": "waiting",
    "PENDING": "running",
    "SUCCESS": "succeeded",
    "ERROR": "dead",
    "CANCELLED": "dead",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "dead",
}
_DEAD: Final = [name for name, standing in _STANDINGS.items() if standing == "dead"]
_AT_ONCE: Final = 500


def status(job_id: str) -> JobReport:
    """Return how a job stands: its errors, and when it goes on.

    >>> print(status("verify-7").describe())  # doctest: +SKIP
    verify-7: waiting, 3 failed attempts, next due 2026-11-23 04:00:00 UTC

    Raises:
        ConfigError: There is no job of that id.
    """
    return _report(newest(job_id))


def dead(*, limit: int = 100) -> list[JobReport]:
    """Return the jobs that have died and were not queued again, newest first.

    Args:
        limit: How many at most. Count, >= 1.
    """
    check_integer("limit", limit, at_least=1)
    check_launched()
    died: list[JobReport] = []
    offset = 0
    while True:
        rows = DBOS.list_workflows(
            status=_DEAD, name=WORKFLOW, sort_desc=True, limit=limit, offset=offset
        )
        reports = map(_report, last_ones(rows))
        died += [report for report in reports if report.status == "dead"]
        offset += limit
        if len(rows) < limit or len(died) >= limit:
            return died[:limit]


def requeue(job_id: str) -> None:
    """Begin a dead job anew: with all attempts of its policy, and new keys.

    Raises:
        ConfigError: There is no such job, or it is not dead.
    """
    row = newest(job_id)
    report = _report(row)
    if report.status != "dead":
        suggestion = f"it is {report.status}"
        raise invalid_setting("job_id", "the id of a dead job", job_id, suggestion)
    match row.input:
        case {"args": [str() as name, _, [*args], dict() as kwargs]}:
            made, run = found(name), place_of(row.workflow_id).run + 1
            enqueue(made, made.envelope(job_id, run), args, kwargs)
        case spoilt:
            rule = "the id of a job whose arguments can be read"
            raise invalid_setting("job_id", rule, job_id, f"there is {spoilt!r}")


def kill(job_id: str) -> None:
    """Let a job make no further attempt.

    One that is being made goes to its end, but what comes of it is not kept.

    Raises:
        ConfigError: There is no job of that id.
    """
    killed = ""
    # An attempt may have enqueued the next one before it was cancelled.
    while (last := newest(job_id).workflow_id) != killed:
        DBOS.cancel_workflow(last)
        killed = last


def retry_at(job_id: str, when: datetime) -> None:
    """Let the next attempt of a waiting job be made at another time.

    Args:
        job_id: The id of the job.
        when: The time, with its zone; what is past means now.

    Raises:
        ConfigError: There is no such job, it does not wait, or *when* has no
            zone.
    """
    moment = _zoned("when", when)
    row = newest(job_id)
    if row.status != "DELAYED":
        rule, suggestion = "the id of a job that waits", f"it is {_now(row)}"
        raise invalid_setting("job_id", rule, job_id, suggestion)
    due = max(int(moment.timestamp() * 1000), 0)
    DBOS.set_workflow_delay(row.workflow_id, delay_until_epoch_ms=due)


def _now(row: WorkflowStatus) -> str:
    return "due" if row.status == "ENQUEUED" else _STANDINGS[row.status]


def take_over(executor: str) -> list[str]:
    """Let others make the attempts in whose middle an executor was killed.

    Only for one that is gone and does not come back: what it is attempting now,
    if it is alive, is attempted twice.

    Args:
        executor: The id that it had.

    Returns:
        The ids of the jobs, in the order of their attempts.
    """
    check_launched()
    rows = DBOS.list_workflows(
        status="PENDING",
        name=WORKFLOW,
        executor_id=executor,
        load_input=False,
        load_output=False,
    )
    for row in rows:
        DBOS.resume_workflow(row.workflow_id, queue_name=QUEUE)
    return [place_of(row.workflow_id).job for row in rows]


def forget(before: datetime) -> int:
    """Delete what is kept of attempts that had ended before a time, but no dead jobs.

    DBOS itself keeps all of them. A job that goes on, or is dead, needs its last
    attempt and the first one of each time that it was begun: they keep it from
    being begun once more. One that has succeeded is forgotten as a whole, and
    unknown afterwards: a `start_as` under its id begins it anew.

    Args:
        before: The time, with its zone: as long ago as whoever has started a job
            may ask for it.

    Returns:
        How many attempts. Count, >= 0.
    """
    moment = _zoned("before", before).isoformat()
    check_launched()
    forgotten, kept = 0, set[str]()
    while rows := DBOS.list_workflows(
        status="SUCCESS",
        name=WORKFLOW,
        completed_before=moment,
        limit=_AT_ONCE,
        offset=len(kept),
        load_input=False,
    ):
        over = {key for row in rows for key in _over(row)}
        kept = (kept | {row.workflow_id for row in rows}) - over
        DBOS.delete_workflows([*over])
        forgotten += len(over)
    return forgotten


def _over(row: WorkflowStatus) -> Sequence[str]:
    """Return the attempts that nobody needs any more, now that this one is over."""
    place = place_of(row.workflow_id)
    match row.output:
        case {"envelope": _} if place.run > 1:
            # Of the runs before, it is not known how many attempts they had.
            return [attempt.workflow_id for attempt in attempts_of(place.job)]
        case {"envelope": _} if place.attempt > 1:
            return [row.workflow_id, place._replace(attempt=1).key]
        case {"next": _} if place.attempt == 1:
            return []
    return [row.workflow_id]


def _zoned(name: str, when: datetime) -> datetime:
    if check_instance(name, when, datetime).tzinfo is None:
        raise invalid_setting(
            name, "a time with a zone", when, "write datetime.now(UTC)"
        )
    return when


def _report(row: WorkflowStatus) -> JobReport:
    standing, why, result, kept = _STANDINGS[row.status], "", None, _kept(row)
    match _came(row):
        case {"envelope": kept, "result": result}:
            pass
        case {"next": key}:
            standing, why = "dead", f"{key}, its next attempt, was deleted"
    envelope, unread = _read(kept)
    if envelope is not None and envelope.status == "succeeded":
        # It was cancelled when this was known, and only to be written down.
        standing = "succeeded"
    elif standing == "dead":
        why = why or str(row.error or row.status.lower())
    due = row.delay_until_epoch_ms
    if envelope is not None and standing == "waiting" and due is not None:
        envelope = replace(envelope, due=due / 1000)
    return JobReport(
        job=place_of(row.workflow_id).job,
        status=standing,
        envelope=envelope,
        result=result,
        why=why or unread,
        place=row.workflow_id,
    )


def _came(row: WorkflowStatus) -> object:
    """Return what came of an attempt that is over, as far as it is known."""
    if row.status not in _DEAD:
        return row.output
    steps = DBOS.list_workflow_steps(row.workflow_id)
    return steps[0]["output"] if steps else None


def _kept(row: WorkflowStatus) -> object:
    """Return what was kept of a job before an attempt."""
    match row.input:
        case {"args": [_, kept, *_]}:
            return kept
        case spoilt:
            return spoilt


def _read(kept: object) -> tuple[Envelope | None, str]:
    try:
        return Envelope.from_dict(kept), ""
    except ConfigError as error:
        return None, str(error)
