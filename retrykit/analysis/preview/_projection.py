"""Projection of a call that fails every time: its retries, and where it ends.

It decides with the same function as live calls, once with the shortest and once with
the longest delays.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from typing import Any, final

from retrykit._core.call_record import Terms, new_record
from retrykit._core.decision import decide
from retrykit._core.failures import StopReason
from retrykit._core.limits import override
from retrykit._core.policy import Policy
from retrykit._internal.frozen import Frozen
from retrykit.analysis.preview._delay_distributions import delay_distributions
from retrykit.analysis.preview._distributions import Distribution
from retrykit.schedules._base import Bounds, Schedule, has_user_code
from retrykit.schedules._basic import Fixed
from retrykit.schedules._randomness import MAX_DELAY, Random

__all__ = ["EndOfCall", "Projection", "RetryRow", "allowed_at", "project", "walk"]


@final
class RetryRow(Frozen):
    """One retry of a call that fails every time.

    Attributes:
        retry: The number of the retry, from 1; it is attempt ``retry + 1``.
        low: The shortest delay that the schedule gives before it, in seconds. With
            ``deadline="clip"``, the last delay of a call may be shorter.
        mean: The mean of the delay, in seconds; None if unknown.
        mean_error: Half the width of the 95 % confidence interval of the mean,
            in seconds; 0 if the mean is exact or unknown.
        high: The longest delay that the schedule gives before it, in seconds.
        total_low: The shortest sum of the delays up to this retry, in seconds.
        total_high: The longest such sum that the policy allows, in seconds.
        start_low: The earliest start of the retry, in seconds from the start of the
            call, including the attempts before it.
        start_high: The latest start of the retry, in seconds from the start of the
            call.
    """

    __slots__ = (
        "high",
        "low",
        "mean",
        "mean_error",
        "retry",
        "start_high",
        "start_low",
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
    start_low: float
    start_high: float

    def band(self, *, cumulative: bool) -> tuple[float, float]:
        """Return the bounds of the delay, or of the sum of delays, in seconds."""
        if cumulative:
            return self.total_low, self.total_high
        return self.low, self.high

    def at(self, start: datetime) -> tuple[datetime | None, datetime | None]:
        """Return the wall-clock time of this retry.

        Args:
            start: The time of the first attempt. If it has a time zone, changes of
                its UTC offset are accounted for.

        Returns:
            The earliest and the latest time; None for a time after year 9999.
        """
        return _later(start, self.start_low), _later(start, self.start_high)


@final
class EndOfCall(Frozen):
    """The retry after which a call that fails every time ends, and why.

    Attributes:
        min_retries: The number of retries if every delay is the longest.
        max_retries: The number of retries if every delay is the shortest.
        reasons: The settings that end the call in these two cases: `max_attempts`,
            `max_elapsed` or `schedule`.
    """

    __slots__ = ("max_retries", "min_retries", "reasons")
    min_retries: int
    max_retries: int
    reasons: tuple[str, str]

    def __str__(self) -> str:
        least, most = self.min_retries, self.max_retries
        span = f"{least} to {most}" if least < most else f"{most}"
        ends = f"stops after retry {span}" if most else "never retries"
        return f"{ends}: {' or '.join(dict.fromkeys(self.reasons))}"


@final
class Projection(Frozen):
    """A call that fails every time, as far as it is known without sampling.

    Attributes:
        rows: The possible retries, in order.
        distributions: The distribution of the delay before each retry; None if there is
            no formula.
        end: Where the call ends; None if it may continue.
        min_retries: The number of retries if every delay is the longest; None if the
            call continues even then.
        limits: Where each setting alone would end the call, keyed by name.
        steady: Whether no limit shortens or drops a delay, so that every call makes
            all these retries, after the same delays as without limits.
    """

    __slots__ = ("distributions", "end", "limits", "min_retries", "rows", "steady")
    rows: tuple[RetryRow, ...]
    distributions: tuple[Distribution | None, ...]
    end: EndOfCall | None
    min_retries: int | None
    limits: dict[str, EndOfCall]
    steady: bool


def project(policy: Policy, attempt: float, most: int) -> Projection:
    """Project a call that fails every time, for at most *most* retries."""
    bounds = _CachedBounds(policy.schedule)

    def walks(limits: Policy) -> tuple[_Walk, _Walk]:
        longest, shortest = (
            walk(limits, bounds.delays(side), attempt, most) for side in (1, 0)
        )
        return longest, shortest

    (longest, reason), (shortest, _) = whole = walks(policy)
    # The user's code may fail for a retry that no call makes.
    bounds.complete = has_user_code(policy.schedule)
    ends = {
        name: _limit(walks, override(policy, **removed))
        for name, removed in _REMOVED_FOR.items()
    }
    known = tuple(islice(delay_distributions(policy.schedule), len(shortest)))
    lows, highs = (list(islice(bounds.delays(side), len(shortest))) for side in (0, 1))
    return Projection(
        tuple(_rows(policy, attempt, zip(shortest, lows, highs, known, strict=True))),
        known,
        _end(whole),
        None if reason is None else len(longest),
        # A schedule that ends first also ends these calls.
        {name: end for name, end in ends.items() if end and name in end.reasons},
        longest == highs,
    )


_Walk = tuple[list[float], StopReason | None]


def walk(policy: Policy, delays: Iterable[float], attempt: float, most: int) -> _Walk:
    """Return the delays of a call, and why it ends: None if it may continue."""
    limits = override(policy, schedule=_DelayIterator(iter(delays)))
    record, elapsed = new_record(Terms(""), seed=0), 0.0
    waited: list[float] = []
    while True:
        number = len(waited) + 1
        elapsed += attempt
        decision = decide(limits, record, number, elapsed)
        if isinstance(decision, StopReason):
            return waited, decision
        if number > most:
            return waited, None
        waited.append(decision)
        elapsed += decision


class _CachedBounds:
    """Bounds of the delays of a schedule, each computed once, when needed.

    Attributes:
        complete: Whether no more are computed: an unknown delay is then an error.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._known: list[Bounds | None] = []
        self.complete = False

    def delays(self, side: int) -> Iterator[float]:
        """Yield the shortest (0) or the longest (1) delays, in seconds."""
        for retry in count():  # pragma: no branch  (a count has no end)
            if retry == len(self._known):
                if self.complete:
                    raise _UnknownDelayError
                self._known.append(self._schedule.bounds(retry + 1))
            bounds = self._known[retry]
            if bounds is None:
                return
            yield float(bounds[side])


