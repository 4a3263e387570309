"""What a policy will do, before it does it: every delay, end and total.

Worked out from the very objects that run, without calling, sleeping or
reading a clock. Nothing here is drawn on a screen.

>>> from retrykit import Policy
>>> from retrykit.schedules import exponential
>>> seen = preview(Policy(schedule=exponential(10).jitter(0.5), max_elapsed="2m"))
>>> [(row.low, row.mean, row.high) for row in seen.rows]
[(5.0, 10.0, 15.0), (10.0, 20.0, 30.0), (20.0, 40.0, 60.0), (40.0, 80.0, 120.0)]
>>> print(seen.end)
stops after retry 3 to 4: max_elapsed or max_attempts
>>> seen.worst, seen.calls
(120.0, (4, 5))
"""

import math
from collections.abc import Sequence
from typing import final

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import check_instance, check_integer
from retrykit.analysis.preview.distributions import total
from retrykit.analysis.preview.projection import (
    EndOfCall,
    Projection,
    RetryRow,
    project,
    walk,
)
from retrykit.analysis.preview.sampling import drawn, with_means
from retrykit.analysis.preview.total_wait import (
    Quantile,
    TotalWait,
    exact_total_wait,
    sampled_total_wait,
)
from retrykit.policy.policy import Policy
from retrykit.policy.timeouts import timeout_seconds
from retrykit.schedules.base import iter_parts
from retrykit.schedules.randomness import MAX_DELAY

__all__ = ["EndOfCall", "Preview", "Quantile", "RetryRow", "TotalWait", "preview"]


@final
class Preview(Frozen):
    """What a call does under a policy if it fails every time.

    Attributes:
        policy: The policy.
        attempt: How long each attempt takes, in seconds.
        rows: The retries that it may come to, in order.
        end: Where it ends, by all settings together; None if it may go on
            after the last of the rows.
        soonest: After how many retries it ends if every delay is the longest;
            None if it may go on even then.
        limits: Where each setting would end it if it were the only one, by
            its name: `max_attempts`, `max_elapsed` and `schedule`; those that
            do not within the rows asked for are left out.
        window: What is waited in all, and by how many calls; None where there
            is no end, or no formula and nothing was drawn.
        calls: The fewest and the most calls of the function for one request
            that fails every time; None where there is no end.
        worst: The longest time in all, in seconds, the last attempt included;
            None where there is no end. Where nothing is said of attempts, they
            take as long as `attempt_timeout` lets them, or no time at all.
        samples: How many calls were drawn for what has no formula; 0 if all
            is exact.
    """

    __slots__ = (
        "attempt",
        "calls",
        "end",
        "limits",
        "policy",
        "rows",
        "samples",
        "soonest",
        "total_wait",
        "worst",
    )
    policy: Policy
    attempt: float
    rows: tuple[RetryRow, ...]
    end: EndOfCall | None
    soonest: int | None
    limits: dict[str, EndOfCall]
    total_wait: TotalWait | None
    calls: tuple[int, int] | None
    worst: float | None
    samples: int

    def shown(self, retries: int | None = None) -> tuple[RetryRow, ...]:
        """Return the rows to show to people.

        Args:
            retries: The most of them; None is all, and 20 where there is no end.
        """
        endless = _ENDLESS if self.end is None else None
        return self.rows[: endless if retries is None else retries]


# As many as fit on a screen.
_ENDLESS = 20
_MOST_RETRIES = 10_000
# Delays that are drawn, each of which asks every part of its schedule.
_MOST_DRAWN = 400_000


