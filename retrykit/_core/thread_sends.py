"""The sends of a hedged attempt, each in a thread of its own."""

import math
import queue
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from threading import Thread
from typing import Any, Self

from retrykit._core.sends import Release, Sends, SentOutcome, best_of, release_all
from retrykit._internal.clocks import LONGEST_SLEEP, sync_clock

__all__ = ["ThreadSends", "thread_sends"]


def thread_sends() -> Sends:
    """Return the `Sends` for this context's clock."""
    clock: Any = sync_clock.current()
    build: Callable[[], Sends] = getattr(clock, "thread_sends", ThreadSends)
    return build()


class ThreadSends:
    """Sends, each in a daemon thread of its own."""

    def __init__(self) -> None:
        self._outcomes: queue.SimpleQueue[SentOutcome | None] = queue.SimpleQueue()
        self.ended: list[SentOutcome] = []
        self.release: Release | None = None
        self._number = 0
        self._left = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Threads cannot be stopped. What is not in the queue yet is dropped by them.
        self._left = True
        self.collect(None)

    def start(self, send: Callable[[], Any]) -> bool:
        """Begin a send; see `Sends`."""
        number = self._number + 1
        run: Callable[[], None] = partial(
            self.context(number).run, partial(self.run, number, send)
        )
        try:
            Thread(target=run, daemon=True, name=f"hedge-{number}").start()
        except RuntimeError:
            # The process cannot have another thread. The first send needs none.
            if number > 1:
                return False
            run()
        self._number = number
        return True

    def context(self, number: int) -> Context:  # noqa: ARG002  in virtual time it is
        """Return the context of a send."""
        return copy_context()

    def run(self, number: int, send: Callable[[], Any]) -> None:
        """Run a send in its thread."""
        try:
            outcome = SentOutcome(number, send(), None)
        except BaseException as error:  # noqa: BLE001  raised where it is awaited
            trace = error.__traceback__
            outcome = SentOutcome(
                number, None, error.with_traceback(trace and trace.tb_next)
            )
            del trace
        self.put(outcome)
        # The frames of the error lead back to this one.
        del outcome

    def put(self, outcome: SentOutcome) -> None:
        """Hand over the outcome of a send, in its thread.

        Once the block is over, the send's result is released or dropped instead.
        """
        self._outcomes.put(outcome)
        if self._left and self.release is not None:
            late: list[SentOutcome] = []
            self.collect(None, late)
            release_all(self.release, late)

    def wait(self, delay: float | None) -> SentOutcome | None:
        """Wait for the end of a send; see `Sends`."""
        if not self.ended:
            self.wait_for_any(delay)
        return best_of(self.ended)

    def wait_for_any(self, delay: float | None) -> None:
        """Wait until a send ends, for at most *delay* seconds; None is unlimited."""
        now = sync_clock.real.now
        end = math.inf if delay is None else now() + delay
        left = end if delay is None else delay
        while left >= 0:
            try:
                outcome = self._outcomes.get(timeout=min(left, LONGEST_SLEEP))
            except queue.Empty:
                # It may come a little early.
                left = end - now() if left else -1
            else:
                self.collect(outcome)
                return

    def collect(
        self, outcome: SentOutcome | None, ended: list[SentOutcome] | None = None
    ) -> None:
        """Add an outcome and any others that ended to a list, by default `ended`."""
        ended = self.ended if ended is None else ended
        while True:
            if outcome is not None:
                ended.append(outcome)
            try:
                outcome = self._outcomes.get_nowait()
            except queue.Empty:
                return
