"""Capabilities of a job engine, such as how long it can hold a job."""

from typing import final

from retrykit._internal.frozen import Frozen

__all__ = ["Capabilities"]


@final
class Capabilities(Frozen):
    """Capabilities of an engine.

    >>> redis = Capabilities("redis", 900.0, 1.0, 0.0, True, False)
    >>> redis.next_hold(3600.0), redis.next_hold(7.5), redis.next_hold(-2.0)
    (900.0, 7.5, 0.0)

    Attributes:
        engine: The name of the engine.
        max_hold: The longest time for which the engine can hold a job, in seconds; a
            longer delay takes several hops. None means unlimited.
        granularity: How late a job may be while workers are idle, in seconds.
        min_delay: The shortest delay, in seconds; shorter ones are extended to it.
        at_least_once: Whether an attempt is repeated, under the same number, if its
            worker is killed.
        supports_async: Whether a job may be a coroutine function.
    """

    __slots__ = (
        "at_least_once",
        "engine",
        "granularity",
        "max_hold",
        "min_delay",
        "supports_async",
    )
    engine: str
    max_hold: float | None
    granularity: float
    min_delay: float
    at_least_once: bool
    supports_async: bool

    def next_hold(self, left: float) -> float:
        """Return for how many seconds to hold a job that is due in *left* seconds."""
        hold = max(left, self.min_delay)
        return hold if self.max_hold is None else min(hold, self.max_hold)
