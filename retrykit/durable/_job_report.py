"""Reports on the status of jobs."""

from datetime import UTC, datetime
from typing import Any, Literal, TypeVar, final

from retrykit._core.failures import Failure, result_text
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting
from retrykit.durable._envelope import Envelope, failure_type, read_own_envelope
from retrykit.errors import ConfigError

__all__ = ["JobReport", "JobStatus", "check_started", "parse_envelope", "to_datetime"]

T = TypeVar("T")

JobStatus = Literal["waiting", "running", "succeeded", "dead"]
"""The status of a job; one that is due but not yet taken by a worker is waiting."""

_TIME = "%Y-%m-%d %H:%M:%S UTC"
_MAX_TIME = datetime(9999, 12, 31, tzinfo=UTC)


@final
class JobReport(Frozen):
    """The status of a job.

    Attributes:
        job: Its id.
        status: ``waiting``, ``running``, ``succeeded`` or ``dead``.
        envelope: Its history; None if none is stored, or if it is unreadable.
        result: Its result, if it has succeeded.
        reason: Why it is dead, or why its envelope is unreadable; otherwise empty.
        engine_id: The id of its workflow, task or row in the engine.
        name: The name of its function; empty if that is unknown.
        ended: When it ended, in UTC; None if it has not, or if that is not stored.
    """

    __slots__ = (
        "ended", "engine_id", "envelope", "job", "name", "reason", "result", "status",
    )  # fmt: skip
    job: str
    status: JobStatus
    envelope: Envelope | None
    result: Any
    reason: str
    engine_id: str
    name: str
    ended: datetime | None

    @property
    def due(self) -> datetime | None:
        """When the next attempt of a waiting job is due, in UTC.

        None if the job does not wait, or has no envelope.
        """
        due = None if self.envelope is None else self.envelope.due
        return None if due is None or self.status != "waiting" else to_datetime(due)

    @property
    def started(self) -> float | None:
        """When the job was started, in seconds since 1970; None without an envelope.

        Once its first attempt has ended, this is when that attempt began.
        """
        return None if self.envelope is None else self.envelope.state.epoch

    @property
    def last_error(self) -> str:
        """The type of the last error, or ``rejected result``; empty if it has none."""
        return failure_type(self.failures[-1]) if self.failures else ""

    def overdue(self, now: float) -> float:
        """Return for how many seconds the job has been due; 0.0 if it is not.

        A job that is due waits for a worker, or its attempt is running, or its worker
        was killed. A job that has ended, or that has no envelope, is not due.
        """
        due = None if self.envelope is None else self.envelope.due
        if due is None or self.status not in {"waiting", "running"}:
            return 0.0
        return max(now - due, 0.0)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The stored failures: the first and the last ones."""
        return () if self.envelope is None else self.envelope.state.failures

    def describe(self) -> str:
        """Return the status of the job and its failures, as lines of text.

        >>> from retrykit import Policy
        >>> from retrykit.durable import Job
        >>> job = Job(int, Policy(max_attempts=1), "parse")
        >>> envelope = job.attempt(job.envelope("parse-7"), ["seven"], {}).envelope
        >>> history = envelope, None, "", "parse-7:1", "parse", None
        >>> report = JobReport("parse-7", "dead", *history)
        >>> print(report.describe())  # doctest: +ELLIPSIS
        parse-7: dead, gave up after 1 attempt in ...: max_attempts=1 reached
          1 x ValueError
              1. ... UTC, ValueError: invalid literal for int() with base 10: 'seven'
        """
        ended = [] if self.ended is None else [f"  ended {self.ended:{_TIME}}"]
        if self.envelope is None:
            return "\n".join([f"{self.job}: {self.status}: {self.reason}", *ended])
        lines = [f"{self.job}: {self._summary(self.envelope)}", *ended]
        counts = sorted(self.envelope.counts.items(), key=lambda item: -item[1])
        if counts:
            totals = ", ".join(f"{count} x {kind}" for kind, count in counts)
            lines.append(f"  {totals}")
        last, epoch = 0, self.envelope.state.epoch
        for failure in self.failures:
            if failure.attempt > last + 1:
                lines.append(f"    ... {failure.attempt - last - 1} more")
            time = _format_time(epoch + failure.started)
            text = " ".join(failure.describe().split())
            lines.append(f"  {failure.attempt:>5}. {time}, {text}")
            last = failure.attempt
        return "\n".join(lines)

    def _summary(self, envelope: Envelope) -> str:
        state, failed = envelope.state, envelope.failed_attempts
        if self.status == "succeeded":
            result = "" if self.result is None else f": {result_text(self.result)}"
            return f"{state.describe()}{result}"
        if self.status == envelope.status == "dead":
            return f"dead, {state.describe()}"
        text = f"{self.status}, {failed} failed attempt{'' if failed == 1 else 's'}"
        if envelope.due is not None and self.status == "waiting":
            return f"{text}, next due {_format_time(envelope.due)}"
        return f"{text}: {self.reason}" if self.reason else text


def parse_envelope(stored: object, job: str) -> tuple[Envelope | None, str]:
    """Return the stored envelope of a job and "", or None and why it is unreadable."""
    try:
        return read_own_envelope(stored, job), ""
    except ConfigError as error:
        return None, error.message


def check_started(job_id: str, stored: T | None) -> T:
    """Return what an engine stores about a job, after checking that it is not empty.

    Raises:
        ConfigError: It is None or empty: no job was started with this id.
    """
    if not stored:
        raise invalid_setting(
            "job_id", "the id of a job that was started", job_id, code="wrong-state"
        )
    return stored


def _format_time(seconds: float) -> str:
    return f"{to_datetime(seconds):{_TIME}}"


def to_datetime(seconds: float) -> datetime:
    """Return a time in seconds since 1970 as a datetime in UTC."""
    # An edited envelope may hold times beyond the range of datetime.
    return datetime.fromtimestamp(min(max(seconds, 0.0), _MAX_TIME.timestamp()), UTC)