class _UnknownDelayError(Exception):
    """The bounds of a delay are needed, but no more may be computed."""


class _DelayIterator(Fixed):
    """Schedule whose delays come from an iterator."""

    __slots__ = ("delays",)
    delays: Iterator[float]

    def delay(
        self, _retry: int, _previous: float | None, _random: Random, /
    ) -> float | None:
        return next(self.delays, None)


# The changes that leave only this limit.
_REMOVED_FOR: dict[str, dict[str, Any]] = {
    "max_attempts": {"max_elapsed": None, "deadline": "stop"},
    "max_elapsed": {"max_attempts": None},
    "schedule": {"max_attempts": None, "max_elapsed": None, "deadline": "stop"},
}
_SETTINGS = {
    StopReason.ATTEMPTS: "max_attempts",
    StopReason.ELAPSED: "max_elapsed",
    StopReason.SCHEDULE_ENDED: "schedule",
}


def _limit(
    walks: Callable[[Policy], tuple[_Walk, _Walk]], policy: Policy
) -> EndOfCall | None:
    """Return where a call ends; None if it may continue, or if that is unknown."""
    try:
        return _end(walks(policy))
    except _UnknownDelayError:
        return None


def _end(walks: tuple[_Walk, _Walk]) -> EndOfCall | None:
    (fewer, soon), (more, late) = walks
    if soon is None or late is None:
        return None
    return EndOfCall(len(fewer), len(more), (_SETTINGS[soon], _SETTINGS[late]))


def _rows(
    policy: Policy,
    attempt: float,
    known: Iterable[tuple[float, float, float, Distribution | None]],
) -> Iterator[RetryRow]:
    """Yield the rows of the retries that the shortest delays allow."""
    shortest = longest = 0.0
    for retry, (delay, low, high, distribution) in enumerate(known, 1):
        allowed = min(allowed_at(policy, retry), MAX_DELAY)
        attempts = retry * attempt
        time_left = max(allowed - attempts, shortest)
        shortest = min(shortest + delay, MAX_DELAY)
        if policy.deadline == "overshoot":
            longest = min(min(longest, time_left) + high, MAX_DELAY)
        else:
            longest = min(longest + high, max(time_left, shortest))
        begins = (min(total + attempts, MAX_DELAY) for total in (shortest, longest))
        mean = distribution and distribution.mean
        yield RetryRow(retry, low, mean, 0.0, high, shortest, longest, *begins)


def allowed_at(policy: Policy, retry: int) -> float:
    """Return the time limit of a retry in seconds; infinity if there is none.

    If both limits must be reached, there is none until all attempts are used.
    """
    joined = policy.limits == "all" and policy.max_attempts is not None
    if policy.max_elapsed is None or (joined and retry < (policy.max_attempts or 0)):
        return math.inf
    return policy.max_elapsed


def _later(start: datetime, seconds: float) -> datetime | None:
    try:
        if start.tzinfo is None:
            return start + timedelta(seconds=seconds)
        later = start.astimezone(UTC) + timedelta(seconds=seconds)
        return later.astimezone(start.tzinfo)
    except OverflowError:
        return None
