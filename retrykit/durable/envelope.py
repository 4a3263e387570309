"""What a job carries from one attempt to the next, as plain data.

It is kept by the engine: in the headers, the options or a row of the job. It
must be read by code that is weeks younger, and looked at by people. So what is
written here once is read by every later version; another form gets another
number, and is written only when the version before can read it, too: in a deploy
both are at work.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, final

from retrykit._internal.validation import invalid_setting, safe_repr, truncate
from retrykit.durable.compaction import compact_state, kind_of
from retrykit.durable.json_payloads import from_json
from retrykit.state.failures import read_count, read_delay
from retrykit.state.records import strict_type
from retrykit.state.retry_state import RetryState

__all__ = ["Envelope", "EnvelopeStatus"]

EnvelopeStatus = Literal["waiting", "succeeded", "dead"]
"""Whether a job is to be attempted, gave its value, or gave up."""

_VERSION = 1
# The end of the year 9999, the last that a datetime can tell.
_LAST = 253_402_300_799.0
_WHOLE = "one of retrykit's, whole and unchanged"


@final
@dataclass(frozen=True, slots=True)
class Envelope:
    """A job's history, and when it goes on: a value.

    Attributes:
        job: The id of the job.
        policy: The name of its policy.
        fingerprint: What that policy was when the envelope was written.
        state: The history: the errors as records, and when it began.
        written: When it was written, by the wall clock, in seconds since 1970.
        due: When the next attempt is due, by the wall clock, in seconds since
            1970; None if the job has ended.
        counts: How many failures there were of each type of error.
        run: How often the job was begun: 1, and one more each time that it was
            queued again after its death.
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
    def failed(self) -> int:
        """How many attempts have failed, >= 0."""
        return len(self.state.failures) + self.state.dropped_failures

    @property
    def attempt(self) -> int:
        """The number of the attempt that is made next, or was made last."""
        waits = self.status == "waiting" and self.failed > 0
        return self.state.attempt + waits

    @property
    def key(self) -> str:
        """The idempotency key of the attempt, which stays the same if it is repeated.

        ``job:attempt``, and ``job#run:attempt`` of a job that was queued again.
        """
        again = "" if self.run == 1 else f"#{self.run}"
        return f"{self.job}{again}:{self.attempt}"

    def describe(self) -> str:
        """Return how the job stands, and what its last failed attempt came to."""
        last = [failure.describe() for failure in self.state.failures[-1:]]
        return "; last failure: ".join([self.state.describe(), *last])

    def time_left(self, now: float) -> float:
        """Return for how many seconds to wait, by a wall clock that shows *now*.

        A clock that was set back makes no wait longer than it was when the
        envelope was written.

        Returns:
            Seconds; not > 0 if the attempt is due.
        """
        return 0.0 if self.due is None else self.due - max(now, self.written)

    def rescheduled(self, now: float) -> Self:
        """Return the envelope of a job that has woken up before it is due.

        Where the clock was set back, the time that is left counts from now.
        """
        due = None if self.due is None else now + self.time_left(now)
        return replace(self, written=now, due=due)

    def after_attempt(self, state: RetryState, now: float) -> Self:
        """Return the envelope after an attempt.

        Args:
            state: The state as the attempt left it.
            now: What the wall clock shows, in seconds since 1970.
        """
        delay = state.next_delay
        due = None if delay is None else min(now + delay, _LAST)
        after, counts = compact_state(state), Counter(self.counts)
        old = self.failed - after.dropped_failures
        counts.update(map(kind_of, after.failures[max(old, 0) :]))
        return replace(self, state=after, written=now, due=due, counts=dict(counts))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for JSON: a few kilobytes at most."""
        return {name: getattr(self, name) for name in _READ} | {
            "version": _VERSION,
            "counts": dict(self.counts),
            "state": self.state.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Return the envelope that `to_dict` wrote.

        Args:
            data: What was kept, or the JSON of it.

        Raises:
            ConfigError: It is cut off, of a newer version, or was changed by
                hand into what cannot be.
        """
        if isinstance(data, str | bytes):
            data = from_json("envelope", data)
        version = data.get("version") if isinstance(data, Mapping) else None
        # By its type, too: True is no version, and is equal to 1.
        number = version if type(version) is int else 0
        if number > _VERSION:
            rule, suggestion = (
                f"of version {_VERSION}",
                "upgrade retrykit in this worker",
            )
            raise invalid_setting(
                "envelope", rule, f"version {safe_repr(number)}", suggestion
            )
        keys = {"version", *_READ}
        if not isinstance(data, Mapping) or number != _VERSION or set(data) != keys:
            raise invalid_setting("envelope", _WHOLE, data)
        try:
            envelope = cls(**{name: read(data[name]) for name, read in _READ.items()})
        except (AttributeError, TypeError, ValueError) as error:
            why = truncate(str(error), 400)
            raise invalid_setting("envelope", _WHOLE, data, why) from error
        for part, sound in _sound(envelope):
            if not sound:
                suggestion = f"the rest contradicts its {part}"
                raise invalid_setting("envelope", _WHOLE, data, suggestion)
        return envelope


def _text(value: object) -> str:
    text: str = strict_type(str)(value)
    if not text.strip():
        msg = "a name in it is empty"
        raise ValueError(msg)
    return text


def _counts(value: Mapping[str, object]) -> Mapping[str, int]:
    return {_text(name): read_count(count) for name, count in value.items()}


_READ = {
    "job": _text,
    "run": read_count,
    "policy": _text,
    "fingerprint": _text,
    "written": strict_type(int, float),
    "due": read_delay,
    "counts": _counts,
    "state": RetryState.from_dict,
}


def _sound(envelope: Envelope) -> Iterator[tuple[str, bool]]:
    """Give the parts of an envelope, and whether each agrees with the others."""
    state, failed = envelope.state, envelope.failed
    waits = envelope.status == "waiting"
    again = waits and failed > 0
    begun = state.attempt - failed
    numbers = [0, *(failure.attempt for failure in state.failures)]
    yield "job", "#" not in envelope.job
    yield "run", envelope.run >= 1
    yield "written", 0 <= envelope.written <= _LAST
    yield "due", (envelope.due is not None) == waits and (envelope.due or 0) <= _LAST
    yield "counts", sum(envelope.counts.values()) == failed
    yield "failures", numbers == sorted({*numbers}) and numbers[-1] == failed
    yield "attempt", begun in ({0} if again else {0, 1})
    yield "next_delay", not waits or (state.next_delay is not None) == again
    yield "rule_counts", sum(state.rule_counts) <= failed
    yield "nested_state", state.nested_state is None or not waits
    yield "seed", state.seed >= 0
