"""Delays for hand-written loops: `Backoff`, and `STOP` at their end."""

from enum import Enum
from typing import Final, Literal, final

from retrykit._core.call_record import Terms, new_record
from retrykit._core.decision import decide
from retrykit._core.failures import Failure, StopReason
from retrykit._core.policy import Policy
from retrykit._internal.clocks import Clock, sync_clock
from retrykit._internal.validation import check_instance, invalid_setting, user_facing
from retrykit.schedules._randomness import new_seed

__all__ = ["STOP", "Backoff", "StopSentinel"]


class StopSentinel(Enum):
    """The type of `STOP`."""

    STOP = "stop"

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


STOP: Final = StopSentinel.STOP
"""Returned by `Backoff.next` when there is no further retry."""


@final
class Backoff:
    """The delays of one operation, for a loop that is written by hand.

    One object serves one operation in one thread or task.

    >>> from retrykit import presets
    >>> backoff = Backoff(presets.google(randomization_factor=0))
    >>> backoff.next(), backoff.next(), backoff.current_interval
    (0.5, 0.75, 1.125)

    Args:
        policy: Only its schedule, its seed and its limits on attempts and time apply.
        clock: Measures the elapsed time; by default the monotonic clock.

    Raises:
        ConfigError: *policy* is not a `Policy`, or *clock* has no method `now`.

    Source:
        The interface follows `BackOff`, Google HTTP Client Library for Java.
    """

    @user_facing
    def __init__(self, policy: Policy, clock: Clock | None = None) -> None:
        suggestion = "write Policy(schedule=...)"
        self._policy = check_instance("policy", policy, Policy, suggestion)
        self._intervals = policy.schedule.without_jitter()
        if clock is not None and not hasattr(clock, "now"):
            raise invalid_setting("clock", "a clock, with a method now", clock)
        self._clock = sync_clock if clock is None else clock
        self.reset()

    def reset(self) -> None:
        """Start again with the first interval, no elapsed time and a new seed.

        A seed that is set in the policy is kept.
        """
        seed = self._policy.seed
        seed = new_seed() if seed is None else seed
        now = self._clock.now
        self._record = new_record(Terms("", max_failures=2), seed)
        self._record.read_clock, self._record.started = now, now()

    def next(self) -> float | Literal[StopSentinel.STOP]:
        """Count a failed attempt, and return the delay before the next one.

        Returns:
            Seconds, >= 0; or `STOP`, which counts nothing, if a limit of the policy is
            reached or its schedule has ended.

        Raises:
            ConfigError: A custom schedule returned an invalid delay.
        """
        record = self._record
        attempt, elapsed = record.attempt, record.elapsed
        follows = decide(self._policy, record, attempt, elapsed)
        if isinstance(follows, StopReason):
            return STOP
        record.add_failure(Failure(attempt, None, None, 0.0, elapsed, follows))
        record.begin_attempt(record.elapsed)
        return follows

    def __repr__(self) -> str:
        return f"<Backoff of {self._policy!r}, retry {self._record.attempt}>"

    @property
    def elapsed(self) -> float:
        """Seconds since the object was made or reset."""
        return self._record.elapsed

    @property
    def current_interval(self) -> float | None:
        """The next delay without jitter, in seconds.

        None if the schedule has ended; other limits are ignored.
        """
        retry = self._record.attempt
        bounds = self._intervals.bounds(retry)
        ended = self._policy.schedule.bounds(retry) is None
        return None if ended or bounds is None else bounds[0]
