"""Queries and commands for jobs: status, dead letters, requeue, kill."""

from typing import Any, cast

from celery import Celery
from celery.utils import uuid
from kombu import Message

from retrykit._internal.validation import check_integer, invalid_setting
from retrykit.durable import JobReport
from retrykit.durable.job_report import check_started, parse_envelope
from retrykit.integrations.celery.ledger import (
    Entry,
    kill_run,
    killed_run,
    read_entry,
    read_message,
    write_entry,
    write_message,
)
from retrykit.integrations.celery.lost_jobs import is_overdue
from retrykit.integrations.celery.messages import DEAD, dead_letters, send_stored
from retrykit.integrations.celery.task import DurableTask

__all__ = ["dead", "kill", "requeue", "status"]


def status(app: Celery, job_id: str) -> JobReport:
    """Return the status of a job: its failures, and when its next attempt is due.

    Jobs that have ended are known for as long as the app keeps results:
    ``result_expires``.

    >>> print(status(app, "verify-7").describe())  # doctest: +SKIP
    verify-7: waiting, 3 failed attempts, next due 2026-11-23 04:00:00 UTC

    Raises:
        ConfigError: There is no job of that id.
    """
    entry = _find_entry(app, job_id)
    if entry.status == "waiting" and killed_run(app, job_id) >= entry.run:
        entry = entry.replace(status="dead", reason="killed by hand")
    return _build_report(job_id, entry)


def dead(app: Celery, *, limit: int = 100) -> list[JobReport]:
    """Return the dead jobs that were not requeued, oldest first.

    Their messages are taken out of the dead-letter queue and put back. Another process
    that lists them at the same time may see none.

    Args:
        app: The Celery application.
        limit: Maximum number of messages to read. Count, >= 1.
    """
    check_integer("limit", limit, at_least=1)
    with dead_letters(app, limit) as messages:
        entries = dict(map(_parse_dead_letter, messages))
    return [
        _build_report(job, entry)
        for job, entry in entries.items()
        if not _is_requeued(app, job, entry)
    ]


def requeue(app: Celery, job_id: str) -> None:
    """Start a dead job again: all attempts of its policy, new idempotency keys.

    Also a job that waits and was killed, or is overdue by more than the visibility
    timeout plus 100 s. If its attempt is running, it must be both.

    Raises:
        ConfigError: There is no such job, or its message is not known any more.
    """
    with dead_letters(app) as messages:
        own = [each for each in messages if _parse_dead_letter(each)[0] == job_id]
        last = max(own, key=lambda each: _parse_dead_letter(each)[1].run, default=None)
        if last is None or _is_requeued(app, *_parse_dead_letter(last)):
            entry, message = _find_stuck(app, job_id)
        else:
            entry, message = _parse_dead_letter(last)[1], last.payload["message"]
        task = cast("DurableTask", app.tasks[str(message["task"])])
        envelope = task.job.envelope(job_id, entry.run + 1)
        token = uuid()
        write_message(app, job_id, message)
        write_entry(app, job_id, Entry.of(envelope, 0, token))
        app.backend.forget(job_id)
        send_stored(app, message, envelope, 0, token)
        for each in own:
            each.ack()


def kill(app: Celery, job_id: str) -> None:
    """Stop a job: it makes no further attempt, but a running one finishes.

    Raises:
        ConfigError: There is no job of that id, or it has ended.
    """
    entry = _find_entry(app, job_id)
    if entry.status in {"succeeded", "dead"}:
        rule, suggestion = "the id of an unfinished job", f"it is {entry.status}"
        raise invalid_setting("job_id", rule, job_id, suggestion)
    kill_run(app, job_id, entry.run)


def _find_entry(app: Celery, job_id: str) -> Entry:
    return check_started(job_id, read_entry(app, job_id))


def _find_stuck(app: Celery, job_id: str) -> tuple[Entry, dict[str, Any]]:
    """Return the ledger entry and the message of a job that does not go on."""
    entry = read_entry(app, job_id)
    status = entry.status if entry else "unknown"
    killed = entry is not None and killed_run(app, job_id) >= entry.run
    overdue = entry is not None and is_overdue(app, entry)
    stuck = {"dead": True, "waiting": killed or overdue, "running": killed and overdue}
    if entry is None or not stuck.get(status, False):
        rule = f"the id of a job in the queue {DEAD.name}, or of a killed or lost one"
        raise invalid_setting("job_id", rule, job_id, f"it is {status}")
    message = read_message(app, job_id)
    if message is None:
        rule = "the id of a job whose message is still stored"
        raise invalid_setting("job_id", rule, job_id)
    return entry, message


def _parse_dead_letter(message: Message) -> tuple[str, Entry]:
    """Return the job id and the ledger entry that a dead letter contains."""
    payload: Any = message.payload
    return payload["job"], cast("Entry", Entry.from_dict(payload["entry"]))


def _is_requeued(app: Celery, job: str, entry: Entry) -> bool:
    """Return whether a worker has seen a later run of a dead job.

    If none has, the requeued message may not have been sent.
    """
    latest = read_entry(app, job)
    if latest is None or latest.run <= entry.run:
        return False
    unseen = entry.run + 1, 0, "waiting"
    return (latest.run, latest.hop, latest.status) != unseen


def _build_report(job: str, entry: Entry) -> JobReport:
    envelope, unreadable = parse_envelope(entry.envelope)
    reason = entry.reason or unreadable
    return JobReport(job, entry.status, envelope, entry.result, reason, job)
