"""One interface to the jobs of every engine."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import final

from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting
from retrykit.durable._job_report import JobReport, JobStatus
from retrykit.durable._job_selection import JobCounts, count_jobs
from retrykit.errors import ConfigError

__all__ = ["JobEngine", "wrong_status"]


@final
class JobEngine(Frozen):
    """The jobs of one application, to be listed, read and changed, on any engine.

    The ``job_engine`` of an engine's integration connects to the application for a
    ``with`` block, and provides this object. A dashboard that is written for it works
    with every engine, as ``retrykit jobs`` does.

    >>> from retrykit.integrations.celery import job_engine  # doctest: +SKIP
    >>> with job_engine(app) as engine:  # doctest: +SKIP
    ...     for report in engine.jobs(status="dead"):
    ...         print(report.describe())

    Attributes:
        jobs: Returns the reports of jobs: ``jobs(limit=100, **filters)``, with filters
            as in `JobFilters`. A limit of None returns all.
        kill: Stops a job, given its id.
        requeue: Starts a dead job again, given its id.
        retry_at: Reschedules the next attempt of a waiting job, given its id and an
            aware datetime.
        status: Returns the report of a job, given its id.
    """

    __slots__ = ("jobs", "kill", "requeue", "retry_at", "status")
    jobs: Callable[..., list[JobReport]]
    kill: Callable[[str], None]
    requeue: Callable[[str], None]
    retry_at: Callable[[str, datetime], None]
    status: Callable[[str], JobReport]

    def counts(
        self, statuses: Collection[JobStatus] = ("waiting", "running", "dead")
    ) -> JobCounts:
        """Return the number of jobs by name and status, and how late they are.

        Args:
            statuses: The statuses to count. An engine may keep many jobs that have
                succeeded, so they are left out by default.

        Raises:
            ConfigError: A status is unknown, or the engine cannot list the jobs.
        """
        return count_jobs(self.jobs(limit=None, status=statuses))


def wrong_status(job_id: str, needed: str, status: str) -> ConfigError:
    """Return the error for a job that cannot be changed in its current status.

    Args:
        job_id: The id of the job.
        needed: The status that the change needs.
        status: The status of the job.
    """
    article = "an" if needed.startswith("un") else "a"
    rule = f"the id of {article} {needed} job"
    return invalid_setting(
        "job_id", rule, job_id, f"it is {status}", code="wrong-state"
    )
