"""Sleeping in virtual time under asyncio, on whatever loop its user runs.

While somebody sleeps, a callback looks in every round of the loop whether
another one has something to do. When none has, time may move.
"""

import asyncio
import contextvars
import math
from collections.abc import Callable, Hashable
from typing import Any, Final, final

from retrykit._internal.clocks import sync_clock
from retrykit.execution.attempt_timeout import TimeoutScope
from retrykit.testing.call_tracker import Worker
from retrykit.testing.scheduler import MOMENT, QuietPeriod, VirtualScheduler
from retrykit.testing.sleep_guard import awaited_frame, refusal

__all__ = ["InAsyncio", "running_loop"]

# A round in which nothing is ready may have made a socket ready; a second one
# has asked for those. A loop that does not show what is ready gets more.
_ROUNDS: Final = 2
_BLIND_ROUNDS: Final = 20

# So many rounds in a row are made by a task that asks again and again.
_RESTLESS: Final = 1000

# How long an attempt may really sleep before it is told, in real seconds.
_NOTICED: Final = 0.05

_looks: set[asyncio.Handle | None] = set()
"""What only looks, for whatever clock: nobody waits for it."""


@final
class InAsyncio:
    """One event loop, and those of it who live in virtual time."""

    def __init__(
        self, timeline: VirtualScheduler, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._timeline = timeline
        self._loop = loop
        self._sleepers: set[asyncio.Future[None]] = set()
        self._look: asyncio.Handle | None = None
        self._silence = QuietPeriod(timeline)
        self._quiet = self._restless = 0
        self._guard: asyncio.TimerHandle | None = None
        # Callbacks are in none of the calls that began them.
        self._context = contextvars.Context()

    async def sleep(self, delay: float) -> None:
        """Let other tasks run until *delay* virtual seconds have passed."""
        woken = self._loop.create_future()
        sleeper = self._timeline.sleep(delay, lambda: self._wake(woken))
        self._wait_for(woken)
        try:
            await woken
        finally:
            self._sleepers.discard(woken)
            self._timeline.wake(sleeper)

    def limit(self, timeout: float) -> TimeoutScope:
        """Return a ``with`` block that takes at most so many virtual seconds."""
        return TimeoutScope(timeout, self._set_alarm)

    def _set_alarm(
        self, delay: float, ring: Callable[[BaseException | None], None]
    ) -> Callable[[], None]:
        woken = self._loop.create_future()
        woken.add_done_callback(lambda done: ring(done.exception()))
        alarm = self._timeline.set_alarm(delay, lambda: self._wake(woken))
        self._wait_for(woken)

        def stop() -> None:
            self._sleepers.discard(woken)
            self._timeline.wake(alarm)

        return stop

    def _wait_for(self, woken: "asyncio.Future[None]") -> None:
        self._sleepers.add(woken)
        if self._look is None:
            self._look_again()

    def _wake(self, woken: "asyncio.Future[None]") -> None:
        """Wake a task, from any thread."""
        if running_loop() is self._loop:
            _end(woken)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_end, woken)

    def _look_again(self) -> None:
        self._look = self._loop.call_soon(self._look_around, context=self._context)
        _looks.add(self._look)

    def _look_around(self) -> None:
        """Look, as long as somebody sleeps, whether time may move."""
        _looks.discard(self._look)
        self._look = None
        if not self._sleepers:
            return
        self._look_again()
        try:
            self._move_if_silent()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001  raised by a signal handler
            # The loop would log it and go on; those who sleep here let it out.
            for woken in self._sleepers:
                _end(woken, error)

    def _move_if_silent(self) -> None:
        ready = getattr(self._loop, "_ready", None)
        noise = any(handle not in _looks for handle in ready or ())
        self._quiet = 0 if noise else self._quiet + 1
        self._restless = self._restless + 1 if noise else 0
        if self._restless >= _RESTLESS and not self._timeline.workers.busy:
            noise = False
        sources = self._sources()
        needed = self._needed(sources)
        silent = self._silence.lasted(needed, noise=noise)
        if not silent:
            if not noise:
                sync_clock.real.sleep(MOMENT)
            return
        rounds = _BLIND_ROUNDS if ready is None else _ROUNDS
        if self._quiet >= rounds or self._restless:
            self._quiet = self._restless = 0
            self._timeline.advance_to_next(sources)

    def _needed(self, sources: frozenset[Hashable]) -> float:
        """Return how long it must be silent, in real seconds."""
        if not self._timeline.workers.busy:
            return self._timeline.quiet_time_needed(sources)
        timers = getattr(self._loop, "_scheduled", None)
        due = [
            each
            for each in timers or ()
            if each is not self._guard and not each.cancelled()
        ]
        limits = [each for each in due if _only_ends_something(each)]
        alone = not sources and timers is not None and len(due) == len(limits)
        needed = self._timeline.quiet_time_needed(sources, alone=alone)
        # A timeout of an attempt must not end it meanwhile.
        left = min((each.when() for each in limits), default=math.inf)
        return min(needed, max(left - self._loop.time(), 0.0) / 2)

    def _sources(self) -> frozenset[Hashable]:
        """Return what the loop waits for: files and sockets, taken together."""
        selector: Any = getattr(self._loop, "_selector", None)
        if not hasattr(selector, "get_map"):
            return frozenset(["a loop that does not show them"])
        known = frozenset((key.fd, key.events) for key in selector.get_map().values())
        # One of them is the loop's own, by which other threads wake it.
        return frozenset([known]) if len(known) > 1 else frozenset()

    def guard(self, worker: Worker) -> None:
        """Refuse that an attempt which begins in this task really sleeps."""
        worker.task = asyncio.current_task()
        if self._guard is None:
            self._guard_again()

    def leave(self) -> None:
        """Look at this loop no more, but for those who sleep on."""
        if self._guard is not None:
            self._guard.cancel()
            self._guard = None

    def _guard_again(self) -> None:
        self._guard = self._loop.call_later(
            _NOTICED, self._find_sleeps, context=self._context
        )

    def _find_sleeps(self) -> None:
        self._guard = None
        tasks = asyncio.all_tasks()
        # Of calls inside of one another, the innermost came last.
        here = [each for each in self._timeline.at_work() if each.task in tasks]
        if here:
            self._guard_again()
        for worker in reversed(here):
            _refuse_sleep(worker)


def _only_ends_something(timer: asyncio.TimerHandle) -> bool:
    """Return whether it is a timeout's, whether of ``timeout`` or ``wait_for``."""
    callback = getattr(timer, "_callback", None)
    of_timeout = isinstance(getattr(callback, "__self__", None), asyncio.Timeout)
    return of_timeout or getattr(callback, "__name__", "") == "_release_waiter"


def _refuse_sleep(worker: Worker) -> None:
    frame = awaited_frame(worker.task.get_coro(), asyncio.sleep.__code__)
    if frame is None:
        return
    # There is no future where a task only lets others have their turn.
    delay, sleeping = frame.f_locals["delay"], frame.f_locals.get("future")
    if delay > _NOTICED and sleeping is not None:
        _end(sleeping, refusal(f"asyncio.sleep({delay:g})", worker))


def _end(future: "asyncio.Future[None]", error: BaseException | None = None) -> None:
    """Let a future be over, unless it is: its task may have been cancelled."""
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
