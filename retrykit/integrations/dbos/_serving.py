"""A process that runs jobs until a signal stops it."""

import logging
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import Any, Final

from dbos import DBOS

from retrykit._internal.clocks import sync_clock
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import (
    escape_unprintable,
    invalid_setting,
    user_facing,
)
from retrykit.integrations.dbos._killed_attempts import (
    forgive_running,
    running_attempts,
    stopping,
)
from retrykit.integrations.dbos._lifecycle import listen

__all__ = ["serve"]

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

# In seconds: for a write before the end, for coroutines that were cancelled, and for
# everything else that DBOS closes.
_FORGIVING: Final = 5.0
_CLEANUP: Final = 2.0
_CLOSING: Final = 5.0
_POLLING: Final = 0.05
# Put into the queue of signals when DBOS was launched, or could not be.
_LAUNCHED: Final = 0

# The module of the threads of executors.
_POOL: Final = "concurrent.futures.thread"

_log: Final = logging.getLogger("retrykit.durable")


@user_facing
def serve(
    settings: Mapping[str, Any],
    *,
    concurrency: int = 20,
    polling: Duration = 1.0,
    grace: Duration = "60s",
) -> None:
    """Run due jobs until the process receives SIGTERM or SIGINT (Ctrl-C).

    Then it begins no new attempt, lets the running ones end, and returns. Attempts
    that have not ended within *grace* are repeated when a process with this executor id
    starts. A second signal ends the process at once, with the status 128 plus the
    signal's number.

    If a sync function has not ended within *grace*, or if the database does not answer,
    `serve` does not return, but ends the process a few seconds later, with status 0:
    the interpreter would wait for the thread in which the function runs, or in which
    its outcome is recorded.

    Args:
        settings: The result of `config`.
        concurrency: As in `listen`.
        polling: As in `listen`.
        grace: How long running attempts may continue. A duration, >= 0, rounded up to
            seconds, and shorter than your platform's grace period (Kubernetes: 30 s).

    Raises:
        ConfigError: *grace* is not a duration, or `serve` was not called in the main
            thread, the only one that handles signals, or `listen` has raised it.
    """
    if current_thread() is not main_thread():
        rule = "called in the main thread, which handles signals"
        suggestion = "in another one, call listen(...) and DBOS.destroy(...)"
        thread = current_thread().name
        raise invalid_setting(
            "serve", rule, f"thread {thread}", suggestion, code="other-library"
        )
    seconds = math.ceil(parse_duration("grace", grace))
    run = partial(listen, settings, concurrency=concurrency, polling=polling)
    # Whatever needs the database is done in other threads, since it waits for one that
    # does not answer. This thread keeps the time.
    with _received_signals() as received:
        launching = _start(run)
        launching.add_done_callback(lambda _: received.put(_LAUNCHED))
        if _wait(received) == _LAUNCHED:
            launching.result()
            _wait(received)
        deadline = sync_clock.now() + seconds
        closing = _start(partial(_close, launching, deadline))
        if _has_closed(closing, deadline):
            closing.result()
            return
    unfinished = ", ".join(sorted(running_attempts)) or "nothing"
    _log.warning("not ended, to be repeated: %s", escape_unprintable(unfinished))
    _end_process(0)


def _close(launching: "Future[None]", deadline: float) -> None:
    """Stop taking attempts, let the running ones end, and close DBOS."""
    launching.result()
    stopping.set()
    # In a thread, since it would wait for a database that does not answer.
    forgiving = Thread(target=forgive_running, daemon=True)
    forgiving.start()
    forgiving.join(_FORGIVING)
    left = math.ceil(max(deadline - sync_clock.now(), 0))
    DBOS.destroy(workflow_completion_timeout_sec=left)


def _has_closed(closing: "Future[None]", deadline: float) -> bool:
    """Wait until DBOS is closed and idle; return False if it takes too long."""
    while not closing.done() or _is_at_work():
        late = sync_clock.now() - deadline
        if late > _CLOSING or (late > _CLEANUP and _is_at_work()):
            return False
        sync_clock.sleep(_POLLING)
    return True


def _is_at_work() -> bool:
    """Return whether DBOS works in a thread for which the interpreter would wait."""
    frames = sys._current_frames()  # noqa: SLF001  the documented name
    return any(
        any(name.startswith("dbos.") for name in modules)
        for thread in threading.enumerate()
        if thread is not main_thread()
        for modules in [{*_modules(frames.get(thread.ident or 0))}]
        # It also waits for the threads of pools, although they are daemons.
        if _POOL in modules or not thread.daemon
    )


def _modules(frame: FrameType | None) -> Iterator[str]:
    """Yield the names of the modules on a thread's stack, the current one first."""
    while frame is not None:
        yield str(frame.f_globals.get("__name__"))
        frame = frame.f_back


def _start(run: Callable[[], None]) -> "Future[None]":
    """Call a function in a thread that does not keep the process alive.

    Returns:
        A future that is done when the function has ended, and has its error if it
        raised one.
    """
    future: Future[None] = Future()

    def call() -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001  raised in the main thread
            future.set_exception(error)
        else:
            future.set_result(None)

    Thread(target=call, daemon=True).start()
    return future


@contextmanager
def _received_signals() -> Iterator[SimpleQueue[int]]:
    """Put the first signal in the block into a queue; the second ends the process.

    Signals are handled and not blocked: child processes would inherit a blocked signal,
    and could not be terminated.
    """
    # Unlike Event.set, its put may be called in a handler.
    received: SimpleQueue[int] = SimpleQueue()
    seen: list[int] = []

    def handle(number: int, _frame: object) -> None:
        if seen:
            # Not the default action: it spares the first process of a container.
            _end_process(128 + number)
        seen.append(number)
        received.put(number)

    before = {each: signal.signal(each, handle) for each in _SIGNALS}
    try:
        yield received
    finally:
        for each, handler in before.items():
            # None: a handler that was not installed by Python.
            signal.signal(each, signal.SIG_DFL if handler is None else handler)


def _wait(received: SimpleQueue[int]) -> int:
    """Wait for a signal or `_LAUNCHED`, and return its number."""
    while True:
        try:
            return received.get(timeout=1)  # Windows runs handlers only in between.
        except Empty:
            continue


def _end_process(status: int) -> None:
    """End the process without waiting for its threads."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)
