"""Control of DBOS jobs: status, list, requeue, kill, reschedule, take over, clean up.

These functions block on the database; in a coroutine, call them in a thread:
``await asyncio.to_thread(status, "verify-7")``.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Unpack

from dbos import DBOS, WorkflowStatus

from retrykit._internal.validation import check_aware, invalid_setting, user_facing
from retrykit.durable import Envelope, JobFailed, JobFilters, JobReport
from retrykit.durable._job_engine import JobEngine, wrong_status
from retrykit.durable._job_report import JobStatus, parse_envelope, to_datetime
from retrykit.durable._job_selection import UNFINISHED, select_jobs, wanted_statuses
from retrykit.integrations.dbos._job_functions import WORKFLOW, enqueue, find_job
from retrykit.integrations.dbos._killed_attempts import mark_begun
from retrykit.integrations.dbos._lifecycle import connect, disconnect
from retrykit.integrations.dbos._settings import QUEUE, check_launched
from retrykit.integrations.dbos._workflow_ids import (
    find_attempts,
    find_latest_attempt,
    keep_last_attempts,
    parse_workflow_id,
)

__all__ = ["delete_finished", "job_engine", "jobs", "kill", "requeue"]
__all__ += ["retry_at", "status", "take_over"]

_STATUSES: Final[dict[str, JobStatus]] = {
    "DELAYED": "waiting",
    "ENQUEUED": "waiting",
    "PENDING": "running",
    "SUCCESS": "succeeded",
    "ERROR": "dead",
    "CANCELLED": "dead",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "dead",
}
_BATCH_SIZE: Final = 500


@contextmanager
def job_engine(settings: Mapping[str, Any]) -> Iterator[JobEngine]:
    """Connect to a system database for a ``with`` block, and yield its `JobEngine`.

    This process neither runs jobs nor creates the database, and DBOS logs only critical
    errors.

    Args:
        settings: The settings of DBOS, as in `connect`.

    Raises:
        ConfigError: There is no such database, or this process is connected already.
    """
    quiet = {"log_level": "CRITICAL", "run_migrations": False}
    try:
        connect({**settings, **quiet})
        yield JobEngine(
            jobs=jobs, kill=kill, requeue=requeue, retry_at=retry_at, status=status
        )
    finally:
        disconnect()


@user_facing
def status(job_id: str) -> JobReport:
    """Return a job's report: status, failures, and when its next attempt is due.

    >>> print(status("verify-7").describe())  # doctest: +SKIP
    verify-7: waiting, 3 failed attempts, next due 2026-11-23 04:00:00 UTC

    Raises:
        ConfigError: There is no job with this id, or DBOS is not launched.
    """
    return _build_report(find_latest_attempt(job_id))


def jobs(*, limit: int | None = 100, **filters: Unpack[JobFilters]) -> list[JobReport]:
    """Return jobs, the longest overdue first.

    >>> late = jobs(name="verify", overdue="10m")  # doctest: +SKIP

    Jobs that have ended come last, the newest first.

    Args:
        limit: Maximum number of jobs. Count, >= 1; None returns all.
        **filters: Conditions that the jobs meet: see `retrykit.durable.JobFilters`.

    Raises:
        ConfigError: A filter is unknown or invalid, or DBOS is not launched.
    """
    return select_jobs(_all_reports(wanted_statuses(filters)), filters, limit)


@user_facing
def requeue(job_id: str) -> None:
    """Start a dead job again, with all attempts of its policy and new idempotency keys.

    Raises:
        ConfigError: There is no such job, it is not dead, its arguments cannot be read,
            this process has not imported its function, or DBOS is not launched.
    """
    row = find_latest_attempt(job_id)
    report = _build_report(row)
    if report.status != "dead":
        raise wrong_status(job_id, "dead", report.status)
    match row.input:
        case {"args": [str() as name, _, [*args], dict() as kwargs]}:
            job, run = find_job(name), parse_workflow_id(row.workflow_id).run + 1
            enqueue(job, job.envelope(job_id, run), args, kwargs)
        case invalid:
            rule = "the id of a job whose arguments can be read"
            raise invalid_setting(
                "job_id", rule, job_id, f"its input is {invalid!r}", code="wrong-state"
            )


@user_facing
def kill(job_id: str) -> None:
    """Stop a job: it makes no further attempt.

    An attempt that is running finishes, but its outcome is not recorded.

    Raises:
        ConfigError: There is no job with this id, it has ended, or DBOS is not
            launched.
    """
    row, killed = find_latest_attempt(job_id), False
    # An attempt may have enqueued the next one before it was cancelled.
    while _STATUSES[row.status] in UNFINISHED:
        DBOS.cancel_workflow(row.workflow_id)
        row, killed = find_latest_attempt(job_id), True
    status = _build_report(row).status
    if not killed or status != "dead":
        raise wrong_status(job_id, "unfinished", status)


@user_facing
def retry_at(job_id: str, when: datetime) -> None:
    """Reschedule the next attempt of a waiting job.

    Args:
        job_id: The id of the job.
        when: An aware datetime; a past one means now.

    Raises:
        ConfigError: There is no such job, it is not waiting or is already due, *when*
            is naive, or DBOS is not launched.
    """
    moment = check_aware("when", when)
    row = find_latest_attempt(job_id)
    if row.status != "DELAYED":
        status = "due" if row.status == "ENQUEUED" else _STATUSES[row.status]
        raise wrong_status(job_id, "waiting", status)
    due = max(int(moment.timestamp() * 1000), 0)
    DBOS.set_workflow_delay(row.workflow_id, delay_until_epoch_ms=due)


def take_over(executor: str) -> list[str]:
    """Hand the attempts of a killed process over to other processes.

    Call it only for an executor that will not restart. If it is alive, its running
    attempts are made twice.

    Args:
        executor: The executor id of the killed process.

    Returns:
        The ids of the jobs, in the order in which their attempts were enqueued.

    Raises:
        ConfigError: DBOS is not launched.
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
        mark_begun(row)
        DBOS.resume_workflow(row.workflow_id, queue_name=QUEUE)
    return [parse_workflow_id(row.workflow_id).job for row in rows]


