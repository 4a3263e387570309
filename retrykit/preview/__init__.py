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
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, final

from retrykit.checks import instance, whole
from retrykit.durations import Duration, seconds
from retrykit.policy import Policy
from retrykit.preview.course import End, Row, end_of, rows_of
from retrykit.preview.delays import spreads
from retrykit.preview.windows import (
    Quantile,
    Window,
    exact_window,
    mean_of,
    sampled_window,
)
from retrykit.values import Value

__all__ = ["End", "Preview", "Quantile", "Row", "Window", "preview"]


@final
class Preview(Value):
    """What a call does under a policy if it fails every time.

    Attributes:
        policy: The policy.
        attempt: How long each attempt takes, in seconds.
        rows: The retries that it may come to, in order.
        end: Where it ends, by all settings together; None if it may go on
            after the last of the rows.
        limits: Where each setting would end it if it were the only one, by
            its name: `max_attempts`, `max_elapsed` and `schedule`; those that
            do not within the rows asked for are left out.
        window: What is waited in all, and by how many calls; None where there
            is no end, or no formula and nothing was drawn.
        calls: The fewest and the most calls of the function for one request
            that fails every time; None where there is no end.
        worst: The longest time in all, in seconds, the last attempt included;
            None where there is no end.
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
        "window",
        "worst",
    )
    policy: Policy
    attempt: float
    rows: tuple[Row, ...]
    end: End | None
    limits: dict[str, End]
    window: Window | None
    calls: tuple[int, int] | None
    worst: float | None
    samples: int


def preview(
    policy: Policy,
    *,
    attempt: Duration = 0.0,
    retries: int = 1000,
    samples: int = 2000,
    progress: Callable[[], object] = lambda: None,
) -> Preview:
    """Return what a call does under a policy if it fails every time.

    Args:
        policy: The policy.
        attempt: How long each attempt takes. A duration, >= 0.
        retries: Most retries that are looked at. Count, >= 1.
        samples: How many calls are drawn for what has no formula, with the
            policy's seed or else the same ones each time. Count, >= 0; with 0
            what has none is None.
        progress: Called after each call that is drawn.

    Raises:
        ConfigError: An argument is none of these, or the user's own schedule
            gave what is no delay.
    """
    instance("policy", policy, Policy, "write Policy(schedule=...)")
    took = seconds("attempt", attempt)
    most = whole("retries", retries, at_least=1)
    count = whole("samples", samples, at_least=0)
    rows, end = tuple(rows_of(policy, took, most)), end_of(policy, took, most)
    known = tuple(islice(spreads(policy.schedule), len(rows)))
    steady = end is not None and _waits_all(policy, rows, end)
    window = exact_window(known) if steady else None
    if count and end and window is None:
        window = sampled_window(policy, took, count, progress)
        if steady and None not in known:
            mean = math.fsum(each.mean for each in known if each)
            window = window.replaced(mean=mean, error=0.0)
    if count and None in known:
        rows = _with_means(policy, rows, count, progress)
    drawn = None in known or (window and window.samples)
    worst = max((row.begins_high for row in rows), default=0.0) + took
    return Preview(
        policy=policy,
        attempt=took,
        rows=rows,
        end=end,
        limits=_limits(policy, took, most),
        window=window,
        calls=end and (end.soonest + 1, end.latest + 1),
        worst=worst if end else None,
        samples=count if drawn else 0,
    )


def _waits_all(policy: Policy, rows: tuple[Row, ...], end: End) -> bool:
    """Return whether every delay is waited, and as it is drawn."""
    clipped = policy.deadline == "clip" and policy.max_elapsed is not None
    return end.soonest == end.latest and not (
        clipped and rows and rows[-1].begins_high >= (policy.max_elapsed or 0.0)
    )


_UNLIMITED: dict[str, Any] = {
    "max_attempts": None,
    "max_elapsed": None,
    "deadline": "stop",
}


def _limits(policy: Policy, attempt: float, most: int) -> dict[str, End]:
    kept: dict[str, dict[str, Any]] = {
        "max_attempts": {"max_attempts": policy.max_attempts},
        "max_elapsed": {"max_elapsed": policy.max_elapsed, "deadline": policy.deadline},
        "schedule": {},
    }
    ends = {
        name: end_of(policy.replace(**_UNLIMITED | settings), attempt, most)
        for name, settings in kept.items()
    }
    # A schedule that ends first ends every one of them.
    return {name: end for name, end in ends.items() if end and name in end.reasons}


def _with_means(
    policy: Policy,
    rows: tuple[Row, ...],
    samples: int,
    progress: Callable[[], object],
) -> tuple[Row, ...]:
    """Return rows whose means are drawn where they could not be worked out."""
    calls: list[list[float]] = []
    for number in range(samples):
        delays = policy.schedule.draw((policy.seed or 0) + number)
        calls.append(list(islice(delays, len(rows))))
        progress()
    columns = zip(*calls, strict=True)
    return tuple(
        row if row.mean is not None else _sampled(row, column)
        for row, column in zip(rows, columns, strict=True)
    )


def _sampled(row: Row, column: Sequence[float]) -> Row:
    mean, error = mean_of(column)
    sampled: Row = row.replaced(mean=mean, mean_error=error)
    return sampled
