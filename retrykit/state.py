"""What happened in a call, as data.

A state is written by the driver of its call and read by everyone else. It
knows no policy, decides nothing, and reads time only as it is told to.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, NamedTuple, final

from retrykit.checks import refuse
from retrykit.durations import readable
from retrykit.reasons import StopReason
from retrykit.records import (
    ErrorRecord,
    error_data,
    error_from,
    exactly,
    result_data,
    result_from,
    safe_text,
    type_name,
)

__all__ = ["Failure", "RetryState", "Status", "StopReason"]

Status = Literal["running", "succeeded", "dead"]
"""Whether a call goes on, gave a value, or gave up."""


@final
class Failure(NamedTuple):
    """One failed attempt.

    Attributes:
        attempt: Its number, from 1.
        error: The error that was captured; an `ErrorRecord` of it in a state
            that came from another process; None if a result was refused.
        result: The result that was refused; maybe a `ResultRecord` of it in a
            state that came from another process.
        started: When it began, in seconds since the call began.
        duration: How long it took, in seconds.
        delay: The delay that followed, in seconds; None if none did.
    """

    attempt: int
    error: Exception | ErrorRecord | None
    result: object
    started: float
    duration: float
    delay: float | None

    def describe(self) -> str:
        """Return what failed: the error's type and text, or the refused result.

        >>> Failure(1, OSError("refused"), None, 0.0, 0.1, None).describe()
        'OSError: refused'
        >>> Failure(1, None, 503, 0.0, 0.1, None).describe()
        'the result 503'
        """
        if self.error is None:
            return f"the result {safe_text(self.result, repr)[:200]}"
        if isinstance(self.error, ErrorRecord):
            return str(self.error)
        return str(ErrorRecord(type_name(type(self.error)), safe_text(self.error), ""))


@final
@dataclass(slots=True, repr=False)
class RetryState:
    """The history of one call, up to now.

    Attributes:
        name: The policy's name, or that of the function.
        seed: The seed of the call's chance.
        epoch: When the call began, by the wall clock, in seconds since 1970.
        max_elapsed: Time allowed in all, in seconds; None if unlimited.
        max_failures: How many failures are kept; beyond it the middle ones go.
        attempt: Number of the attempt that runs or ran last, from 1.
        attempt_started: When it began, in seconds since the call began.
        failures: The failed attempts, in order.
        dropped: How many failures were not kept.
        slept: Delays so far, in seconds.
        next_delay: The delay before the next attempt, in seconds; None unless
            one is scheduled.
        stop_reason: Why the call ended; None while it runs.
        spent: The elapsed time of a call that has ended, in seconds.
        now: What reads the clock of a call that runs.
        origin: What that clock showed when the call began.
        trace: The traceback that the last error had when it was written down.
    """

    name: str
    seed: int
    epoch: float
    max_elapsed: float | None = None
    max_failures: int = 100
    attempt: int = 1
    attempt_started: float = 0.0
    failures: tuple[Failure, ...] = ()
    dropped: int = 0
    slept: float = 0.0
    next_delay: float | None = None
    stop_reason: StopReason | None = None
    spent: float = 0.0
    now: Callable[[], float] | None = field(default=None, compare=False)
    origin: float = field(default=0.0, compare=False)
    trace: TracebackType | None = field(default=None, compare=False)

    @property
    def errors(self) -> tuple[Exception | ErrorRecord, ...]:
        """The errors of the failed attempts, in order."""
        return tuple(f.error for f in self.failures if f.error is not None)

    @property
    def status(self) -> Status:
        """``running``, ``succeeded`` or ``dead``."""
        if self.stop_reason is None:
            return "running"
        return "succeeded" if self.stop_reason is StopReason.SUCCEEDED else "dead"

    @property
    def started_at(self) -> datetime:
        """When the call began, by the wall clock, in UTC."""
        return datetime.fromtimestamp(self.epoch, UTC)

    @property
    def elapsed(self) -> float:
        """Seconds since the call began, until now or until it ended, >= 0."""
        return self.spent if self.now is None else self.now() - self.origin

    @property
    def remaining(self) -> float | None:
        """Seconds left of `max_elapsed`, >= 0; None if it is unlimited.

        A client takes it as its timeout: ``timeout=current_state().remaining``.
        Under the deadline rules ``"clip"`` and ``"overshoot"`` an attempt may
        begin when nothing is left: keep a least timeout of your own there.
        """
        if self.max_elapsed is None:
            return None
        return max(self.max_elapsed - self.elapsed, 0.0)

    def record(self, failure: Failure) -> None:
        """Write a failure down, and the delay that follows it; for drivers."""
        self.next_delay = failure.delay
        self.failures += (failure,)
        surplus = len(self.failures) - self.max_failures
        if surplus > 0:
            middle = self.max_failures // 2
            self.failures = self.failures[:middle] + self.failures[middle + surplus :]
            self.dropped += surplus

    def begin_attempt(self) -> None:
        """Go on to the next attempt, after its delay; for drivers."""
        self.slept += self.next_delay or 0.0
        self.next_delay = None
        self.attempt += 1
        self.attempt_started = self.elapsed

    def end(self, reason: StopReason) -> None:
        """Write down why the call ended, and when; for drivers."""
        self.spent = self.elapsed
        self.now = self.trace = None
        self.stop_reason = reason

    def describe(self) -> str:
        """Return how the call went, as the end of a sentence.

        >>> state = RetryState("fetch", seed=7, epoch=0.0, spent=7.2, attempt=4)
        >>> state.end(StopReason.ATTEMPTS)
        >>> state.describe()
        'gave up after 4 attempts in 7.2s: every attempt is used up'
        """
        plural = "" if self.attempt == 1 else "s"
        so_far = f"{self.attempt} attempt{plural} in {readable(self.elapsed)}"
        if self.stop_reason is None:
            return f"is running: {so_far}"
        if self.stop_reason is StopReason.CANCELLED:
            return f"was cancelled after {so_far}"
        if self.stop_reason is StopReason.SUCCEEDED:
            return f"succeeded after {so_far}"
        return f"gave up after {so_far}: {self.stop_reason.explanation}"

    def __repr__(self) -> str:
        return f"<RetryState of {self.name}: {self.describe()}>"

    def to_dict(self) -> dict[str, Any]:
        """Return this state as plain data, for JSON.

        Errors become dicts of type, message and formatted traceback. Results
        stay as they are if they are None, a bool, a text or a finite number;
        all others become a record of their type and ``repr``.
        """
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        del data["now"], data["origin"], data["trace"]
        return data | {
            "version": _VERSION,
            "spent": self.elapsed,
            "stop_reason": self.stop_reason and self.stop_reason.value,
            "failures": [
                failure._asdict()
                | {
                    "error": error_data(failure.error),
                    "result": result_data(failure.result),
                }
                for failure in self.failures
            ],
        }

    @classmethod
    def from_dict(cls, data: object) -> "RetryState":
        """Return the state that `to_dict` wrote.

        Its errors are `ErrorRecord`, and its time stands still until the call
        is resumed.

        Raises:
            ConfigError: *data* is of another version, or not of that form.
        """
        if not isinstance(data, Mapping) or data.get("version") != _VERSION:
            rule = f"a dict from RetryState.to_dict, of version {_VERSION}"
            raise refuse("state", rule, data)
        rule = "a dict from RetryState.to_dict, whole and unchanged"
        if set(data) != {"version", *_READ}:
            raise refuse("state", rule, data)
        try:
            return cls(**{name: read(data[name]) for name, read in _READ.items()})
        except (KeyError, TypeError, ValueError) as error:
            raise refuse("state", rule, data) from error

    def __reduce__(self) -> tuple[Any, ...]:
        return RetryState.from_dict, (self.to_dict(),)


_VERSION = 1


_text, _count, _number = exactly(str), exactly(int), exactly(int, float)
_optional = exactly(int, float, type(None))


def _delay(value: object) -> float | None:
    delay: float | None = _optional(value)
    if delay is not None and delay < 0:
        msg = f"{delay!r} is no delay"
        raise ValueError(msg)
    return delay


def _failure_from(data: Mapping[str, Any]) -> Failure:
    if set(data) != set(Failure._fields):
        raise KeyError(*data)
    return Failure(
        _count(data["attempt"]),
        error_from(data["error"]),
        result_from(data["result"]),
        _number(data["started"]),
        _number(data["duration"]),
        _delay(data["delay"]),
    )


_READ: dict[str, Callable[[Any], Any]] = {
    "name": _text,
    "seed": _count,
    "epoch": _number,
    "max_elapsed": _optional,
    "max_failures": _count,
    "attempt": _count,
    "attempt_started": _number,
    "failures": lambda failures: tuple(map(_failure_from, failures)),
    "dropped": _count,
    "slept": _number,
    "next_delay": _delay,
    "stop_reason": lambda reason: None if reason is None else StopReason(reason),
    "spent": _number,
}
