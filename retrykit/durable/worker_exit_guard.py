"""Keeps a job from stopping its worker."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from retrykit.durable.job_attempt import JobFailed

__all__ = ["protect_worker"]


@contextmanager
def protect_worker() -> Iterator[None]:
    """Fail the job if it raises SystemExit, KeyboardInterrupt or CancelledError.

    They would stop the worker, or interrupt the attempt so that it is repeated for
    ever. A cancellation from outside is passed on: that attempt is to be repeated.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, asyncio.CancelledError) as exit_:
        if _is_cancelled_from_outside():
            raise
        msg = f"the job would have stopped its worker: {exit_!r}"
        raise JobFailed(msg) from exit_


def _is_cancelled_from_outside() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        # A thread without an event loop cannot be cancelled.
        return False
    return task is not None and task.cancelling() > 0
