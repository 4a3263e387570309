"""Virtual time: who sleeps until when, and when it may move on.

Time moves to the earliest of those who sleep, and only when every retried call
is at rest. What an attempt waits for is real (a socket, a thread), so time
stands still for it, until nothing was heard of it for as long as one has
stall_timeout: then it is taken to wait for a call that sleeps. A thread that was
started since, and what an event loop waits for besides, get a moment too.

One lock guards it all, since threads may share it.
"""

import sys
import threading
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Final, final

from retrykit._internal.clocks import sync_clock
from retrykit._internal.locks import ForkSafe
from retrykit.state.events import Event
from retrykit.testing.call_tracker import Worker, Workers
from retrykit.testing.thread_activity import Threads

__all__ = ["MOMENT", "QuietPeriod", "Sleeper", "VirtualScheduler"]

MOMENT: Final = 0.001
"""How often one looks whether time may move on, in real seconds."""

# What no call tells of is waited for no longer than this, in real seconds.
_GRACE: Final = 1.0


@final
class Sleeper:
    """One who sleeps.

    Attributes:
        when: Until when, in virtual seconds.
        order: Which one it is of all: among equals, the first wakes first.
        wake: What to do then, besides; nothing when it is over.
        line: The calls that rest meanwhile.
        awake: Whether it was woken, or left.
    """

    __slots__ = ("awake", "line", "order", "wake", "when")

    def __init__(
        self, when: float, order: int, wake: Callable[[], object], line: list[Worker]
    ) -> None:
        self.when = when
        self.order = order
        self.wake = wake
        self.line = line
        self.awake = False

    def __lt__(self, other: "Sleeper") -> bool:
        return (self.when, self.order) < (other.when, other.order)


