"""Concurrency limit, or bulkhead: a maximum number of calls at once."""

import math
from _thread import get_ident
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple, Protocol, cast, final
from weakref import ref

from retrykit._internal.clocks import sync_clock
from retrykit._internal.durations import (
    Duration,
    duration_in_words,
    parse_positive_duration,
)
from retrykit._internal.error_texts import log_fault
from retrykit._internal.fast_path import blockers
from retrykit._internal.late_modules import logging
from retrykit._internal.validation import (
    check_choice,
    check_integer,
    check_text,
    invalid_setting,
    user_facing,
)
from retrykit.limits._leases import Lease, Refusal
from retrykit.limits._permits import GIVEN_BACK, Permit, PermitLease, QueuedLease
from retrykit.limits._shared_limits import SerializableLimit

__all__ = ["Adaptive", "Concurrency", "ConcurrencyMetrics", "ConcurrencyState", "Order"]

Order = Literal["fifo", "lifo"]
"""Which of the waiting calls is next: the oldest, or the newest."""

ConcurrencyState = Literal["free", "full"]
"""The name of a state."""

_MOST: Final = 1_000_000
# Abandoned places in the line are removed when there are this many.
_MOST_STALE: Final = 64


class Adaptive(Protocol):
    """An algorithm that finds out how many calls may run at once.

    Each limit has its own: a deep copy of the algorithm that it was given. The
    algorithm is called while the lock of the limit is held: it must be quick, and
    neither wait nor use the limit. Two algorithms should be equal if their settings
    are. An algorithm that has `to_dict` can be written as data.

    Attributes:
        limit: The current number of calls, 1 to 1,000,000.
    """

    limit: int

    def sample(self, *, rtt: float, in_flight: int, dropped: bool) -> int:
        """Learn from a call that has ended.

        Args:
            rtt: How long it took, in seconds of the monotonic clock, >= 0.
            in_flight: How many calls ran when it began, itself included.
            dropped: Whether it failed.

        Returns:
            The new limit.
        """
        ...


class ConcurrencyMetrics(NamedTuple):
    """Counts of the calls of a limit.

    Attributes:
        running: Number of calls that run.
        waiting: Number of calls that wait.
        at_most: Number of calls that may run now.
        total_granted: Number of calls that got a permit, since the limit was made.
        total_refused: Number of calls that were refused at once.
        total_timed_out: Number of calls that waited for too long.
        total_displaced: Number of calls that lost their place in the queue to a newer
            one.
    """

    running: int
    waiting: int
    at_most: int
    total_granted: int
    total_refused: int
    total_timed_out: int
    total_displaced: int


