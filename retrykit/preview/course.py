"""How a call goes that fails every time: its retries, and where it ends.

The shortest and the longest delays are walked by the decision that live calls
are held to, so what is told here is what happens there. What lies between is
the business of the other modules.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import final

from retrykit._decide import decide
from retrykit.algebra import Bounds, Schedule
from retrykit.formulas import Fixed
from retrykit.jitter import LONGEST, Random
from retrykit.preview.delays import spreads
from retrykit.settings import Settings
from retrykit.state import RetryState, StopReason
from retrykit.values import Value

__all__ = ["End", "Row", "end_of", "rows_of"]


@final
class Row(Value):
    """One retry of a call that fails every time.

    Attributes:
        retry: Its number, from 1; attempt ``retry + 1`` is made then.
        low: The shortest delay before it, in seconds.
        mean: The mean of the delay, in seconds; None where it is not known.
        mean_error: Half the width of the interval, in seconds, that the mean
            lies in with a confidence of 95 %; 0 where it is exact.
        high: The longest delay before it, in seconds.
        total_low: The delays up to it in all, at the least, in seconds.
        total_high: The same at the most, as far as the policy allows it.
        begins_low: When it is made at the soonest: seconds from the start of
            the call, the attempts before it included.
        begins_high: When it is made at the latest.
    """

    __slots__ = (
        "begins_high",
        "begins_low",
        "high",
        "low",
        "mean",
        "mean_error",
        "retry",
        "total_high",
        "total_low",
    )
    retry: int
    low: float
    mean: float | None
    mean_error: float
    high: float
    total_low: float
    total_high: float
    begins_low: float
    begins_high: float

    def at(self, start: datetime) -> tuple[datetime | None, datetime | None]:
        """Return when it is made, of a call that starts at a given time.

        Args:
            start: When the first attempt is made.

        Returns:
            The soonest and the latest time; None for one that lies beyond the
            calendar.
        """
        return _later(start, self.begins_low), _later(start, self.begins_high)


@final
class End(Value):
    """After which retry a call that fails every time ends, and why.

    Attributes:
        soonest: The number of its retries where every delay is the longest.
        latest: The same where every delay is the shortest.
        reasons: The settings that end it, in these two cases: `max_attempts`,
            `max_elapsed` or `schedule`.
    """

    __slots__ = ("latest", "reasons", "soonest")
    soonest: int
    latest: int
    reasons: tuple[str, str]

    def __str__(self) -> str:
        retries = f"{self.soonest}"
        if self.soonest < self.latest:
            retries += f" to {self.latest}"
        told = " or ".join(dict.fromkeys(self.reasons))
        return f"stops after retry {retries}: {told}"


def end_of(policy: Settings, attempt: float, most: int) -> End | None:
    """Return where a call ends; None if it may go on after *most* retries."""
    (fewer, soon), (more, late) = (
        _path(policy, side, attempt, most) for side in (1, 0)
    )
    if soon is None or late is None:
        return None
    return End(len(fewer), len(more), (_SETTINGS[soon], _SETTINGS[late]))


def rows_of(policy: Settings, attempt: float, most: int) -> Iterator[Row]:
    """Give the retries that a call may come to, up to *most* of them.

    Args:
        policy: What the call is held to.
        attempt: How long each attempt takes, in seconds.
        most: Count, >= 1.
    """
    delays, _ = _path(policy, 0, attempt, most)
    allowed = LONGEST if policy.max_elapsed is None else policy.max_elapsed
    shortest, longest = 0.0, 0.0
    known = zip(delays, spreads(policy.schedule), strict=False)
    for retry, (delay, spread) in enumerate(known, 1):
        low, high = policy.schedule.bounds(retry) or (delay, delay)
        shortest = min(shortest + delay, LONGEST)
        # What is waited in all leaves the attempts before it their time.
        bound = max(allowed - retry * attempt, shortest)
        if policy.deadline == "overshoot":
            longest = min(min(longest, bound) + high, LONGEST)
        else:
            longest = min(longest + high, bound)
        mean = spread and spread.mean
        begins = shortest + retry * attempt, longest + retry * attempt
        yield Row(retry, low, mean, 0.0, high, shortest, longest, *begins)


@final
class _Side(Fixed):
    """A schedule of which nothing but the shortest, or the longest, is drawn."""

    __slots__ = ("of", "side")
    of: Schedule
    side: int

    def delay(
        self, retry: int, _previous: float | None, _random: Random, /
    ) -> float | None:
        bounds: Bounds | None = self.of.bounds(retry)
        return bounds and bounds[self.side]


_SETTINGS = {
    StopReason.ATTEMPTS: "max_attempts",
    StopReason.ELAPSED: "max_elapsed",
    StopReason.SCHEDULE_ENDED: "schedule",
}


def _path(
    policy: Settings, side: int, attempt: float, most: int
) -> tuple[list[float], StopReason | None]:
    """Return the delays of a call, and why it ends there; None if it goes on."""
    edge = policy.replace(schedule=_Side(policy.schedule, side))
    state, slept = RetryState("", seed=0, epoch=0.0), 0.0
    delays: list[float] = []
    while True:
        made = len(delays) + 1
        follows = decide(edge, state, made, slept + made * attempt)
        if isinstance(follows, StopReason):
            return delays, follows
        if made > most:
            return delays, None
        delays.append(follows)
        slept = min(slept + follows, LONGEST)


def _later(start: datetime, seconds: float) -> datetime | None:
    try:
        return start + timedelta(seconds=seconds)
    except OverflowError:
        return None
