"""Virtual time: sleepers, running calls, and the rule by which time moves.

Time moves to the earliest sleeper when nothing holds it. A retried call holds
it while an attempt runs, unless the attempt itself sleeps or awaits a retried
call that does. An event loop holds it while its tasks have something to do.

One lock guards all state, since threads and event loops may share a clock.
"""

import math
import sys
from _thread import allocate_lock
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, Protocol, final

from retrykit._core.retry_state import RetryState
from retrykit._internal.clocks import Arm, sync_clock, wake_thread
from retrykit._internal.durations import format_duration
from retrykit._internal.locks import ForkSafe
from retrykit.events import AttemptStarted, Event, GaveUp, Succeeded, Suspended

__all__ = ["CHECK_INTERVAL", "EventLoop", "Sleeper", "TimeStalledError"]
__all__ += ["TrackedCall", "VirtualScheduler", "current_call"]

CHECK_INTERVAL: Final = 0.02
"""Real seconds between two checks of a sleeper for a stall or a stopped loop."""


@final
class TimeStalledError(BaseException):
    """Virtual time cannot move, because an attempt has been running for too long.

    It is not an `Exception`, so nothing retries it, and it ends the test.
    """


class EventLoop(Protocol):
    """An event loop as the scheduler sees it."""

    def holds_time(self) -> bool:
        """Return whether time stands still for this loop. Any thread may call this."""
        ...


@dataclass(slots=True, eq=False)
class TrackedCall:
    """A running retried call, or a send of a hedged attempt.

    Attributes:
        scheduler: The scheduler that tracks it.
        state: The state of the call, or of the call around a send, until it ends.
        outer: The call in whose attempt it was started, or None.
        loop: The virtual event loop that runs it, or None.
        guarded: The thread and task in which real sleeps are rejected, or None.
        sleepers: How many sleepers it waits for; it holds time while there are none.
        ended: Whether the call is over.
        lost: Whether it is a send of a hedged attempt that nobody waits for any more:
            time does not move for its sleep alone.
    """

    scheduler: "VirtualScheduler"
    state: RetryState
    outer: "TrackedCall | None"
    loop: EventLoop | None
    guarded: tuple[int, Any] | None = None
    sleepers: int = 0
    ended: bool = False
    lost: bool = False

    def enter(self) -> Callable[[], object]:
        """Make this the innermost call of the context; return a function to undo it."""
        return partial(_innermost.reset, _innermost.set(self))


_innermost: ContextVar[TrackedCall | None] = ContextVar("retrykit call", default=None)


def current_call() -> TrackedCall | None:
    """Return the innermost tracked call whose attempt runs this code, or None."""
    call = _innermost.get()
    while call is not None and call.ended:
        call = call.outer
    return call


@dataclass(slots=True, eq=False)
class Sleeper:
    """A thread, task or timer that waits for a time.

    Attributes:
        when: When it wakes, in virtual seconds.
        order: Its index among all sleepers: if their times are equal, they wake in this
            order.
        wake: Called with the lock held when it wakes.
        calls: The calls that do not hold time meanwhile.
        awake: Whether it was woken or cancelled.
    """

    when: float
    order: int
    wake: Callable[[], object]
    calls: list[TrackedCall]
    awake: bool = False

    @property
    def lost(self) -> bool:
        """True if it sleeps in a send that nobody waits for."""
        return any(call.lost for call in self.calls)

    def __lt__(self, other: "Sleeper") -> bool:
        return (self.when, self.order) < (other.when, other.order)


