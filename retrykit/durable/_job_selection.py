"""Selection and counts of an engine's jobs."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from heapq import nsmallest
from typing import Any, Final, TypedDict, final, get_args

from retrykit._internal.clocks import wall
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import (
    check_choice,
    check_integer,
    check_text,
    user_facing,
)
from retrykit.durable._job_report import JobReport, JobStatus

__all__ = ["UNFINISHED", "JobCounts", "JobFilters", "count_jobs", "select_jobs"]
__all__ += ["wanted_statuses"]

UNFINISHED: Final[tuple[JobStatus, ...]] = ("waiting", "running")
"""The statuses of jobs that have not ended."""

_STATUSES: Final[tuple[JobStatus, ...]] = get_args(JobStatus)


class JobFilters(TypedDict, total=False):
    """Properties that jobs must have to be chosen; without any, all jobs are chosen.

    Attributes:
        status: Their status: ``waiting``, ``running``, ``succeeded`` or ``dead``, or
            a collection of these.
        name: The name of their function.
        error: The type of their last error, such as ``ConnectionError`` or
            ``httpx.ReadTimeout``, with or without its module.
        overdue: They have not ended, although they have been due for longer than this.
            A duration.
        older_than: Their `JobReport.started` is longer ago than this. A duration.
    """

    status: JobStatus | Collection[JobStatus]
    name: str
    error: str
    overdue: Duration
    older_than: Duration


@final
class JobCounts(Frozen):
    """The number of jobs by name and status, and how late they are.

    Attributes:
        counts: The number of jobs of each status, for each name.
        overdue: How long the longest overdue job has been due, in seconds; 0 if none is
            overdue.
        next_due: When the next job is due, in UTC; None if none waits for its time.
    """

    __slots__ = ("counts", "next_due", "overdue")
    counts: Mapping[str, Mapping[JobStatus, int]]
    overdue: float
    next_due: datetime | None

    def total(self, *statuses: JobStatus) -> int:
        """Return the number of jobs that have one of these statuses."""
        return sum(each.get(x, 0) for each in self.counts.values() for x in statuses)


def wanted_statuses(filters: JobFilters) -> tuple[JobStatus, ...]:
    """Return the statuses that a chosen job may have.

    Raises:
        ConfigError: A status is unknown, or means that a job has ended, while overdue
            jobs are wanted.
    """
    status: Any = filters.get("status")
    known = UNFINISHED if "overdue" in filters else _STATUSES
    if status is None:
        return known
    suggestion = "a job that has ended is not overdue" if "overdue" in filters else ""
    several = isinstance(status, Collection) and not isinstance(status, str)
    wanted: list[Any] = [*status] if several and status else [status]
    for each in wanted:
        check_choice("status", each, known, suggestion)
    return (*dict.fromkeys(wanted),)


@user_facing
def select_jobs(
    reports: Iterable[JobReport], filters: JobFilters, limit: int | None
) -> list[JobReport]:
    """Return up to *limit* (>= 1, None for all) matching jobs, the longest due first.

    Jobs that have ended come last, the newest first: ordered by when they ended or, if
    that is unknown, by when their histories were written. If neither is known, a job
    counts as the oldest.
    """
    chosen = filter(_compile(filters), reports)
    if limit is None:
        return sorted(chosen, key=_sort_key)
    return nsmallest(check_integer("limit", limit, at_least=1), chosen, key=_sort_key)


def count_jobs(reports: Iterable[JobReport]) -> JobCounts:
    """Count jobs by name and status, and measure how late they are."""
    now, overdue, waiting = wall(), 0.0, []
    counts: dict[str, Counter[JobStatus]] = {}
    for report in reports:
        counts.setdefault(report.name, Counter())[report.status] += 1
        overdue = max(overdue, report.overdue(now))
        if report.due is not None and not report.overdue(now):
            waiting.append(report.due)
    return JobCounts(dict(sorted(counts.items())), overdue, min(waiting, default=None))


def _compile(filters: JobFilters) -> Callable[[JobReport], bool]:
    """Return a function that decides whether a job is chosen."""
    checks = [*_checks(filters)]
    return lambda report: all(check(report) for check in checks)


def _checks(filters: JobFilters) -> Iterator[Callable[[JobReport], bool]]:
    now, statuses = wall(), wanted_statuses(filters)
    given: Mapping[str, Any] = filters
    for each in given:
        check_choice("filters", each, (*JobFilters.__annotations__,))
    yield lambda report: report.status in statuses
    if "name" in filters:
        name = check_text("name", filters["name"])
        yield lambda report: report.name == name
    if "error" in filters:
        error = check_text("error", filters["error"])
        yield lambda report: f".{report.last_error}".endswith(f".{error}")
    if "overdue" in filters:
        overdue = parse_duration("overdue", filters["overdue"])
        yield lambda report: report.overdue(now) > overdue
    if "older_than" in filters:
        age = parse_duration("older_than", filters["older_than"])
        yield lambda report: report.started is not None and now - report.started > age


def _sort_key(report: JobReport) -> tuple[bool, float]:
    envelope = report.envelope
    if report.status in UNFINISHED:
        if envelope is None:
            return False, 0.0
        return False, envelope.written if envelope.due is None else envelope.due
    if report.ended is not None:
        return True, -report.ended.timestamp()
    return True, math.inf if envelope is None else -envelope.written
