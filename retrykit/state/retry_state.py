"""What happened in a call, as data.

A state is written by the driver of its call and read by everyone else. It
knows no policy, decides nothing, and reads time only as it is told to.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, final

from retrykit._internal.durations import format_duration
from retrykit._internal.validation import invalid_setting
from retrykit.errors import ConfigError
from retrykit.state.failures import (
    Failure,
    failure_from_dict,
    failure_to_dict,
    read_attempt,
    read_count,
    read_delay,
    read_seconds,
)
from retrykit.state.reasons import StopReason
from retrykit.state.records import ErrorRecord, strict_type
from retrykit.state.tracebacks import FrameLocations

__all__ = ["Failure", "RetryState", "Status", "StopReason"]

Status = Literal["running", "succeeded", "dead"]
"""Whether a call goes on, gave a value, or gave up."""


@final
@dataclass(slots=True, repr=False)
class RetryState:
    """The history of one call, up to now.

    Attributes:
        name: The policy's name, or that of the function; of a durable job its id.
        seed: The seed of the call's chance.
        epoch: When the call began, by the wall clock, in seconds since 1970.
        max_elapsed: Time allowed in all, in seconds; None if unlimited.
        max_failures: How many failures are kept; beyond it the middle ones go.
        attempt: Number of the attempt that runs or ran last, from 1.
        attempt_started: When it began, in seconds since the call began.
        failures: The failed attempts, in order.
        dropped_failures: How many failures were not kept.
        total_delay: Delays so far, in seconds.
        next_delay: The delay before the next attempt, in seconds; None unless
            one is scheduled.
        stop_reason: Why the call ended; None while it runs.
        elapsed_at_end: The elapsed time of a call that has ended, in seconds.
        rule_counts: How many failures each of the policy's rules held for.
        retry_cost: What the last retry cost the policy's budget; None if it was asked
            for none.
        depth: How many retried calls this one runs inside of; 0 is none.
        nested_state: The state of a call inside of this one, where this one ended
            because that one had given up. Of calls nested deeper than 16 the
            first and the last ones are kept.
        outer_deadline: When the time of a call around this one is over, in seconds
            since this one began; None if it is unlimited.
        redact: Whether secrets of requests and URLs are left out of what is written
            of the errors.
        mark: What the errors bear with which calls inside of this attempt gave
            up.
        warned: Whether a warning was given: that the policy's hint fails, or that
            a delay took no time.
        around: The call around this one, while this one runs.
        now: What reads the clock of a call that runs.
        origin: What that clock showed when the call began.
        trace: The traceback that the last error had when it was written down.
        places: The numbers of attempts whose errors have no frames any more, each
            with where they were raised.
    """

    name: str
    seed: int
    epoch: float
    max_elapsed: float | None = None
    max_failures: int = 100
    attempt: int = 1
    attempt_started: float = 0.0
    failures: tuple[Failure, ...] = ()
    dropped_failures: int = 0
    total_delay: float = 0.0
    next_delay: float | None = None
    stop_reason: StopReason | None = None
    elapsed_at_end: float = 0.0
    rule_counts: tuple[int, ...] = ()
    retry_cost: float | None = None
    depth: int = 0
    nested_state: "RetryState | None" = None
    outer_deadline: float | None = field(default=None, compare=False)
    redact: bool = field(default=True, compare=False)
    mark: object = field(default=None, compare=False)
    warned: bool = field(default=False, compare=False)
    around: list[Any] | None = field(default=None, compare=False)
    now: Callable[[], float] | None = field(default=None, compare=False)
    origin: float = field(default=0.0, compare=False)
    trace: TracebackType | None = field(default=None, compare=False)
    places: tuple[tuple[int, FrameLocations], ...] = field(default=(), compare=False)

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
        return self.elapsed_at_end if self.now is None else self.now() - self.origin

    @property
    def remaining(self) -> float | None:
        """Seconds left of `max_elapsed`, >= 0; None if it is unlimited.

        Of a call inside of another, it is no more than what that one has left.
        A client takes it as its timeout: ``timeout=current_state().remaining``.
        Under the deadline rules ``"clip"`` and ``"overshoot"`` an attempt may
        begin when nothing is left: keep a least timeout of your own there.
        """
        limits = [x for x in (self.max_elapsed, self.outer_deadline) if x is not None]
        return max(min(limits) - self.elapsed, 0.0) if limits else None

    def position(self, rule: int) -> int:
        """Return which failure comes next that a rule holds for, from 1."""
        return (self.rule_counts[rule] if rule < len(self.rule_counts) else 0) + 1

    def record(self, failure: Failure) -> None:
        """Write a failure down, and the delay that follows it; for drivers."""
        self.next_delay = failure.delay
        self.failures += (failure,)
        if failure.rule is not None:
            counts = [
                *self.rule_counts,
                *[0] * (failure.rule + 1 - len(self.rule_counts)),
            ]
            counts[failure.rule] += 1
            self.rule_counts = tuple(counts)
        if len(self.failures) > self.max_failures:
            surplus = len(self.failures) - self.max_failures
            middle = self.max_failures // 2
            self.failures = self.failures[:middle] + self.failures[middle + surplus :]
            kept = {failure.attempt for failure in self.failures}
            self.places = tuple(each for each in self.places if each[0] in kept)
            self.dropped_failures += surplus

    def warn(self) -> bool:
        """Return whether a warning was given already, since one is now; for drivers."""
        before, self.warned = self.warned, True
        return before

    def begin_attempt(self) -> None:
        """Go on to the next attempt, after its delay; for drivers."""
        self.total_delay += self.next_delay or 0.0
        self.next_delay = self.mark = None
        self.attempt += 1
        now = self.now
        self.attempt_started = now() - self.origin if now else self.elapsed_at_end

    def end(self, reason: StopReason) -> None:
        """Write down why the call ended, and when; for drivers."""
        now = self.now
        self.elapsed_at_end = now() - self.origin if now else self.elapsed_at_end
        self.now = self.trace = self.mark = self.around = None
        self.stop_reason = reason

    def describe(self) -> str:
        """Return how the call went, as the end of a sentence.

        >>> state = RetryState("fetch", 7, 0.0, elapsed_at_end=7.2, attempt=4)
        >>> state.end(StopReason.ATTEMPTS)
        >>> state.describe()
        'gave up after 4 attempts in 7.2s: every attempt is used up'
        """
        plural = "" if self.attempt == 1 else "s"
        so_far = f"{self.attempt} attempt{plural} in {format_duration(self.elapsed)}"
        if self.stop_reason is None:
            return f"is running: {so_far}"
        if self.stop_reason is StopReason.CANCELLED:
            return f"was cancelled after {so_far}"
        if self.stop_reason is StopReason.SUCCEEDED:
            return f"succeeded after {so_far}"
        why = self.stop_reason.explanation
        if self.stop_reason is StopReason.ATTEMPTS and self.attempt == 1:
            why = "only one is allowed"
        asked = self.failures[-1].hint if self.failures else None
        if self.stop_reason is StopReason.HINT and asked is not None:
            why = f"{why}: {format_duration(asked)}"
        if self.nested_state is not None:
            why = f"inside of it, {self.innermost.name} {self.innermost.describe()}"
        return f"gave up after {so_far}: {why}"

    @property
    def innermost(self) -> "RetryState":
        """The state of the call with whose end this one ended: it, or its own."""
        state = self
        while state.nested_state is not None:
            state = state.nested_state
        return state

    def __repr__(self) -> str:
        return f"<RetryState of {self.name}: {self.describe()}>"

    def to_dict(self) -> dict[str, Any]:
        """Return this state as plain data, for JSON.

        Errors become dicts of type, message and formatted traceback, without the
        secrets of requests and URLs unless the policy has ``redact=False``; of a call
        inside of this one, if either policy has them left out. Results
        stay as they are if they are None, a bool, a text or a finite number;
        all others become a record of their type and ``repr``.
        """
        return _data(self, redact=self.redact)

    @classmethod
    def from_dict(cls, data: object) -> "RetryState":
        """Return the state that `to_dict` wrote.

        Its errors are `ErrorRecord`, and its time stands still until the call
        is resumed.

        Raises:
            ConfigError: *data* is of another version, or not of that form.
        """
        version = data.get("version") if isinstance(data, Mapping) else None
        # By its type, too: True is no version, and is equal to 1.
        if not isinstance(data, Mapping) or (type(version), version) != (int, _VERSION):
            rule = f"a dict from RetryState.to_dict, of version {_VERSION}"
            raise invalid_setting("state", rule, data)
        rule = "a dict from RetryState.to_dict, whole and unchanged"
        if set(data) != {"version", *_READ}:
            raise invalid_setting("state", rule, data)
        try:
            state = cls(**{name: read(data[name]) for name, read in _READ.items()})
        except ConfigError:
            # Of the state inside, in which it is wrong; told once, not by each around.
            raise
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise invalid_setting("state", rule, data) from error
        if sum(state.rule_counts) > state.attempt:
            suggestion = "its rules hold for more failures than there are attempts"
            raise invalid_setting("state", rule, data, suggestion)
        return state

    def __reduce__(self) -> tuple[Any, ...]:
        return RetryState.from_dict, (self.to_dict(),)


def _data(state: RetryState, *, redact: bool) -> dict[str, Any]:
    places, inner = dict(state.places), state.nested_state
    return {name: getattr(state, name) for name in _READ} | {
        "version": _VERSION,
        "rule_counts": list(state.rule_counts),
        "nested_state": inner and _data(inner, redact=redact or inner.redact),
        "elapsed_at_end": state.elapsed,
        "stop_reason": state.stop_reason and state.stop_reason.value,
        "failures": [
            failure_to_dict(each, places.get(each.attempt), redact=redact)
            for each in state.failures
        ],
    }


_VERSION = 1
# The end of the year 9999, the last that a datetime can tell.
_LAST = 253_402_300_799.0

_text, _list = strict_type(str), strict_type(list, tuple)


def _epoch(value: object) -> float:
    epoch = read_seconds(value)
    if epoch > _LAST:
        msg = f"{epoch!r} is after the year 9999"
        raise ValueError(msg)
    return epoch


_READ: dict[str, Callable[[Any], Any]] = {
    "name": _text,
    "seed": strict_type(int),
    "epoch": _epoch,
    "max_elapsed": read_delay,
    "max_failures": read_count,
    "attempt": read_attempt,
    "attempt_started": read_seconds,
    "failures": lambda failures: tuple(map(failure_from_dict, _list(failures))),
    "dropped_failures": read_count,
    "total_delay": read_seconds,
    "next_delay": read_delay,
    "stop_reason": lambda reason: None if reason is None else StopReason(reason),
    "elapsed_at_end": read_seconds,
    "rule_counts": lambda counts: tuple(map(read_count, _list(counts))),
    "retry_cost": read_delay,
    "depth": read_count,
    "nested_state": lambda data: None if data is None else RetryState.from_dict(data),
}
