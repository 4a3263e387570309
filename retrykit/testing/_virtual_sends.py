"""Sends of a hedged attempt in threads, by virtual time."""

import queue
from collections.abc import Callable
from typing import Any

from retrykit._core.hedging import SentOutcome, ThreadSends, best_of
from retrykit.testing._scheduler import CHECK_INTERVAL, TrackedCall, VirtualScheduler

__all__ = ["VirtualSends"]


class VirtualSends(ThreadSends):
    """Sends that hold virtual time while they run.

    The call that waits for them does not hold it, until one of them has ended or the
    next one is due.
    """

    def __init__(self, scheduler: VirtualScheduler) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._waiting: list[TrackedCall] | None = None
        self._running: dict[int, TrackedCall] = {}

    def __exit__(self, *_: object) -> None:
        with self._scheduler.locked():
            self._hold()
            for call in self._running.values():
                call.lost = True

    def start(self, send: Callable[[], Any]) -> int:
        """Begin a send, which holds time from now on; return its number."""
        call = self._scheduler.begin_send()

        def run_send() -> Any:
            call.enter()
            return send()

        self._running[self._number + 1] = call
        return super().start(run_send)

    def put(self, outcome: SentOutcome) -> None:
        """Hand over the outcome of a send, whose hold on time passes to the call."""
        call = self._running.pop(outcome.number)
        self._scheduler.end_send(call, lambda: self._wake(outcome))

    def wait(self, delay: float | None) -> SentOutcome | None:
        """Wait for the end of a send, as `Sends` says, for so many virtual seconds."""
        if not self._ended and delay != 0:
            self._wait(delay)
        else:
            self.collect(None)
        return best_of(self._ended)

    def _wait(self, delay: float | None) -> None:
        timer = None
        with self._scheduler.locked():
            if self._outcomes.empty():
                if delay is not None:
                    timer = self._scheduler.add(
                        delay, lambda: self._wake(None), sleeping=False
                    )
                self._waiting = self._scheduler.suspend()
                self._scheduler.move()
        try:
            while True:
                try:
                    self.collect(self._outcomes.get(timeout=CHECK_INTERVAL))
                except queue.Empty:
                    error = self._scheduler.check()
                    if error is not None:
                        raise error from None
                else:
                    return
        finally:
            self._hold()
            if timer is not None:
                self._scheduler.cancel(timer)

    def _wake(self, outcome: SentOutcome | None) -> None:
        """Wake the call, with the scheduler's lock held."""
        self._hold()
        self._outcomes.put(outcome)

    def _hold(self) -> None:
        """Make the call hold time again."""
        with self._scheduler.locked():
            waiting, self._waiting = self._waiting, None
            if waiting is not None:
                self._scheduler.resume(waiting)
