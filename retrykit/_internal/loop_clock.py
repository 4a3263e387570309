"""The clock of coroutines: that of the running event loop, asyncio's or trio's."""

import asyncio
import sys
from _thread import get_ident
from collections.abc import Awaitable, Callable
from contextlib import suppress
from sys import modules
from types import ModuleType
from typing import Any

from retrykit._internal.clocks import AsyncClock, ClockSource
from retrykit._internal.validation import invalid_setting

__all__ = ["LoopClock", "async_clock", "running_trio", "wait_for_event"]


class LoopClock:
    """The loop's own time, which may be virtual."""

    # It is read at every call.
    if sys.version_info >= (3, 12):  # pragma: no cover  (covered on 3.12 and 3.13)

        def now(self) -> float:
            """Return the loop's own time."""
            if "trio" not in modules:
                return asyncio.get_running_loop().time()
            return self.reader()()

        def parts(self) -> tuple[Any, ModuleType]:
            """Return an object with the loop's `time`, and one with its `sleep`."""
            return _trio_parts() or (asyncio.get_running_loop(), asyncio)

    else:
        # The last loop, if it tells the thread that runs it, as those of asyncio do:
        # Python 3.11 finds the running loop by a system call.
        _loop: Any = None

        def now(self) -> float:
            """Return the loop's own time."""
            loop = self._loop
            if loop is None or loop._thread_id != get_ident() or "trio" in modules:
                loop, _ = self._find_parts()
            time: float = loop.time()
            return time

        def parts(self) -> tuple[Any, ModuleType]:
            """Return an object with the loop's `time`, and one with its `sleep`."""
            loop = self._loop
            if loop is None or loop._thread_id != get_ident() or "trio" in modules:
                return self._find_parts()
            return loop, asyncio

        def _find_parts(self) -> tuple[Any, ModuleType]:
            self._loop = None
            parts = _trio_parts()
            if parts is not None:
                return parts
            loop = asyncio.get_running_loop()
            if hasattr(loop, "_thread_id"):
                self._loop = loop
            return loop, asyncio

    def reader(self) -> Callable[[], float]:
        """Return a function that reads the loop's time, from any thread."""
        read: Callable[[], float] = self.parts()[0].time
        return read

    def sleep(self, delay: float, /) -> Awaitable[None]:
        """Suspend the task for *delay* seconds."""
        if "trio" not in modules:
            return asyncio.sleep(delay)
        sleeping: Awaitable[None] = (running_trio() or asyncio).sleep(delay)
        return sleeping


class _TrioTimer:
    __slots__ = ("time",)

    def __init__(self, time: Callable[[], float]) -> None:
        self.time = time


def _trio_parts() -> tuple[_TrioTimer, ModuleType] | None:
    trio = running_trio()
    if trio is None:
        return None
    return _TrioTimer(trio.lowlevel.current_clock().current_time), trio


async def wait_for_event(event: Any, delay: float) -> None:
    """Suspend the task for *delay* seconds, or until an event of its loop is set."""
    trio = running_trio()
    library, running = type(event).__module__.partition(".")[0], trio or asyncio
    if library in {"asyncio", "trio"} - {running.__name__}:
        rule = f"an event of {running.__name__}, whose event loop is running"
        raise invalid_setting("stop_event", rule, event)
    if trio is not None:
        with trio.move_on_after(delay):
            await event.wait()
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(delay):
            await event.wait()


def running_trio() -> ModuleType | None:
    """Return the module trio if this code runs in one of its tasks, else None."""
    trio = modules.get("trio")
    if trio is None:
        return None
    # It may be half imported.
    current_task = getattr(getattr(trio, "lowlevel", None), "current_task", None)
    if current_task is None:
        return None
    try:
        current_task()
    except RuntimeError:
        return None
    return trio


async_clock: ClockSource[AsyncClock] = ClockSource(LoopClock(), awaited=True)
"""The clock of coroutines."""
