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
from retrykit.durable import Attempted, Envelope, Job, JobDied
from retrykit.durable.json_payloads import as_json, from_json
from retrykit.durable.worker_exit_guard import staying
from retrykit.errors import RetrykitError
from retrykit.integrations.procrastinate.store import (
    CARRIED,
    Kept,
    kept_at,
    text_of,
    write,
)
from retrykit.integrations.procrastinate.sync_async import Plan, Step

__all__ = ["JobWaits", "Wakes", "visit"]

_SOON: Final = 10
"""After how many seconds to look again, where it cannot be known what is kept."""


class JobWaits(RetrykitError):  # noqa: N818  it is no error
    """A job goes on later; what its task tells Procrastinate so.

    Attributes:
        at: When, by the clock of the database; None if another worker knows.
    """

    def __init__(self, envelope: Envelope, at: datetime | None) -> None:
        told = "is in the hands of another worker" if at is None else f"is due at {at}"
        last = [failure.describe() for failure in envelope.state.failures[-1:]]
        super().__init__("; last came ".join([f"{envelope.key} {told}", *last]))
        self.at = at


@final
class Wakes(BaseRetryStrategy):
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
        if isinstance(exception, JobWaits) and exception.at is not None:
            return RetryDecision(retry_at=exception.at)
        # Who was cancelled is attempted again: its worker was shut down. What the
        # database has not kept is not known to anyone.
        unknown = isinstance(exception, JobWaits | ConnectorException)
        cancelled = not isinstance(exception, Exception | SystemExit)
        if unknown or cancelled:
            return RetryDecision(retry_in={"seconds": _SOON})
        return None


def visit(made: Job, app: App, place: int, arguments: Mapping[str, Any]) -> Plan[Any]:
    """Make the attempt that is due, if there is one, and keep what came of it.

    Args:
        made: The job.
        app: Where it is kept.
        place: The id of its row.
        arguments: What the task was deferred with.

    Returns:
        What the job returned, once it has succeeded.

    Raises:
        JobDied: It gave up.
        JobWaits: It is not yet due.
    """
    named = dict(arguments)
    carried = named.pop(CARRIED, None)
    before = yield from kept_at(app, place)
    if before.why is not None:
        raise JobDied(from_json("why", before.why))
    try:
        envelope = _envelope(made, place, before, carried)
        args = carried["args"] if carried else []
    except Exception as error:  # noqa: BLE001  changed by hand into whatever
        return (yield from _dies(app, place, before, error))
    if envelope.status == "succeeded":
        return from_json("result", before.result)
    if envelope.left(wall()) > 0:
        return (yield from _waits(app, place, before, envelope.held(wall())))
    try:
        came: Attempted = yield _attempted(made, envelope, args, named)
        result = as_json("what a job returns", came.result)
    except Exception as error:  # noqa: BLE001  it would be so at every attempt
        return (yield from _dies(app, place, before, error))
    return (yield from _ended(app, place, before, came, result))


def _attempted(
    made: Job, envelope: Envelope, args: Sequence[Any], named: Mapping[str, Any]
) -> Step:
    def blocking() -> Attempted:
        with staying():
            return made.attempt(envelope, args, named)

    async def awaited() -> Attempted:
        with staying():
            return await made.aattempt(envelope, args, named)

    return Step(blocking, awaited)


def _envelope(made: Job, place: int, before: Kept, carried: Any) -> Envelope:
    """Return what is known of a job: from its last attempt, or from its start."""
    if before.envelope is not None:
        return Envelope.from_dict(before.envelope)
    if carried is not None:
        return Envelope.from_dict(carried["envelope"])
    return made.envelope(f"{made.name}@{place}")


def _dies(app: App, place: int, before: Kept, error: Exception) -> Plan[NoReturn]:
    """Keep why a job cannot be attempted, beside what was kept of it."""
    why = str(error) or repr(error)
    yield from write(app, place, before, before._replace(why=as_json("why", why)))
    raise JobDied(why) from error


def _waits(app: App, place: int, before: Kept, envelope: Envelope) -> Plan[NoReturn]:
    at = yield from write(app, place, before, Kept(text_of(envelope)), envelope)
    raise JobWaits(envelope, at)


def _ended(
    app: App, place: int, before: Kept, came: Attempted, result: str
) -> Plan[Any]:
    """Keep what came of an attempt, and tell it."""
    envelope = came.envelope
    if envelope.status == "waiting":
        yield from _waits(app, place, before, envelope)
    after, why = Kept(text_of(envelope), result), ""
    if envelope.status == "dead":
        why = envelope.describe()
        after = Kept(text_of(envelope), None, as_json("why", why))
    if (yield from write(app, place, before, after)) is None:
        raise JobWaits(envelope, None)
    if why:
        raise JobDied(why) from came.error
    return came.result
