"""Ledger: the newest state of each job in the result backend, to detect duplicates.

A Celery job is a message, of which there may be duplicates: a worker that is killed
after sending the next message and before acknowledging the old one leaves both. The
ledger shows which one is current. It is stored as the result of a task id that no task
has, which works on every backend. It may expire: the message alone carries the job.

Messages are numbered by their hops, which Celery counts as retries, and not by a clock,
which may be set back. Of two messages with the same number, the one whose token is in
the ledger is current.

Backends have no compare-and-set, so values that different processes may write at the
same time have separate keys: the entry; the token of a message that replaces another
one; the killed run; and a message of the job, which is sent again if the job is lost.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final, Literal, final, get_args

from celery import Celery
from kombu.exceptions import DecodeError

from retrykit._internal.frozen import Frozen, fields_of
from retrykit._internal.validation import truncate
from retrykit.durable import Envelope
from retrykit.durable._job_report import JobStatus
from retrykit.integrations.celery._due_index import open_index

__all__ = ["LEDGER", "Entry", "Verdict", "classify_message", "kill_run"]
__all__ += ["killed_run", "read_entry", "read_message", "replace_message"]
__all__ += ["write_entry", "write_message"]

Verdict = Literal["current", "unsent", "stale"]
"""A message is the current one; or the previous one, whose successor may not have been
sent; or a stale duplicate."""

LEDGER: Final = ".retrykit"
"""The suffix that follows a job's id in the id of its ledger entry."""

_log: Final = logging.getLogger("retrykit.durable")

# Errors of a value that was edited by hand, or cut off.
_DAMAGED: Final = DecodeError, TypeError, KeyError

# Characters of an error in the log.
_LONGEST: Final = 200

# A state that no backend takes for the end of a task.
_STATE: Final = "RETRYKIT"


