"""An event loop of asyncio whose time is that of a fake clock.

For what a clock alone cannot reach: ``asyncio.timeout``, ``wait_for`` and every
sleep of asyncio wait for the loop's time, which passes at once when all tasks
wait. Sockets and threads are waited for as under `virtual_time` itself.
"""

import asyncio
import math
import selectors
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Executor
from contextvars import Context
from itertools import count
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack, final

from retrykit.execution.attempt_timeout import TimeoutScope
from retrykit.testing.call_tracker import Worker
from retrykit.testing.scheduler import MOMENT, QuietPeriod, VirtualScheduler

__all__ = ["VirtualLoop"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# One file of a loop is its own, by which other threads wake it.
_OWN: Final = 1

_NANOSECOND: Final = 1e-9


@final
class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop on a timeline, and those of it who live in virtual time."""

    def __init__(self, timeline: VirtualScheduler) -> None:
        self.timeline = timeline
        self.pending: set[Hashable] = set()
        self._orders = count()
        super().__init__(_Selector(timeline, self.pending))

    def time(self) -> float:
        """Return virtual seconds."""
        return self.timeline.now

    # What asyncio adds to the time to see what is due, and sets itself: the
    # system's nanosecond, which is lost in rounding after 200 virtual days.
    @property
    def _clock_resolution(self) -> float:
        return max(_NANOSECOND, 2 * math.ulp(self.timeline.now))

    @_clock_resolution.setter
    def _clock_resolution(self, _systems: float) -> None: ...

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call something at a time; of equal times, the first comes first."""
        due = _Due(when)
        due.order = next(self._orders)
        return super().call_at(due, callback, *args, context=context)

    def run_in_executor(
        self,
        executor: Executor | None,
        func: Callable[[Unpack[Ts]], T],
        *args: *Ts,
    ) -> asyncio.Future[T]:
        """Run a function in a thread of a pool: time waits for it."""
        running = super().run_in_executor(executor, func, *args)
        self.pending.add(running)
        running.add_done_callback(self.pending.discard)
        return running

    async def shutdown_default_executor(
        self,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109  as asyncio has it
    ) -> None:
        """Wait until the threads of its pool have ended, however long it takes."""
        # They end in real time: what is allowed in virtual time would be over.
        await super().shutdown_default_executor()

    async def sleep(self, delay: float) -> None:
        """Let other tasks run until *delay* virtual seconds have passed."""
        line = self.timeline.rest()
        try:
            await asyncio.sleep(delay)
        finally:
            self.timeline.work(line)

    def limit(self, timeout: float) -> TimeoutScope:
        """Return a ``with`` block that takes at most so many virtual seconds."""
        return TimeoutScope(timeout)

    def guard(self, worker: Worker) -> None:
        """Allow every sleep on this loop: none is real."""

    def leave(self) -> None:
        """Do nothing: the loop goes on as it is."""


class _Due(float):
    """A time at which something is due, and which one it is of all."""

    __slots__ = ("order",)
    order: int

    def __lt__(self, other: float) -> bool:
        mine, its = float(self), float(other)
        return mine < its or (mine == its and self.order < getattr(other, "order", 0))

    __hash__ = float.__hash__


@final
class _Selector(selectors.BaseSelector):
    """Waits for files as it is told, and for virtual time instead of real time."""

    def __init__(self, timeline: VirtualScheduler, pending: set[Hashable]) -> None:
        self._timeline = timeline
        self._pending = pending
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[Any]:
        """Return the files that are ready, or nothing when the time is over."""
        ready: list[Any] = self._real.select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is None:
            return self._real.select()
        sleeper = self._timeline.sleep(timeout, int)
        silence = QuietPeriod(self._timeline)
        try:
            while not ready and not sleeper.awake:
                sources = self._sources()
                needed = self._timeline.quiet_time_needed(
                    sources, alone=not sources, patient=bool(self._pending)
                )
                if silence.lasted(needed):
                    self._timeline.advance_to_next(sources)
                else:
                    ready = self._real.select(MOMENT)
        finally:
            self._timeline.wake(sleeper)
        return ready

    def _sources(self) -> frozenset[Hashable]:
        keys = self._real.get_map().values()
        files = frozenset((key.fd, key.events) for key in keys)
        return frozenset([files] if len(files) > _OWN else []) | self._pending

    def register(
        self, fileobj: Any, events: int, data: Any = None
    ) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(
        self, fileobj: Any, events: int, data: Any = None
    ) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()