@final
class VirtualScheduler(ForkSafe):
    """Virtual time, for threads and event loops at once.

    Args:
        start: What time it is at first, in seconds.
        stall_timeout: How long time stands still for an attempt of which nothing is
            heard, in real seconds, >= 0.

    Attributes:
        now: What time it is, in virtual seconds.
        workers: The calls that live by it.
        changed: Its lock; it tells of changes to those who wait on it.
        beats: How often something has happened.
    """

    def __init__(self, start: float, stall_timeout: float) -> None:
        self.now = start
        self.stall_timeout = stall_timeout
        super().__init__()
        self.workers = Workers()
        self.beats = 0
        self._sleepers: list[Sleeper] = []
        self._orders = count()
        self._settled: set[Hashable] = set()
        self._threads = Threads()

    def _renew(self) -> None:
        super()._renew()
        self.changed = threading.Condition(self._lock)

    def on_event(self, event: Event) -> Worker | None:
        """Take note of an event, and return the call that it is of."""
        with self.changed:
            self._beat()
            return self.workers.hear(event)

    def end(self) -> list[Worker]:
        """Take note of no call any more, and return those that had not ended."""
        with self.changed:
            return self.workers.end_all()

    def at_work(self) -> list[Worker]:
        """Return the calls that are at work."""
        with self.changed:
            return self.workers.at_work()

    def advance(self, length: float) -> None:
        """Let *length* seconds pass, for whoever sleeps too."""
        with self.changed:
            self.now = self._after(length)
            self._wake_those_due()

    def rest(self) -> list[Worker]:
        """Let the calls rest that this code is in, and return them."""
        with self.changed:
            line = self.workers.line()
            self.workers.rest(line)
            self._beat()
            return line

    def work(self, line: list[Worker]) -> None:
        """Let calls go on that rested."""
        with self.changed:
            self.workers.work(line)
            self._beat()

    def sleep(self, delay: float, wake: Callable[[], object]) -> Sleeper:
        """Let one sleep for *delay* seconds; the calls that it is in rest."""
        with self.changed:
            return self._asleep(delay, wake, self.rest())

    def set_alarm(self, delay: float, ring: Callable[[], object]) -> Sleeper:
        """Let something ring in *delay* seconds; the calls it is in work on.

        A call that awaits nothing but that is found to wait, as it is for
        another call; when it rings, it has something to do.
        """
        with self.changed:
            line = self.workers.line()

            def wake() -> None:
                self.workers.resume(line)
                ring()

            return self._asleep(delay, wake, [])

    def wake(self, sleeper: Sleeper) -> None:
        """Let one sleep no more, if it does."""
        with self.changed:
            if not sleeper.awake:
                sleeper.awake = True
                self.work(sleeper.line)
                # It may stay in the heap, and must keep nothing alive.
                sleeper.wake, sleeper.line = int, []

    def block(self, delay: float) -> None:
        """Sleep in a thread, until others have moved time on or it may move."""
        me = threading.get_ident()
        sleeper = self.sleep(delay, lambda: self._threads.blocked.discard(me))
        silence = QuietPeriod(self)
        try:
            with self.changed:
                self._threads.blocked.add(me)
                while not sleeper.awake:
                    if silence.lasted(
                        max(self.quiet_time_needed(), self._threads.startup_grace())
                    ):
                        self.advance_to_next()
                    else:
                        self.changed.wait(MOMENT)
        finally:
            self._threads.blocked.discard(me)
            self.wake(sleeper)

    def quiet_time_needed(
        self,
        sources: frozenset[Hashable] = frozenset(),
        *,
        alone: bool = False,
        patient: bool = False,
    ) -> float:
        """Return how long it must be silent before time may move.

        Args:
            sources: What an event loop waits for that is real.
            alone: Whether nothing real can come from that loop: calls that are
                at work there wait for one another.
            patient: Whether one has as much patience with what no call tells of.

        Returns:
            Real seconds, >= 0.
        """
        with self.changed:
            if self.workers.busy:
                if not alone or self._threads.others():
                    return self.stall_timeout
                # A pool may not have begun yet with what it was given.
                return self._threads.startup_grace(pools=True)
            if not self._threads.working() and not sources - self._settled:
                return 0.0
            return self.stall_timeout if patient else min(self.stall_timeout, _GRACE)

    def advance_to_next(self, sources: frozenset[Hashable] = frozenset()) -> None:
        """Move to the time at which the next one wakes, and wake those due.

        It was silent for as long as it must be: what held time until now holds
        it no more.
        """
        with self.changed:
            if self.workers.busy:
                self.workers.presume_rest()
            self._settled |= sources
            self._threads.settle()
            earliest = self._earliest()
            if earliest is not None:
                self.now = earliest.when
                self._wake_those_due()

    def _asleep(
        self, delay: float, wake: Callable[[], object], line: list[Worker]
    ) -> Sleeper:
        sleeper = Sleeper(self._after(delay), next(self._orders), wake, line)
        heappush(self._sleepers, sleeper)
        return sleeper

    def _after(self, length: float) -> float:
        """Return the time then: finite, whatever is slept."""
        return min(self.now + length, sys.float_info.max)

    def _earliest(self) -> Sleeper | None:
        """Return the one who wakes next, if somebody sleeps."""
        while self._sleepers and self._sleepers[0].awake:
            heappop(self._sleepers)
        return self._sleepers[0] if self._sleepers else None

    def _wake_those_due(self) -> None:
        while (sleeper := self._earliest()) and sleeper.when <= self.now:
            wake = sleeper.wake
            self.wake(sleeper)
            wake()
        self._beat()

    def _beat(self) -> None:
        self.beats += 1
        self.changed.notify_all()


@final
class QuietPeriod:
    """For how long nothing has happened, as one sees who waits for it."""

    def __init__(self, timeline: VirtualScheduler) -> None:
        self._timeline = timeline
        self._beats = -1
        self._beaten = self._since = 0.0

    def lasted(self, needed: float, *, noise: bool = False) -> bool:
        """Return whether it was silent for *needed* real seconds.

        Args:
            needed: Real seconds, >= 0.
            noise: Whether something happens right now that no call tells of.
                It counts only as long as one has stall_timeout: who looks again and
                again whether a call has ended would else wait for ever.
        """
        now = sync_clock.real.now()
        if self._beats != self._timeline.beats:
            self._beats = self._timeline.beats
            self._beaten = self._since = now
        if noise:
            self._since = now
        stalled = now - self._beaten > self._timeline.stall_timeout
        return stalled or (not noise and now - self._since >= needed)
