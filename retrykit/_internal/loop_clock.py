"""The clock of coroutines: the time of the running event loop, asyncio's or trio's."""

import asyncio
import math
import sys
from _thread import get_ident
from asyncio import get_running_loop
from collections.abc import Awaitable, Callable, Coroutine
from sys import modules
from types import ModuleType, TracebackType
from typing import Any

from retrykit._internal.clocks import LONGEST_SLEEP, Arm, AsyncClock, ClockSource
from retrykit._internal.validation import invalid_setting

__all__ = ["LoopClock", "async_clock", "move_on_after", "running_trio"]
__all__ += ["wait_for_event"]


class _NoLoop:
    _thread_id = None


class LoopClock:
    """The clock of the running event loop, whose time may be virtual."""

    # It is read at every call.
    if sys.version_info >= (3, 12):  # pragma: no cover  (covered on 3.12 and 3.13)

        def now(self) -> float:
            """Return the loop's own time, in seconds."""
            if "trio" not in modules:
                return get_running_loop().time()
            return self.reader()()

        def find_parts(self) -> tuple[Any, ModuleType]:
            """Return an object with the loop's `time`, and one with its `sleep`."""
            if "trio" not in modules:
                return get_running_loop(), asyncio
            return _trio_parts() or (get_running_loop(), asyncio)

    else:
        # The last loop, if it tells the thread that runs it, as asyncio's loops do:
        # Python 3.11 finds the running loop by a system call.
        _loop: Any = _NoLoop
        _parts: tuple[Any, ModuleType] = _NoLoop, asyncio

        def now(self) -> float:
            """Return the loop's own time, in seconds."""
            loop = self._loop
            if loop._thread_id != get_ident() or "trio" in modules:
                loop, _ = self._find_loop()
            time: float = loop.time()
            return time

        def find_parts(self) -> tuple[Any, ModuleType]:
            """Return an object with the loop's `time`, and one with its `sleep`."""
            parts = self._parts
            if parts[0]._thread_id != get_ident() or "trio" in modules:
                return self._find_loop()
            return parts

        def _find_loop(self) -> tuple[Any, ModuleType]:
            self._loop, self._parts = _NoLoop, (_NoLoop, asyncio)
            parts = _trio_parts()
            if parts is not None:
                return parts
            loop = get_running_loop()
            if hasattr(loop, "_thread_id"):
                self._loop, self._parts = loop, (loop, asyncio)
            return loop, asyncio

    def reader(self) -> Callable[[], float]:
        """Return a function that reads the loop's time, from any thread."""
        read: Callable[[], float] = self.find_parts()[0].time
        return read

    def sleep(self, delay: float, /) -> Awaitable[None]:
        """Suspend the task for *delay* seconds."""
        if "trio" not in modules:
            return asyncio.sleep(delay)
        sleeping: Awaitable[None] = (running_trio() or asyncio).sleep(delay)
        return sleeping

    async def wait_until_woken(self, arm: Arm, delay: float, /) -> None:
        """Suspend the task until it is woken, for at most *delay* seconds, > 0.

        If *arm* returns False, there is nothing to wait for. Under asyncio, a finite
        delay ends after 30 days at the latest.
        """
        trio = running_trio()
        if trio is not None:
            event, token = trio.Event(), trio.lowlevel.current_trio_token()
            if arm(lambda: token.run_sync_soon(event.set)):
                with trio.move_on_after(delay):
                    await event.wait()
            return
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        if not arm(lambda: _wake_task(loop, woken)):
            return
        timer = None
        if delay < math.inf:
            # Some loops reject longer timers.
            timer = loop.call_later(min(delay, LONGEST_SLEEP), _finish, woken)
        try:
            await woken
        finally:
            if timer is not None:
                timer.cancel()

    def __reduce__(self) -> str:
        return "async_clock.real"


def _wake_task(loop: asyncio.AbstractEventLoop, woken: "asyncio.Future[None]") -> None:
    """Wake a task of a loop, from any thread.

    Raises:
        RuntimeError: The loop is closed.
    """
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    if here is loop and asyncio.current_task() is not None:
        _finish(woken)
    else:
        # Also in a signal handler, which may have interrupted the wait for files.
        loop.call_soon_threadsafe(_finish, woken)


def _finish(woken: "asyncio.Future[None]") -> None:
    if not woken.done():
        woken.set_result(None)


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
    """Suspend the task for *delay* seconds, or until an event of its loop is set.

    Raises:
        ConfigError: *event* is an event of trio under asyncio, or of asyncio under
            trio.
    """
    trio = running_trio()
    library, running = type(event).__module__.partition(".")[0], trio or asyncio
    if library in {"asyncio", "trio"} - {running.__name__}:
        rule = f"an event of {running.__name__}, whose event loop is running"
        raise invalid_setting("stop_event", rule, event, code="async-mismatch")
    with move_on_after(delay):
        await event.wait()


def move_on_after(delay: float) -> Any:
    """Return a context manager whose block is cancelled after *delay* seconds.

    It is a trio cancel scope, or has the interface of one.
    """
    trio = running_trio()
    return trio.move_on_after(delay) if trio else _Scope(delay)


class _Scope:
    """An asyncio timeout with the interface of a trio cancel scope."""

    def __init__(self, delay: float) -> None:
        self._timeout = asyncio.timeout(None if delay == math.inf else delay)
        self._entered = False

    def __enter__(self) -> None:
        try:
            _run_to_completion(self._timeout.__aenter__())
        except ValueError:
            # The loop of Pyodide rejects a time that has passed since asyncio looked.
            self._timeout.reschedule(-math.inf)
        self._entered = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> bool:
        self._entered = False
        try:
            _run_to_completion(self._timeout.__aexit__(kind, error, trace))
        except TimeoutError:
            return True
        return False

    def cancel(self) -> None:
        """Cancel the block at its next await, unless it has ended."""
        if self._entered:
            self._timeout.reschedule(-math.inf)


def _run_to_completion(coroutine: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine that never suspends."""
    try:  # noqa: SIM105  half a microsecond faster, at every attempt
        coroutine.send(None)
    except StopIteration:
        pass


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
