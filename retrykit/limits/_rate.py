"""Rate limit: a maximum number of calls in any period, each at a known time."""

from bisect import bisect_right, insort
from collections import deque
from typing import Any, Final, Literal, NamedTuple, final

from retrykit._internal.clocks import sync_clock
from retrykit._internal.durations import (
    Duration,
    duration_in_words,
    parse_duration,
    parse_positive_duration,
)
from retrykit._internal.fast_path import blockers
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    check_text,
    user_facing,
)
from retrykit.limits._leases import Lease, Refusal
from retrykit.limits._shared_limits import SerializableLimit

__all__ = ["RateLimit", "RateMetrics", "RateState"]

RateState = Literal["free", "busy"]
"""The name of a state."""

_MOST_CALLS: Final = 100_000

# In seconds, as a clock shows no difference below it. A caller who had to wait for less
# might ask again at the same time.
_RESOLUTION: Final = 1e-9

# In seconds: on Windows, timers end up to 15.6 ms early. A lease that is given back so
# shortly before its time may have been used.
_EARLY: Final = 0.016


class RateMetrics(NamedTuple):
    """Counts of the calls of a rate limit.

    Attributes:
        calls: Number of calls whose time was within the last period.
        waiting: Number of calls whose time is still to come.
        delay: How long the next call would wait, in seconds, >= 0.
        total_allowed: Number of calls that got a time, since the limit was made.
        total_returned: Number of calls that gave their time back.
        total_refused: Number of calls that were refused.
    """

    calls: int
    waiting: int
    delay: float
    total_allowed: int
    total_returned: int
    total_refused: int