@final
class Concurrency(SerializableLimit):
    """Limits how many calls run at once, and how many others wait.

    It keeps one slow service from taking all threads, tasks or connections of a
    process, and keeps the process from sending more than the service can take at once:
    a bulkhead.

    >>> limit = Concurrency(2, name="db")
    >>> first, second = limit.acquire(), limit.acquire()
    >>> limit.acquire().reason
    'full: 2 calls run'
    >>> first.succeeded()
    >>> limit.state, limit.metrics.running
    ('free', 1)

    A call that finds no permit waits if the *queue* has a place, and otherwise is
    refused at once. A permit that comes back is handed to a waiting call, never to one
    that asks later. A call that is cancelled, interrupted or forgotten gives its permit
    or its place back.

    Under overload, the callers of the calls that wait the longest have mostly given up
    by the time it is their turn, so all calls are late, and their work is wasted. With
    the *order* ``"lifo"`` the newest is next, and a full queue drops the oldest, whose
    wait ends with a refusal. Most calls are in time then, and some are refused.

    Several threads, asyncio event loops and trio runs may share it, and wake each
    other. No lock is held while a call runs, or while one is woken. Waits end in the
    virtual time of `virtual_time`. A forked child process keeps the permits of the
    thread that forked, and no others: their calls are not in that process.

    Args:
        at_most: Maximum number of calls at once. Count, 1 to 1,000,000; or an algorithm
            that adapts it, of which the limit takes a copy.
        queue: Maximum number of calls that wait. Count, 0 to 1,000,000; with 0, the
            default, no call waits.
        max_wait: The longest time that a call waits, a duration > 0; None, the default,
            leaves that to its caller.
        order: ``"fifo"``: the oldest is next, and a full queue refuses new ones; or
            ``"lifo"``: the newest is next, and a full queue drops the oldest.
        name: Its name in errors. By default the scope, or the key of a `Registry`.

    Attributes:
        algorithm: The algorithm that adapts how many calls may run; None if *at_most*
            is a number.

    Source:
        M. Nygard, "Release It!", 2007, for bulkheads. The newest first: B. Maurer,
        "Fail at Scale", ACM Queue 13(8), 2015, and `LifoBlockingLimiter` of Netflix's
        concurrency-limits; a full queue drops the oldest as in .NET's
        `ConcurrencyLimiter`.
    """

    kind = "concurrency"

    @user_facing
    def __init__(
        self,
        at_most: int | Adaptive,
        *,
        queue: int = 0,
        max_wait: Duration | None = None,
        order: Order = "fifo",
        name: str | None = None,
    ) -> None:
        self.algorithm: Adaptive | None = _copy_algorithm(at_most)
        number = at_most if self.algorithm is None else self.algorithm.limit
        self._at_most: int = _check_most(number, "or an algorithm that adapts it")
        self._made_with: int = self._at_most
        self.queue: int = check_integer("queue", queue, at_least=0, at_most=_MOST)
        self.max_wait: float | None = None
        if max_wait is not None:
            self.max_wait = parse_positive_duration("max_wait", max_wait)
        # It was checked to be one of them.
        self.order: Order = cast("Order", check_choice("order", order, _ORDERS))
        if not self.queue:
            suggestion = "give queue=10, so that calls can wait"
            if self.max_wait is not None:
                rule = "None for a limit without a queue"
                raise invalid_setting(
                    "max_wait", rule, max_wait, suggestion, code="contradiction"
                )
            if self.order != "fifo":
                rule = "'fifo' for a limit without a queue"
                raise invalid_setting(
                    "order", rule, order, suggestion, code="contradiction"
                )
        self.name: str | None = None if name is None else check_text("name", name)
        # The truth about each call is in which of these sets it is. Each step of a
        # change is one operation, which does no harm if it is repeated: an interrupt,
        # a finalizer or a signal handler may come between any two.
        self._running: set[Permit] = set()
        self._waiting: set[Permit] = set()
        # The places, in order, the next one first, including abandoned places.
        self._line: deque[Permit] = deque()
        # What is still to be woken, without the lock.
        self._to_wake: deque[QueuedLease] = deque()
        self._granted = self._refused = self._timed_out = self._displaced = 0
        self._forget_running: Callable[[Permit], None] = self._running.discard
        super().__init__()

    @classmethod
    def default_settings(cls) -> dict[str, Any]:
        """Return the default arguments, keyed by name, with None for `at_most`."""
        return cls(1).settings | {"at_most": None}

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that the limit was made with, keyed by name."""
        at_most = self._made_with if self.algorithm is None else self.algorithm
        others = {name: getattr(self, name) for name in _OTHER_SETTINGS}
        return {"at_most": at_most, **others}

    @property
    def at_most(self) -> int:
        """The number of calls that may run at once now."""
        return self._at_most

    @property
    def state(self) -> ConcurrencyState:
        """The current state: "full" if no more calls may run now, else "free"."""
        return "full" if len(self._running) >= self._at_most else "free"

    @property
    def metrics(self) -> ConcurrencyMetrics:
        """The counts of calls, for gauges and counters."""
        with self._lock:
            running, waiting = len(self._running), len(self._waiting)
        return ConcurrencyMetrics(
            running,
            waiting,
            self._at_most,
            self._granted,
            self._refused,
            self._timed_out,
            self._displaced,
        )

    def acquire(self) -> Lease | Refusal:
        """Ask to make one call, without waiting.

        >>> limit = Concurrency(1, queue=1)
        >>> running, waiting = limit.acquire(), limit.acquire()
        >>> running.delay, waiting.delay
        (0.0, inf)
        >>> limit.acquire().reason
        'full: 1 call runs, and 1 waits'
        >>> running.succeeded()
        >>> waiting.wait() is None
        True

        Returns:
            A lease, to which the outcome must be reported, or a refusal. A lease with
            an infinite `delay` is a place in the queue: wait for it before the call.
        """
        lease = PermitLease()
        lease.owner = get_ident()
        permit = lease.permit = ref(lease, self._forget_running)
        running = self._running
        with self._lock:
            # First it takes a permit, then it looks whether there was one: so nobody
            # can take the last one in between.
            running.add(permit)
            if len(running) <= self._at_most and not self._waiting:
                lease.limit = self
                self._granted += 1
                if self.algorithm is not None:
                    self._start(lease)
                return lease
            running.discard(permit)
            answer = self._queue_or_refuse()
        if self._to_wake:
            self._wake()
        return answer

    @user_facing
    def resize(self, at_most: int) -> None:
        """Change how many calls may run at once.

        If it is more than before, calls that wait get the new permits. If it is less,
        running calls continue, and the first permits that come back are not handed on.
        A copy of the limit has the number that it was made with.

        Args:
            at_most: Maximum number of calls. Count, 1 to 1,000,000.

        Raises:
            ConfigError: *at_most* is out of range, or the limit adapts it by itself.
        """
        if self.algorithm is not None:
            rule = "a number in a limit that is resized"
            raise invalid_setting(
                "at_most", rule, self.algorithm, "it adapts itself", code="not-here"
            )
        number = _check_most(at_most)
        try:
            with self._lock:
                self._at_most = number
                self._grant()
        finally:
            self._wake()

    @user_facing
    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data, for JSON and TOML.

        Raises:
            ConfigError: The algorithm is code of your own, without `to_dict`.
        """
        data = super().to_dict()
        if self.algorithm is not None:
            convert = getattr(self.algorithm, "to_dict", None)
            if convert is None:
                rule = "a number, or an algorithm with to_dict(), in data"
                raise invalid_setting(
                    "at_most", rule, self.algorithm, code="not-expressible"
                )
            data["at_most"] = convert()
        return {name: value for name, value in data.items() if value is not None}

    def give_back(self, lease: PermitLease, failed: bool | None) -> None:  # noqa: FBT001
        """Take back a permit, or a place in the queue, and hand it on.

        Args:
            lease: The lease; nothing happens if it was given back already.
            failed: Whether the call failed; None if it does not count.
        """
        running, permit, fault = self._running, lease.permit, None
        with self._lock:
            if self.algorithm is not None and failed is not None and permit in running:
                fault = self._sample(self.algorithm, lease, failed=failed)
            running.discard(permit)
            if self._waiting:
                if isinstance(lease, QueuedLease):
                    self._leave(lease, GIVEN_BACK.reason)
                self._grant()
        if self._to_wake:
            self._wake()
        # Last: if this is interrupted, what was left out is done when it is dropped.
        lease.limit = None
        if fault is not None:
            text = "the concurrency limit stays at %s, because its algorithm failed"
            log_fault(logging.ERROR, fault, text, self._at_most)

    def is_waiting(self, lease: QueuedLease) -> bool:
        """Return whether a lease has a place in the queue, and no permit."""
        return lease.place in self._waiting and lease.permit not in self._running

    def time_to_wait(self, lease: QueuedLease, at_most: float | None) -> float:
        """Return how long a lease may still wait, in seconds, >= 0; may be infinite."""
        left = math.inf
        if self.max_wait is not None:
            # Time goes back if the clock was replaced.
            left = self.max_wait - max(self._now() - lease.queued, 0.0)
        return max(left if at_most is None else min(left, at_most), 0.0)

    def arm(self, lease: QueuedLease, wake: Callable[[], object]) -> bool:
        """Note how to wake the waiter of a lease; return whether it must wait."""
        with self._lock:
            lease.wake = wake
            waits = self.is_waiting(lease)
        # Not within the block: an interrupt after a call of a return leaves it locked.
        return waits  # noqa: RET504

    def end_wait(self, lease: QueuedLease, waited: float) -> Refusal | None:
        """Return None if a lease has a permit; else a refusal.

        With a refusal, the lease loses its place.
        """
        with self._lock:
            lease.wake = None
            if lease.permit in self._running:
                self._waiting.discard(lease.place)
                return None
            too_long = self._leave(lease, "full")
            if too_long:
                self._timed_out += 1
            lease.limit = None
        if too_long:
            text = f"full: waited {duration_in_words(waited)} for a place"
            lease.refusal = Refusal(text, None)
        return lease.refusal or GIVEN_BACK

    def _queue_or_refuse(self) -> Lease | Refusal:
        """Return a place in the queue, or a refusal, with the lock held."""
        waiting = self._waiting
        if len(waiting) >= self.queue:
            # A lease may have been dropped whose finalizer was interrupted.
            self._grant()
        if len(waiting) >= self.queue:
            if self.order == "fifo" or not self.queue:
                self._refused += 1
                return Refusal(self._describe(), None)
            self._displace()
        lease = QueuedLease()
        lease.owner, lease.queued = get_ident(), self._now()
        lease.wake = lease.refusal = None
        lease.permit = ref(lease, self._forget_running)
        place = lease.place = ref(lease, waiting.discard)
        # A reference has no hash if its lease is gone before the hash is asked for.
        hash(lease.permit)
        hash(place)
        lease.limit = self
        line = self._line
        if len(line) > 2 * len(waiting) + _MOST_STALE:
            line = self._line = deque([each for each in line if each in waiting])
        if self.order == "fifo":
            line.append(place)
        else:
            line.appendleft(place)
        waiting.add(place)
        # A finalizer may have given a permit back since the call asked for one.
        self._grant()
        return lease

    def _displace(self) -> None:
        """Drop the call that has waited the longest, with the lock held."""
        oldest = self._find_waiting(-1)
        if oldest is not None and self._leave(
            oldest, "full: a newer call took its place"
        ):
            self._displaced += 1

    def _leave(self, lease: QueuedLease, reason: str) -> bool:
        """Remove a lease's place, with the lock held; return whether it had one."""
        if lease.place not in self._waiting:
            return False
        lease.refusal = Refusal(reason, None)
        if lease.wake is not None:
            self._to_wake.append(lease)
        self._waiting.discard(lease.place)
        return True

    def _grant(self) -> None:
        """Hand free permits to waiting calls, with the lock held."""
        running = self._running
        while self._waiting and len(running) < self._at_most:
            lease = self._find_waiting(0)
            if lease is None:
                return
            # Woken for nothing, if this is interrupted, it continues to wait.
            if lease.wake is not None:
                self._to_wake.append(lease)
            running.add(lease.permit)
            if len(running) > self._at_most:
                # A signal handler took the last permit in between.
                running.discard(lease.permit)
                return
            self._granted += 1
            if self.algorithm is not None:
                self._start(lease)
            self._waiting.discard(lease.place)

    def _find_waiting(self, index: int) -> QueuedLease | None:
        """Return the lease at the start or the end of the line, with the lock held.

        Abandoned places at that end are removed.

        Args:
            index: 0 for the lease that is next, -1 for the lease that is last.

        Returns:
            The lease; None if no call waits.
        """
        line, waiting = self._line, self._waiting
        while line:
            place = line[index]
            lease = place()
            if lease is not None and place in waiting:
                # There are no others in the line.
                return cast("QueuedLease", lease)
            waiting.discard(place)
            # Unless a finalizer has removed it in between.
            if line and line[index] is place:
                del line[index]
        return None

    def _wake(self) -> None:
        """Wake calls that got a permit or lost their place, without the lock."""
        to_wake = self._to_wake
        while to_wake:
            try:
                lease = to_wake[0]
            except IndexError:  # pragma: no cover  (another thread took it in between)
                return
            wake = lease.wake
            if wake is not None:
                try:
                    wake()
                except Exception:  # noqa: BLE001  its loop is closed: nobody is there
                    with self._lock:
                        self._running.discard(lease.permit)
                        self._grant()
            # Taken away afterwards, so that an interrupt loses no wake-up.
            with suppress(ValueError):
                to_wake.remove(lease)

    def _start(self, lease: PermitLease) -> None:
        """Note when a call got its permit, with the lock held."""
        lease.started, lease.in_flight = self._now(), len(self._running)

    def _sample(
        self, algorithm: Adaptive, lease: PermitLease, *, failed: bool
    ) -> Exception | None:
        """Adapt the limit to a call that ended, with the lock held.

        Returns:
            The error of the algorithm; None if it did not fail.
        """
        took = max(self._now() - lease.started, 0.0)
        try:
            limit = algorithm.sample(
                rtt=took, in_flight=lease.in_flight, dropped=failed
            )
            self._at_most = _check_most(limit)
        except Exception as fault:  # noqa: BLE001  the call is not about it
            return fault
        return None

    def _describe(self) -> str:
        """Return why a call is refused."""
        running, waiting = len(self._running), len(self._waiting)
        text = f"full: {running} call{'s run' if running != 1 else ' runs'}"
        if not self.queue:
            return text
        return f"{text}, and {waiting} {'wait' if waiting != 1 else 'waits'}"

    def _renew(self) -> None:
        super()._renew()
        here = get_ident()
        # In a forked child process, the other threads never report.
        for calls in (self._running, self._waiting):
            for each in [*calls]:
                lease = each()
                if lease is None or lease.owner != here:
                    calls.discard(each)

    def _now(self) -> float:
        return sync_clock.now() if blockers else _real_now()


_real_now: Final[Callable[[], float]] = sync_clock.real.now

_ORDERS: Final = ("fifo", "lifo")
_OTHER_SETTINGS: Final = ("queue", "max_wait", "order", "name")


def _check_most(value: object, suggestion: str = "") -> int:
    return check_integer(
        "at_most", value, at_least=1, at_most=_MOST, suggestion=suggestion
    )


def _copy_algorithm(value: Any) -> Adaptive | None:
    """Return a copy of an algorithm; None for anything else."""
    if isinstance(value, type) or not callable(getattr(value, "sample", None)):
        return None
    # Imported here: few limits adapt.
    from copy import deepcopy  # noqa: PLC0415

    # It was just found to be one.
    return cast("Adaptive", deepcopy(value))
