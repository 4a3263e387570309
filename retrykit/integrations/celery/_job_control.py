"""Queries and commands for jobs: status, list, requeue, kill, reschedule."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Unpack, cast

from celery import Celery
from celery.utils import uuid

from retrykit._internal.clocks import wall
from retrykit._internal.validation import check_aware, invalid_setting, user_facing
from retrykit.durable import JobFilters, JobReport
from retrykit.durable._envelope import read_own_envelope
from retrykit.durable._job_engine import JobEngine, wrong_status
from retrykit.durable._job_report import (
    JobStatus,
    check_started,
    parse_envelope,
    to_datetime,
)
from retrykit.durable._job_selection import UNFINISHED, select_jobs, wanted_statuses
from retrykit.integrations.celery._due_index import open_index
from retrykit.integrations.celery._job_locks import exclusively
from retrykit.integrations.celery._ledger import (
    Entry,
    kill_run,
    killed_run,
    read_entry,
    read_message,
    replace_message,
    write_entry,
    write_message,
)
from retrykit.integrations.celery._lost_jobs import is_overdue
from retrykit.integrations.celery._messages import DEAD, dead_letters, send_stored
from retrykit.integrations.celery._task import DurableTask

__all__ = ["job_engine", "jobs", "kill", "requeue", "retry_at", "status"]


@contextmanager
def job_engine(app: Celery) -> Iterator[JobEngine]:
    """Yield the jobs of an app as a `JobEngine`, for a ``with`` block.

    The modules of the app are imported, as in a worker.

    Raises:
        ConfigError: The results of the app are in a SQLite file that does not exist.
    """
    app.loader.import_default_modules()
    _check_results(str(app.conf.result_backend))
    yield JobEngine(
        jobs=partial(jobs, app),
        kill=partial(kill, app),
        requeue=partial(requeue, app),
        retry_at=partial(retry_at, app),
        status=partial(status, app),
    )


def _check_results(backend: str) -> None:
    """Raise an error if a SQLite file for results is missing."""
    path = backend.removeprefix("db+sqlite:///").partition("?")[0]
    if path not in {backend, "", ":memory:"} and not Path(path).exists():
        rule = "that of a file in which a worker has stored results"
        raise invalid_setting("result_backend", rule, backend, "check its path")


@user_facing
def status(app: Celery, job_id: str) -> JobReport:
    """Return a job's report: status, failures, and when its next attempt is due.

    Jobs that have ended are known for as long as the app keeps results:
    ``result_expires``.

    >>> print(status(app, "verify-7").describe())  # doctest: +SKIP
    verify-7: waiting, 3 failed attempts, next due 2026-11-23 04:00:00 UTC

    Raises:
        ConfigError: There is no job with that id.
    """
    return _read_report(app, job_id, _find_entry(app, job_id))


def jobs(
    app: Celery, *, limit: int | None = 100, **filters: Unpack[JobFilters]
) -> list[JobReport]:
    """Return jobs, the longest overdue first.

    >>> late = jobs(app, name="verify", overdue="10m")  # doctest: +SKIP

    Jobs that are not dead are listed only with Redis as the broker: other brokers have
    no list of waiting messages. Jobs that have succeeded are not listed: look them up
    by their ids, with `status`.

    Dead jobs come last, the newest first, without jobs that were requeued. On Redis,
    the messages of dead jobs are only read. Other brokers hand the messages out and
    take them back: another process that lists them at the same time may see none.

    Args:
        app: The Celery application.
        limit: Maximum number of jobs. Count, >= 1; None returns all.
        **filters: Conditions that the jobs meet: see `retrykit.durable.JobFilters`.

    Raises:
        ConfigError: A filter is unknown or invalid, or the jobs cannot be listed.
    """
    reports = _all_reports(app, wanted_statuses(filters))
    return select_jobs(reports, filters, limit)


@user_facing
def requeue(app: Celery, job_id: str) -> None:
    """Start a dead job again, with all attempts of its policy and new idempotency keys.

    A waiting job can be requeued as well if it was killed, or is overdue by more than
    the visibility timeout plus 100 s; a job whose attempt is running, only if both are
    true.

    Raises:
        ConfigError: There is no such job, its status forbids this, its message is no
            longer known, or another process is requeuing it.
        NotRegistered: The app does not have the job's task.
    """
    with exclusively(app, job_id), dead_letters(app) as letters:
        own = [each for each in letters if each.job == job_id]
        last = max(own, key=lambda each: each.entry.run, default=None)
        if last is None or _is_requeued(app, job_id, last.entry):
            entry, message = _find_stuck(app, job_id)
        else:
            entry, message = last.entry, last.message
        task = cast("DurableTask", app.tasks[str(message["task"])])
        envelope = task.job.envelope(job_id, entry.run + 1)
        token = uuid()
        write_message(app, job_id, message)
        write_entry(app, job_id, Entry.of(envelope, 0, token))
        app.backend.forget(job_id)
        send_stored(app, message, envelope, 0, token)
        for each in own:
            each.remove()


def kill(app: Celery, job_id: str) -> None:
    """Stop a job: it makes no further attempt, but a running one finishes.

    Raises:
        ConfigError: There is no job with that id, or it has ended.
    """
    entry = _find_entry(app, job_id)
    status = _read_report(app, job_id, entry).status
    if status in {"succeeded", "dead"}:
        raise wrong_status(job_id, "unfinished", status)
    kill_run(app, job_id, entry.run)


@user_facing
def retry_at(app: Celery, job_id: str, when: datetime) -> None:
    """Reschedule the next attempt of a waiting job.

    Its report shows the new time once a worker has received the message. If a worker
    sends the job's next message at the same moment, the time stays as it was: look at
    the report, and repeat the call.

    Args:
        app: The Celery application.
        job_id: The id of the job.
        when: An aware datetime; a past one means now.

    Raises:
        ConfigError: There is no such job, it is not waiting, its envelope or its
            message is not known, or *when* is naive.
    """
    moment = check_aware("when", when).timestamp()
    entry = _find_entry(app, job_id)
    report = _read_report(app, job_id, entry)
    if report.status != "waiting":
        raise wrong_status(job_id, "waiting", report.status)
    message = _find_message(app, job_id)
    envelope = read_own_envelope(entry.envelope, job_id, entry.run)
    envelope = replace(envelope, written=wall(), due=max(moment, 0.0))
    token = uuid()
    replace_message(app, job_id, entry, token)
    send_stored(app, message, envelope, entry.hop, token)


def _find_entry(app: Celery, job_id: str) -> Entry:
    return check_started(job_id, read_entry(app, job_id))


def _find_stuck(app: Celery, job_id: str) -> tuple[Entry, dict[str, Any]]:
    """Return the ledger entry and the message of a job that is dead, killed or lost.

    Raises:
        ConfigError: The job is not dead, killed or lost, or its message is not stored.
    """
    entry = read_entry(app, job_id)
    status = entry.status if entry else "unknown"
    killed = entry is not None and killed_run(app, job_id) >= entry.run
    overdue = entry is not None and is_overdue(app, entry)
    stuck = {"dead": True, "waiting": killed or overdue, "running": killed and overdue}
    if entry is None or not stuck.get(status, False):
        rule = f"the id of a job in the queue {DEAD.name}, or of a killed or lost one"
        raise invalid_setting(
            "job_id", rule, job_id, f"it is {status}", code="wrong-state"
        )
    return entry, _find_message(app, job_id)


def _find_message(app: Celery, job_id: str) -> dict[str, Any]:
    message = read_message(app, job_id)
    if message is None:
        rule = "the id of a job whose message is still stored"
        raise invalid_setting("job_id", rule, job_id, code="wrong-state")
    return message


def _all_reports(app: Celery, statuses: Sequence[JobStatus]) -> Iterator[JobReport]:
    """Yield the reports of jobs, at least all unfinished or dead ones asked for."""
    indexed: dict[str, None] = {}
    with open_index(app) as index:
        if index is not None:
            # Also for the dead ones, since a killed job may still have its message.
            indexed = dict.fromkeys(index.all_jobs())
        elif statuses != ("dead",):
            rule = "'dead': with this broker there is no list of other jobs"
            status = statuses[0] if len(statuses) == 1 else None
            raise invalid_setting(
                "status", rule, status, "query jobs by their ids", code="not-here"
            )
    unfinished: set[str] = set()
    for job in indexed:
        entry = read_entry(app, job)
        if entry is not None and entry.status in UNFINISHED:
            unfinished.add(job)
            yield _read_report(app, job, entry)
    if "dead" in statuses:
        dead = _dead_letter_reports(app)
        yield from (report for report in dead if report.job not in unfinished)


def _dead_letter_reports(app: Celery) -> Iterator[JobReport]:
    """Yield the reports of the jobs in the dead-letter queue, except requeued ones."""
    with dead_letters(app) as letters:
        entries = {each.job: each.entry for each in letters}
    for job, entry in entries.items():
        if not _is_requeued(app, job, entry):
            yield _build_report(app, job, entry)


def _is_requeued(app: Celery, job: str, entry: Entry) -> bool:
    """Return whether a worker has seen a later run of a dead job.

    If no worker has, the message of that run may never have been sent.
    """
    latest = read_entry(app, job)
    if latest is None or latest.run <= entry.run:
        return False
    unseen = entry.run + 1, 0, "waiting"
    return (latest.run, latest.hop, latest.status) != unseen


def _read_report(app: Celery, job: str, entry: Entry) -> JobReport:
    """Return the report of a job; a waiting job that was killed is dead."""
    report = _build_report(app, job, entry)
    if entry.status == "waiting" and killed_run(app, job) >= entry.run:
        report = cast(
            "JobReport", report.replace(status="dead", reason="killed by hand")
        )
    return report


def _build_report(app: Celery, job: str, entry: Entry) -> JobReport:
    envelope, unreadable = parse_envelope(entry.envelope, job)
    reason = entry.reason or unreadable
    ended = None
    if envelope is not None and entry.status not in UNFINISHED:
        ended = to_datetime(envelope.written)
    message = read_message(app, job) or {"task": ""}
    return JobReport(
        job=job,
        status=entry.status,
        envelope=envelope,
        result=entry.result,
        reason=reason,
        engine_id=job,
        name=str(message["task"]),
        ended=ended,
    )
