"""Virtual time: a fake clock that retried calls read and sleep on."""

import math
from asyncio import AbstractEventLoop
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, final

from retrykit._core.attempt_timeout import TimeoutScope
from retrykit._core.limits import RetryOverrides, retry_overrides
from retrykit._internal.clocks import Arm, sync_clock, wall, wall_clock_override
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.loop_clock import async_clock, running_trio
from retrykit._internal.validation import (
    check_instance,
    check_number,
    invalid_setting,
    user_facing,
)
from retrykit.events import AttemptStarted, Event, observe
from retrykit.testing._context_block import Block
from retrykit.testing._event_loops import AsyncioBackend, Backend, running_loop
from retrykit.testing._scheduler import VirtualScheduler
from retrykit.testing._sleep_guard import guard, unguard
from retrykit.testing._virtual_loop import VirtualLoop

if TYPE_CHECKING:
    from retrykit._core.thread_sends import ThreadSends

__all__ = ["FakeClock", "virtual_time"]

# How many sleeps the repr of a clock shows.
_SHOWN = 6


@final
class FakeClock:
    """A clock whose time passes only when something waits on it, or by `advance`.

    Waiting takes no real time. Threads and tasks wake in the order in which they are
    due, and time stands still while an attempt runs.

    >>> clock = FakeClock()
    >>> clock.sleep(1.5)
    >>> clock.advance("1h")
    >>> clock.now(), clock.sleeps
    (3601.5, [1.5])

    Args:
        start: The initial time, in seconds, >= 0.
        stall_timeout: How long an attempt may run while others sleep, in real
            time. A duration, >= 0.
        allow_real_sleep: Whether attempts may sleep for real.

    Attributes:
        sleeps: All delays, in the order in which the sleeps began, in seconds.
        errors: The errors raised for real sleeps and for stalls.
    """

    def __init__(
        self,
        start: float = 0.0,
        *,
        stall_timeout: Duration = 5.0,
        allow_real_sleep: bool = True,
    ) -> None:
        self._scheduler = VirtualScheduler(
            check_number("start", start), parse_duration("stall_timeout", stall_timeout)
        )
        self._allow_real_sleep = check_instance(
            "allow_real_sleep", allow_real_sleep, bool
        )
        self._backends: dict[object, Backend] = {}
        self.sleeps: list[float] = []
        self.errors: list[BaseException] = self._scheduler.errors

    def now(self) -> float:
        """Return the virtual time, in seconds."""
        return self._scheduler.now

    @user_facing
    def advance(self, duration: Duration) -> None:
        """Advance the time by a duration, >= 0, as a slow attempt would."""
        self._scheduler.advance(_check_duration("duration", duration))

    @user_facing
    def sleep(self, delay: Duration, /) -> None:
        """Sleep for a duration, >= 0; in a coroutine, this blocks the event loop.

        Raises:
            ConfigError: *delay* is not a duration >= 0.
            TimeStalledError: Time stood still for too long.
        """
        seconds = self._record(delay)
        if self._backend() is None:
            self._scheduler.block(seconds)
        else:
            self._scheduler.advance(seconds)

    async def asleep(self, delay: Duration, /) -> None:
        """Sleep for a duration, >= 0, under asyncio or trio; other tasks continue.

        Raises:
            ConfigError: *delay* is not a duration >= 0.
            RuntimeError: No event loop runs here.
            TimeStalledError: Time stood still for too long.
        """
        backend = self._running("asleep()")
        await backend.sleep(self._record(delay))

    def wait_until_woken(self, arm: Arm, delay: float, /) -> None:
        """Wait until woken, for at most *delay* seconds, which `sleeps` does not list.

        Retried calls use it to wait for their turn. In a coroutine, nothing could wake
        the blocked event loop: there a finite delay passes at once.

        Args:
            arm: Takes the function that wakes this thread; returns whether to wait.
            delay: Virtual seconds, > 0; may be infinite.

        Raises:
            TimeStalledError: Time stood still for too long.
        """
        if self._backend() is None or delay == math.inf:
            self._scheduler.wait_until_woken(arm, delay)
        elif arm(int):
            # The loop is blocked, and so are its tasks that could wake it.
            self._scheduler.advance(delay)

    async def await_until_woken(self, arm: Arm, delay: float, /) -> None:
        """Wait as `wait_until_woken` does, under asyncio or trio; other tasks continue.

        Raises:
            RuntimeError: No event loop runs here.
            TimeStalledError: Time stood still for too long.
        """
        await self._running("await_until_woken()").wait_until_woken(arm, delay)

    def timeout_scope(self, timeout: float, /) -> TimeoutScope:
        """Return a ``with`` block for coroutines that takes at most *timeout*.

        Args:
            timeout: Virtual seconds. They pass while the attempt sleeps in virtual
                time or advances the clock, and on a virtual loop while it waits.

        Raises:
            RuntimeError: No event loop runs here.
        """
        return self._running("timeout_scope()").timeout_scope(timeout)

    def thread_sends(self) -> "ThreadSends":
        """Return the sends of an attempt that a `Hedge` runs in threads."""
        # Imported here: few tests hedge.
        from retrykit.testing._virtual_sends import VirtualSends  # noqa: PLC0415

        return VirtualSends(self._scheduler)

    def new_event_loop(self) -> VirtualLoop:
        """Return a new asyncio event loop whose time is this clock's.

        On it, ``asyncio.timeout`` and ``asyncio.sleep`` are also virtual.

        >>> import asyncio
        >>> from retrykit.testing import virtual_time
        >>> with virtual_time() as clock:
        ...     with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        ...         runner.run(asyncio.sleep(3600, "an hour later"))
        'an hour later'
        """
        return VirtualLoop(self._scheduler)

    def on_event(self, event: Event) -> None:
        """Track the call that an event is about; used as an observer."""
        backend = self._backend()
        if backend is not None:
            backend.hold()
        loop = backend if isinstance(backend, VirtualLoop) else None
        call = self._scheduler.on_event(event, loop)
        if call is None or self._allow_real_sleep:
            return
        if isinstance(event, AttemptStarted):
            guard(call)
        else:
            unguard(call)

    def end(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
        /,
    ) -> None:
        """Stop tracking calls.

        The first of `errors` is raised, unless the block itself raises an error.
        """
        for call in self._scheduler.end():
            unguard(call)
        if error is None and self.errors:
            raise self.errors[0]

    def __repr__(self) -> str:
        sleeps = [f"{delay:g}" for delay in self.sleeps[:_SHOWN]]
        sleeps += ["..."] if len(self.sleeps) > _SHOWN else []
        return f"<FakeClock at {self.now():g}, sleeps: {', '.join(sleeps) or 'none'}>"

    def _backend(self) -> Backend | VirtualLoop | None:
        """Return the event loop that runs this code, or None."""
        loop = running_loop()
        if isinstance(loop, VirtualLoop) and loop.scheduler is self._scheduler:
            return loop
        trio = running_trio()
        key = trio.lowlevel.current_trio_token() if trio else loop
        if key is None:
            return None
        if key not in self._backends:
            self._backends[key] = self._new_backend(loop)
            self._scheduler.loops.append(self._backends[key])
        return self._backends[key]

    def _new_backend(self, loop: AbstractEventLoop | None) -> Backend:
        if loop is not None:
            return AsyncioBackend(self._scheduler, loop)
        # Imported only where trio runs.
        from retrykit.testing._trio_backend import TrioBackend  # noqa: PLC0415

        return TrioBackend(self._scheduler)

    def _running(self, method: str) -> Backend | VirtualLoop:
        backend = self._backend()
        if backend is None:
            msg = f"{method} is for coroutines, and no event loop runs here"
            raise RuntimeError(msg)
        return backend

    def _record(self, delay: Duration) -> float:
        seconds = _check_duration("delay", delay)
        self.sleeps.append(seconds)
        return seconds


