"""What can be told of a job from outside, by whoever knows its id."""

from datetime import UTC, datetime
from typing import Any, Literal, final

from retrykit._internal.frozen import Frozen
from retrykit.durable.envelope import Envelope
from retrykit.state.failures import Failure
from retrykit.state.records import result_text

__all__ = ["JobReport", "JobStatus"]

JobStatus = Literal["waiting", "running", "succeeded", "dead"]
"""How a job stands: one that waits is not yet due, or no worker has it yet."""

_LAST = datetime(9999, 12, 31, tzinfo=UTC)


@final
class JobReport(Frozen):
    """How a job stands.

    Attributes:
        job: Its id.
        status: ``waiting``, ``running``, ``succeeded`` or ``dead``.
        envelope: Its history; None if what was kept of it cannot be read.
        result: What it returned, if it has succeeded.
        why: Why it is dead, as a text; empty if it is not.
        place: What the engine knows it by: the id of a workflow, of a task, of
            a row.
    """

    __slots__ = ("envelope", "job", "place", "result", "status", "why")
    job: str
    status: JobStatus
    envelope: Envelope | None
    result: Any
    why: str
    place: str

    @property
    def due(self) -> datetime | None:
        """When the next attempt is due, in UTC; None unless the job waits."""
        due = None if self.envelope is None else self.envelope.due
        if due is None or self.status != "waiting":
            return None
        return _moment(due)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The failed attempts that are kept: the first and the last ones."""
        return () if self.envelope is None else self.envelope.state.failures

    def describe(self) -> str:
        """Return how the job stands, and its error list, as lines of text.

        >>> from retrykit import Policy
        >>> from retrykit.durable import Job
        >>> job = Job(int, Policy(max_attempts=1), "parse")
        >>> came = job.attempt(job.envelope("parse-7"), ["seven"], {}).envelope
        >>> report = JobReport("parse-7", "dead", came, None, "", "parse-7:1")
        >>> print(report.describe())  # doctest: +ELLIPSIS
        parse-7: dead, gave up after 1 attempt in ...: only one attempt is allowed
          1 x ValueError
              1. ... UTC, ValueError: invalid literal for int() with base 10: 'seven'
        """
        if self.envelope is None:
            return f"{self.job}: {self.status}: {self.why}"
        lines = [f"{self.job}: {self._stands(self.envelope)}"]
        counts = sorted(self.envelope.counts.items(), key=lambda each: -each[1])
        if counts:
            lines.append(
                "  " + ", ".join(f"{count} x {kind}" for kind, count in counts)
            )
        last, began = 0, self.envelope.state.epoch
        for failure in self.failures:
            if failure.attempt > last + 1:
                lines.append(f"    ... {failure.attempt - last - 1} more")
            at, what = _told(began + failure.started), failure.describe()
            lines.append(f"  {failure.attempt:>5}. {at}, {' '.join(what.split())}")
            last = failure.attempt
        return "\n".join(lines)

    def _stands(self, envelope: Envelope) -> str:
        """Return the end of the sentence that begins with the id of the job."""
        state, failed = envelope.state, envelope.failed
        if self.status == "succeeded":
            returned = "" if self.result is None else f": {result_text(self.result)}"
            return f"{state.describe()}{returned}"
        if self.status == envelope.status == "dead":
            return f"dead, {state.describe()}"
        told = f"{self.status}, {failed} failed attempt{'' if failed == 1 else 's'}"
        if envelope.due is not None and self.status == "waiting":
            return f"{told}, next due {_told(envelope.due)}"
        return f"{told}: {self.why}" if self.why else told


def _told(when: float) -> str:
    return f"{_moment(when):%Y-%m-%d %H:%M:%S} UTC"


def _moment(when: float) -> datetime:
    # What was edited by hand may lie beyond the years that a datetime can tell.
    return datetime.fromtimestamp(min(max(when, 0.0), _LAST.timestamp()), UTC)
