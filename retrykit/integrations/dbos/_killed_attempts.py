"""Attempts during which a worker was killed: counted, and repeated one at a time.

One of the jobs may have killed the worker, for example by using up its memory. DBOS
recovers all attempts that were running then. If they were repeated together, that job
would kill the next worker before any other job has ended. If each is repeated alone,
that job can take down only itself and attempts that have just begun, and its count
shows which one it is.

DBOS counts recoveries, including those of attempts that were still waiting for their
turn. So each repetition is recorded before it begins; the first time an attempt begins
is not, since its recovery shows it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from threading import Event, Lock
from typing import Final

from dbos import DBOS, WorkflowStatus

from retrykit.durable import Envelope, Job

__all__ = ["arepeat_alone", "forgive_running", "mark_begun", "repeat_alone"]
__all__ += ["running_attempts", "stopping", "until_recorded"]

_BEGUN: Final = "retrykit.begun"
"""The attribute of a workflow with the number of times that its attempt has begun.

The attribute is deleted with the workflow."""

_POLLING: Final = 0.05

_turn: Final = Lock()

stopping: Final = Event()
"""Whether this process takes no new attempt, and so begins no repetition."""

running_attempts: Final[dict[str, int]] = {}
"""How often each running attempt of this process began earlier, keyed by workflow id.

An attempt is running from its beginning until its outcome is recorded."""


@contextmanager
def until_recorded(workflow_id: str) -> Iterator[None]:
    """Remove an attempt from `running_attempts` after a block that records its outcome.

    An attempt that is cancelled because its process stops has no outcome, and stays.
    """
    try:
        yield
    except asyncio.CancelledError:
        raise
    except BaseException:
        running_attempts.pop(workflow_id, None)
        raise
    running_attempts.pop(workflow_id, None)


@contextmanager
def repeat_alone(workflow_id: str, job: Job, envelope: Envelope) -> Iterator[None]:
    """Wait for the turn of an attempt, which is then made in the block.

    Only an attempt during which a worker was killed before has to wait, until no other
    such attempt is running in this process.

    Raises:
        JobFailed: Workers were killed too often during the attempt.
        CancelledError: This process is stopping.
    """
    begun = _find_begun(workflow_id)
    job.check_killed(envelope, begun or 0)
    while not _try_enter(workflow_id, begun):
        stopping.wait(_POLLING)
    try:
        _record(workflow_id, begun)
        yield
    finally:
        _leave(begun)


@asynccontextmanager
async def arepeat_alone(
    workflow_id: str, job: Job, envelope: Envelope
) -> AsyncIterator[None]:
    """Wait for the turn of an async attempt, as `repeat_alone` does."""
    begun = await asyncio.to_thread(_find_begun, workflow_id)
    job.check_killed(envelope, begun or 0)
    while not _try_enter(workflow_id, begun):  # noqa: ASYNC110  threads enter, too
        await asyncio.sleep(_POLLING)
    try:
        await asyncio.to_thread(_record, workflow_id, begun)
        yield
    finally:
        _leave(begun)


def mark_begun(row: WorkflowStatus) -> None:
    """Record that an attempt has begun once, unless a count is recorded already.

    It is called before DBOS resets its own count of recoveries.
    """
    if _read_begun(row) is None:
        _write_begun(row.workflow_id, 1)


def forgive_running() -> None:
    """Record that the attempts that run now are not to blame if this process ends."""
    for workflow_id, begun in [*running_attempts.items()]:
        _write_begun(workflow_id, begun)


def _find_begun(workflow_id: str) -> int | None:
    """Return how often an attempt has begun before; None if this is the first time."""
    [row] = DBOS.list_workflows(
        workflow_ids=[workflow_id], load_input=False, load_output=False
    )
    if (row.recovery_attempts or 0) > 1 and _read_begun(row) is None:
        return 1
    return _read_begun(row)


def _try_enter(workflow_id: str, begun: int | None) -> bool:
    """Return whether an attempt may begin now, and note it as running if it may.

    Raises:
        CancelledError: It is a repetition, and this process is stopping.
    """
    if begun:
        if stopping.is_set():
            # It is still pending, and recovered when this process restarts.
            raise asyncio.CancelledError
        if not _turn.acquire(blocking=False):
            return False
    running_attempts[workflow_id] = begun or 0
    return True


def _leave(begun: int | None) -> None:
    if begun:
        _turn.release()


def _record(workflow_id: str, begun: int | None) -> None:
    if begun is not None:
        _write_begun(workflow_id, begun + 1)


def _read_begun(row: WorkflowStatus) -> int | None:
    begun = (row.attributes or {}).get(_BEGUN)
    return begun if isinstance(begun, int) else None


def _write_begun(workflow_id: str, begun: int) -> None:
    DBOS.update_workflow_attributes(workflow_id, {_BEGUN: begun}, merge=True)
