"""Sleeping and timeouts in virtual time, on event loops whose own time is real."""

import asyncio
import contextvars
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from retrykit._core.attempt_timeout import TimeoutScope
from retrykit._internal.clocks import Arm
from retrykit.testing._scheduler import CHECK_INTERVAL, VirtualScheduler

__all__ = ["AsyncioBackend", "Backend", "Wake", "running_loop"]

# Rounds of the loop in which a woken task may start a call or sleep again. Passing
# something from task to task takes one or two.
_ROUNDS: Final = 20

Wake = Callable[[BaseException | None], None]
"""Called in the loop to end a wait or a timeout, with None or the error to raise."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the asyncio event loop that runs this code, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Backend(ABC):
    """An event loop whose tasks sleep in virtual time.

    Attributes:
        scheduler: The scheduler of its virtual time.
        waiting: The functions that wake the sleepers and timeouts of this loop.
        posted: The functions of sleepers and timeouts that are due or woken, until the
            loop calls them.
    """

    def __init__(self, scheduler: VirtualScheduler) -> None:
        self.scheduler = scheduler
        self.waiting: set[Wake] = set()
        self.posted: set[Wake] = set()

    @abstractmethod
    def holds_time(self) -> bool:
        """Return whether tasks may have something to do. Any thread may call this."""

    @abstractmethod
    def hold(self) -> None:
        """Hold time until other tasks have run. Only code in the loop calls this."""

    @abstractmethod
    def post(self, wake: Wake) -> None:
        """Have the loop call *wake*; hold time until then. Any thread may call this."""

    async def sleep(self, delay: float, /) -> None:
        """Run other tasks until *delay* virtual seconds have passed."""
        await self.wait_until_woken(lambda _: True, delay)

    @abstractmethod
    async def wait_until_woken(self, arm: Arm, delay: float, /) -> None:
        """Run other tasks until woken, for at most *delay* virtual seconds."""

    def timeout_scope(self, timeout: float, /) -> TimeoutScope:
        """Return a ``with`` block that takes at most *timeout* virtual seconds."""
        return TimeoutScope(timeout, self.call_later)

    def call_later(
        self, delay: float, wake: Wake, *, sleeping: bool = False
    ) -> Callable[[], None]:
        """Call *wake* after *delay* virtual seconds; return a function that cancels it.

        If *sleeping* is True, the calls that run this code do not hold time until then.
        """
        self.waiting.add(wake)
        self.hold()
        post = partial(self.post, wake)
        sleeper = self.scheduler.add(delay, post, sleeping=sleeping)

        def stop() -> None:
            self.waiting.discard(wake)
            self.scheduler.cancel(sleeper)
            self.on_stop()

        return stop

    def on_stop(self) -> None:  # noqa: B027  optional
        """Clean up after a sleeper or timeout has ended; does nothing by default."""

    def check(self) -> None:
        """Raise an error in all sleepers and timeouts, if time has stalled."""
        error = self.scheduler.check()
        if error is not None:
            for wake in [*self.waiting]:
                wake(error)


class AsyncioBackend(Backend):
    """Any asyncio event loop, used through its public interface."""

    def __init__(
        self, scheduler: VirtualScheduler, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(scheduler)
        self._loop = loop
        self._rounds = 0
        self._counting = False
        self._timer: asyncio.TimerHandle | None = None
        # Callbacks must not run in the context of a call.
        self._context = contextvars.Context()

    def holds_time(self) -> bool:
        """Return whether the loop is running, and may still have something to do.

        It may have something to do for some rounds after `hold`, and while a function
        is posted.
        """
        busy = self._rounds > 0 or bool(self.posted)
        return busy and self._loop.is_running()

    def hold(self) -> None:
        """Hold time for some rounds of the loop."""
        self._rounds = _ROUNDS
        if not self._counting:
            self._counting = True
            self._loop.call_soon(self._count, context=self._context)
        if self.waiting and self._timer is None:
            self._check_later()

    def _count(self) -> None:
        self._rounds -= 1
        if self._rounds:
            self._loop.call_soon(self._count, context=self._context)
        else:
            self._counting = False
            self.scheduler.move()

    def post(self, wake: Wake) -> None:
        """Have the loop call *wake*; hold time until then. Any thread may call this."""
        self.posted.add(wake)
        # A closed loop wakes nothing.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._deliver, wake, context=self._context)

    def _deliver(self, wake: Wake) -> None:
        self.hold()
        self.posted.discard(wake)
        wake(None)

    async def wait_until_woken(self, arm: Arm, delay: float, /) -> None:
        """Run other tasks until woken, for at most *delay* virtual seconds."""
        woken = self._loop.create_future()
        wake = partial(_finish, woken)
        stop = self.call_later(delay, wake, sleeping=True)
        try:
            if arm(partial(self.post, wake)):
                await woken
        finally:
            stop()

    def on_stop(self) -> None:
        """Stop looking for stalls when nothing waits."""
        if self._timer is not None and not self.waiting:
            self._timer.cancel()
            self._timer = None

    def _check_later(self) -> None:
        self._timer = self._loop.call_later(
            CHECK_INTERVAL, self._check_now, context=self._context
        )

    def _check_now(self) -> None:
        self._check_later()
        self.check()


def _finish(future: "asyncio.Future[None]", error: BaseException | None) -> None:
    """End a future, unless it is done: its task may have been cancelled."""
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