def preview(
    policy: Policy,
    *,
    attempt: Duration = 0.0,
    retries: int = 1000,
    samples: int = 2000,
) -> Preview:
    """Return what a call does under a policy if it fails every time.

    It is what the policy's own schedule and limits make of it. Errors that a
    rule holds for have the delays of the rule; a hint may ask for longer or
    shorter ones; and a budget, a call around this one, or one inside of it
    that has given up may end it sooner.

    Args:
        policy: The policy.
        attempt: How long each attempt takes. A duration, >= 0; at most the
            `attempt_timeout` of the policy. With 0, the default, the worst
            case is that of attempts that take this timeout.
        retries: Most retries that are looked at. Count, 1 to 10,000.
        samples: Most calls that are drawn for what has no formula, with the
            policy's seed or else the same ones each time. Count, >= 0; with 0
            what has none is None. Fewer are drawn where their delays would be
            more than 400,000 in all, divided by the parts of the schedule.

    Raises:
        ConfigError: An argument is none of these, or the user's own schedule
            gave what is no delay, in as many retries as are looked at.
    """
    check_instance("policy", policy, Policy, "write Policy(schedule=...)")
    took = min(parse_duration("attempt", attempt), _limit(policy))
    most = check_integer("retries", retries, at_least=1, at_most=_MOST_RETRIES)
    count = check_integer("samples", samples, at_least=0)
    course = project(policy, took, most)
    rows, end = course.rows, course.end
    window = exact_total_wait(course.spreads) if end and course.steady else None
    calls: list[Sequence[float]] = []
    if None in course.spreads or (course.soonest is not None and not window):
        left = _MOST_DRAWN / sum(1 for _ in iter_parts(policy.schedule))
        for call in drawn(policy, len(rows), count, allowed=_allowed(policy, course)):
            calls.append(call)
            left -= len(call)
            if left <= 0:
                break
    return Preview(
        policy=policy,
        attempt=took,
        rows=tuple(with_means(rows, calls)),
        end=end,
        soonest=course.soonest,
        limits=course.limits,
        total_wait=window or _sampled(policy, took, course, calls),
        calls=end and (end.soonest + 1, end.latest + 1),
        worst=_worst(policy, took, course),
        samples=len(calls),
    )


def _allowed(policy: Policy, course: Projection) -> float:
    """Return the delays in all of which no call waits more."""
    # Where a mean is to be drawn, the delays of long calls belong to it.
    if course.end or None in course.spreads or policy.max_elapsed is None:
        return math.inf
    return policy.max_elapsed


def _limit(policy: Policy) -> float:
    """Return the longest time that an attempt may take, in seconds."""
    limit = timeout_seconds(policy.attempt_timeout)
    return math.inf if limit is None else limit


def _worst(policy: Policy, attempt: float, course: Projection) -> float | None:
    """Return the longest time in all; None where there is none that is known."""
    longest = max((row.begins_high for row in course.rows), default=0.0)
    if course.end is None:
        # Shorter delays let a call go on, but no longer than it is allowed to.
        ended = course.soonest is not None and policy.deadline != "overshoot"
        if not ended or policy.max_elapsed is None:
            return None
    if attempt or policy.attempt_timeout is None:
        return min(longest + attempt, MAX_DELAY)
    return _latest(policy, course.rows)


def _latest(policy: Policy, rows: Sequence[RetryRow]) -> float:
    """Return when a call ends whose attempts take as long as they may."""
    allowed = math.inf if policy.max_elapsed is None else policy.max_elapsed
    limit, begins = _limit(policy), 0.0
    for row in rows:
        if policy.deadline == "overshoot":
            begins = min(begins + limit, allowed) + row.high
        else:
            begins = min(begins + limit + row.high, max(allowed, row.begins_low))
        begins = min(begins, MAX_DELAY)
    if policy.deadline == "stop":
        limit = min(limit, max(allowed - begins, 0.0))
    return min(begins + limit, MAX_DELAY)


def _sampled(
    policy: Policy, attempt: float, course: Projection, calls: Sequence[Sequence[float]]
) -> TotalWait | None:
    """Return the window as drawn calls show it, held to the limits of the policy."""
    if course.soonest is None or not calls:
        return None
    if not course.steady:
        calls = [walk(policy, call, attempt, len(call))[0] for call in calls]
    most = course.end.latest if course.end else max(map(len, calls))
    if not course.end and most == len(course.rows):
        return None
    longest = max(row.total_high for row in course.rows)
    window = sampled_total_wait(calls, longest, most)
    if not course.steady or None in course.spreads:
        return window
    mean = total(each.mean for each in course.spreads if each)
    known: TotalWait = window.replace(mean=mean, error=0.0)
    return known
