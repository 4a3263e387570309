"""Jobs that would end what attempts them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from retrykit.durable.job_attempt import JobFailed

__all__ = ["protect_worker"]


@contextmanager
def protect_worker() -> Iterator[None]:
    """Let a job die that would end its worker, and all other attempts with it.

    Or itself, by a cancellation of its own, as of an inner task that it has
    cancelled: of that nothing would be kept, and it would be made again for ever.
    What cancels it from outside is let through: the attempt is half made.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, asyncio.CancelledError) as exit_:
        if _cancelled():
            raise
        msg = f"the job would have ended its worker: {exit_!r}"
        raise JobFailed(msg) from exit_


def _cancelled() -> bool:
    """Return whether this code is cancelled from outside."""
    try:
        running = asyncio.current_task()
    except RuntimeError:
        # In a thread, which nobody can cancel.
        return False
    return running is not None and running.cancelling() > 0
