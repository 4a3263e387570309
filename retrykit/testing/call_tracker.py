"""Which retried calls are at work, and which of them wait for time to pass.

A call is at work while an attempt of it runs, and at rest while it sleeps or
while a call inside of one of its attempts does. It tells so itself, by its
events; nothing here knows what time it is.
"""

from contextvars import ContextVar
from typing import Any, final

from retrykit.state.events import AttemptStarted, Event, GaveUp, Succeeded, Suspended
from retrykit.state.retry_state import RetryState

__all__ = ["Worker", "Workers", "here"]


@final
class Worker:
    """One call.

    Attributes:
        state: The state of the call, until it ends.
        outer: The call in whose attempt it was begun, if there is one.
        workers: Whom it belongs to.
        guarded: The thread in which an attempt is watched for real sleeps.
        task: The task of an event loop in which one is.
        rests: How many reasons it has to rest; at work while there is none.
        presumed: Whether one of them is that nothing was heard of it.
        ended: Whether it makes no further attempt.
    """

    __slots__ = (
        "ended",
        "guarded",
        "outer",
        "presumed",
        "rests",
        "state",
        "task",
        "workers",
    )

    def __init__(
        self, workers: "Workers", state: RetryState, outer: "Worker | None"
    ) -> None:
        self.workers = workers
        self.state = state
        self.outer = outer
        self.guarded: int | None = None
        self.task: Any = None
        self.rests = 0
        self.presumed = False
        self.ended = False


_innermost: ContextVar[Worker | None] = ContextVar("retrykit worker", default=None)


def here() -> Worker | None:
    """Return the innermost call that this code is in an attempt of."""
    worker = _innermost.get()
    while worker is not None and worker.ended:
        worker = worker.outer
    return worker


@final
class Workers:
    """The calls that live by one clock; its lock is held by those who ask.

    Attributes:
        busy: How many calls are at work.
        slips: The errors that were raised because attempts really slept.
    """

    def __init__(self) -> None:
        self.busy = 0
        self.slips: list[BaseException] = []
        self._calls: dict[int, Worker] = {}

    def hear(self, event: Event) -> Worker | None:
        """Take note of an event, and return the call that it is of."""
        worker = self._calls.get(id(event.state))
        if worker is None:
            if not isinstance(event, AttemptStarted):
                return None
            worker = Worker(self, event.state, here())
            self._calls[id(event.state)] = worker
            self.busy += 1
            _innermost.set(worker)
        if isinstance(event, Succeeded | GaveUp | Suspended):
            self._end(worker)
        return worker

    def line(self) -> list[Worker]:
        """Return the calls that rest while this code sleeps, innermost first."""
        line, worker = [], here()
        while worker is not None:
            if worker.workers is self:
                line.append(worker)
            worker = worker.outer
        return line

    def rest(self, line: list[Worker]) -> None:
        """Let these calls rest."""
        for worker in line:
            self._presume(worker, resting=False)
            self._rest(worker)

    def work(self, line: list[Worker]) -> None:
        """Let these calls go on, each unless it has another reason to rest."""
        for worker in line:
            self._work(worker)

    def resume(self, line: list[Worker]) -> None:
        """Take these calls for resting no more because nothing was heard of them."""
        for worker in line:
            self._presume(worker, resting=False)

    def at_work(self) -> list[Worker]:
        """Return the calls that are at work."""
        return [worker for worker in self._calls.values() if not worker.rests]

    def presume_rest(self) -> None:
        """Take every call that is at work for one that waits for another."""
        for worker in self.at_work():
            self._presume(worker, resting=True)

    def end_all(self) -> list[Worker]:
        """Take note of no call any more, and return those that had not ended."""
        left = [*self._calls.values()]
        for worker in left:
            self._end(worker)
        return left

    def _presume(self, worker: Worker, *, resting: bool) -> None:
        if worker.presumed is not resting:
            worker.presumed = resting
            (self._rest if resting else self._work)(worker)

    def _rest(self, worker: Worker) -> None:
        self.busy -= not worker.rests and not worker.ended
        worker.rests += 1

    def _work(self, worker: Worker) -> None:
        worker.rests -= 1
        self.busy += not worker.rests and not worker.ended

    def _end(self, worker: Worker) -> None:
        self.busy -= not worker.rests
        worker.ended = True
        del self._calls[id(worker.state)]
        # Tasks that an attempt began have it in their context, maybe for long.
        del worker.state
        if _innermost.get() is worker:
            _innermost.set(worker.outer)
