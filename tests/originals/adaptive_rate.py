"""The adaptive rate limit beside botocore's, on the same clock."""

import importlib.metadata
import math
import random
from collections.abc import Iterator
from typing import Any

from retrykit._internal.clocks import sync_clock
from retrykit.limits import AdaptiveRateLimit
from tests.originals.comparison import CLOSE

__all__ = ["compare_rates"]

SEQUENCES = 300
EVENTS = 300


class SlowDownError(Exception):
    """The service throttles."""


class FakeClock:
    """A clock that both limiters read, each with one of its own."""

    def __init__(self, time: float) -> None:
        self.time = time

    def now(self) -> float:
        """Return the time, as retrykit asks."""
        return self.time

    current_time = now

    def sleep(self, delay: float) -> None:
        """Sleep. A delay that a float cannot show lasts as short as can be shown."""
        self.time = max(self.time + delay, math.nextafter(self.time, math.inf))


class Condition:
    """What botocore's bucket waits on, without other threads."""

    def __init__(self, clock: FakeClock) -> None:
        self.wait = clock.sleep

    def __enter__(self) -> None:
        """Hold no lock."""

    def __exit__(self, *_: object) -> None:
        """Release no lock."""

    def notify(self) -> None:
        """Wake nobody."""


class Detector:
    """Knows throttling by an argument."""

    def is_throttling_error(self, *, throttled: bool) -> bool:
        """Return the argument."""
        return throttled


class Original:
    """The rate limiter of botocore, made as it makes one for a client."""

    def __init__(self, clock: FakeClock) -> None:
        from botocore.retries import adaptive, bucket, throttling

        self.rate = throttling.CubicCalculator(0, clock.current_time())
        self.bucket = bucket.TokenBucket(max_rate=1, clock=clock)
        self.bucket._new_fill_rate_condition = Condition(clock)
        self.measured = adaptive.RateClocker(clock)
        self.limiter = adaptive.ClientRateLimiter(
            self.rate, self.measured, self.bucket, Detector(), clock
        )
        self.clock = clock

    def send(self) -> None:
        """Wait for a token."""
        self.limiter.on_sending_request(request=None)

    def receive(self, *, throttled: bool) -> None:
        """Report a response."""
        self.limiter.on_receiving_response(throttled=throttled)

    def numbers(self) -> dict[str, float]:
        """Return all that its answers depend on."""
        self.bucket._refill()
        last_max, window, throttled_at = self.rate.get_params_snapshot()
        return {
            "time": self.clock.time,
            "fill_rate": self.bucket.max_rate,
            "capacity": self.bucket.max_capacity,
            "tokens": self.bucket.available_capacity,
            "measured_rate": self.measured.measured_rate,
            "last_max": last_max,
            "window": window,
            "throttled_at": throttled_at,
            "limiting": self.limiter._enabled,
        }


class Ours:
    """The limit of this package."""

    def __init__(self, clock: FakeClock) -> None:
        self.limit = AdaptiveRateLimit(on=SlowDownError)
        self.clock = clock
        self.leases: list[Any] = []

    def send(self) -> None:
        """Wait for a token."""
        lease: Any = self.limit.acquire()
        assert lease.wait() is None
        self.leases.append(lease)

    def receive(self, *, throttled: bool) -> None:
        """Report a response."""
        lease = self.leases.pop()
        if throttled:
            lease.failed(SlowDownError())
        else:
            lease.succeeded()

    def numbers(self) -> dict[str, float]:
        """Return all that its answers depend on."""
        state: Any = self.limit._state.fill(self.clock.time)
        return {"time": self.clock.time, **state._asdict()}


def compare_rates() -> str:
    """Return what differs after drawn sequences; empty if nothing does."""
    version = importlib.metadata.version("botocore")
    waits = 0
    for seed in range(SEQUENCES):
        chance = random.Random(seed)
        start = chance.choice([0.0, 0.3, 1.75, 1e4 * chance.random()])
        clocks = FakeClock(start), FakeClock(start)
        with sync_clock.use(clocks[1]):
            pair = Original(clocks[0]), Ours(clocks[1])
            for number, (pause, step) in enumerate(draw_events(chance)):
                for clock in clocks:
                    clock.time += pause
                before = clocks[0].time
                for each in pair:
                    if step == "send":
                        each.send()
                    else:
                        each.receive(throttled=step == "throttled")
                waits += clocks[0].time > before
                theirs, ours = (each.numbers() for each in pair)
                for name, value in theirs.items():
                    # A token may come a nanosecond earlier or later.
                    most = CLOSE * max(1.0, theirs["fill_rate"])
                    if not math.isclose(value, ours[name], rel_tol=CLOSE, abs_tol=most):
                        where = f"sequence {seed}, event {number}, {name}"
                        return f"{where}: {value} of botocore, {ours[name]} here"
                # A difference of rounding must not end up in two half seconds.
                clocks[1].time = clocks[0].time
    events = SEQUENCES * EVENTS
    print(f"AdaptiveRateLimit equals botocore {version}: {events:,} events, of which")
    print(f"{waits:,} wait for a token")
    return ""


def draw_events(chance: random.Random) -> Iterator[tuple[float, str]]:
    """Yield pauses in seconds, and what happens after each of them."""
    share = chance.choice([0.01, 0.1, 0.5, 0.9])
    mean = chance.choice([0.001, 0.02, 0.2, 1.0])
    most, running = chance.choice([1, 2, 20]), 0
    for _ in range(EVENTS):
        pause = chance.choice([0.0, mean, chance.expovariate(1 / mean), mean / 4])
        if chance.random() < 0.01:
            pause = chance.choice([0.25, 0.5, 30.0, 3600.0])
        if running and (running == most or chance.random() < 0.5):
            running -= 1
            throttled = chance.random() < share
            yield pause, "throttled" if throttled else "received"
        else:
            running += 1
            yield pause, "send"
