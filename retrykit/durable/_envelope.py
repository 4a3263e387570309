"""Envelope: the history of a job, carried from one attempt to the next.

The engine stores it as plain data, in message headers or in the job's row. Later
versions must read every format that was ever written. A new format gets a new version
number, and is written only once the previous release can read it: a rolling deploy runs
both.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Literal, Self, final

from retrykit._core.failures import ErrorRecord, Failure, ResultRecord
from retrykit._core.records import (
    FieldError,
    failure_from_dict,
    failure_to_dict,
    read_count,
    read_delay,
    read_fields,
    read_state,
    strict_type,
)
from retrykit._core.retry_state import RetryState
from retrykit._internal.redaction import Redaction, combine_redactions
from retrykit._internal.validation import invalid_setting, safe_repr, truncate
from retrykit.durable._json_payloads import from_json
from retrykit.schedules._randomness import MAX_DELAY

__all__ = ["MAX_FAILURES", "Envelope", "EnvelopeStatus", "attempt_key"]
__all__ += ["compact_state", "failure_type", "read_own_envelope"]

EnvelopeStatus = Literal["waiting", "succeeded", "dead"]
"""The status of a job: to be attempted, ended with a result, or given up."""

_VERSION = 1
# The end of the year 9999, the last of a datetime.
_MAX_TIME = 253_402_300_799.0


@final
@dataclass(frozen=True, slots=True)
class Envelope:
    """The history of a job, and its next due time: an immutable value.

    Attributes:
        job: The id of the job.
        policy: The name of its policy.
        fingerprint: The fingerprint of that policy.
        state: The history: errors as records, and the start time.
        written: The wall time when it was written, in seconds since 1970.
        due: The wall time when the next attempt is due, in seconds since 1970; None
            if the job has ended.
        counts: The number of failures of each error type; rejected results are counted
            under ``rejected result``.
        run: The number of the run: 1, plus 1 for each time that the job was requeued.
    """

    job: str
    policy: str
    fingerprint: str
    state: RetryState
    written: float
    due: float | None
    counts: Mapping[str, int]
    run: int = 1

    @property
    def status(self) -> EnvelopeStatus:
        """``waiting``, ``succeeded`` or ``dead``."""
        status = self.state.status
        return "waiting" if status == "running" else status

    @property
    def failed_attempts(self) -> int:
        """The number of failed attempts, >= 0."""
        return len(self.state.failures) + self.state.dropped_failures

    @property
    def attempt(self) -> int:
        """The number of the next attempt, or of the last one if the job has ended."""
        waits = self.status == "waiting" and self.failed_attempts > 0
        return self.state.attempt + waits

    @property
    def key(self) -> str:
        """The idempotency key of the attempt; a repeated attempt has the same one.

        It is ``job:attempt``, or ``job#run:attempt`` for a requeued job.
        """
        return attempt_key(self.job, self.run, self.attempt)

    def describe(self) -> str:
        """Return the status of the job and its last failure, if any, as text."""
        last = [failure.describe() for failure in self.state.failures[-1:]]
        return "; last failure: ".join([self.state.describe(), *last])

    def time_left(self, now: float) -> float:
        """Return the seconds until the attempt is due, <= 0 if it is due.

        If the wall clock was set back, the result is at most the time that was left
        when the envelope was written. If the job has ended, it is 0.
        """
        return 0.0 if self.due is None else self.due - max(now, self.written)

    def rescheduled(self, now: float) -> Self:
        """Return the envelope of a job that woke up early, with the same time left."""
        due = None if self.due is None else now + self.time_left(now)
        return replace(self, written=now, due=due)

    def after_attempt(self, state: RetryState, now: float) -> Self:
        """Return the envelope after an attempt that ended in this state."""
        delay = state.next_delay
        due = None if delay is None else min(now + delay, _MAX_TIME)
        after, counts = compact_state(state), Counter(self.counts)
        counted = max(self.failed_attempts - after.dropped_failures, 0)
        counts.update(map(failure_type, after.failures[counted:]))
        return replace(self, state=after, written=now, due=due, counts=dict(counts))

    def to_dict(self) -> dict[str, Any]:
        """Return the envelope as JSON-serializable data, usually a few kilobytes."""
        return {name: getattr(self, name) for name in _PARSERS} | {
            "version": _VERSION,
            "counts": dict(self.counts),
            "state": self.state.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Return the envelope that `to_dict` wrote.

        Args:
            data: The data that `to_dict` returned, or its JSON text.

        Raises:
            ConfigError: *data* is damaged, inconsistent, or of a newer version.
        """
        if isinstance(data, str | bytes):
            data = from_json("envelope", data)
        version = data.get("version") if isinstance(data, Mapping) else None
        # The type matters: True equals 1.
        number = version if type(version) is int else 0
        if number > _VERSION:
            found = f"version {truncate(safe_repr(number), 80)}"
            rule = f"of version {_VERSION}"
            suggestion = "upgrade retrykit in this worker"
            raise invalid_setting(
                "envelope", rule, found, suggestion, code="damaged-data"
            )
        try:
            fields = read_fields({"version": _parse_version, **_PARSERS}, data)
            del fields["version"]
            envelope = cls(**fields)
            _check_consistency(envelope)
        except FieldError as error:
            raise error.as_setting("envelope") from None
        return envelope


