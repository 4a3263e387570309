"""How a call goes that fails every time: its retries, and where it ends.

The shortest and the longest delays are walked by the decision that live calls
are held to, so what is told here is what happens there. What lies between is
the business of the other modules.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, final

from retrykit._internal.frozen import Frozen
from retrykit.analysis.preview.delay_bounds import BoundsOnce, UnknownDelayError
from retrykit.analysis.preview.delay_distributions import spreads
from retrykit.analysis.preview.distributions import Spread
from retrykit.policy.decision import decide
from retrykit.policy.policy import Policy
from retrykit.schedules.basic import Fixed
from retrykit.schedules.parts import has_user_code
from retrykit.schedules.randomness import MAX_DELAY, Random
from retrykit.state.retry_state import RetryState, StopReason

__all__ = ["EndOfCall", "Projection", "RetryRow", "project", "walk"]


@final
class RetryRow(Frozen):
    """One retry of a call that fails every time.

    Attributes:
        retry: Its number, from 1; attempt ``retry + 1`` is made then.
        low: The shortest delay before it, in seconds, as its schedule has it.
            Under the rule `clip` the last delay of a call may be shorter.
        mean: The mean of the delay, in seconds; None where it is not known.
        mean_error: Half the width of the interval, in seconds, that the mean
            lies in with a confidence of 95 %; 0 where it is exact.
        high: The longest delay before it, in seconds, as its schedule has it.
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

    def band(self, *, cumulative: bool) -> tuple[float, float]:
        """Return the ends that a chart shows, in seconds.

        Args:
            cumulative: Whether the delays up to it are added up.
        """
        if cumulative:
            return self.total_low, self.total_high
        return self.low, self.high

    def at(self, start: datetime) -> tuple[datetime | None, datetime | None]:
        """Return when it is made, of a call that starts at a given time.

        Args:
            start: When the first attempt is made. Where it is aware of its
                time zone, an hour that the zone skips or repeats is no time
                that passes.

        Returns:
            The soonest and the latest time; None for one that lies beyond the
            calendar.
        """
        return _later(start, self.begins_low), _later(start, self.begins_high)


@final
class EndOfCall(Frozen):
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


@final
class Projection(Frozen):
    """What is known of the calls of a policy without drawing any.

    Attributes:
        rows: The retries that they may come to, in order.
        spreads: How the delay before each of these is spread; None where that
            cannot be worked out.
        end: Where they end; None if they may go on.
        soonest: How many retries they make at the least; None if every one of
            them goes on.
        limits: Where each setting alone would end them, by its name.
        steady: Whether every call waits the delays of all the rows, each as
            it was drawn.
    """

    __slots__ = ("end", "limits", "rows", "soonest", "spreads", "steady")
    rows: tuple[RetryRow, ...]
    spreads: tuple[Spread | None, ...]
    end: EndOfCall | None
    soonest: int | None
    limits: dict[str, EndOfCall]
    steady: bool


def project(policy: Policy, attempt: float, most: int) -> Projection:
    """Return what is known of the calls of a policy that fail every time.

    Args:
        policy: What they are held to.
        attempt: How long each attempt takes, in seconds.
        most: Most retries that are looked at. Count, >= 1.
    """
    bounds = BoundsOnce(policy.schedule)

    def walks(held: Policy) -> tuple[_Walk, _Walk]:
        longest, shortest = (
            walk(held, bounds.ends(side), attempt, most) for side in (1, 0)
        )
        return longest, shortest

    (longest, reason), (shortest, _) = whole = walks(policy)
    # Code of the user's may fail beyond the end of the calls that it is made for.
    bounds.complete = has_user_code(policy.schedule)
    alone = {name: _limit(walks, policy.replace(**x)) for name, x in _OTHERS.items()}
    known = tuple(islice(spreads(policy.schedule), len(shortest)))
    lows, highs = (list(islice(bounds.ends(side), len(shortest))) for side in (0, 1))
    return Projection(
        tuple(_rows(policy, attempt, zip(shortest, lows, highs, known, strict=True))),
        known,
        _end(whole),
        None if reason is None else len(longest),
        # A schedule that ends first ends every one of them.
        {name: end for name, end in alone.items() if end and name in end.reasons},
        longest == highs,
    )


_Walk = tuple[list[float], StopReason | None]


def walk(policy: Policy, delays: Iterable[float], attempt: float, most: int) -> _Walk:
    """Return what a call waits, and why it ends; None if it may go on.

    Args:
        policy: What it is held to; its schedule is not asked.
        delays: What its schedule gives, in seconds; no more are taken than it
            would be asked for.
        attempt: How long each attempt takes, in seconds.
        most: Most retries that are looked at. Count, >= 0.
    """
    held = policy.replace(schedule=_Given(iter(delays)))
    state, elapsed = RetryState("", seed=0, epoch=0.0), 0.0
    waited: list[float] = []
    while True:
        made = len(waited) + 1
        elapsed += attempt
        follows = decide(held, state, made, elapsed)
        if isinstance(follows, StopReason):
            return waited, follows
        if made > most:
            return waited, None
        waited.append(follows)
        elapsed += follows


@final
class _Given(Fixed):
    """Delays taken in order, unchecked: the decision is what checks them."""

    __slots__ = ("delays",)
    delays: Iterator[float]

    def delay(
        self, _retry: int, _previous: float | None, _random: Random, /
    ) -> float | None:
        return next(self.delays, None)


# What takes away all settings but one.
_OTHERS: dict[str, dict[str, Any]] = {
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
    """Return where a policy ends; None if it may go on or that is not known."""
    try:
        return _end(walks(policy))
    except UnknownDelayError:
        return None


def _end(walks: tuple[_Walk, _Walk]) -> EndOfCall | None:
    (fewer, soon), (more, late) = walks
    if soon is None or late is None:
        return None
    return EndOfCall(len(fewer), len(more), (_SETTINGS[soon], _SETTINGS[late]))


def _rows(
    policy: Policy,
    attempt: float,
    known: Iterable[tuple[float, float, float, Spread | None]],
) -> Iterator[RetryRow]:
    """Give the retries of the shortest delays, each with all that is known of it."""
    allowed = MAX_DELAY if policy.max_elapsed is None else policy.max_elapsed
    shortest = longest = 0.0
    for retry, (delay, low, high, spread) in enumerate(known, 1):
        taken = retry * attempt
        # The attempts before it leave that much for the delays.
        left = max(allowed - taken, shortest)
        shortest = min(shortest + delay, MAX_DELAY)
        if policy.deadline == "overshoot":
            longest = min(min(longest, left) + high, MAX_DELAY)
        else:
            longest = min(longest + high, max(left, shortest))
        begins = (min(total + taken, MAX_DELAY) for total in (shortest, longest))
        mean = spread and spread.mean
        yield RetryRow(retry, low, mean, 0.0, high, shortest, longest, *begins)


def _later(start: datetime, seconds: float) -> datetime | None:
    try:
        if start.tzinfo is None:
            return start + timedelta(seconds=seconds)
        later = start.astimezone(UTC) + timedelta(seconds=seconds)
        return later.astimezone(start.tzinfo)
    except OverflowError:
        return None
