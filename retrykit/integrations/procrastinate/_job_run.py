"""Execution of a job that a worker has taken: at most one attempt.

The envelope is stored before Procrastinate is told when the job continues, and only
the envelope counts. If a worker is killed, the job stays ``doing`` until it is rescued:

* killed before or during the attempt: the attempt is repeated under the same key,
  unless that has happened too often (``max_killed``), and only while no other repeated
  attempt runs in the same worker: one of the jobs may have killed the worker, and would
  take the others along;
* killed after the envelope was stored: the job waits until it is due, or ends,
  according to the envelope.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from threading import Lock
from typing import Any, Final, NoReturn

from procrastinate import App, BaseRetryStrategy, RetryDecision
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job as Row

from retrykit._internal.clocks import wall
from retrykit.durable import Envelope, Job, JobAttempt, JobFailed
from retrykit.durable._envelope import read_own_envelope
from retrykit.durable._job_attempt import protect_worker
from retrykit.durable._json_payloads import as_json, from_json
from retrykit.durable._turns import draw_turn_delay
from retrykit.errors import RetrykitError
from retrykit.integrations.procrastinate._store import (
    BEGIN,
    METADATA,
    StoredJob,
    envelope_to_json,
    load,
    query,
    replace_if_unchanged,
)
from retrykit.integrations.procrastinate._sync_async import DualCall, Step

__all__ = ["JobPostponed", "RescheduleStrategy", "run_due_attempt"]

_turn: Final = Lock()

_RECHECK: Final = 10
"""Seconds until the next check of a job whose stored state is unknown or changed."""


class JobPostponed(RetrykitError):  # noqa: N818  not an error
    """Raised by the task of a job that continues later.

    Attributes:
        at: When it continues, by the clock of the database; None if another worker has
            the job, or it waits for its turn.
        delay: How long until a worker checks the job again, in seconds, if *at* is
            None.
    """

    def __init__(
        self, envelope: Envelope, at: datetime | None, delay: float | None = None
    ) -> None:
        status = "was taken by another worker" if at is None else f"is due at {at}"
        if delay is not None:
            status = "waits for its turn, since its worker was killed"
        last = [failure.describe() for failure in envelope.state.failures[-1:]]
        super().__init__("; last failure: ".join([f"{envelope.key} {status}", *last]))
        self.at = at
        self.delay = _RECHECK if delay is None else int(delay)


class RescheduleStrategy(BaseRetryStrategy):
    """Makes Procrastinate hold a job until it is due."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def get_retry_decision(
        self, *, exception: BaseException, job: Row
    ) -> RetryDecision | None:
        """Return when a job continues; None if it is dead."""
        del job
        if isinstance(exception, JobPostponed) and exception.at is not None:
            return RetryDecision(retry_at=exception.at)
        if isinstance(exception, JobPostponed):
            return RetryDecision(retry_in={"seconds": exception.delay})
        # The worker was shut down.
        cancelled = not isinstance(exception, Exception | SystemExit)
        if isinstance(exception, ConnectorException) or cancelled:
            return RetryDecision(retry_in={"seconds": _RECHECK})
        return None