@final
class Entry(Frozen):
    """The state of a job in the ledger.

    Attributes:
        run: The number of the run.
        hop: The number of the current message: 0 is the first of a run.
        status: The status of the job.
        token: The token of the current message; empty if the message has none, or if
            the job has ended.
        envelope: The envelope of the current message as plain data; None if it was
            unreadable.
        result: The result, if the job has succeeded.
        reason: The reason why the job is dead, as text; empty if it is not dead.
        killed: How often a worker was killed during the current attempt. Count, >= 0.
    """

    __slots__ = (
        "envelope", "hop", "killed", "reason", "result", "run", "status", "token",
    )  # fmt: skip
    run: int
    hop: int
    status: JobStatus
    token: str
    envelope: object
    result: Any
    reason: str
    killed: int

    @classmethod
    def of(
        cls,
        envelope: Envelope,
        hop: int,
        token: str = "",
        *,
        result: Any = None,
        begun: bool = False,
    ) -> "Entry":
        """Return the entry for an envelope; *begun* if its attempt has begun."""
        return cls(
            run=envelope.run,
            hop=hop,
            status="running" if begun else envelope.status,
            token=token,
            envelope=envelope.to_dict(),
            result=result,
            reason="",
            killed=0,
        )

    @classmethod
    def dead(cls, run: int, hop: int, envelope: object, reason: str) -> "Entry":
        """Return the entry of a dead job, whose last message had number *hop* - 1."""
        return cls(run, hop, "dead", "", envelope, None, reason, 0)

    @classmethod
    def from_dict(cls, data: object) -> "Entry | None":
        """Return the entry that `to_dict` wrote; None for anything else."""
        if not isinstance(data, dict):
            return None
        fields: dict[str, Any] = {"killed": 0} | data
        if fields.keys() != {*cls._field_names}:
            return None
        texts = (fields[name] for name in ("token", "reason"))
        counts = (fields[name] for name in ("run", "hop", "killed"))
        valid = fields["status"] in get_args(JobStatus)
        valid &= all(isinstance(each, str) for each in texts)
        valid &= all(type(each) is int and each >= 0 for each in counts)
        return cls(**fields) if valid else None

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON-serializable data, without `killed` if it is 0."""
        data = fields_of(self)
        if self.killed == 0:
            # Workers of retrykit 0.1 read no entry that has it.
            del data["killed"]
        return data


def read_entry(app: Celery, job: str) -> Entry | None:
    """Return the ledger entry of a job; None if it is missing or damaged.

    Without an entry, the message alone carries the job, and the worker of that message
    writes the next entry. If `replace_message` has replaced the current message, the
    entry has the token of the replacement.
    """
    # In this order: a replacement written in between may belong to a later message.
    replacement = _read(app, f"{job}{LEDGER}.again")
    entry = Entry.from_dict(_read(app, f"{job}{LEDGER}"))
    if entry is None:
        return None
    match [entry.status, replacement]:
        case ["waiting", [entry.run, entry.hop, str() as token]]:
            entry = entry.replace(token=token)
        case ["running", [entry.run, entry.hop, str() as token, entry.killed]]:
            # Not begun again since.
            entry = entry.replace(token=token)
    return entry


def write_entry(app: Celery, job: str, entry: Entry) -> None:
    """Replace the ledger entry of a job, and update the index of due times."""
    _store(app, f"{job}{LEDGER}", entry.to_dict())
    with open_index(app) as index:
        if index is None:
            return
        due = entry.envelope.get("due") if isinstance(entry.envelope, dict) else None
        if entry.status in {"waiting", "running"} and due is not None:
            index.put(job, due)
        else:
            index.remove(job)


def read_message(app: Celery, job: str) -> dict[str, Any] | None:
    """Return the message of a job; None if it is not stored."""
    message = _read(app, f"{job}{LEDGER}.message")
    return message if isinstance(message, dict) and "task" in message else None


def write_message(app: Celery, job: str, message: Mapping[str, Any]) -> None:
    """Store the message of a job, so that the job can be sent again if it is lost."""
    _store(app, f"{job}{LEDGER}.message", dict(message))


def replace_message(app: Celery, job: str, entry: Entry, token: str) -> None:
    """Make the message with this token current, in place of the message of *entry*.

    This has no effect if the message of *entry* begins an attempt before the
    replacement is written.
    """
    replacement: list[object] = [entry.run, entry.hop, token]
    if entry.status == "running":
        replacement.append(entry.killed)
    _store(app, f"{job}{LEDGER}.again", replacement)


def killed_run(app: Celery, job: str) -> int:
    """Return the number of a job's last killed run; 0 if none was killed."""
    run = _read(app, f"{job}{LEDGER}.kill")
    return run if isinstance(run, int) else 0


def kill_run(app: Celery, job: str, run: int) -> None:
    """Mark a run of a job, and all runs before it, as killed."""
    _store(app, f"{job}{LEDGER}.kill", run)


def classify_message(
    entry: Entry | None, run: int, hop: int, token: str | None
) -> Verdict:
    """Compare the run, the hop and the token of a message with the ledger.

    >>> classify_message(None, run=1, hop=7, token="c0ffee")
    'current'
    """
    if entry is None or (run, hop) > (entry.run, entry.hop):
        return "current"
    if (run, hop) == (entry.run, entry.hop):
        return "current" if token in {None, entry.token} else "stale"
    is_previous = (run, hop + 1) == (entry.run, entry.hop)
    return "unsent" if is_previous and entry.status != "running" else "stale"


def _read(app: Celery, task_id: str) -> Any:
    try:
        return app.backend.get_task_meta(task_id, cache=False)["result"]
    except _DAMAGED as error:
        text = truncate(repr(error), _LONGEST)
        _log.error("%s: damaged in the result backend: %s", task_id, text)
        return None


def _store(app: Celery, task_id: str, value: object) -> None:
    try:
        app.backend.store_result(task_id, value, _STATE)
    except _DAMAGED:
        # Celery reads a result before it replaces it.
        app.backend.forget(task_id)
        app.backend.store_result(task_id, value, _STATE)
