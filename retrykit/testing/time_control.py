"""Virtual time for retried calls, for a while."""

from contextlib import ExitStack
from functools import partial
from typing import final

from retrykit._internal.clocks import sync_clock, wall, wall_clock_override
from retrykit._internal.durations import Duration
from retrykit._internal.loop_clock import async_clock
from retrykit._internal.validation import check_instance
from retrykit.state.events import Event, observe
from retrykit.testing.context_block import Block
from retrykit.testing.fake_clock import AwaitedClock, FakeClock

__all__ = ["virtual_time"]


@final
class virtual_time(Block[FakeClock]):  # noqa: N801  used as a function
    """Let retried calls see a fake clock, and sleep on it.

    A schedule of seven days runs in milliseconds: blocking, under asyncio and
    under trio, on whatever event loop there is. Calls that sleep side by side
    wake in the order of their times. Time moves only when every call rests: an
    attempt that waits for something real, a socket or a thread, is waited for.

    It virtualises what retrykit reads, sleeps and ends, and what it takes for the
    time of day, which goes on from the real one as the clock does. The time of
    the event loop itself, and with it ``asyncio.timeout``, goes on as it did: for
    those, run the test on a virtual loop or under trio's own `MockClock`, which
    retrykit obeys, and leave this out.

    >>> from retrykit import retry
    >>> @retry(schedule=["1h", "1d"], max_elapsed=None)
    ... def verify():
    ...     raise OSError("not yet")
    >>> with virtual_time() as clock:
    ...     try:
    ...         verify()
    ...     except OSError:
    ...         clock.sleeps
    [3600.0, 86400.0]

    Args:
        start: What the clock shows at first, in seconds, >= 0.
        process_wide: Whether every thread and task of the process sees it; by
            default this one does, and the tasks that it starts.
        stall_timeout: How long time stands still for an attempt of which nothing is
            heard, in real time. A duration, >= 0; 5 s by default.
        allow_real_sleep: Whether an attempt may call ``time.sleep``, or await the
            sleep of asyncio or trio itself. By default it is told not to, by a
            `RealSleepError`, which is raised at the end of the block once more
            if it got lost. What a function waits for otherwise, an event or a
            thread, is no sleep, and is waited for.

    Returns:
        A ``with`` block that gives the clock.

    Raises:
        ConfigError: *start* is no number >= 0, or *stall_timeout* no duration.
        NestingError: When it is closed before a block that was opened in it,
            or in another thread or task.
        RealSleepError: When an attempt really sleeps.
    """

    def __init__(
        self,
        start: float = 0.0,
        *,
        process_wide: bool = False,
        stall_timeout: Duration = 5.0,
        allow_real_sleep: bool = False,
    ) -> None:
        self._process_wide = check_instance("process_wide", process_wide, bool)
        self._shown = (
            f"start={start!r}, {process_wide=}, {stall_timeout=}, {allow_real_sleep=}"
        )
        self._clock = partial(
            FakeClock,
            start,
            stall_timeout=stall_timeout,
            allow_real_sleep=allow_real_sleep,
        )
        # What is wrong is refused where it is written, not where it is opened.
        self._clock()
        super().__init__()

    def __repr__(self) -> str:
        return f"virtual_time({self._shown})"

    def _open(self, opened: ExitStack) -> FakeClock:
        clock = self._clock()
        what, process_wide = self.what, self._process_wide

        def hear(event: Event) -> None:
            if sync_clock.current() is clock:
                clock.hear(event)

        opened.push(clock.end)
        opened.enter_context(observe(hear))
        opened.enter_context(sync_clock.use(clock, what, process_wide=process_wide))
        awaited = AwaitedClock(clock)
        opened.enter_context(async_clock.use(awaited, what, process_wide=process_wide))
        began = wall() - clock.now()

        def virtual_wall() -> float:
            return began + clock.now()

        opened.enter_context(
            wall_clock_override.push(what, virtual_wall, process_wide=process_wide)
        )
        return clock
