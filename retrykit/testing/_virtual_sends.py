"""The sends of a hedged attempt, in threads that run in virtual time."""

import queue
from collections.abc import Callable
from contextvars import Context
from typing import Any, Self

from retrykit._core.sends import SentOutcome
from retrykit._core.thread_sends import ThreadSends
from retrykit.testing._scheduler import (
    CHECK_INTERVAL,
    TrackedCall,
    VirtualScheduler,
    current_call,
)

__all__ = ["VirtualSends"]


class VirtualSends(ThreadSends):
    """Sends that hold virtual time while they run.

    The call that waits for them does not hold time until one of them has ended or the
    next send is due.
    """

    def __init__(self, scheduler: VirtualScheduler) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._waiting: list[TrackedCall] | None = None
        self._running: dict[int, TrackedCall] = {}

    def __enter__(self) -> Self:
        # It may be a function with a hedge and no policy, not a retried call.
        self._caller = self._scheduler.begin_send(current_call())
        self._outer = self._caller.enter()
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        with self._scheduler.locked():
            self._hold()
            self._outer()
            for call in self._running.values():
                call.lost = True
            self._scheduler.end_send(self._caller, int)

    def start(self, send: Callable[[], Any]) -> bool:
        """Begin a send, which holds time from now on; return whether it has begun."""
        number = self._number + 1
        # Not within the call, which waits for it, and holds time by itself.
        self._running[number] = self._scheduler.begin_send(None)
        if super().start(send):
            return True
        self._scheduler.end_send(self._running.pop(number), int)
        return False

    def context(self, number: int) -> Context:
        """Return the context of a send."""
        context = super().context(number)
        context.run(self._running[number].enter)
        return context

    def put(self, outcome: SentOutcome) -> None:
        """Hand over the outcome of a send; the call then holds time in its place."""
        with self._scheduler.locked():
            call = self._running.pop(outcome.number)
            if not call.lost:
                self._scheduler.end_send(call, lambda: self._wake(outcome))
                return
        # It holds time until its result is released.
        super().put(outcome)
        self._scheduler.end_send(call, int)

    def wait_for_any(self, delay: float | None) -> None:
        """Wait until a send has ended, for at most *delay* virtual seconds."""
        if delay == 0:
            self.collect(None)
            return
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
