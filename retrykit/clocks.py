"""Time: the only module that reads it or sleeps.

Drivers read two sources, `thread` for blocking code and `task` for coroutines.
Both are the real clock until another is handed in for a context with
``thread.use(clock)``; `retrykit.testing` does that.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar, final

__all__ = ["AsyncClock", "Clock", "Source", "task", "thread", "wall"]


class Clock(Protocol):
    """A clock that blocks."""

    def now(self, /) -> float:
        """Return clock seconds, which never go back."""
        ...

    def sleep(self, delay: float, /) -> object:
        """Return after *delay* seconds."""
        ...


class AsyncClock(Protocol):
    """A clock of an event loop."""

    def now(self, /) -> float:
        """Return clock seconds, which never go back."""
        ...

    def sleep(self, delay: float, /) -> Awaitable[object]:
        """Return after *delay* seconds."""
        ...


# time.sleep refuses what the platform's timer cannot hold, about 292 years.
_LONGEST_NAP = 86_400.0


@final
class SystemClock:
    """The monotonic clock of the system, for threads.

    Args:
        longest_nap: What is slept at once, in seconds; the rest comes after.
    """

    now = staticmethod(monotonic)

    def __init__(self, longest_nap: float = _LONGEST_NAP) -> None:
        self._longest_nap = longest_nap

    def sleep(self, delay: float, /) -> None:
        """Block this thread for *delay* seconds, however many."""
        end = monotonic() + delay
        while delay > self._longest_nap:
            time.sleep(self._longest_nap)
            delay = end - monotonic()
        time.sleep(max(delay, 0.0))


@final
class LoopClock:
    """The clock of the running event loop, asyncio's or trio's.

    It reads the loop's own time, so a loop whose time is virtual is obeyed.
    """

    def now(self) -> float:
        """Return the loop's own time."""
        if "trio" not in sys.modules:
            return asyncio.get_running_loop().time()
        return self.reader()()

    def reader(self) -> Callable[[], float]:
        """Return what reads the loop's time, from any thread.

        Raises:
            RuntimeError: No event loop runs in this thread.
        """
        trio = _running_trio()
        if trio is None:
            return asyncio.get_running_loop().time
        now: Callable[[], float] = trio.lowlevel.current_clock().current_time
        return now

    async def sleep(self, delay: float, /) -> None:
        """Let other tasks run for *delay* seconds."""
        await (_running_trio() or asyncio).sleep(delay)


def _running_trio() -> ModuleType | None:
    trio = sys.modules.get("trio")
    return trio if trio is not None and trio.lowlevel.in_trio_task() else None


C = TypeVar("C", Clock, AsyncClock)


@final
class Source(Generic[C]):
    """Where drivers get their time: the real clock, or one that is handed in.

    Attributes:
        now: Reads clock seconds.
        sleep: Waits for seconds; to be awaited if the clock is a loop's.
    """

    # The drivers read `now` at every call. It is the real clock's own function
    # until a clock is handed in somewhere, so the check costs nothing before.
    __slots__ = ("_chosen", "_lock", "_real", "_uses", "now", "sleep")

    now: Callable[[], float]
    sleep: Callable[[float], Any]

    def __init__(self, real: C) -> None:
        self._real: C = real
        self._chosen: ContextVar[C] = ContextVar("retrykit clock", default=real)
        self._lock = threading.Lock()
        self._uses = 0
        self.now, self.sleep = real.now, real.sleep

    def reader(self) -> Callable[[], float] | None:
        """Return what reads this context's clock, from any thread.

        None in a worker thread of a coroutine, from where the clock of its
        event loop cannot be found.
        """
        clock = self._chosen.get()
        if not isinstance(clock, LoopClock):
            return clock.now
        try:
            return clock.reader()
        except RuntimeError:
            return None

    @contextmanager
    def use(self, clock: C) -> Iterator[C]:
        """Let *clock* be the time of this context (thread or task)."""
        with self._lock:
            self._uses += 1
            self.now, self.sleep = self._chosen_now, self._chosen_sleep
        token = self._chosen.set(clock)
        try:
            yield clock
        finally:
            self._chosen.reset(token)
            with self._lock:
                self._uses -= 1
                if not self._uses:
                    self.now, self.sleep = self._real.now, self._real.sleep

    def _chosen_now(self) -> float:
        return self._chosen.get().now()

    def _chosen_sleep(self, delay: float) -> Any:
        return self._chosen.get().sleep(delay)


thread: Source[Clock] = Source(SystemClock())
task: Source[AsyncClock] = Source(LoopClock())


def wall() -> float:
    """Return seconds since 1970 by the wall clock."""
    return time.time()