def read_own_envelope(data: object, job: str, run: int | None = None) -> Envelope:
    """Return the stored envelope of a job, after checking that it belongs to the job.

    Args:
        data: The data that `Envelope.to_dict` wrote, or its JSON text.
        job: The id of the job with which the data is stored.
        run: The number of the job's run, if known.

    Raises:
        ConfigError: The envelope is unusable, or belongs to another job or run, whose
            idempotency keys an attempt would use.
    """
    envelope = Envelope.from_dict(data)
    if envelope.job != job:
        rule = f"{job!r}, the job with which it is stored"
        raise invalid_setting("envelope.job", rule, envelope.job, code="damaged-data")
    if run is not None and envelope.run != run:
        rule = f"{run}, the run of the job with which it is stored"
        raise invalid_setting("envelope.run", rule, envelope.run, code="damaged-data")
    return envelope


def attempt_key(job: str, run: int, attempt: int) -> str:
    """Return the idempotency key of an attempt.

    >>> attempt_key("verify-7", 1, 3), attempt_key("verify-7", 2, 1)
    ('verify-7:3', 'verify-7#2:1')
    """
    return f"{job}:{attempt}" if run == 1 else f"{job}#{run}:{attempt}"


def _parse_version(version: object) -> None:
    # The type matters: True equals 1.
    if (type(version), version) != (int, _VERSION):
        msg = f"it is not {_VERSION}"
        raise ValueError(msg)


def _parse_name(value: object) -> str:
    text: str = strict_type(str)(value)
    if not text.strip():
        msg = "it is empty"
        raise ValueError(msg)
    return text


def _parse_counts(value: object) -> Mapping[str, int]:
    counts = strict_type(dict)(value)
    return {_parse_name(name): read_count(count) for name, count in counts.items()}


_PARSERS = {
    "job": _parse_name,
    "run": read_count,
    "policy": _parse_name,
    "fingerprint": _parse_name,
    "written": strict_type(int, float),
    "due": read_delay,
    "counts": _parse_counts,
    "state": read_state,
}


def _check_consistency(envelope: Envelope) -> None:
    """Raise a FieldError if a field contradicts the others."""
    for path, consistent in _consistency(envelope):
        if not consistent:
            value = attrgetter(path)(envelope)
            raise FieldError(path, value, "it contradicts the rest")


def _consistency(envelope: Envelope) -> Iterator[tuple[str, bool]]:
    """Yield the paths of the checked fields, each with whether it is consistent."""
    state, failed, due = envelope.state, envelope.failed_attempts, envelope.due
    waits = envelope.status == "waiting"
    retries = waits and failed > 0
    numbers = [0, *(failure.attempt for failure in state.failures)]
    yield "job", "#" not in envelope.job
    yield "run", envelope.run >= 1
    yield "written", 0 <= envelope.written <= _MAX_TIME
    yield "due", (due is not None) == waits and (due or 0) <= _MAX_TIME
    yield "counts", sum(envelope.counts.values()) == failed
    yield "state.failures", numbers == sorted({*numbers}) and numbers[-1] == failed
    yield "state.attempt", state.attempt - failed in ({0} if retries else {0, 1})
    yield "state.next_delay", not waits or (state.next_delay is not None) == retries
    yield "state.rule_counts", sum(state.rule_counts) <= failed
    yield "state.nested_state", state.nested_state is None or not waits
    yield "state.seed", state.seed >= 0


MAX_FAILURES = 20
"""Maximum number of failures to keep: half of them the first, half the last ones."""

# In characters. A traceback of a web client has some 6,000, causes included.
_MAX_TEXT, _MAX_TRACEBACK = 500, 4000


def compact_state(state: RetryState, redact: Redaction | None = None) -> RetryState:
    """Return a state with records instead of errors, and long texts truncated.

    Only the last error keeps its traceback.

    Args:
        state: The state.
        redact: The redaction of the texts; by default, that of the policy.
    """
    redact = state.redact if redact is None else redact
    failures = tuple(_compact_failure(each, redact) for each in state.failures)
    if failures:
        # Only the last error keeps its traceback.
        last = _compact_failure(state.failures[-1], redact, _MAX_TRACEBACK)
        failures = (*failures[:-1], last)
    inner = state.nested_state
    nested = inner and compact_state(inner, combine_redactions(redact, inner.redact))
    total_delay = min(state.total_delay, MAX_DELAY)
    bare = state._replace(failures=(), nested_state=None, total_delay=total_delay)
    # The round trip drops everything that belongs to this process.
    bare = RetryState.from_dict(bare.to_dict())
    name = _shorten(state.name)
    return bare._replace(name=name, failures=failures, nested_state=nested)


def failure_type(failure: Failure) -> str:
    """Return the type under which a compacted failure is counted.

    It is the type of its error, or ``rejected result``.
    """
    if isinstance(failure.error, ErrorRecord):
        return failure.error.type
    return "rejected result"


def _compact_failure(
    failure: Failure, redact: Redaction, longest_traceback: int = 0
) -> Failure:
    record = failure_from_dict(failure_to_dict(failure, redact=redact))
    error, result = record.error, record.result
    if isinstance(error, ErrorRecord):
        traceback = error.traceback if longest_traceback else ""
        traceback = _shorten(traceback, longest_traceback)
        error = ErrorRecord(_shorten(error.type), _shorten(error.message), traceback)
    if isinstance(result, ResultRecord):
        result = ResultRecord(_shorten(result.type), _shorten(result.text))
    elif isinstance(result, str) and _shorten(result) != result:
        result = ResultRecord("str", _shorten(result))
    return record._replace(error=error, result=result)


def _shorten(text: str, longest: int = _MAX_TEXT) -> str:
    # File names may contain lone surrogates, which cannot be encoded, and PostgreSQL
    # does not store NUL.
    storable = text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
    return truncate(storable, longest)