@user_facing
def delete_finished(before: datetime) -> int:
    """Delete the records of attempts that ended before a time, but keep dead jobs.

    DBOS itself deletes no records. A job that is waiting or dead keeps its last attempt
    and the first attempt of each run, so that it cannot be started twice. A job that
    has succeeded is deleted completely: `start_as` with its id starts a new one.

    Args:
        before: An aware datetime; leave enough time to read the results of jobs.

    Returns:
        The number of deleted attempts. Count, >= 0.

    Raises:
        ConfigError: *before* is naive, or DBOS is not launched.
    """
    moment = check_aware("before", before).isoformat()
    check_launched()
    deleted, kept = 0, set[str]()
    while rows := DBOS.list_workflows(
        status="SUCCESS",
        name=WORKFLOW,
        completed_before=moment,
        limit=_BATCH_SIZE,
        offset=len(kept),
        load_input=False,
    ):
        obsolete = {key for row in rows for key in _find_obsolete(row)}
        kept = (kept | {row.workflow_id for row in rows}) - obsolete
        DBOS.delete_workflows([*obsolete])
        deleted += len(obsolete)
    return deleted


def _find_obsolete(row: WorkflowStatus) -> Sequence[str]:
    """Return the ids of the attempts that are not needed once this one has ended."""
    attempt = parse_workflow_id(row.workflow_id)
    match row.output:
        case {"envelope": _} if attempt.run > 1:
            # How many attempts the earlier runs made is unknown.
            return [each.workflow_id for each in find_attempts(attempt.job)]
        case {"envelope": _} if attempt.number > 1:
            return [row.workflow_id, attempt._replace(number=1).key]
        case {"next": _} if attempt.number == 1:
            return []
    return [row.workflow_id]