class _AsyncClock:
    """A `FakeClock`, as coroutines see it."""

    def __init__(self, clock: FakeClock) -> None:
        self.now = clock.now
        self.sleep = clock.asleep
        self.timeout_scope = clock.timeout_scope
        self.wait_until_woken = clock.await_until_woken


def _check_duration(name: str, duration: object) -> float:
    if isinstance(duration, int | float) and duration < 0:
        raise invalid_setting(
            name,
            "a duration >= 0",
            duration,
            "time does not go back",
            code="out-of-range",
        )
    return parse_duration(name, duration)


@final
class virtual_time(Block[FakeClock]):  # noqa: N801  used as a function
    """Run retried calls in virtual time, so that delays take no real time.

    A schedule of seven days runs in milliseconds: sync, under asyncio and under trio.
    Concurrent calls wake in the order in which they are due. Time stands still while an
    attempt runs, so an attempt that waits for a real socket or thread is not overtaken.
    Calls are retried as their policies say, even inside a `disable_retries` or
    `limit_retries` block.

    The time of an event loop, and with it ``asyncio.timeout``, stays real, unless the
    test runs on `FakeClock.new_event_loop`, or under trio's own `MockClock` without
    this block. The virtual time of day starts at the real one.

    >>> from retrykit import retry
    >>> @retry(schedule=["1h", "1d"])
    ... def verify():
    ...     raise OSError("not yet")
    >>> with virtual_time() as clock:
    ...     try:
    ...         verify()
    ...     except OSError:
    ...         clock.sleeps
    [3600.0, 86400.0]

    Args:
        start: The initial time, in seconds, >= 0.
        process_wide: Whether it applies to every thread and task of the process; by
            default, it applies to the current thread or task, and the tasks it starts.
        stall_timeout: How long an attempt may run while others sleep, in real time. A
            duration, >= 0. After that, `TimeStalledError` ends the calls that sleep.
        allow_real_sleep: Whether an attempt may call ``time.sleep``, or await a sleep
            of asyncio or trio of more than 50 ms of real time. By default that raises a
            `RealSleepError`, again at the end of the block if it was suppressed.

    Raises:
        NestingError: It is opened again before it is closed; or it is closed before a
            block that was opened inside it, or not in the thread or task that opened
            it.
        RealSleepError: An attempt sleeps for real.
        TimeStalledError: An attempt runs for longer than *stall_timeout* while calls
            sleep, usually because it waits for one of them, or for its own timeout.
    """

    @user_facing
    def __init__(
        self,
        start: float = 0.0,
        *,
        process_wide: bool = False,
        stall_timeout: Duration = 5.0,
        allow_real_sleep: bool = False,
    ) -> None:
        self._process_wide = check_instance("process_wide", process_wide, bool)
        self._arguments = (
            f"start={start!r}, {process_wide=}, {stall_timeout=}, {allow_real_sleep=}"
        )
        self._clock = partial(
            FakeClock,
            start,
            stall_timeout=stall_timeout,
            allow_real_sleep=allow_real_sleep,
        )
        # Invalid arguments are reported here, not where the block is entered.
        self._clock()
        super().__init__()

    def __repr__(self) -> str:
        return f"virtual_time({self._arguments})"

    def _open(self, opened: ExitStack) -> FakeClock:
        clock = self._clock()
        what, process_wide = self.what, self._process_wide

        def on_event(event: Event) -> None:
            if sync_clock.current() is clock:
                clock.on_event(event)

        opened.push(clock.end)
        opened.enter_context(observe(on_event))
        overrides = RetryOverrides(
            max_attempts=None, disabled=False, source="virtual_time()"
        )
        opened.enter_context(
            retry_overrides.push(what, overrides, process_wide=process_wide)
        )
        opened.enter_context(sync_clock.use(clock, what, process_wide=process_wide))
        opened.enter_context(
            async_clock.use(_AsyncClock(clock), what, process_wide=process_wide)
        )
        wall_start = wall() - clock.now()

        def virtual_wall() -> float:
            return wall_start + clock.now()

        opened.enter_context(
            wall_clock_override.push(what, virtual_wall, process_wide=process_wide)
        )
        return clock
