"""Clocks: the system clock of sync code, and its replacements in tests.

The clock of coroutines is in `retrykit._internal.loop_clock`. Calls read the time and
sleep through these two modules only.
"""

import math
import time
from _thread import allocate_lock
from collections.abc import Awaitable, Callable
from importlib import import_module
from time import monotonic
from typing import Any, Final, Generic, Protocol, TypeVar

from retrykit._internal.context import ContextOverride, Override
from retrykit._internal.fast_path import blockers

__all__ = ["LONGEST_SLEEP", "TIMER_RESOLUTION", "Arm", "AsyncClock", "Clock"]
__all__ += ["ClockSource", "SystemClock"]
__all__ += ["read_together", "sync_clock", "time_passed", "wait_for_event", "wall"]
__all__ += ["wake_thread", "wall_clock_override"]

Arm = Callable[[Callable[[], object]], bool]
"""Takes the function that wakes a waiting thread or task, which any thread may call,
and more than once; returns whether there is something to wait for."""


class Clock(Protocol):
    """A clock of sync code."""

    def now(self, /) -> float:
        """Return the reading in seconds, which never decreases."""
        ...

    def sleep(self, delay: float, /) -> object:
        """Block for *delay* seconds, >= 0."""
        ...


class AsyncClock(Protocol):
    """A clock of an event loop."""

    def now(self, /) -> float:
        """Return the reading in seconds, which never decreases."""
        ...

    def sleep(self, delay: float, /) -> Awaitable[object]:
        """Suspend the task for *delay* seconds, >= 0."""
        ...


LONGEST_SLEEP = 30 * 86_400.0
"""The longest single sleep, in seconds. The timers of some platforms hold no more than
49 days, and `time.sleep` rejects 292 years on all of them."""

TIMER_RESOLUTION: Final = time.get_clock_info("monotonic").resolution
"""How early a timer of an event loop may fire, in seconds."""


class SystemClock:
    """The monotonic clock of the system.

    Args:
        longest_sleep: The longest single sleep, in seconds; longer ones are split.
    """

    now = staticmethod(monotonic)

    def __init__(self, longest_sleep: float = LONGEST_SLEEP) -> None:
        self._longest_sleep = longest_sleep
        self.parts: Final = self._MonotonicTime, time

    def sleep(self, delay: float, /) -> None:
        """Block this thread for *delay* seconds."""
        if delay > self._longest_sleep:
            end = monotonic() + delay
            while delay > self._longest_sleep:
                time.sleep(self._longest_sleep)
                delay = max(end - monotonic(), 0.0)
        time.sleep(delay)

    def wait_until_woken(self, arm: Arm, delay: float, /) -> None:
        """Block this thread until it is woken, for at most *delay* seconds, > 0.

        If *arm* returns False, there is nothing to wait for.
        """
        # Not an event of threading: a finalizer that runs in this thread could not set
        # it while this thread looks at it.
        woken = allocate_lock()
        woken.acquire()
        if not arm(lambda: wake_thread(woken)):
            return
        if delay == math.inf:
            woken.acquire()
            return
        end = monotonic() + delay
        while not woken.acquire(timeout=min(delay, self._longest_sleep)):
            delay = end - monotonic()
            if delay <= 0:
                return

    class _MonotonicTime:
        # An attribute of the class, which is quicker to call than an object's.
        time = monotonic


def wake_thread(woken: Any) -> None:
    """Release the lock that a thread waits for, unless it is free already."""
    # Another thread may do so at the same time.
    try:  # noqa: SIM105  no code of others runs under the lock of virtual time
        woken.release()
    except RuntimeError:
        pass


# In seconds: shorter delays may be invisible to clocks of a low resolution.
_NOTICEABLE = 0.1


def time_passed(delay: float, passed: float) -> bool:
    """Return whether a clock advanced by more than half of a delay, in seconds.

    Also true for a delay below 0.1 s, which is too short to tell.

    Args:
        delay: The delay.
        passed: How far the clock advanced.
    """
    return delay < max(_NOTICEABLE, 2 * passed)


def read_together(read_clock: Callable[[], float]) -> tuple[float, float]:
    """Return the readings of the wall clock and of another clock at the same time.

    Both are in seconds. If this thread is interrupted between them, the clocks are read
    again, up to four times, and the readings that were closest together are returned.
    """
    readings = []
    while True:
        before, wall_time, now = read_clock(), wall(), read_clock()
        if now - before < _AT_ONCE:
            return wall_time, now
        readings.append((now - before, wall_time, now))
        if len(readings) == _MOST_READINGS:
            return min(readings)[1:]