@final
class RateLimit(SerializableLimit):
    """Allows at most a number of calls in any period; others wait for their time.

    Each call is given its time at once, waits for it, and never has to ask again. No
    period has more than *calls* calls, whenever it begins. By contrast, a token bucket
    of that size lets up to twice as many through in its first period, and so does a
    limit on fixed periods around the beginning of each.

    >>> limit = RateLimit(2, per="1s", name="api")
    >>> leases = [limit.acquire() for _ in range(6)]
    >>> [round(lease.delay) for lease in leases]
    [0, 0, 1, 1, 2, 2]
    >>> limit.state
    'busy'

    A call that would have to wait for too long is refused, and takes nothing away from
    others. A call that is given back before its time, as when a waiting task is
    cancelled, leaves that time to the next call that asks; waiting calls keep theirs.
    Ask this limit last if there are others: a call that another limit refuses later has
    used up its time.

    The promise is about the times that calls get: calls that start late, since the
    event loop was blocked, may still start together.

    Several threads, tasks and event loops may share it. It reads the monotonic clock,
    which tests replace by `virtual_time`: a limit starts over if its clock is replaced.

    Args:
        calls: Maximum number of calls in any period. Count, 1 to 100,000. For fewer
            than one per second, give a longer period.
        per: The period, a duration > 0.
        spread: Whether calls are spread evenly over the period, *per* / *calls* apart,
            instead of being made at once as long as the period has room. For several
            calls at once, but not all of them, use two limits, such as 100 per minute
            and 5 per second.
        max_wait: The longest time that a call waits, a duration >= 0. Calls that would
            wait for longer are refused; with 0, all that would wait. By default equal
            to the default of a policy's `max_elapsed`.
        name: Its name in errors. By default the scope, or the key of a `Registry`.

    Source:
        A log of the times of the last calls (a "sliding window log"), which is exact;
        with *spread*, only the time of the last one: the generic cell rate algorithm
        without tolerance, ITU-T I.371. The log takes 32 bytes for each call in the last
        period or still to come.
    """

    kind = "rate"

    @user_facing
    def __init__(
        self,
        calls: int,
        per: Duration = 1.0,
        *,
        spread: bool = False,
        max_wait: Duration = 60.0,
        name: str | None = None,
    ) -> None:
        suggestion = 'for fewer than one a second, write RateLimit(1, per="2s")'
        self.calls: int = check_integer(
            "calls", calls, at_least=1, at_most=_MOST_CALLS, suggestion=suggestion
        )
        self.per: float = parse_positive_duration("per", per)
        self.spread: bool = check_instance("spread", spread, bool)
        self.max_wait: float = parse_duration("max_wait", max_wait)
        self.name: str | None = None if name is None else check_text("name", name)
        many = f"{self.calls} call{'' if self.calls == 1 else 's'}"
        self._reason = f"busy: {many} per {duration_in_words(self.per)}"
        self._longest = max(self.max_wait, _RESOLUTION)
        # At most `_room` calls in any `_window` seconds.
        self._room = 1 if self.spread else self.calls
        self._window = self.per / self.calls if self.spread else self.per
        self._clock = _real_clock
        self._generation = 0
        self._seen = 0.0
        # The times of calls, in order; those to come that were given back, in order;
        # and the times that leases have given back since, each with its generation.
        self._times: deque[float] = deque()
        self._free: list[float] = []
        self._returned: deque[tuple[int, float]] = deque()
        self._allowed = self._given_back = self._refused = 0
        super().__init__()

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that the limit was made with, keyed by name."""
        return {name: getattr(self, name) for name in _SETTINGS}

    @property
    def expression(self) -> str:
        """The expression that makes an equivalent limit, without its scope."""
        defaults = RateLimit(self.calls).settings
        arguments = [
            f"{name}={value!r}"
            for name, value in self.settings.items()
            if value != defaults[name]
        ]
        return f"RateLimit({', '.join([repr(self.calls), *arguments])})"

    @property
    def state(self) -> RateState:
        """The current state: "free", or "busy" if the next call would wait."""
        with self._lock:
            now = self._read_clock()
            self._take_back(now)
            wait = self._next_time(now) - now
        return "busy" if wait > _RESOLUTION else "free"

    @property
    def metrics(self) -> RateMetrics:
        """The counts of calls, for gauges and counters."""
        with self._lock:
            now = self._read_clock()
            self._take_back(now)
            wait = self._next_time(now) - now
            times, free = [*self._times], len(self._free)
        past = bisect_right(times, now + _RESOLUTION)
        return RateMetrics(
            past - bisect_right(times, now - self.per + _RESOLUTION),
            len(times) - past - free,
            wait if wait > _RESOLUTION else 0.0,
            self._allowed,
            self._given_back,
            self._refused,
        )

    @user_facing
    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data, for JSON and TOML."""
        data = super().to_dict()
        return {name: value for name, value in data.items() if value is not None}

    def acquire(self) -> Lease | Refusal:
        """Ask to make one call, without waiting.

        >>> limit = RateLimit(1, per="10s", max_wait="5s")
        >>> limit.acquire().succeeded()
        >>> limit.acquire().reason
        'busy: 1 call per 10 s'

        Returns:
            A lease, whose delay is how long to wait before the call; or a refusal,
            whose `retry_in` is how long the call would have to wait.
        """
        with self._lock:
            while True:
                allowed = self._allowed
                now = self._read_clock()
                if self._returned or self._free:
                    self._take_back(now)
                time = self._next_time(now)
                wait = time - now
                if wait > self._longest:
                    self._refused += 1
                    return Refusal(self._reason, wait)
                if self._take(time, allowed):
                    break
            generation = self._generation
        if wait > _RESOLUTION:
            return WaitingLease(generation, self, time, wait)
        # Without a function that sets the attribute, as this is most calls.
        lease = RateLease()
        lease.number = generation
        return lease

    def give_back(self, lease: "WaitingLease") -> None:
        """Take the time of a lease back, unless it has come or comes within 16 ms."""
        if lease.time - self._clock.now() > _EARLY:
            # One operation without the lock, since a garbage collection may drop a
            # lease at any point.
            self._returned.append((lease.generation, lease.time))

    # A signal handler may ask at any call below, and an interrupt may end it there. So
    # what belongs together is not separated by a call, and what an interrupt leaves
    # undone only takes a time from later calls, until that has passed.
    def _read_clock(self) -> float:
        """Read the clock, with the lock held; start over if it was replaced."""
        clock = sync_clock.current() if blockers else _real_clock
        seen = self._seen
        now: float = clock.now()
        if clock is not self._clock or now < seen:
            self._generation += 1
            self._free = []
            self._times = deque()
            self._clock = clock
        self._seen = now
        return now

    def _take_back(self, now: float) -> None:
        """Make the times that leases have given back available, with the lock held.

        Times that have passed are dropped.
        """
        free, times = self._free, self._times
        while self._returned:
            generation, time = self._returned.popleft()
            if generation == self._generation:
                insort(free, time)
                self._given_back += 1
        while free and free[0] < now:
            del free[0]
        # The last times are as if they had never been given.
        while free and free[-1] == times[-1]:
            del free[-1]
            del times[-1]

    def _next_time(self, now: float) -> float:
        """Return the earliest time of another call, with the lock held."""
        times = self._times
        # Two times, while a call adds one, so that expired times become fewer.
        for _ in _TWICE:
            if times and times[0] + self.per <= now:
                del times[0]
        if self._free:
            return self._free[0]
        try:
            time = (
                times[-self._room] + self._window if len(times) >= self._room else now
            )
        except IndexError:  # pragma: no cover  (a signal handler had times taken back)
            return now
        return time if time > now else now

    def _take(self, time: float, allowed: int) -> bool:
        """Take a time that `_next_time` returned, with the lock held.

        Args:
            time: The time.
            allowed: How many calls had been allowed when `_next_time` was called.

        Returns:
            Whether it was taken; False if another call has been allowed since then, or
            has a later time.
        """
        free, times = self._free, self._times
        if self._allowed != allowed:
            return False
        if free and free[0] == time:
            del free[0]
        elif times and time < times[-1]:
            return False
        else:
            times.append(time)
        self._allowed += 1
        return True


