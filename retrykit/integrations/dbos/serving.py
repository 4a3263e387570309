"""A process that runs jobs until it is told to stop."""

import logging
import math
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Thread, current_thread, main_thread
from typing import Any, Final

from dbos import DBOS

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.user_facing import user_facing
from retrykit._internal.validation import invalid_setting
from retrykit.integrations.dbos.killed_attempts import (
    forgive_running,
    running_attempts,
    stopping,
)
from retrykit.integrations.dbos.lifecycle import listen

__all__ = ["serve"]

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_FORGIVING: Final = 5.0

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

    Then it takes no new attempt, lets those that are running end, and returns. Those
    that have not ended within *grace* are repeated when a process with this executor
    id starts. A second signal ends the process at once, with status 128 and its number.

    If a sync function has not ended within *grace*, the process ends here, with status
    0: the interpreter would wait for the thread in which the function runs.

    Args:
        settings: The result of `config`.
        concurrency: As for `listen`.
        polling: As for `listen`.
        grace: How long running attempts may go on. A duration, >= 0, rounded up to
            seconds, and shorter than that of your platform (Kubernetes: 30 s).

    Raises:
        ConfigError: It was not called in the main thread, the only one that handles
            signals, or `listen` has raised it.
    """
    if current_thread() is not main_thread():
        rule = "called in the main thread, which handles signals"
        suggestion = "in another one, call listen(...) and DBOS.destroy(...)"
        thread = current_thread().name
        raise invalid_setting("serve", rule, f"thread {thread}", suggestion)
    timeout = math.ceil(parse_duration("grace", grace))
    with _received_signals() as received:
        listen(settings, concurrency=concurrency, polling=polling)
        try:
            _wait(received)
        finally:
            stopping.set()
            # In a thread, since it would wait for a database that does not answer.
            forgiving = Thread(target=forgive_running, daemon=True)
            forgiving.start()
            forgiving.join(_FORGIVING)
            DBOS.destroy(workflow_completion_timeout_sec=timeout)
    unfinished = sorted(running_attempts)
    if unfinished:
        _log.warning("not ended, to be repeated: %s", ", ".join(unfinished))
        _end_process(0)


@contextmanager
def _received_signals() -> Iterator[SimpleQueue[int]]:
    """Put the first signal into a queue; the second one ends the process.

    Signals are handled and not blocked: child processes would inherit that, and could
    not be terminated.
    """
    # Its put may be called in a handler, other than Event.set.
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


def _wait(received: SimpleQueue[int]) -> None:
    """Wait for a signal."""
    while True:
        try:
            received.get(timeout=1)  # Windows runs handlers only in between.
        except Empty:
            continue
        return


def _end_process(status: int) -> None:
    """End the process without waiting for its threads."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)
