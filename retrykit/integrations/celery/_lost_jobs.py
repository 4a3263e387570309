"""Sweeps that send jobs again after Redis has lost their messages.

Redis hands a message to a worker, which then records it as unacknowledged. If the
worker is killed in between, the message is gone, but the job's ledger entry and its due
time remain. A job without a message is sent again, under a new token, when it has been
overdue for so long that Celery would have redelivered a message. If its message was
only late, one of the two is stale, and is dropped.
"""

import logging
from collections.abc import Callable
from typing import Any, Final, final

from celery import Celery, bootsteps
from celery.utils import uuid

from retrykit._internal.clocks import sync_clock, wall
from retrykit._internal.frozen import Frozen
from retrykit.durable._envelope import read_own_envelope
from retrykit.integrations.celery._config_checks import driver, visibility_timeout
from retrykit.integrations.celery._due_index import DueIndex, open_index
from retrykit.integrations.celery._ledger import (
    Entry,
    read_entry,
    read_message,
    replace_message,
)
from retrykit.integrations.celery._messages import TOKEN_HEADER, send_stored

__all__ = ["Sweep", "is_overdue", "sweep"]

_log: Final = logging.getLogger("retrykit.durable")

# In seconds: kombu looks at least this often for messages to redeliver.
_SLACK = 100.0
# Seconds between two sweeps, at most.
_INTERVAL: Final = 60.0
# Seconds, longer than another worker takes between reading and writing the ledger.
_LEDGER_DELAY: Final = 5.0
# Jobs that one sweep looks at.
_LIMIT: Final = 1000


@final
class _LostJob(Frozen):
    """A job whose message is lost, with what is needed to send it again.

    Attributes:
        job: The id of the job.
        message: The job's message, as it was stored.
        token: The token of the message that will be sent.
    """

    __slots__ = ("job", "message", "token")
    job: str
    message: dict[str, Any]
    token: str


def sweep(app: Celery) -> list[str]:
    """Send jobs again after Redis has lost their messages; return their ids.

    Each worker with a durable task does this by itself, at least once a minute. A job
    is lost if it is overdue by more than the visibility timeout plus 100 s and has no
    message. With brokers other than Redis, nothing is done.
    """
    found = _find_lost(app)
    if found:
        sync_clock.sleep(_LEDGER_DELAY)
    return _send_lost(app, found)


def is_overdue(app: Celery, entry: Entry) -> bool:
    """Return whether a job has been due for so long that its message may be lost."""
    due = _due_of(entry)
    return due is not None and wall() > due + _patience(app)


class Sweep(bootsteps.StartStopStep):
    """Bootstep that makes a worker sweep regularly.

    A timer calls the two halves of a sweep, so that the worker does not
    wait in between.
    """

    name = "retrykit sweep"

    def __init__(self, parent: Any, **settings: Any) -> None:
        super().__init__(parent, **settings)
        self._timer: Any = None

    def include_if(self, parent: Any) -> bool:
        """Return whether the broker is Redis."""
        return driver(parent.app) == "redis"

    def start(self, parent: Any) -> None:
        """Start sweeping."""
        interval = min(visibility_timeout(parent.app) / 4, _INTERVAL)
        self._timer = parent.timer.call_repeatedly(interval, self.begin, (parent,))

    def stop(self, parent: Any) -> None:  # noqa: ARG002  as in its base
        """Stop sweeping."""
        if self._timer is not None:
            self._timer.cancel()

    def begin(self, parent: Any) -> None:
        """Find lost jobs, and have them sent again after 5 s."""
        found = _try("find lost jobs", _find_lost, parent.app) or []
        if found:
            parent.timer.call_after(_LEDGER_DELAY, self.finish, (parent, found))

    def finish(self, parent: Any, found: list[_LostJob]) -> None:
        """Send the lost jobs again."""
        _try("send lost jobs again", _send_lost, parent.app, found)


def _find_lost(app: Celery) -> list[_LostJob]:
    """Return the lost jobs; each has a new token from now on."""
    with open_index(app) as index:
        if index is None:
            return []
        now = wall()
        suspects: dict[str, Entry] = {}
        for job in index.due_before(now - _patience(app), _LIMIT):
            # So that the next sweep does not look at it again.
            index.put(job, now)
            entry = _try(f"read the ledger of {job}", read_entry, app, job)
            if _confirm_overdue(app, index, job, entry):
                suspects[job] = entry
        if not suspects:
            return []
        stored = {job: read_message(app, job) for job in suspects}
        queues = {*app.amqp.queues}
        queues |= {_queue_of(app, message) for message in stored.values() if message}
        for headers in index.headers_of_messages(queues):
            entry = suspects.get(str(headers.get("id")))
            if entry and headers.get(TOKEN_HEADER, "") == entry.token:
                del suspects[str(headers["id"])]
        found = []
        for job, entry in suspects.items():
            message = stored[job]
            if message is None:
                index.remove(job)
                text = "%s: lost, and cannot be sent again: its message is unknown"
                _log.error(text, job)
                continue
            token = uuid()
            replace_message(app, job, entry, token)
            found.append(_LostJob(job, message, token))
        return found


def _confirm_overdue(
    app: Celery, index: DueIndex, job: str, entry: Entry | None
) -> bool:
    """Return whether a job is overdue; correct the index if it is not."""
    due = entry and _due_of(entry)
    if entry is None or due is None:
        index.remove(job)
        return False
    if not is_overdue(app, entry):
        index.put(job, due)
        return False
    return True


def _send_lost(app: Celery, found: list[_LostJob]) -> list[str]:
    return [each.job for each in found if _try(each.job, _send, app, each)]


def _send(app: Celery, lost: _LostJob) -> bool:
    """Send a lost job again; return False if its message has come after all."""
    entry = read_entry(app, lost.job)
    if entry is None or entry.token != lost.token:
        return False
    envelope = read_own_envelope(entry.envelope, lost.job, entry.run)
    send_stored(app, lost.message, envelope, entry.hop, lost.token)
    _log.warning("%s: sent again, its message was lost", lost.job)
    return True


def _try(what: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function, and return its result; log an error, and return None."""
    try:
        return function(*args)
    except Exception:  # noqa: BLE001  the worker and the other jobs continue
        _log.exception("cannot sweep: %s", what)
        return None


def _queue_of(app: Celery, message: dict[str, Any]) -> str:
    route = app.amqp.router.route(dict(message["options"]), message["task"])
    return str(getattr(route.get("queue"), "name", app.conf.task_default_queue))


def _due_of(entry: Entry) -> float | None:
    """Return the due time of an unfinished job; None for other jobs, or if unknown."""
    if entry.status not in {"waiting", "running"}:
        return None
    due = entry.envelope.get("due") if isinstance(entry.envelope, dict) else None
    return due if isinstance(due, float | int) else None


def _patience(app: Celery) -> float:
    return visibility_timeout(app) + _SLACK
