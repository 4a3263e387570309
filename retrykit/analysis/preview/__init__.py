"""Preview of a policy: every delay, where a call ends, and its total time.

It decides as live calls do, but makes no calls, does not sleep and reads no clock.

>>> from retrykit import Policy
>>> from retrykit.schedules import exponential
>>> schedule = exponential(10).jitter(0.5)
>>> result = preview(Policy(schedule=schedule, max_attempts=5, max_elapsed="2m"))
>>> [(row.low, row.mean, row.high) for row in result.rows]
[(5.0, 10.0, 15.0), (10.0, 20.0, 30.0), (20.0, 40.0, 60.0), (40.0, 80.0, 120.0)]
>>> print(result.end)
stops after retry 3 to 4: max_elapsed or max_attempts
>>> result.worst_case, result.attempts
(120.0, (4, 5))
"""

import math
from collections.abc import Sequence
from typing import final

from retrykit._core.policy import Policy
from retrykit._core.timeouts import timeout_seconds
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import check_instance, check_integer, user_facing
from retrykit.analysis.preview._caveats import has_other_delays
from retrykit.analysis.preview._distributions import saturating_sum
from retrykit.analysis.preview._projection import (
    EndOfCall,
    Projection,
    RetryRow,
    allowed_at,
    project,
    walk,
)
from retrykit.analysis.preview._total_wait import (
    Quantile,
    TotalWait,
    exact_total_wait,
    sample_calls,
    sampled_total_wait,
    with_means,
)
from retrykit.schedules._base import iter_parts
from retrykit.schedules._randomness import MAX_DELAY

__all__ = ["EndOfCall", "Preview", "Quantile", "RetryRow", "TotalWait", "preview"]


@final
class Preview(Frozen):
    """The preview of a call that fails every time.

    Attributes:
        policy: The policy.
        attempt: How long each attempt takes, in seconds.
        rows: The possible retries, in order.
        end: Where the call ends, by all settings together; None if it may continue
            after the last row.
        min_retries: The number of retries if every delay is the longest; None if the
            call may continue even then.
        limits: Where each setting alone would end the call, keyed by name:
            `max_attempts`, `max_elapsed` and `schedule`. A setting that does not end it
            within the rows is missing.
        total_wait: The total delay and the number of attempts; None if some calls
            continue after the last row, or if there is no formula and no sample.
        attempts: The minimum and the maximum number of attempts; None if *end* is None.
        worst_case: The longest total time in seconds, including the last attempt;
            None if it is unbounded or unknown. If *attempt* is 0, each attempt takes
            the policy's `attempt_timeout`, or no time if there is none.
        samples: Number of sampled calls.
    """

    __slots__ = (
        "attempt",
        "attempts",
        "end",
        "limits",
        "min_retries",
        "policy",
        "rows",
        "samples",
        "total_wait",
        "worst_case",
    )
    policy: Policy
    attempt: float
    rows: tuple[RetryRow, ...]
    end: EndOfCall | None
    min_retries: int | None
    limits: dict[str, EndOfCall]
    total_wait: TotalWait | None
    attempts: tuple[int, int] | None
    worst_case: float | None
    samples: int

    @property
    def never_reached(self) -> tuple[str, ...]:
        """The limits that no call reaches, since another one always ends it sooner.

        `max_elapsed` is among them only if an `attempt_timeout` ends long attempts.
        It is empty if rules or hints may change the delays, if both limits must be
        reached, or if *end* is None.

        >>> preview(Policy(max_attempts=20, max_elapsed="1m")).never_reached
        ('max_attempts',)
        """
        policy, end = self.policy, self.end
        if end is None or policy.limits == "all" or has_other_delays(policy):
            return ()
        late, most = [], policy.max_attempts
        if most is not None and most - 1 > end.max_retries:
            late.append("max_attempts")
        delays = self.limits.get("schedule")
        if delays is not None and delays.min_retries > end.max_retries:
            late.append("schedule")
        # Clients may take longer than the timeout that they are given.
        bounded = isinstance(policy.attempt_timeout, float) and self.worst_case
        if policy.max_elapsed is not None and bounded and bounded < policy.max_elapsed:
            late.append("max_elapsed")
        return tuple(late)

    def shown(self, retries: int | None = None) -> tuple[RetryRow, ...]:
        """Return the rows to display.

        Args:
            retries: Maximum number of rows; None means all, or 20 without an end.
        """
        default = _ROWS_WITHOUT_END if self.end is None else None
        return self.rows[: default if retries is None else retries]


# As many as fit on a screen.
_ROWS_WITHOUT_END = 20
_MAX_RETRIES = 10_000
# Sampled delays times parts of the schedule.
_MAX_DRAWS = 200_000