class RateLease(Lease):
    """A call that a rate limit let through.

    Attributes:
        number: The number of restarts of the limit before it granted the lease.
    """

    __slots__ = ("number",)

    number: int

    @property
    def generation(self) -> int:
        """The number of restarts of the limit before it granted the lease."""
        return self.number

    def succeeded(self) -> None:
        """Do nothing: the time of the call is used up."""

    def failed(self, error: Exception | None = None) -> None:
        """Do nothing, as `succeeded` does."""

    def ignored(self) -> None:
        """Do nothing, as `succeeded` does: perhaps the call was made."""

    def __repr__(self) -> str:
        return "<lease of a rate limit>"


@final
class WaitingLease(RateLease):
    """A call that must wait for its time, and may give it back before then.

    Attributes:
        limit: The limit; None once an outcome has been reported.
        time: The time, in seconds of the clock.
    """

    __slots__ = ("delay", "limit", "time")

    def __init__(
        self, generation: int, limit: RateLimit, time: float, delay: float
    ) -> None:
        self.number = generation
        self.delay: float = delay
        self.time: float = time
        self.limit: RateLimit | None = limit

    def succeeded(self) -> None:
        """Keep the time of the call."""
        self.limit = None

    def failed(self, error: Exception | None = None) -> None:  # noqa: ARG002
        """Keep the time of the call."""
        self.limit = None

    def ignored(self) -> None:
        """Hand the time back, unless it has come or is about to."""
        limit = self.limit
        if limit is not None:
            # First, since a time that is given back twice would be given out twice.
            self.limit = None
            limit.give_back(self)

    def __del__(self) -> None:
        # An interrupt may come before it has a limit.
        if getattr(self, "limit", None) is not None:
            self.ignored()


_real_clock: Final[Any] = sync_clock.real
_TWICE: Final = (1, 2)
_SETTINGS: Final = ("calls", "per", "spread", "max_wait", "name")