def run_due_attempt(
    job: Job, app: App, row_id: int, arguments: Mapping[str, Any]
) -> DualCall[Any]:
    """Make the attempt that is due, if any, and store its outcome.

    Returns:
        The result of the job, which has succeeded now or earlier.

    Raises:
        JobFailed: The job is dead: it gave up, now or earlier, an attempt is
            impossible, or its worker was killed too often.
        JobPostponed: The job continues later: it is not due yet, has to be retried,
            waits for its turn, or was taken by another worker.
    """
    kwargs = dict(arguments)
    metadata = kwargs.pop(METADATA, None)
    before = yield from load(app, row_id)
    if before.reason is not None:
        raise JobFailed(from_json("reason", before.reason), f"{job.name}@{row_id}")
    try:
        envelope = _find_envelope(job, row_id, before, metadata)
        args = metadata["args"] if metadata else []
    except Exception as error:  # noqa: BLE001  someone may have edited the row
        return (yield from _fail(app, job, row_id, before, error))
    if envelope.status == "succeeded":
        return from_json("result", before.result)
    if envelope.time_left(wall()) > 0:
        return (yield from _postpone(app, row_id, before, envelope.rescheduled(wall())))
    try:
        job.check_killed(envelope, before.killed)
    except JobFailed as error:
        return (yield from _fail(app, job, row_id, before, error))
    with _turn_after(before.killed) as taken:
        if taken != before.begun:
            yield query(app, BEGIN, row_id=row_id, begun=taken)
        if before.killed and not taken:
            # It is not to blame if the other one kills this worker.
            raise JobPostponed(envelope, None, draw_turn_delay())
        try:
            attempt: JobAttempt = yield _attempt(job, envelope, args, kwargs)
            result = as_json("result", attempt.result)
        except Exception as error:  # noqa: BLE001  every attempt would raise it
            return (yield from _fail(app, job, row_id, before, error))
        return (yield from _finish(app, row_id, before, attempt, result))


@contextmanager
def _turn_after(killed: int) -> Iterator[bool]:
    """Take this process's turn if it is free and a worker was killed.

    Yields:
        Whether the turn was taken.
    """
    taken = killed > 0 and _turn.acquire(blocking=False)
    try:
        yield taken
    finally:
        if taken:
            _turn.release()


def _attempt(
    job: Job, envelope: Envelope, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Step:
    def blocking() -> JobAttempt:
        with protect_worker():
            return job.attempt(envelope, args, kwargs)

    async def awaited() -> JobAttempt:
        with protect_worker():
            return await job.aattempt(envelope, args, kwargs)

    return Step(blocking, awaited)


def _find_envelope(job: Job, row_id: int, before: StoredJob, metadata: Any) -> Envelope:
    """Return the envelope that was stored last, or else the job's first one."""
    if metadata is None:
        first = job.envelope(f"{job.name}@{row_id}")
    else:
        first = Envelope.from_dict(metadata["envelope"])
    if before.envelope is None:
        return first
    return read_own_envelope(before.envelope, first.job, first.run)


def _fail(
    app: App, job: Job, row_id: int, before: StoredJob, error: Exception
) -> DualCall[NoReturn]:
    """Store why a job is dead, and raise a `JobFailed` that says so."""
    reason = str(error) or repr(error)
    after = before._replace(reason=as_json("reason", reason))
    yield from replace_if_unchanged(app, row_id, before, after)
    raise JobFailed(reason, f"{job.name}@{row_id}") from error


def _postpone(
    app: App, row_id: int, before: StoredJob, envelope: Envelope
) -> DualCall[NoReturn]:
    after = StoredJob(envelope_to_json(envelope))
    at = yield from replace_if_unchanged(app, row_id, before, after, envelope)
    raise JobPostponed(envelope, at)


def _finish(
    app: App, row_id: int, before: StoredJob, attempt: JobAttempt, result: str
) -> DualCall[Any]:
    """Store the outcome of an attempt, and return the result of a successful one.

    Raises:
        JobFailed: The job gave up.
        JobPostponed: The job continues later, or another worker has taken it.
    """
    envelope = attempt.envelope
    if envelope.status == "waiting":
        yield from _postpone(app, row_id, before, envelope)
    after, reason = StoredJob(envelope_to_json(envelope), result), ""
    if envelope.status == "dead":
        reason = envelope.describe()
        after = StoredJob(envelope_to_json(envelope), None, as_json("reason", reason))
    if (yield from replace_if_unchanged(app, row_id, before, after)) is None:
        raise JobPostponed(envelope, None)
    if reason:
        raise JobFailed(reason, envelope.job) from attempt.error
    return attempt.result
