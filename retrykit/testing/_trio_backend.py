"""Sleeping and timeouts in virtual time under trio; imported only where trio runs."""

import contextvars
from functools import partial

import trio
import trio.testing

from retrykit._internal.clocks import Arm
from retrykit.testing._event_loops import Backend, Wake
from retrykit.testing._scheduler import CHECK_INTERVAL, VirtualScheduler

__all__ = ["TrioBackend"]


class TrioBackend(Backend):
    """One trio run.

    A system task holds time until all other tasks are blocked.
    """

    def __init__(self, scheduler: VirtualScheduler) -> None:
        super().__init__(scheduler)
        self._token = trio.lowlevel.current_trio_token()
        self._unsettled = False
        self._changed: trio.Event | None = None

    def holds_time(self) -> bool:
        """Return whether some task may still have something to do."""
        return self._unsettled or bool(self.posted)

    def hold(self) -> None:
        """Hold time until all tasks are blocked."""
        self._unsettled = True
        if self._changed is None:
            # The task must not run in the context of a call.
            context = contextvars.Context()
            trio.lowlevel.spawn_system_task(self._settle, context=context)
            self._changed = trio.Event()
        self._changed.set()

    def post(self, wake: Wake) -> None:
        """Have trio call *wake*; hold time until then. Any thread may call this."""
        self.posted.add(wake)
        try:
            self._token.run_sync_soon(self._deliver, wake)
        except trio.RunFinishedError:
            self.posted.clear()

    def _deliver(self, wake: Wake) -> None:
        self.hold()
        self.posted.discard(wake)
        wake(None)

    async def wait_until_woken(self, arm: Arm, delay: float, /) -> None:
        """Run other tasks until woken, for at most *delay* virtual seconds."""
        woken, errors = trio.Event(), []

        def wake(error: BaseException | None) -> None:
            if error is not None:
                errors.append(error)
            woken.set()

        stop = self.call_later(delay, wake, sleeping=True)
        try:
            if arm(partial(self.post, wake)):
                await woken.wait()
        finally:
            stop()
        if errors:
            raise errors[0]

    def on_stop(self) -> None:
        """Wake the system task, which ends when nothing waits."""
        if self._changed is not None:
            self._changed.set()

    async def _settle(self) -> None:
        try:
            while self._unsettled or self.waiting:
                self._changed = trio.Event()
                with trio.move_on_after(CHECK_INTERVAL):
                    if self._unsettled:
                        await trio.testing.wait_all_tasks_blocked()
                        self._unsettled = False
                        self.scheduler.move()
                    else:
                        await self._changed.wait()
                self.check()
        finally:
            # The run may be over before everything was delivered.
            self._unsettled, self._changed = False, None
            self.posted.clear()
            self.scheduler.move()