@user_facing
def preview(
    policy: Policy, *, attempt: Duration = 0.0, retries: int = 1000, samples: int = 2000
) -> Preview:
    """Return the preview of a call that fails every time under a policy.

    Only the policy's own schedule and limits are considered. In a live call, a
    rule or a hint may change delays, and a budget, an outer call, or a nested
    call that has given up may end the call sooner.

    Args:
        policy: The policy.
        attempt: How long each attempt takes. A duration, >= 0; one that is longer
            than the policy's `attempt_timeout` is shortened to it. With 0, the default,
            the worst case assumes that each attempt times out.
        retries: Maximum number of retries to consider. Count, 1 to 10,000.
        samples: Maximum number of calls to sample where there is no formula, with
            the policy's seed or a fixed one. Count, >= 0; with 0, values without a
            formula are None. If calls are long, fewer are sampled: about 200,000
            delays in total, divided by the number of parts of the schedule.

    Raises:
        ConfigError: An argument is invalid, or the user's own schedule gave an
            invalid delay.
    """
    check_instance("policy", policy, Policy, "write Policy(schedule=...)")
    duration = min(parse_duration("attempt", attempt), _attempt_limit(policy))
    most = check_integer("retries", retries, at_least=1, at_most=_MAX_RETRIES)
    count = check_integer("samples", samples, at_least=0)
    projection = project(policy, duration, most)
    rows, end = projection.rows, projection.end
    total_wait = None
    if end and projection.steady:
        total_wait = exact_total_wait(projection.distributions)
    calls: list[Sequence[float]] = []
    ends = projection.min_retries is not None
    if None in projection.distributions or (ends and not total_wait):
        draws_left = _MAX_DRAWS / sum(1 for _ in iter_parts(policy.schedule))
        allowed = _longest_sample(policy, projection)
        is_fixed = projection.end is not None and projection.steady
        independent = projection.distributions if is_fixed else ()
        drawn = sample_calls(
            policy, len(rows), count, allowed=allowed, independent=independent
        )
        for call in drawn:
            calls.append(call)
            draws_left -= len(call)
            if draws_left <= 0:
                break
    return Preview(
        policy=policy,
        attempt=duration,
        rows=tuple(with_means(rows, calls)),
        end=end,
        min_retries=projection.min_retries,
        limits=projection.limits,
        total_wait=total_wait or _sample_total(policy, duration, projection, calls),
        attempts=end and (end.min_retries + 1, end.max_retries + 1),
        worst_case=_worst_case(policy, duration, projection),
        samples=len(calls),
    )


def _longest_sample(policy: Policy, projection: Projection) -> float:
    """Return the total delay after which a sampled call may stop, in seconds."""
    # To estimate the means of rows, long calls are needed in full.
    means = projection.end or None in projection.distributions
    if means or policy.max_elapsed is None or policy.limits == "all":
        return math.inf
    return policy.max_elapsed


def _attempt_limit(policy: Policy) -> float:
    limit = timeout_seconds(policy.attempt_timeout)
    return math.inf if limit is None else limit


def _worst_case(policy: Policy, attempt: float, projection: Projection) -> float | None:
    """Return the longest total time in seconds; None if it is unbounded or unknown."""
    longest = max((row.start_high for row in projection.rows), default=0.0)
    if projection.end is None:
        # Shorter delays let a call continue, but not beyond max_elapsed.
        bounded = projection.min_retries is not None and policy.deadline != "overshoot"
        if not bounded or policy.max_elapsed is None:
            return None
    if attempt or policy.attempt_timeout is None:
        return min(longest + attempt, MAX_DELAY)
    return _latest(policy, projection.rows)


def _latest(policy: Policy, rows: Sequence[RetryRow]) -> float:
    """Return the latest end of a call whose attempts all time out, in seconds."""
    limit, begins = _attempt_limit(policy), 0.0
    for row in rows:
        allowed = allowed_at(policy, row.retry)
        if policy.deadline == "overshoot":
            begins = min(begins + limit, allowed) + row.high
        else:
            begins = min(begins + limit + row.high, max(allowed, row.start_low))
        begins = min(begins, MAX_DELAY)
    if policy.deadline == "stop" and policy.limits == "any":
        left = allowed_at(policy, len(rows) + 1) - begins
        limit = min(limit, max(left, 0.0))
    return min(begins + limit, MAX_DELAY)


def _sample_total(
    policy: Policy,
    attempt: float,
    projection: Projection,
    calls: Sequence[Sequence[float]],
) -> TotalWait | None:
    """Estimate the total delay from sampled calls under the policy's limits.

    None without a sample, or if some calls continue after the last row.
    """
    if projection.min_retries is None or not calls:
        return None
    if not projection.steady:
        calls = [walk(policy, call, attempt, len(call))[0] for call in calls]
    most = projection.end.max_retries if projection.end else max(map(len, calls))
    if not projection.end and most == len(projection.rows):
        return None
    longest = max(row.total_high for row in projection.rows)
    estimate = sampled_total_wait(calls, longest, most)
    if not projection.steady or None in projection.distributions:
        return estimate
    mean = saturating_sum(each.mean for each in projection.distributions if each)
    exact_mean: TotalWait = estimate.replace(mean=mean, error=0.0)
    return exact_mean
