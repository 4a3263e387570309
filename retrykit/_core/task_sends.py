"""Sends of a hedged attempt in tasks of asyncio or trio."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any, Protocol, Self

from retrykit._core.hedging import SentOutcome, best_of
from retrykit._internal.fast_path import blockers
from retrykit._internal.loop_clock import async_clock, running_trio

__all__ = ["TaskSends", "task_sends"]

_Send = Callable[[], Awaitable[Any]]


class TaskSends(Protocol):
    """Sends that run in tasks; leaving the block cancels and awaits the others."""

    def start(self, send: _Send) -> int:
        """Begin a send; return its number, from 1."""
        ...

    async def wait(self, delay: float | None) -> SentOutcome | None:
        """Wait for the end of a send, for so many seconds at most.

        Of several that have ended, one that succeeded comes first.
        """
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *error: object) -> None: ...


def task_sends() -> TaskSends:
    """Return sends in the event loop that runs."""
    trio = running_trio()
    return AsyncioSends() if trio is None else TrioSends(trio)


async def _run(number: int, send: _Send) -> SentOutcome:
    try:
        return SentOutcome(number, await send(), None)
    except Exception as error:  # noqa: BLE001  raised where it is awaited
        trace = error.__traceback__
        # Without this frame.
        error.__traceback__ = trace and trace.tb_next
        return SentOutcome(number, None, error)


class AsyncioSends:
    """Sends in tasks of asyncio."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[SentOutcome]] = []
        self._ended: list[SentOutcome] = []
        self._number = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
            for task in self._tasks:
                # Or it would be logged that nobody has seen its error.
                if not task.cancelled():
                    task.exception()

    def start(self, send: _Send) -> int:
        """Begin a send; return its number."""
        self._number += 1
        self._tasks.append(asyncio.create_task(_run(self._number, send)))
        return self._number

    async def wait(self, delay: float | None) -> SentOutcome | None:
        """Wait for the end of a send, as `TaskSends` says."""
        if not self._ended:
            await self._wait(delay)
            ended = [task for task in self._tasks if task.done()]
            self._tasks = [task for task in self._tasks if not task.done()]
            self._ended += [task.result() for task in ended]
        return best_of(self._ended)

    async def _wait(self, delay: float | None) -> None:
        first = asyncio.FIRST_COMPLETED
        if delay is None or not blockers:
            await asyncio.wait(self._tasks, timeout=delay, return_when=first)
            return
        # Tests may have replaced the clock.
        timer = asyncio.ensure_future(_sleep(delay))
        try:
            await asyncio.wait([*self._tasks, timer], return_when=first)
        finally:
            timer.cancel()


async def _sleep(delay: float) -> None:
    await async_clock.sleep(delay)


class TrioSends:
    """Sends in tasks of trio."""

    def __init__(self, trio: ModuleType) -> None:
        self._trio: Any = trio
        self._manager: Any = trio.open_nursery()
        self._put, self._outcomes = trio.open_memory_channel(math.inf)
        self._ended: list[SentOutcome] = []
        self._number = 0

    async def __aenter__(self) -> Self:
        self._nursery: Any = await self._manager.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._nursery.cancel_scope.cancel()
        await self._manager.__aexit__(*error)

    def start(self, send: _Send) -> int:
        """Begin a send; return its number."""
        self._number += 1
        self._nursery.start_soon(self._send, self._number, send)
        return self._number

    async def _send(self, number: int, send: _Send) -> None:
        self._put.send_nowait(await _run(number, send))

    async def wait(self, delay: float | None) -> SentOutcome | None:
        """Wait for the end of a send, as `TaskSends` says."""
        if not self._ended:
            timer = self._trio.CancelScope()
            if delay is not None:
                self._nursery.start_soon(self._sleep, timer, delay)
            try:
                self._collect(await self._outcomes.receive())
            finally:
                timer.cancel()
        return best_of(self._ended)

    async def _sleep(self, timer: Any, delay: float) -> None:
        with timer:
            await async_clock.sleep(delay)
            self._put.send_nowait(timer)

    def _collect(self, item: Any) -> None:
        """Keep an outcome, and what else has ended; others are timers."""
        while True:
            if isinstance(item, SentOutcome):
                self._ended.append(item)
            try:
                item = self._outcomes.receive_nowait()
            except self._trio.WouldBlock:
                return
