"""Thread that makes the requests of a client's limits, so that no call waits."""

import math
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final, Protocol, final

from retrykit._internal.clocks import sync_clock, wait_for_event
from retrykit._internal.locks import ForkSafe

__all__ = ["BackgroundThread", "Job", "background_thread"]


class Job(Protocol):
    """A task that is run from time to time."""

    def run(self) -> float | None:
        """Run the job; return the seconds until it is due again; None if it is done."""
        ...

    def give_up(self, fault: Exception, /) -> None:
        """Handle the failure to start a thread."""
        ...


@final
class BackgroundThread(ForkSafe):
    """A thread that runs jobs when they are due, and ends when there are none.

    It is a daemon thread, and measures real time. A forked child process has neither
    the thread nor its jobs.
    """

    _due: "dict[Job, float]"
    _wake: threading.Event
    _is_running: bool

    def hurry(self, job: Job) -> None:
        """Run a job at once, or once more after its current run."""
        with self._lock:
            self._due[job] = 0.0
            is_running, self._is_running = self._is_running, True
        if is_running:
            self._wake.set()
            return
        try:
            threading.Thread(
                target=self._run, args=(self._wake,), name="retrykit-redis", daemon=True
            ).start()
        except RuntimeError as fault:
            # Too many threads, or the interpreter ends.
            with self._lock:
                jobs = [*self._due]
                self._due.clear()
                self._is_running = False
            for each in jobs:
                each.give_up(fault)

    def _run(self, wake: threading.Event) -> None:
        while True:
            wake.clear()
            pause = self._run_due_jobs()
            if pause is None:
                return
            wait_for_event(wake, pause)

    def _run_due_jobs(self) -> float | None:
        """Run due jobs; return how long to wait for the next; None if there is none."""
        now = _now()
        for job, due in self._due.copy().items():
            if due <= now:
                # If it is hurried from now on, it runs again.
                self._due[job] = _RUNNING
                pause = job.run()
                with self._lock:
                    if self._due[job] == _RUNNING:
                        del self._due[job]
                        if pause is not None:
                            self._due[job] = _now() + pause
        with self._lock:
            if not self._due:
                self._is_running = False
                return None
            earliest = min(self._due.values())
        return max(earliest - _now(), 0.0)

    def _renew(self) -> None:
        super()._renew()
        self._due = {}
        self._wake = threading.Event()
        self._is_running = False


_RUNNING: Final = math.inf

# Not a virtual time: it waits for a server.
_now: Final[Callable[[], float]] = sync_clock.real.now

_threads: weakref.WeakKeyDictionary[Any, BackgroundThread] = weakref.WeakKeyDictionary()


def background_thread(client: Any) -> BackgroundThread:
    """Return the thread of a client: a client that hangs delays only its own limits."""
    return _threads.setdefault(client, BackgroundThread())
