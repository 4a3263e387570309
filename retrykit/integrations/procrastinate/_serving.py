"""A Procrastinate worker that ends after its running attempts."""

import asyncio
import logging
import os
import signal
import sys
from contextlib import suppress
from typing import Any, Final

from procrastinate import App
from procrastinate.worker import Worker

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import check_choice, user_facing
from retrykit.integrations.procrastinate._settings import (
    check_prepared,
    put_back_unfinished,
)

__all__ = ["serve"]

_OPTIONS: Final = ("abort_job_polling_interval", "additional_context", "concurrency",
                   "fetch_job_polling_interval", "listen_notify", "name", "queues",
                   "task_middleware", "worker_middleware")  # fmt: skip
# In seconds: for coroutines that were cancelled, and for the last statement.
_CLEANUP: Final = 1.0

_log: Final = logging.getLogger("retrykit.durable")


@user_facing
def serve(app: App, *, grace: Duration = "60s", **options: Any) -> None:
    """Run a worker until SIGTERM or SIGINT, let its attempts end, and return.

    ::

        if __name__ == "__main__":
            serve(app, concurrency=4)

    It opens the application, and must be called in the main thread. Attempts that
    still run after *grace* are cut off, and repeated by the next worker: coroutines
    are cancelled, and have a second to clean up; then the process ends with status 0,
    without ``atexit``, since a thread cannot be stopped. A coroutine that blocks its
    event loop delays all this.

    Args:
        app: The Procrastinate application, after `prepare`.
        grace: How long running attempts may take to end. A duration, >= 0; less than
            the time after which the supervisor kills the process.
        **options: Options of ``app.run_worker``: abort_job_polling_interval,
            additional_context, concurrency, fetch_job_polling_interval, listen_notify,
            name, queues, task_middleware, worker_middleware. Other options belong in
            the ``worker_defaults`` of the application.

    Raises:
        ConfigError: The application was not prepared, *grace* is not a duration, or
            there is no such option.
        ConnectorException: The database is unavailable.
        RuntimeError: The worker has ended without a signal; its log shows why.
    """
    check_prepared(app)
    seconds = parse_duration("grace", grace)
    for option in options:
        check_choice("options", option, _OPTIONS, "set it in worker_defaults")
    asyncio.run(_serve(app, seconds, options))


async def _serve(app: App, grace: float, options: dict[str, Any]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    imports: Any = app
    imports.perform_import_paths()
    async with app.open_async():
        settings: Any = {**app.worker_defaults, **options}
        settings |= {"shutdown_graceful_timeout": grace}
        settings |= {"install_signal_handlers": False}
        worker: Any = Worker(app, **settings)
        running = asyncio.create_task(worker.run())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if stop.is_set():
            await _stop(app, worker, running, grace)
        # It raises the error of the worker.
        await running
    if not stop.is_set():
        msg = "the worker has ended without a signal; see its log"
        raise RuntimeError(msg)


async def _stop(
    app: App, worker: Any, running: "asyncio.Task[None]", grace: float
) -> None:
    """Wait until a worker has stopped; end the process if it takes too long."""
    beating = asyncio.create_task(_beat(app, worker))
    worker.stop()
    await asyncio.wait({running}, timeout=grace)
    beating.cancel()
    if running.done():
        return
    _log.warning("attempts are cut off after %g s, and will be repeated", grace)
    # The worker cancels coroutines, and waits for the threads of sync functions.
    await asyncio.wait({running}, timeout=_CLEANUP)
    if not running.done():
        with suppress(Exception):
            unfinished = put_back_unfinished(app, worker.worker_id)
            await asyncio.wait_for(unfinished, _CLEANUP)
    # A thread would keep the process alive.
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(0)


async def _beat(app: App, worker: Any) -> None:
    """Send heartbeats for a stopping worker, which no longer sends its own."""
    while True:
        with suppress(Exception):
            await app.job_manager.update_heartbeat(worker.worker_id)
        await asyncio.sleep(worker.update_heartbeat_interval)
