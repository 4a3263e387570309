"""What is known of a job beside its message: the newest envelope of it.

A job of Celery is a message, and there may be copies of it: a worker that is
killed between sending the next message and acknowledging the old one leaves
both. The ledger says which one counts. It is kept by the result backend under a
task id of its own, so it is there on every backend, and may be gone: the message
alone carries the job.

Messages of a job are numbered by their hops, which Celery counts as its retries,
and never by a clock, which may be set back. Of two with the same number that
one counts whose token the ledger names.

Backends have no locks, so what several processes may write at the same time is
kept in places of its own: how the job stands, by whoever works on the message
that counts; which message counts instead of one that waits; and what was killed
by hand.
"""

from typing import Any, Final, Literal, final

from celery import Celery

from retrykit._internal.frozen import Frozen, fields_of
from retrykit.durable import Envelope
from retrykit.durable.job_report import JobStatus

__all__ = [
    "LEDGER",
    "Entry",
    "Verdict",
    "classify_message",
    "killed",
    "mark_killed",
    "newest",
]
__all__ += ["name_another", "write_entry"]

Verdict = Literal["current", "unsent", "stale"]
"""What a message is: the one that counts; the one before it, whose successor may
never have been sent; or a copy that is left over."""

LEDGER: Final = ".retrykit"
"""How the ledger of a job is called: by its id, and this."""

# One that no backend takes for the end of a task.
_STATE: Final = "RETRYKIT"


@final
class Entry(Frozen):
    """What the ledger says of a job.

    Attributes:
        run: How often the job was begun.
        hop: The number of the message that it is about: 0 is the first of a run.
        status: How the job stands.
        token: What tells that message from another one with its number.
        envelope: Its envelope as plain data; None if that could not be read.
        result: What the job returned, if it has succeeded.
        why: Why it is dead, as a text; empty if it is not.
    """

    __slots__ = ("envelope", "hop", "result", "run", "status", "token", "why")
    run: int
    hop: int
    status: JobStatus
    token: str
    envelope: object
    result: Any
    why: str

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
        """Return the entry of an envelope.

        Args:
            envelope: The envelope.
            hop: The number of its message. Count, >= 0.
            token: The token of that message.
            result: What the job returned.
            begun: Whether its attempt was begun.
        """
        return cls(
            run=envelope.run,
            hop=hop,
            status="running" if begun else envelope.status,
            token=token,
            envelope=envelope.to_dict(),
            result=result,
            why="",
        )


def newest(app: Celery, job: str) -> Entry | None:
    """Return what the ledger says of a job; None if it says nothing."""
    # In this order: what was named last may be about a message that comes later.
    named = _read(app, f"{_place(job)}.again")
    kept = _read(app, _place(job))
    if not isinstance(kept, dict) or kept.keys() != {*Entry.field_names}:
        return None
    entry = Entry(**kept)
    match [entry.status, named]:
        case ["waiting", [entry.run, entry.hop, str() as token]]:
            entry = entry.replace(token=token)
    return entry


def write_entry(app: Celery, job: str, entry: Entry) -> None:
    """Let the ledger say this of a job from now on."""
    app.backend.store_result(_place(job), fields_of(entry), _STATE)


def name_another(app: Celery, job: str, entry: Entry, token: str) -> None:
    """Let another message count instead of one that waits.

    Args:
        app: The app.
        job: The job.
        entry: What the ledger says of the one that waits.
        token: The token of the other one.
    """
    told = [entry.run, entry.hop, token]
    app.backend.store_result(f"{_place(job)}.again", told, _STATE)


def killed(app: Celery, job: str) -> int:
    """Return the run up to which a job was killed by hand; 0 if it was not."""
    kept = _read(app, f"{_place(job)}.kill")
    return kept if isinstance(kept, int) else 0


def mark_killed(app: Celery, job: str, run: int) -> None:
    """Let a run of a job make no further attempt."""
    app.backend.store_result(f"{_place(job)}.kill", run, _STATE)


def classify_message(
    entry: Entry | None, run: int, hop: int, token: str | None
) -> Verdict:
    """Say what a message is.

    >>> classify_message(None, run=1, hop=7, token="c0ffee")
    'current'

    Args:
        entry: What the ledger says.
        run: The run of the message.
        hop: Its number in that run.
        token: Its token; None if it has none.
    """
    if entry is None or (run, hop) > (entry.run, entry.hop):
        return "current"
    if (run, hop) == (entry.run, entry.hop):
        return "current" if token in {None, entry.token} else "stale"
    before = (run, hop + 1) == (entry.run, entry.hop)
    return "unsent" if before and entry.status != "running" else "stale"


def _read(app: Celery, place: str) -> Any:
    return app.backend.get_task_meta(place, cache=False)["result"]


def _place(job: str) -> str:
    return f"{job}{LEDGER}"