class VirtualScheduler(ForkSafe):
    """Virtual time for threads and event loops.

    Args:
        start: The initial time, in virtual seconds.
        stall_timeout: How long an attempt may hold time while others sleep, in real
            seconds, >= 0.

    Attributes:
        now: The time, in virtual seconds.
        loops: The event loops that may hold time.
        errors: The errors raised for real sleeps and stalls.
    """

    def __init__(self, start: float, stall_timeout: float) -> None:
        super().__init__()
        self.now: float = start
        self.loops: list[EventLoop] = []
        self.errors: list[BaseException] = []
        self._stall_timeout = stall_timeout
        self._changed_at = sync_clock.real.now()
        self._calls: dict[int, TrackedCall] = {}
        self._running: Counter[EventLoop | None] = Counter()
        self._sleepers: list[Sleeper] = []
        self._orders = count()

    def on_event(self, event: Event, loop: EventLoop | None) -> TrackedCall | None:
        """Track the call of an event, from its first attempt until it ends.

        Returns:
            The call; None if it is not tracked.
        """
        with self._lock:
            self._changed()
            call = self._calls.get(id(event.state))
            if call is None:
                if not isinstance(event, AttemptStarted):
                    return None
                call = TrackedCall(self, event.state, current_call(), loop)
                self._calls[id(event.state)] = call
                self._running[loop] += 1
                _innermost.set(call)
            if isinstance(event, Succeeded | GaveUp | Suspended):
                self._end(call)
                self.move()
            return call

    def end(self) -> list[TrackedCall]:
        """Stop tracking calls; return the calls that had not ended."""
        with self._lock:
            remaining = [*self._calls.values()]
            for call in remaining:
                self._end(call)
            for sleeper in self._sleepers:
                for call in sleeper.calls:
                    call.lost = False
            self.move()
            return remaining

    def holds_for_loop(self, loop: EventLoop) -> bool:
        """Return whether an attempt runs on this loop, or no call is tracked."""
        with self._lock:
            return self._running[loop] > 0 or not self._calls

    def advance(self, duration: float) -> None:
        """Advance by *duration* virtual seconds, and wake sleepers that are due."""
        with self._lock:
            self.now = self._after(duration)
            self._wake_due()

    def suspend(self) -> list[TrackedCall]:
        """Stop the calls that run this code from holding time, and return them."""
        with self._lock:
            calls, call = [], current_call()
            while call is not None:
                if call.scheduler is self:
                    calls.append(call)
                call = call.outer
            for call in calls:
                self._running[call.loop] -= not call.sleepers and not call.ended
                call.sleepers += 1
            self._changed()
            return calls

    def resume(self, calls: list[TrackedCall]) -> None:
        """Undo `suspend`."""
        with self._lock:
            for call in calls:
                call.sleepers -= 1
                self._running[call.loop] += not call.sleepers and not call.ended
            self._changed()

    def begin_send(self, outer: TrackedCall | None) -> TrackedCall:
        """Track a send of a hedged attempt, or its caller, until `end_send`.

        The send holds time, unless it or a call inside it sleeps.
        """
        with self._lock:
            around = current_call()
            state: Any = None if around is None else around.state
            call = TrackedCall(self, state, outer, None)
            self._running[None] += 1
            self._changed()
            return call

    def end_send(self, call: TrackedCall, wake: Callable[[], object]) -> None:
        """Call *wake* with the lock held, and end a send."""
        with self._lock:
            wake()
            self._running[None] -= not call.sleepers
            call.ended = True
            # The frames of an error in the state may keep the call.
            del call.state
            self.move()

    def locked(self) -> Any:
        """Return a ``with`` block that holds the lock."""
        return self._lock

    def add(
        self, delay: float, wake: Callable[[], object], *, sleeping: bool
    ) -> Sleeper:
        """Add a sleeper, and move time if nothing holds it.

        With an infinite delay, the sleeper never wakes. If *sleeping* is True, the
        calls that run this code do not hold time until it wakes or is cancelled.
        """
        with self._lock:
            calls = self.suspend() if sleeping else []
            sleeper = Sleeper(self._after(delay), next(self._orders), wake, calls)
            if delay < math.inf:
                heappush(self._sleepers, sleeper)
            self.move()
            return sleeper

    def cancel(self, sleeper: Sleeper) -> None:
        """Remove a sleeper, unless it is awake."""
        with self._lock:
            if not sleeper.awake:
                sleeper.awake = True
                self.resume(sleeper.calls)
                # It may remain in the heap, and must keep nothing alive.
                sleeper.wake, sleeper.calls = int, []

    def block(self, delay: float) -> None:
        """Make this thread sleep for *delay* virtual seconds."""
        self.wait_until_woken(lambda _: True, delay)

    def wait_until_woken(self, arm: Arm, delay: float) -> None:
        """Wait in a thread until it is woken, for at most *delay* virtual seconds.

        Raises:
            TimeStalledError: Time stood still for too long.
        """
        woken = allocate_lock()
        woken.acquire()
        sleeper: Sleeper | None = None

        def wake() -> None:
            with self._lock:
                # Time stands still from now on, not only once the thread runs.
                if sleeper is not None:
                    self.cancel(sleeper)
                wake_thread(woken)

        if not arm(wake):
            return
        with self._lock:
            # Unless it was woken before: then no time passes.
            if woken.locked():
                sleeper = self.add(delay, lambda: wake_thread(woken), sleeping=True)
        try:
            while not woken.acquire(timeout=CHECK_INTERVAL):
                lost = sleeper is not None and sleeper.lost
                error = None if lost else self.check()
                if error is not None:
                    raise error
        finally:
            if sleeper is not None:
                self.cancel(sleeper)

    def move(self) -> None:
        """Move time to the earliest sleeper, unless something holds it.

        Time does not move for sends that nobody waits for.
        """
        with self._lock:
            if self._running[None] or any(loop.holds_time() for loop in self.loops):
                return
            earliest = self._earliest()
            if earliest is not None and earliest.lost:
                waiting = [x for x in self._sleepers if not (x.awake or x.lost)]
                earliest = min(waiting, default=None)
            if earliest is not None:
                self.now = earliest.when
                self._wake_due()

    def check(self) -> TimeStalledError | None:
        """Move time if nothing holds it; return an error if time has stalled."""
        with self._lock:
            self.move()
            elapsed = sync_clock.real.now() - self._changed_at
            if elapsed < self._stall_timeout:
                return None
            error = self._stalled()
            self.errors.append(error)
            return error

    def _stalled(self) -> TimeStalledError:
        running = [call.state for call in self._calls.values() if not call.sleepers]
        names = [f"attempt {state.attempt} of {state.name}" for state in running]
        holder = " and ".join(names[:3]) or "tasks of an event loop"
        limit = format_duration(self._stall_timeout)
        return TimeStalledError(
            f"virtual time must move within stall_timeout={limit} while calls wait for "
            f"it, got {holder} still running; to simulate a slow attempt, use "
            "clock.sleep() or clock.asleep(); if it waits for a timeout or another "
            "call, use clock.new_event_loop() or the fixture retry_loop; if it is "
            "really slow, pass a longer stall_timeout"
        )

    def _end(self, call: TrackedCall) -> None:
        self._running[call.loop] -= not call.sleepers
        call.ended = True
        del self._calls[id(call.state)]
        # Tasks that an attempt started keep the call in their context.
        del call.state
        if _innermost.get() is call:
            _innermost.set(call.outer)

    def _after(self, duration: float) -> float:
        """Return the time *duration* seconds from now, which is always finite."""
        return min(self.now + duration, sys.float_info.max)

    def _earliest(self) -> Sleeper | None:
        while self._sleepers and self._sleepers[0].awake:
            heappop(self._sleepers)
        return self._sleepers[0] if self._sleepers else None

    def _wake_due(self) -> None:
        while (sleeper := self._earliest()) and sleeper.when <= self.now:
            wake = sleeper.wake
            self.cancel(sleeper)
            wake()
        self._changed()

    def _changed(self) -> None:
        self._changed_at = sync_clock.real.now()
