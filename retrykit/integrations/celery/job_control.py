"""How jobs stand, and what can be done about them from outside."""

from typing import Any, Final, cast

from celery import Celery
from celery.utils import uuid
from kombu import Message

from retrykit._internal.validation import check_integer, invalid_setting
from retrykit.durable import Envelope, JobReport
from retrykit.integrations.celery.ledger import (
    Entry,
    killed,
    mark_killed,
    newest,
    write_entry,
)
from retrykit.integrations.celery.messages import DEAD, dead_letters, headers
from retrykit.integrations.celery.task import DurableTask

__all__ = ["dead", "kill", "requeue", "status"]

_ENDED: Final = {"succeeded", "dead"}


def status(app: Celery, job_id: str) -> JobReport:
    """Return how a job stands: its errors, and when it goes on.

    What has ended is told for as long as the app keeps results, which is
    ``result_expires``.

    >>> print(status(app, "verify-7").describe())  # doctest: +SKIP
    verify-7: waiting, 3 failed attempts, next due 2026-11-23 04:00:00 UTC

    Raises:
        ConfigError: Nothing is known of a job of that id.
    """
    entry = _known(app, job_id)
    if entry.status == "waiting" and killed(app, job_id) >= entry.run:
        entry = entry.replace(status="dead", why="killed by hand")
    return _report(job_id, entry)


def dead(app: Celery, *, limit: int = 100) -> list[JobReport]:
    """Return the jobs that have died and were not queued again.

    They are taken out of their queue meanwhile, and put back: whoever looks at
    the same time may see none.

    Args:
        app: The app.
        limit: How many messages are looked at. Count, >= 1.

    Returns:
        Reports, of those first that have been dead for longest.
    """
    check_integer("limit", limit, at_least=1)
    with dead_letters(app, limit) as messages:
        told = dict(map(_read, messages))
    return [
        _report(job, entry) for job, entry in told.items() if _rests(app, job, entry)
    ]


def requeue(app: Celery, job_id: str) -> None:
    """Begin a dead job anew, under its id: with all attempts, and new keys.

    Raises:
        ConfigError: There is no such job in the queue of the dead. One that was
            killed by hand comes there at its next wake-up.
    """
    with dead_letters(app) as messages:
        own = [each for each in messages if _read(each)[0] == job_id]
        last = max(own, key=lambda each: _read(each)[1].run, default=None)
        if last is None or not _rests(app, *_read(last)):
            rule = f"the id of a job in the queue {DEAD.name}"
            raise invalid_setting("job_id", rule, job_id)
        run = _read(last)[1].run + 1
        message = app.signature(last.payload["message"])
        task = cast("DurableTask", app.tasks[str(message.task)])
        envelope = task.job.envelope(job_id, run)
        token = uuid()
        write_entry(app, job_id, Entry.of(envelope, 0, token))
        app.backend.forget(job_id)
        message.options["headers"] |= headers(envelope, token)
        message.apply_async()
        for each in own:
            each.ack()


def kill(app: Celery, job_id: str) -> None:
    """Let a job make no further attempt; one that is being made goes to its end.

    Raises:
        ConfigError: Nothing is known of a job of that id, or it has ended.
    """
    entry = _known(app, job_id)
    if entry.status in _ENDED:
        rule, suggestion = "the id of a job that goes on", f"it is {entry.status}"
        raise invalid_setting("job_id", rule, job_id, suggestion)
    mark_killed(app, job_id, entry.run)


def _known(app: Celery, job_id: str) -> Entry:
    entry = newest(app, job_id)
    if entry is None:
        raise invalid_setting("job_id", "the id of a job that was started", job_id)
    return entry


def _read(message: Message) -> tuple[str, Entry]:
    """Return the job that a message is about, and how it died."""
    told: Any = message.payload
    return told["job"], Entry(**told["entry"])


def _rests(app: Celery, job: str, entry: Entry) -> bool:
    """Return whether a dead job was not begun anew since.

    One that no worker has seen since may not have been sent to its end.
    """
    latest = newest(app, job)
    if latest is None or latest.run <= entry.run:
        return True
    again = entry.run + 1, 0, "waiting"
    return (latest.run, latest.hop, latest.status) == again


def _report(job: str, entry: Entry) -> JobReport:
    try:
        envelope = Envelope.from_dict(entry.envelope)
    except ValueError:
        envelope = None
    return JobReport(
        job=job,
        status=entry.status,
        envelope=envelope,
        result=entry.result,
        why=entry.why,
        place=job,
    )
