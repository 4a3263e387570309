"""Sleeping in virtual time under asyncio, on whatever loop its user runs.

While somebody sleeps, a callback looks in every round of the loop whether
another one has something to do. When none has, time may move.
"""

import asyncio
import contextvars
from collections.abc import Hashable
from typing import Any, Final, final

from retrykit.clocks import thread
from retrykit.testing.real_sleeps import awaited_frame, refusal
from retrykit.testing.timeline import MOMENT, Silence, Timeline
from retrykit.testing.workers import Worker

__all__ = ["InAsyncio", "running_loop"]

# A round in which nothing is ready may have made a socket ready; a second one
# has asked for those. A loop that does not show what is ready gets more.
_ROUNDS: Final = 2
_BLIND_ROUNDS: Final = 20


# How long an attempt may really sleep before it is told, in real seconds.
_NOTICED: Final = 0.05


@final
class InAsyncio:
    """One event loop, and those of it who live in virtual time."""

    def __init__(self, timeline: Timeline, loop: asyncio.AbstractEventLoop) -> None:
        self._timeline = timeline
        self._loop = loop
        self._sleeping = 0
        self._looking = False
        self._silence = Silence(timeline)
        self._quiet = 0
        self._guard: asyncio.TimerHandle | None = None
        # Callbacks are in none of the calls that began them.
        self._context = contextvars.Context()

    async def sleep(self, delay: float) -> None:
        """Let other tasks run until *delay* virtual seconds have passed."""
        woken = asyncio.Event()
        sleeper = self._timeline.lie_down(delay, lambda: self._wake(woken))
        self._sleeping += 1
        if not self._looking:
            self._looking = True
            self._look_again()
        try:
            await woken.wait()
        finally:
            self._sleeping -= 1
            self._timeline.get_up(sleeper)

    def _wake(self, woken: asyncio.Event) -> None:
        """Wake a task, from any thread."""
        if running_loop() is self._loop:
            woken.set()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(woken.set)

    def _look_again(self) -> None:
        self._loop.call_soon(self._look, context=self._context)

    def _look(self) -> None:
        """Look, as long as somebody sleeps, whether time may move."""
        if not self._sleeping:
            self._looking = False
            return
        ready = getattr(self._loop, "_ready", None)
        noise = bool(ready)
        self._quiet = 0 if noise else self._quiet + 1
        sources = self._sources()
        needed = self._timeline.held(sources, alone=not sources and self._no_timer())
        silent = self._silence.lasted(needed, noise=noise)
        if not silent:
            if not noise:
                thread.real.sleep(MOMENT)
        elif noise or self._quiet >= (_BLIND_ROUNDS if ready is None else _ROUNDS):
            self._quiet = 0
            self._timeline.move(sources)
        self._look_again()

    def _sources(self) -> frozenset[Hashable]:
        """Return what the loop waits for: files and sockets, taken together."""
        selector: Any = getattr(self._loop, "_selector", None)
        files = selector.get_map() if hasattr(selector, "get_map") else {}
        known = frozenset((key.fd, key.events) for key in files.values())
        # One of them is the loop's own, by which other threads wake it.
        return frozenset([known]) if len(known) > 1 else frozenset()

    def _no_timer(self) -> bool:
        timers = getattr(self._loop, "_scheduled", None)
        if timers is None:
            # A loop that does not show its timers may have one.
            return False
        return all(each is self._guard or each.cancelled() for each in timers)

    def guard(self, worker: Worker) -> None:
        """Refuse that an attempt which begins in this task really sleeps."""
        worker.task = asyncio.current_task()
        if self._guard is None:
            self._guard_again()

    def _guard_again(self) -> None:
        self._guard = self._loop.call_later(
            _NOTICED, self._find_sleeps, context=self._context
        )

    def _find_sleeps(self) -> None:
        self._guard = None
        tasks = asyncio.all_tasks()
        for worker in self._timeline.at_work():
            if worker.task in tasks:
                self._refuse_sleep(worker)
                if self._guard is None:
                    self._guard_again()

    def _refuse_sleep(self, worker: Worker) -> None:
        frame = awaited_frame(worker.task.get_coro(), asyncio.sleep.__code__)
        if frame is None:
            return
        delay, sleeping = frame.f_locals["delay"], frame.f_locals["future"]
        if delay > _NOTICED and not sleeping.done():
            sleeping.set_exception(refusal(f"asyncio.sleep({delay:g})", worker))


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
