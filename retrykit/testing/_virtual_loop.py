"""An asyncio event loop whose own time is virtual."""

import asyncio
import math
import selectors
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextvars import Context
from itertools import count
from typing import Any, TypeVar, TypeVarTuple, Unpack, final

from retrykit._core.attempt_timeout import TimeoutScope
from retrykit._internal.clocks import Arm
from retrykit.testing._event_loops import running_loop
from retrykit.testing._scheduler import CHECK_INTERVAL, VirtualScheduler

__all__ = ["VirtualLoop"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@final
class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers are sleepers of a scheduler.

    When no task has anything to do, time moves to the next timer. Sockets (except those
    that listen), pipes and calls in an executor hold time as long as an attempt runs on
    this loop, or while the clock has no calls at all.
    """

    def __init__(self, scheduler: VirtualScheduler) -> None:
        self.scheduler = scheduler
        self._orders = count()
        self._executing: set[object] = set()
        self._files = _Selector(self)
        super().__init__(self._files)
        # The files by which other threads wake the loop.
        self._files.own = frozenset(self._files.get_map())
        scheduler.loops.append(self)

    def time(self) -> float:
        """Return the virtual time, in seconds."""
        return self.scheduler.now

    def holds_time(self) -> bool:
        """Return whether the loop is busy, or waits for a file or a thread.

        Such a wait counts while an attempt runs on the loop, or no call is tracked.
        """
        if not self.is_running():
            return False
        if not self._files.idle:
            return True
        return self.waits_outside() and self.scheduler.holds_for_loop(self)

    def waits_outside(self) -> bool:
        """Return whether the loop may be woken in real time, by a file or a thread."""
        return self._files.external or bool(self._executing)

    def hold(self) -> None:
        """Do nothing: a loop that is not idle holds time."""

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call a function at a time; timers that are due together keep their order."""
        due = _Due(when)
        due.order = next(self._orders)
        return super().call_at(due, callback, *args, context=context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run a function in an executor, which may hold time."""
        future = super().run_in_executor(executor, func, *args)
        self._executing.add(future)
        future.add_done_callback(self._executing.discard)
        return future

    async def shutdown_default_executor(
        self,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109  as asyncio has it
    ) -> None:
        """Wait until the threads of the pool have ended, however long it takes."""
        # They end in real time, which a virtual timeout would not wait for.
        await super().shutdown_default_executor()

    async def sleep(self, delay: float) -> None:
        """Run other tasks until *delay* virtual seconds have passed."""
        calls = self.scheduler.suspend()
        try:
            await asyncio.sleep(delay)
        finally:
            self.scheduler.resume(calls)

    async def wait_until_woken(self, arm: Arm, delay: float) -> None:
        """Run other tasks until woken, for at most *delay* virtual seconds."""
        woken = self.create_future()

        def finish() -> None:
            if not woken.done():
                woken.set_result(None)

        def wake() -> None:
            # Time stands still from now on, not only once the loop runs.
            self._files.idle = False
            self.call_soon_threadsafe(finish)

        calls = self.scheduler.suspend()
        timer = self.call_later(delay, finish) if delay < math.inf else None
        try:
            if arm(wake):
                await woken
        finally:
            if timer is not None:
                timer.cancel()
            self.scheduler.resume(calls)

    def timeout_scope(self, timeout: float) -> TimeoutScope:
        """Return a ``with`` block that takes at most *timeout* virtual seconds."""
        return TimeoutScope(timeout)

    def wake(self) -> None:
        """End a wait for files. Any thread may call this."""
        self._files.idle = False
        if running_loop() is not self:
            self.call_soon_threadsafe(int)


class _Due(float):
    """The time of a timer, and its index among all timers."""

    __slots__ = ("order",)
    order: int

    def __lt__(self, other: float) -> bool:
        mine, its = float(self), float(other)
        return mine < its or (mine == its and self.order < getattr(other, "order", 0))

    def __ge__(self, other: float) -> bool:
        # asyncio runs a timer unless it is >= the time plus a nanosecond, which
        # is lost in rounding after 200 virtual days: equal is due.
        return float(self) > float(other)

    __hash__ = float.__hash__


class _Selector(selectors.BaseSelector):
    """Selector that waits for files, and lets virtual time pass instead of real time.

    Attributes:
        own: The files that belong to the loop itself.
        idle: Whether no task has anything to do.
        external: Whether another process or thread may write to a watched file.
    """

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._real = selectors.DefaultSelector()
        self.own: frozenset[Any] = frozenset()
        self.idle = self.external = False

    def select(self, timeout: float | None = None) -> list[Any]:
        """Return the files that are ready, or none after the virtual timeout."""
        ready: list[Any] = self._real.select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        scheduler = self._loop.scheduler
        self.external = any(
            not _is_listening(fd) for fd in self.get_map() if fd not in self.own
        )
        self.idle = True
        try:
            if timeout is None:
                scheduler.move()
                return self._real.select()
            sleeper = scheduler.add(
                timeout, self._loop.wake, sleeping=not self._loop.waits_outside()
            )
            try:
                while not ready and not sleeper.awake:
                    ready = self._real.select(CHECK_INTERVAL)
                    error = None if ready else scheduler.check()
                    if error is not None:
                        raise error
            finally:
                scheduler.cancel(sleeper)
            return ready
        finally:
            self.idle = False

    def register(
        self, fileobj: Any, events: int, data: Any = None
    ) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(
        self, fileobj: Any, events: int, data: Any = None
    ) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


def _is_listening(fd: int) -> bool:
    """Return whether a file is a socket that only waits for clients."""
    try:
        sock = socket.socket(fileno=fd)
    except OSError:
        return False
    try:
        return bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    finally:
        sock.detach()
