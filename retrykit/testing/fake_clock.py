"""A clock that moves only when somebody sleeps."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from retrykit.clocks import task, thread
from retrykit.durations import Duration, seconds

__all__ = ["FakeClock", "virtual_time"]


@final
class FakeClock:
    """A clock whose time passes only by sleeping on it.

    >>> clock = FakeClock()
    >>> clock.sleep(1.5)
    >>> clock.now(), clock.naps
    (1.5, [1.5])

    Attributes:
        naps: Every delay that was slept, in order, in seconds.
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = start
        self.naps: list[float] = []

    def now(self) -> float:
        """Return clock seconds."""
        return self._now

    def sleep(self, delay: float, /) -> None:
        """Return at once, *delay* seconds later."""
        self.naps.append(delay)
        self._now += delay

    def advance(self, duration: Duration) -> None:
        """Let a duration pass, >= 0, as a slow attempt would."""
        self._now += seconds("duration", duration)


@final
class _Awaited:
    """The same clock, for coroutines."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.now = clock.now

    async def sleep(self, delay: float, /) -> None:
        self._clock.sleep(delay)


@contextmanager
def virtual_time(start: float = 0.0) -> Iterator[FakeClock]:
    """Let retried calls in this context see a fake clock, and sleep on it.

    A schedule of seven days runs in milliseconds, sync and async. The context
    is that of `contextvars`: this thread or task, and the tasks it starts. One
    call at a time is what it is for: calls that run side by side do not wait
    for one another.

    >>> from retrykit import retry
    >>> @retry(schedule=["1h", "1d"], max_elapsed=None)
    ... def verify():
    ...     raise OSError("not yet")
    >>> with virtual_time() as clock:
    ...     try:
    ...         verify()
    ...     except OSError:
    ...         clock.naps
    [3600.0, 86400.0]

    Args:
        start: What the clock shows at first, in seconds.

    Returns:
        A context manager that gives the clock.
    """
    clock = FakeClock(start)
    with thread.use(clock), task.use(_Awaited(clock)):
        yield clock
