"""What a worker does with a job that it has fetched: at most one attempt.

The envelope is kept before Procrastinate is told when the job goes on, and it alone
decides. Wherever a worker is killed, the job stays ``doing`` until it is rescued:

* before the attempt, or in its middle: the attempt is made, under the same key;
* after its envelope was kept: the job waits on until it is due, or ends as the
  envelope says, and no attempt is made.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NoReturn, final

from procrastinate import App, BaseRetryStrategy, RetryDecision
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job as Row

from retrykit._internal.clocks import wall
from retrykit.durable import Envelope, Job, JobAttempt, JobFailed
from retrykit.durable.json_payloads import as_json, from_json
from retrykit.durable.worker_exit_guard import protect_worker
from retrykit.errors import RetrykitError
from retrykit.integrations.procrastinate.store import (
    CARRIED,
    StoredJob,
    kept_at,
    type_to_name,
    write,
)
from retrykit.integrations.procrastinate.sync_async import DualCall, Step

__all__ = ["JobPostponed", "RescheduleStrategy", "run_due_attempt"]

_SOON: Final = 10
"""After how many seconds to look again, where it cannot be known what is kept."""


class JobPostponed(RetrykitError):  # noqa: N818  it is no error
    """A job goes on later; what its task tells Procrastinate so.

    Attributes:
        at: When, by the clock of the database; None if another worker knows.
    """

    def __init__(self, envelope: Envelope, at: datetime | None) -> None:
        told = "is in the hands of another worker" if at is None else f"is due at {at}"
        last = [failure.describe() for failure in envelope.state.failures[-1:]]
        super().__init__("; last failure: ".join([f"{envelope.key} {told}", *last]))
        self.at = at


@final
class RescheduleStrategy(BaseRetryStrategy):
    """Lets Procrastinate hold a job until it is due.

    Attributes:
        job: What is attempted, under which policy.
    """

    def __init__(self, job: Job) -> None:
        self.job = job

    def get_retry_decision(
        self, *, exception: BaseException, job: Row
    ) -> RetryDecision | None:
        """Return when a job goes on; None if it is dead."""
        del job
        if isinstance(exception, JobPostponed) and exception.at is not None:
            return RetryDecision(retry_at=exception.at)
        # Who was cancelled is attempted again: its worker was shut down. What the
        # database has not kept is not known to anyone.
        unknown = isinstance(exception, JobPostponed | ConnectorException)
        cancelled = not isinstance(exception, Exception | SystemExit)
        if unknown or cancelled:
            return RetryDecision(retry_in={"seconds": _SOON})
        return None


def run_due_attempt(
    made: Job, app: App, place: int, arguments: Mapping[str, Any]
) -> DualCall[Any]:
    """Make the attempt that is due, if there is one, and keep what came of it.

    Args:
        made: The job.
        app: Where it is kept.
        place: The id of its row.
        arguments: What the task was deferred with.

    Returns:
        What the job returned, once it has succeeded.

    Raises:
        JobFailed: It gave up.
        JobWaits: It is not yet due.
    """
    named = dict(arguments)
    carried = named.pop(CARRIED, None)
    before = yield from kept_at(app, place)
    if before.why is not None:
        raise JobFailed(from_json("why", before.why))
    try:
        envelope = _envelope(made, place, before, carried)
        args = carried["args"] if carried else []
    except Exception as error:  # noqa: BLE001  changed by hand into whatever
        return (yield from _dies(app, place, before, error))
    if envelope.status == "succeeded":
        return from_json("result", before.result)
    if envelope.time_left(wall()) > 0:
        return (yield from _waits(app, place, before, envelope.rescheduled(wall())))
    try:
        came: JobAttempt = yield _attempted(made, envelope, args, named)
        result = as_json("what a job returns", came.result)
    except Exception as error:  # noqa: BLE001  it would be so at every attempt
        return (yield from _dies(app, place, before, error))
    return (yield from _ended(app, place, before, came, result))


def _attempted(
    made: Job, envelope: Envelope, args: Sequence[Any], named: Mapping[str, Any]
) -> Step:
    def blocking() -> JobAttempt:
        with protect_worker():
            return made.attempt(envelope, args, named)

    async def awaited() -> JobAttempt:
        with protect_worker():
            return await made.aattempt(envelope, args, named)

    return Step(blocking, awaited)


def _envelope(made: Job, place: int, before: StoredJob, carried: Any) -> Envelope:
    """Return what is known of a job: from its last attempt, or from its start."""
    if before.envelope is not None:
        return Envelope.from_dict(before.envelope)
    if carried is not None:
        return Envelope.from_dict(carried["envelope"])
    return made.envelope(f"{made.name}@{place}")


def _dies(
    app: App, place: int, before: StoredJob, error: Exception
) -> DualCall[NoReturn]:
    """Keep why a job cannot be attempted, beside what was kept of it."""
    why = str(error) or repr(error)
    yield from write(app, place, before, before._replace(why=as_json("why", why)))
    raise JobFailed(why) from error


def _waits(
    app: App, place: int, before: StoredJob, envelope: Envelope
) -> DualCall[NoReturn]:
    at = yield from write(
        app, place, before, StoredJob(type_to_name(envelope)), envelope
    )
    raise JobPostponed(envelope, at)


def _ended(
    app: App, place: int, before: StoredJob, came: JobAttempt, result: str
) -> DualCall[Any]:
    """Keep what came of an attempt, and tell it."""
    envelope = came.envelope
    if envelope.status == "waiting":
        yield from _waits(app, place, before, envelope)
    after, why = StoredJob(type_to_name(envelope), result), ""
    if envelope.status == "dead":
        why = envelope.describe()
        after = StoredJob(type_to_name(envelope), None, as_json("why", why))
    if (yield from write(app, place, before, after)) is None:
        raise JobPostponed(envelope, None)
    if why:
        raise JobFailed(why) from came.error
    return came.result
