"""The sends of a hedged attempt, in asyncio or trio tasks."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import ModuleType
from typing import Any, Self

from retrykit._core.attempt_timeout import timeout_scope
from retrykit._core.sends import Release, SentOutcome, best_of
from retrykit._internal.clocks import TIMER_RESOLUTION
from retrykit._internal.fast_path import blockers
from retrykit._internal.loop_clock import running_trio
from retrykit.errors import AttemptTimeout

__all__ = ["TaskSends", "task_sends"]

_Send = Callable[[], Awaitable[Any]]


class TaskSends(ABC):
    """Sends that run in tasks; leaving the block cancels and awaits unfinished ones.

    Attributes:
        number: Number of sends so far.
        ended: Outcomes that `wait` has not returned; complete once the block is over.
        release: Frees what the result of a send holds; None if results hold nothing.
    """

    def __init__(self) -> None:
        self.number = 0
        self.ended: list[SentOutcome] = []
        self.release: Release | None = None

    def start(self, send: _Send) -> bool:
        """Begin a send; return True, as it is always possible."""
        self.number += 1
        self.begin(self.number, send)
        return True

    async def wait(self, delay: float | None) -> SentOutcome | None:
        """Wait for the end of a send, for at most *delay* seconds; None is unlimited.

        Return its outcome, or None if no send ended in time. If several have ended, one
        that succeeded comes first.
        """
        if not self.ended:
            await self.wait_for_any(delay)
        return best_of(self.ended)

    def end(self, number: int, result: Any, error: BaseException | None) -> None:
        """Keep the outcome of a send."""
        if error is not None:
            # Without the frame of this module.
            trace = error.__traceback__
            error.__traceback__ = trace and trace.tb_next
        self.ended.append(SentOutcome(number, result, error))

    @abstractmethod
    def begin(self, number: int, send: _Send) -> None:
        """Begin a send in a task."""

    @abstractmethod
    async def wait_for_any(self, delay: float | None) -> None:
        """Wait until a send ends, for at most *delay* seconds; None is unlimited."""

    @abstractmethod
    async def __aenter__(self) -> Self: ...

    @abstractmethod
    async def __aexit__(self, *error: object) -> None: ...


def task_sends() -> TaskSends:
    """Return the `TaskSends` for the running event loop."""
    trio = running_trio()
    return AsyncioSends() if trio is None else TrioSends(trio)


class AsyncioSends(TaskSends):
    """Sends in asyncio tasks."""

    def __init__(self) -> None:
        super().__init__()
        self._tasks: dict[asyncio.Task[Any], int] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pending, cancelled = [*self._tasks], False
        while pending:
            for task in pending:
                task.cancel()
            try:
                await asyncio.wait(pending)
            except asyncio.CancelledError:
                # The caller is cancelled while a send cleans up, which also ends the
                # cleanup.
                cancelled = True
            pending = [task for task in pending if not task.done()]
        # Or it would be logged that nobody has seen their errors.
        self._collect()
        if cancelled:
            raise asyncio.CancelledError

    def begin(self, number: int, send: _Send) -> None:
        """Begin a send in a task."""
        self._tasks[asyncio.create_task(_run(send))] = number

    async def wait_for_any(self, delay: float | None) -> None:
        """Wait until a send ends, for at most *delay* seconds; None is unlimited."""
        first = asyncio.FIRST_COMPLETED
        if delay is None:
            await asyncio.wait(self._tasks, return_when=first)
        elif blockers:
            # Tests may have replaced the clock.
            with suppress(AttemptTimeout), timeout_scope(delay):
                await asyncio.wait(self._tasks, return_when=first)
        else:
            now = asyncio.get_running_loop().time
            end, ended = now() + delay, None
            while not ended and delay >= 0:
                ended, _ = await asyncio.wait(
                    self._tasks, timeout=delay, return_when=first
                )
                # Not every loop waits as long as it should.
                delay = end - now() - TIMER_RESOLUTION
        self._collect()

    def _collect(self) -> None:
        """Keep the outcomes of the sends that have ended."""
        for task in [task for task in self._tasks if task.done()]:
            number, error = self._tasks.pop(task), _error_of(task)
            self.end(number, task.result() if error is None else None, error)


async def _run(send: _Send) -> Any:
    return await send()


def _error_of(task: "asyncio.Task[Any]") -> BaseException | None:
    return asyncio.CancelledError() if task.cancelled() else task.exception()


class TrioSends(TaskSends):
    """Sends in trio tasks."""

    def __init__(self, trio: ModuleType) -> None:
        super().__init__()
        self._trio: Any = trio
        self._manager: Any = trio.open_nursery()
        self._changed: Any = trio.Event()

    async def __aenter__(self) -> Self:
        self._nursery: Any = await self._manager.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._nursery.cancel_scope.cancel()
        try:
            # Without the error of the block, which would become a group.
            await self._manager.__aexit__(None, None, None)
        except ExceptionGroup:
            # From sends that were cancelled.
            pass
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None

    def begin(self, number: int, send: _Send) -> None:
        """Begin a send in a task."""
        self._nursery.start_soon(self._run, number, send)

    async def _run(self, number: int, send: _Send) -> None:
        try:
            result = await send()
        except Exception as error:  # noqa: BLE001  raised where it is awaited
            self.end(number, None, error)
        else:
            self.end(number, result, None)
        self._changed.set()

    async def wait_for_any(self, delay: float | None) -> None:
        """Wait until a send ends, for at most *delay* seconds; None is unlimited."""
        self._changed = self._trio.Event()
        if delay is None:
            await self._changed.wait()
        else:
            with suppress(AttemptTimeout), timeout_scope(delay):
                await self._changed.wait()
