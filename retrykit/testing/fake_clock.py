"""A clock that moves only when everybody sleeps who lives by it."""

from types import TracebackType
from typing import final

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import check_instance, check_number, invalid_setting
from retrykit.execution.attempt_timeout import TimeoutScope
from retrykit.state.events import AttemptStarted, Event
from retrykit.testing.event_loops import Loop, Loops
from retrykit.testing.scheduler import VirtualScheduler
from retrykit.testing.sleep_guard import guard_thread, leave_thread
from retrykit.testing.virtual_loop import VirtualLoop

__all__ = ["AwaitedClock", "FakeClock"]

# How many sleeps its repr shows.
_SHOWN = 6


@final
class FakeClock:
    """A clock whose time passes only by sleeping on it.

    Sleeping takes no real time. Those who sleep side by side, in threads and in
    tasks, wake in the order of their times; nobody is overtaken who waits for
    something real in an attempt.

    >>> clock = FakeClock()
    >>> clock.sleep(1.5)
    >>> clock.advance("1h")
    >>> clock.now(), clock.sleeps
    (3601.5, [1.5])

    Args:
        start: What it shows at first, in seconds, >= 0.
        stall_timeout: How long time stands still for an attempt of which nothing is
            heard, in real time. A duration, >= 0.
        allow_real_sleep: Whether attempts may really sleep.

    Attributes:
        sleeps: Every delay that was slept, in the order in which they began, in
            seconds.
        slips: The errors that were raised for real sleeps.

    Raises:
        ConfigError: *start* is no number >= 0, or *stall_timeout* no duration.
    """

    def __init__(
        self,
        start: float = 0.0,
        *,
        stall_timeout: Duration = 5.0,
        allow_real_sleep: bool = True,
    ) -> None:
        start, stall_timeout = (
            check_number("start", start),
            parse_duration("stall_timeout", stall_timeout),
        )
        self._timeline = VirtualScheduler(start, stall_timeout)
        self._allow_real_sleep = check_instance(
            "allow_real_sleep", allow_real_sleep, bool
        )
        self._loops = Loops(self._timeline)
        self.sleeps: list[float] = []
        self.slips = self._timeline.workers.slips

    def now(self) -> float:
        """Return clock seconds."""
        return self._timeline.now

    def advance(self, duration: Duration) -> None:
        """Let a duration pass, >= 0, as a slow attempt would.

        Raises:
            ConfigError: It is no duration; time does not go back.
        """
        self._timeline.advance(_length("duration", duration))

    def sleep(self, delay: Duration, /) -> None:
        """Return when a duration has passed on this clock, >= 0.

        Raises:
            ConfigError: It is no duration; time does not go back.
        """
        length = self._nap(delay)
        if self._loops.here() is None:
            self._timeline.block(length)
        else:
            # It holds up every task of the loop, as it really would.
            self._timeline.advance(length)

    async def asleep(self, delay: Duration, /) -> None:
        """The same for coroutines, under asyncio and trio: others go on.

        Raises:
            ConfigError: It is no duration; time does not go back.
            RuntimeError: No event loop runs here.
        """
        loop = self._running("asleep()")
        await loop.sleep(self._nap(delay))

    def limit(self, timeout: float, /) -> TimeoutScope:
        """Return a ``with`` block of a coroutine that takes at most *timeout*.

        Args:
            timeout: Virtual seconds. They pass when all tasks rest, and while an
                attempt waits for something that is not seen to be real.

        Raises:
            RuntimeError: No event loop runs here.
        """
        return self._running("limit()").limit(timeout)

    def new_event_loop(self) -> VirtualLoop:
        """Return a new event loop of asyncio whose time is this clock's.

        On it ``asyncio.timeout`` and ``asyncio.sleep`` are virtual, too.

        >>> import asyncio
        >>> from retrykit.testing import virtual_time
        >>> with virtual_time() as clock:
        ...     with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        ...         runner.run(asyncio.sleep(3600, "an hour later"))
        'an hour later'
        """
        return VirtualLoop(self._timeline)

    def hear(self, event: Event) -> None:
        """Take note of what a call does that lives by this clock; an observer."""
        worker = self._timeline.on_event(event)
        if worker is None or self._allow_real_sleep:
            return
        if not isinstance(event, AttemptStarted):
            leave_thread(worker)
            return
        guard_thread(worker)
        loop = self._loops.here()
        if loop is not None:
            loop.guard(worker)

    def end(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
        /,
    ) -> None:
        """Take note of no call any more, and tell of real sleeps that got lost."""
        for worker in self._timeline.end():
            leave_thread(worker)
        self._loops.leave()
        if error is None and self.slips:
            raise self.slips[0]

    def __repr__(self) -> str:
        sleeps = [f"{nap:g}" for nap in self.sleeps[:_SHOWN]]
        sleeps += ["..."] if len(self.sleeps) > _SHOWN else []
        return f"<FakeClock at {self.now():g}, sleeps: {', '.join(sleeps) or 'none'}>"

    def _running(self, what: str) -> Loop:
        loop = self._loops.here()
        if loop is None:
            msg = f"{what} is for coroutines, and no event loop runs here"
            raise RuntimeError(msg)
        return loop

    def _nap(self, delay: Duration) -> float:
        length = _length("delay", delay)
        with self._timeline.changed:
            self.sleeps.append(length)
        return length


@final
class AwaitedClock:
    """The same clock, as coroutines see it."""

    def __init__(self, clock: FakeClock) -> None:
        self.now = clock.now
        self.sleep = clock.asleep
        self.limit = clock.limit


def _length(name: str, duration: object) -> float:
    if isinstance(duration, int | float) and duration < 0:
        raise invalid_setting(
            name, "a duration >= 0", duration, "time does not go back"
        )
    return parse_duration(name, duration)
