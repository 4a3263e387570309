"""What an engine can hold, for how long, and how exactly."""

from typing import final

from retrykit._internal.frozen import Frozen

__all__ = ["Capabilities"]


@final
class Capabilities(Frozen):
    """What an engine can do for a job that waits.

    >>> redis = Capabilities("redis", 900.0, 1.0, 0.0, True, False)
    >>> redis.next_hold(3600.0), redis.next_hold(7.5), redis.next_hold(-2.0)
    (900.0, 7.5, 0.0)

    Attributes:
        engine: What it is called.
        max_hop: The longest time that it holds a job at once, in seconds; a
            longer delay is made of several such hops. None is unlimited.
        granularity: By how much a job may come later than it is due while its
            workers are idle, in seconds.
        min_delay: The shortest delay that it can hold, in seconds; shorter ones
            are made as long as this.
        at_least_once: Whether an attempt that is killed is made again, under
            the same number.
        async_ok: Whether a job may be a coroutine function.
    """

    __slots__ = (
        "async_ok",
        "at_least_once",
        "engine",
        "granularity",
        "max_hop",
        "min_delay",
    )
    engine: str
    max_hop: float | None
    granularity: float
    min_delay: float
    at_least_once: bool
    async_ok: bool

    def next_hold(self, left: float) -> float:
        """Return how long to hold a job that has so long to wait.

        Args:
            left: Seconds until it is due.

        Returns:
            Seconds, >= `min_delay` and <= `max_hop`.
        """
        held = max(left, self.min_delay)
        return held if self.max_hop is None else min(held, self.max_hop)
