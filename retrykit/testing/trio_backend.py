"""Sleeping in virtual time under trio.

While somebody sleeps, a system task waits until all others are blocked. When
they are, time may move. Imported where trio runs.
"""

import contextvars
import math
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from typing import Any, Final, final

import outcome
import trio
import trio.testing

from retrykit.execution.attempt_timeout import TimeoutScope
from retrykit.testing.call_tracker import Worker
from retrykit.testing.scheduler import MOMENT, QuietPeriod, VirtualScheduler
from retrykit.testing.sleep_guard import RealSleepError, awaited_frame, refusal

__all__ = ["InTrio"]


# Longer sleeps than this are told, in real seconds: as under asyncio.
_NOTICED: Final = 0.05

# One task of trio's own waits to read what other threads wake it by.
_OWN: Final = 1


@final
class InTrio(trio.abc.Instrument):
    """One run of trio, and those of it who live in virtual time."""

    def __init__(self, timeline: VirtualScheduler) -> None:
        self._timeline = timeline
        self._token = trio.lowlevel.current_trio_token()
        self._sleeping = 0
        self._looking: trio.lowlevel.Task | None = None
        self._noise = False
        trio.lowlevel.add_instrument(self)

    async def sleep(self, delay: float) -> None:
        """Let other tasks run until *delay* virtual seconds have passed."""
        woken = trio.Event()
        sleeper = self._timeline.sleep(delay, lambda: self._wake(woken.set))
        self._begin_to_look()
        try:
            await woken.wait()
        finally:
            self._sleeping -= 1
            self._timeline.wake(sleeper)

    def limit(self, timeout: float) -> TimeoutScope:
        """Return a ``with`` block that takes at most so many virtual seconds."""
        return TimeoutScope(timeout, self._set_alarm)

    def _set_alarm(
        self, delay: float, ring: Callable[[BaseException | None], None]
    ) -> Callable[[], None]:
        wake = partial(self._wake, partial(ring, None))
        alarm = self._timeline.set_alarm(delay, wake)
        self._begin_to_look()

        def stop() -> None:
            self._sleeping -= 1
            self._timeline.wake(alarm)

        return stop

    def _begin_to_look(self) -> None:
        self._sleeping += 1
        if self._looking is None:
            # It is in none of the calls that began it.
            context = contextvars.Context()
            begin = trio.lowlevel.spawn_system_task
            self._looking = begin(self._look, context=context)

    def _wake(self, wake: Callable[[], object]) -> None:
        """Wake a task, from any thread."""
        with suppress(RuntimeError):
            if trio.lowlevel.current_trio_token() is self._token:
                wake()
                return
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(wake)

    async def _look(self) -> None:
        """Look, as long as somebody sleeps, whether time may move."""
        silence = QuietPeriod(self._timeline)
        try:
            while self._sleeping:
                # A task that asks again and again is blocked at no time.
                with trio.move_on_after(self._timeline.stall_timeout):
                    await trio.testing.wait_all_tasks_blocked()
                sources = _sources()
                left = trio.lowlevel.current_statistics().seconds_to_next_deadline
                alone = not sources and left == math.inf
                needed = self._timeline.quiet_time_needed(sources, alone=alone)
                noise, self._noise = self._noise, False
                if silence.lasted(needed, noise=noise and bool(needed)):
                    self._timeline.advance_to_next(sources)
                else:
                    await trio.sleep(MOMENT)
        finally:
            self._looking = None

    def leave(self) -> None:
        """Look at this run no more."""
        trio.lowlevel.remove_instrument(self)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Notice that another task has something to do."""
        self._noise = self._noise or task is not self._looking

    def guard(self, worker: Worker) -> None:
        """Refuse that an attempt which begins in this task really sleeps."""
        worker.task = trio.lowlevel.current_task()

    def before_io_wait(self, timeout: float) -> None:
        """Look after sleeps where every task is blocked, and for long."""
        if timeout > _NOTICED and self._real_sleeps():
            # Nothing may be rescheduled in an instrument itself.
            self._token.run_sync_soon(self._refuse_sleeps, idempotent=True)

    def _refuse_sleeps(self) -> None:
        for task, error in self._real_sleeps().items():
            trio.lowlevel.reschedule(task, outcome.Error(error))

    def _real_sleeps(self) -> dict[trio.lowlevel.Task, RealSleepError]:
        """Return the tasks whose attempts really sleep, each with its error."""
        found = {}
        for worker in self._timeline.at_work():
            if isinstance(worker.task, trio.lowlevel.Task):
                frame = awaited_frame(worker.task.coro, trio.sleep.__code__)
                delay = 0.0 if frame is None else frame.f_locals["seconds"]
                if delay > _NOTICED:
                    # Of calls inside of one another, the innermost comes last.
                    found[worker.task] = refusal(f"trio.sleep({delay:g})", worker)
        return found


def _sources() -> frozenset[Hashable]:
    """Return what a run of trio waits for: how many files, and how many threads."""
    files = trio.lowlevel.current_statistics().io_statistics
    ways = ("tasks_waiting_read", "tasks_waiting_write")
    waiting = sum(getattr(files, way, 0) for way in ways) - _OWN
    threads: Any = trio.to_thread.current_default_thread_limiter()
    counts = (("files", waiting), ("threads", threads.borrowed_tokens))
    return frozenset(each for each in counts if each[1] > 0)
