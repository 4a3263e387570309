"""One line in the log for a dead job, in place of a traceback through its engine."""

import logging

from retrykit._internal.validation import escape_unprintable
from retrykit.durable._job_attempt import JobFailed

__all__ = ["describe_dead_job", "log_dead_jobs_on_one_line"]


class _DeadJobFilter(logging.Filter):
    """Shortens the record of a `JobFailed` to one line, without the traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, JobFailed):
            record.msg, record.args = describe_dead_job(error.job, str(error)), ()
            record.exc_info = record.exc_text = None
        return True


_filter = _DeadJobFilter()


def log_dead_jobs_on_one_line(logger: str) -> None:
    """Make the logger of an engine write one line for each dead job.

    The job's report has the errors and the last traceback.
    """
    logging.getLogger(logger).addFilter(_filter)


def describe_dead_job(job: str, reason: str) -> str:
    """Return the line for a dead job.

    >>> describe_dead_job("verify-7", "gave up after 2 attempts")
    'verify-7: dead, gave up after 2 attempts'
    """
    return escape_unprintable(" ".join(f"{job}: dead, {reason}".split()))
