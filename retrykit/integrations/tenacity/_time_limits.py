"""Schedules that end exactly at a time limit, as in tenacity."""

from typing import final

from retrykit._core.call import current_state
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import user_facing
from retrykit.schedules._base import Bounds, Schedule, ScheduleLike, as_schedule
from retrykit.schedules._randomness import Random

__all__ = ["Limited", "stop_after_delay", "stop_before_delay"]


@user_facing
def stop_after_delay(limit: Duration, schedule: ScheduleLike) -> Schedule:
    """Return a schedule that ends once *limit* has passed, or is reached exactly.

    ``max_elapsed=limit, deadline="overshoot"`` does the same, except for an attempt
    that ends within a microsecond of the limit, as in tests with their own clock: the
    policy then makes another one; tenacity, stamina and retrying do not.

    >>> from retrykit.schedules import constant
    >>> stop_after_delay("1m", constant(10)).bounds(1)
    (10.0, 10.0)

    Args:
        limit: The time since the call began. A duration, >= 0.
        schedule: The delays.

    Raises:
        ConfigError: *limit* is not a duration, or *schedule* is not a schedule.
    """
    limit = parse_duration("limit", limit)
    return Limited(as_schedule(schedule), limit, with_delay=False)


@user_facing
def stop_before_delay(limit: Duration, schedule: ScheduleLike) -> Schedule:
    """Return a schedule that ends if the next delay would reach *limit*.

    ``max_elapsed=limit`` does the same, except for an attempt that would begin exactly
    at the limit: the policy makes it, tenacity does not.

    Args:
        limit: The time since the call began. A duration, >= 0.
        schedule: The delays.

    Raises:
        ConfigError: *limit* is not a duration, or *schedule* is not a schedule.
    """
    limit = parse_duration("limit", limit)
    return Limited(as_schedule(schedule), limit, with_delay=True)


@final
class Limited(Schedule):
    """A schedule that ends at a limit on the time since its call began.

    Attributes:
        of: The schedule.
        limit: The limit, in seconds.
        with_delay: Whether the delay to come counts as well.
    """

    __slots__ = ("limit", "of", "with_delay")
    of: Schedule
    limit: float
    with_delay: bool

    def delay(
        self, retry: int, previous: float | None, random: Random, /
    ) -> float | None:
        delay = self.of.delay(retry, previous, random)
        try:
            elapsed = current_state().elapsed
        except LookupError:
            # The schedule is only inspected, outside a call.
            return delay
        if delay is None or elapsed + delay * self.with_delay >= self.limit:
            return None
        return delay

    def bounds(self, retry: int, /) -> Bounds | None:
        return self.of.bounds(retry)