def _all_reports(statuses: Sequence[JobStatus]) -> Iterator[JobReport]:
    """Yield the reports of all jobs that have one of these statuses.

    Each job comes once, even if it advances between the queries.
    """
    check_launched()
    found: set[str] = set()
    for rows in _pages(statuses):
        for report in map(_build_report, keep_last_attempts(rows)):
            if report.status in statuses and report.job not in found:
                found.add(report.job)
                yield report


def _pages(statuses: Sequence[JobStatus]) -> Iterator[list[WorkflowStatus]]:
    wanted = {*statuses}
    if wanted & {"succeeded", "dead"}:
        # An attempt that was cancelled may have succeeded before. The arguments of one
        # that waits may have been deleted, or the one that follows a past one.
        wanted.update(_STATUSES.values())
    live = [name for name, x in _STATUSES.items() if x in wanted & {*UNFINISHED}]
    # At once, since attempts that end meanwhile would move others between pages.
    yield DBOS.list_workflows(status=live, name=WORKFLOW)
    ended = [name for name, x in _STATUSES.items() if x in wanted - {*UNFINISHED}]
    offset = 0
    while ended and (
        rows := DBOS.list_workflows(
            status=ended, name=WORKFLOW, limit=_BATCH_SIZE, offset=offset
        )
    ):
        yield rows
        offset += len(rows)


def _build_report(row: WorkflowStatus) -> JobReport:
    status, reason, result, stored = _STATUSES[row.status], "", None, _input(row)
    match _output(row):
        case {"envelope": stored, "result": result}:
            pass
        case {"next": key}:
            status, reason = "dead", f"{key}, its next attempt, was deleted"
    envelope, unreadable = parse_envelope(
        stored, parse_workflow_id(row.workflow_id).job
    )
    if row.input is None and status in UNFINISHED:
        # DBOS takes it again and again, and never runs it.
        status, reason = "dead", "its arguments were deleted from the database"
    elif envelope is not None and envelope.status == "succeeded":
        # It was cancelled between its success and the end of its workflow.
        status = "succeeded"
    elif status == "dead":
        reason = reason or _why_dead(row)
    due = row.delay_until_epoch_ms
    if envelope is not None and status == "waiting" and due is not None:
        envelope = replace(envelope, due=due / 1000)
    return JobReport(
        job=parse_workflow_id(row.workflow_id).job,
        status=status,
        envelope=envelope,
        result=result,
        reason=reason or unreadable,
        engine_id=row.workflow_id,
        name=_name(row),
        ended=_ended(row, envelope),
    )


def _why_dead(row: WorkflowStatus) -> str:
    error = row.error
    if error is None:
        return row.status.lower()
    match row.input:
        case {"args": [str(), _, [*_], dict()]}:
            return str(error)
    # DBOS stores the class as a name.
    if getattr(error, "name", type(error).__name__) == JobFailed.__name__:
        return str(error)
    return "its stored arguments are damaged, so it cannot be attempted"


def _ended(row: WorkflowStatus, envelope: Envelope | None) -> datetime | None:
    if envelope is not None and envelope.due is None:
        # DBOS rounds to seconds on SQLite.
        return to_datetime(envelope.written)
    ended = row.completed_at
    return None if ended is None else to_datetime(ended / 1000)


def _name(row: WorkflowStatus) -> str:
    match row.input:
        case {"args": [str() as name, *_]}:
            return name
    return ""


def _output(row: WorkflowStatus) -> object:
    """Return the outcome of an attempt that has ended; None if it is unknown."""
    if _STATUSES[row.status] != "dead":
        return row.output
    steps = DBOS.list_workflow_steps(row.workflow_id)
    return steps[0]["output"] if steps else None


def _input(row: WorkflowStatus) -> object:
    """Return the envelope stored before an attempt, or the whole input if damaged."""
    match row.input:
        case {"args": [_, stored, *_]}:
            return stored
        case invalid:
            return invalid