_MOST_READINGS: Final = 5
# In seconds.
_AT_ONCE: Final = 1e-4


def wait_for_event(event: Any, delay: float) -> None:
    """Block this thread for *delay* seconds, or until an event of threading is set."""
    end = monotonic() + delay
    while not event.wait(min(delay, LONGEST_SLEEP)) and delay > LONGEST_SLEEP:
        delay = max(end - monotonic(), 0.0)


C = TypeVar("C", Clock, AsyncClock)


class ClockSource(Generic[C]):
    """The clock of a context: the real one, or a replacement.

    Attributes:
        real: The real clock, which drivers read while nothing blocks the fast path.
        awaited: Whether its sleep is awaited.
        parts: An object with the real clock's `time`, and one with its `sleep`. They
            are quicker, but sleep for at most `LONGEST_SLEEP`. None if each event loop
            has its own.
    """

    __slots__ = ("_override", "_real_now", "awaited", "parts", "real")

    def __init__(self, real: C, *, awaited: bool) -> None:
        # Any, since it has its parts as well, which replacements need not have.
        self.real: Any = real
        self.parts: tuple[Any, Any] | None = getattr(real, "parts", None)
        self.awaited: bool = awaited
        self._override: ContextOverride[C] = ContextOverride(real)
        # Each event loop has a time of its own.
        self._real_now = None if hasattr(real, "reader") else real.now

    def current(self) -> C:
        """Return the clock of this context."""
        return self._override.get() if blockers else self.real

    def now(self) -> float:
        """Return the reading of this context's clock, in seconds."""
        return self.current().now()

    def sleep(self, delay: float) -> Any:
        """Sleep by this context's clock; return an awaitable if `awaited`."""
        clock = self._override.get() if blockers else self.real
        return clock.sleep(delay)

    def wait_until_woken(self, arm: Arm, delay: float) -> Any:
        """Wait by this context's clock; return an awaitable if `awaited`.

        Args:
            arm: Called in this thread before it waits.
            delay: The longest time to wait, in seconds, > 0; may be infinite.
        """
        wait = getattr(self.current(), "wait_until_woken", self.real.wait_until_woken)
        return wait(arm, delay)

    def reader(self) -> Callable[[], float] | None:
        """Return a function that reads this context's clock, from any thread.

        None if no event loop runs here that would tell the time, as in a worker thread
        of a coroutine.
        """
        return _reader(self._override.get()) if blockers else self.real_reader()

    def real_reader(self) -> Callable[[], float] | None:
        """Return a function that reads the real clock, as `reader` does."""
        return self._real_now or _reader(self.real)

    def use(
        self, clock: C, what: str = "a clock", *, process_wide: bool = False
    ) -> Override[C]:
        """Replace the clock until the returned override is closed.

        Args:
            clock: The replacement.
            what: Its name, for errors.
            process_wide: Whether to replace the clock in the whole process; by default
                only in this context.
        """
        return self._override.push(what, clock, process_wide=process_wide)

    def __reduce__(self) -> tuple[Any, ...]:
        name = "async_clock" if self.awaited else "sync_clock"
        return _find_source, (type(self.real).__module__, name)


def _find_source(module: str, name: str) -> "ClockSource[Any]":
    """Return the source of this process, for a driver that was pickled by value."""
    source: ClockSource[Any] = getattr(import_module(module), name)
    return source


def _reader(clock: Any) -> Callable[[], float] | None:
    read: Callable[[], float]
    try:
        read = clock.reader() if hasattr(clock, "reader") else clock.now
    except RuntimeError:
        return None
    return read


sync_clock: ClockSource[Clock] = ClockSource(SystemClock(), awaited=False)
"""The clock of sync code."""


def _wall_time() -> float:
    # Looked up at each call, since tools that freeze time replace it.
    return time.time()


wall_clock_override: ContextOverride[Callable[[], float]] = ContextOverride(_wall_time)
"""The function that reads the wall clock, in seconds since 1970; tests replace it."""


def wall() -> float:
    """Return the wall clock of this context, in seconds since 1970."""
    return wall_clock_override.get()() if blockers else time.time()
