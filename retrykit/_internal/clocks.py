"""Time: the only module that reads it or sleeps.

Drivers read two sources, `sync_clock` for blocking code and `async_clock` for
coroutines.
Both are the real clock until another is handed in with ``thread.use(clock)``,
for a context or everywhere; `retrykit.testing` does that.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from time import monotonic
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar, final

from retrykit._internal.context import ContextOverride, Override

__all__ = [
    "AsyncClock",
    "Clock",
    "ClockSource",
    "LoopClock",
    "SystemClock",
    "async_clock",
]
__all__ += ["running_trio", "sync_clock", "wall", "wall_clock_override"]


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

    def reader(self) -> Callable[[], float]:
        """Return what reads the time, from any thread."""
        return monotonic

    def sleep(self, delay: float, /) -> None:
        """Block this thread for *delay* seconds, however many."""
        if delay > self._longest_nap:
            end = monotonic() + delay
            while delay > self._longest_nap:
                time.sleep(self._longest_nap)
                delay = max(end - monotonic(), 0.0)
        time.sleep(delay)


@final
class LoopClock:
    """The clock of the running event loop, asyncio's or trio's.

    It reads the loop's own time, so a loop whose time is virtual is obeyed.
    """

    def now(self) -> float:
        """Return the loop's own time."""
        # Asked at every call, so without a function in between.
        if "trio" not in sys.modules:
            return asyncio.get_running_loop().time()
        trio = running_trio()
        now: float = (trio.current_time if trio else asyncio.get_running_loop().time)()
        return now

    def reader(self) -> Callable[[], float]:
        """Return what reads the loop's time, from any thread.

        Raises:
            RuntimeError: No event loop runs in this thread.
        """
        trio = running_trio()
        if trio is None:
            return asyncio.get_running_loop().time
        now: Callable[[], float] = trio.lowlevel.current_clock().current_time
        return now

    def sleep(self, delay: float, /) -> Awaitable[None]:
        """Let other tasks run for *delay* seconds."""
        nap: Awaitable[None] = (running_trio() or asyncio).sleep(delay)
        return nap


def running_trio() -> ModuleType | None:
    """Return trio if this code runs in a task of it, else None."""
    trio = sys.modules.get("trio")
    if trio is None:
        return None
    # While it is being imported, nothing is in it and nothing runs in it.
    current_task = getattr(getattr(trio, "lowlevel", None), "current_task", None)
    if current_task is None:
        return None
    try:
        current_task()
    except RuntimeError:
        return None
    return trio


C = TypeVar("C", Clock, AsyncClock)


@final
class ClockSource(Generic[C]):
    """Where drivers get their time: the real clock, or one that is handed in.

    Attributes:
        real: The real clock, which drivers may read as long as nothing asks
            for their attention.
    """

    __slots__ = ("_chosen", "real")

    def __init__(self, real: C) -> None:
        self.real: C = real
        self._chosen: ContextOverride[C] = ContextOverride(real)

    def current(self) -> C:
        """Return the clock of this context."""
        return self._chosen.get()

    def now(self) -> float:
        """Return the seconds of this context's clock."""
        return self._chosen.get().now()

    def sleep(self, delay: float) -> Any:
        """Wait by this context's clock; to be awaited if it is a loop's."""
        return self._chosen.get().sleep(delay)

    def reader(self) -> Callable[[], float] | None:
        """Return what reads this context's clock, from any thread.

        None in a worker thread of a coroutine, from where the clock of its
        event loop cannot be found.
        """
        return _reader(self._chosen.get())

    def real_reader(self) -> Callable[[], float] | None:
        """Return what reads the real clock, in the same way."""
        return _reader(self.real)

    def use(
        self, clock: C, what: str = "a clock", *, process_wide: bool = False
    ) -> Override[C]:
        """Let *clock* be the time of this context, until it is closed.

        Args:
            clock: The other clock.
            what: What is opened, as its user typed it, for the error of one
                who closes it in the wrong order.
            process_wide: Whether it is the time of every context that has no
                clock of its own, too.
        """
        return self._chosen.push(what, clock, process_wide=process_wide)


def _reader(clock: Any) -> Callable[[], float] | None:
    read: Callable[[], float]
    try:
        read = clock.reader() if hasattr(clock, "reader") else clock.now
    except RuntimeError:
        return None
    return read


sync_clock: ClockSource[Clock] = ClockSource(SystemClock())
"""The time of blocking code."""

async_clock: ClockSource[AsyncClock] = ClockSource(LoopClock())
"""The time of coroutines."""


def _wall_time() -> float:
    # By its name, since tools that freeze time put another function there.
    return time.time()


wall_clock_override: ContextOverride[Callable[[], float]] = ContextOverride(_wall_time)
"""What reads the wall clock, in seconds since 1970."""


def wall() -> float:
    """Return seconds since 1970 by the wall clock of this context."""
    return wall_clock_override.get()()
