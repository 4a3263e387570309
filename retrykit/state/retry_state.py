"""The history of one retried call, as data.

Only the code that runs the call changes it, such as its controller or a `Backoff`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, final

from retrykit._internal.durations import format_duration
from retrykit._internal.tracebacks import FrameLocations
from retrykit._internal.validation import invalid_setting
from retrykit.errors import ConfigError
from retrykit.state.failures import (
    EXPLANATIONS,
    Failure,
    StopReason,
    failure_from_dict,
    failure_to_dict,
    read_attempt,
    read_count,
    read_delay,
    read_seconds,
)
from retrykit.state.records import ErrorRecord, strict_type

__all__ = ["Failure", "RetryState", "Status", "StopReason"]

Status = Literal["running", "succeeded", "dead"]
"""A call is running, has its result, or has given up."""


@final
@dataclass(slots=True, repr=False)
class RetryState:
    """The history of one call, up to now.

    Attributes:
        name: The policy's name, or that of the function; the id of a durable job.
        seed: The seed of the call's random delays.
        epoch: When the call began, by the wall clock, in seconds since 1970.
        max_elapsed: Time limit of the call, in seconds; None if unlimited.
        max_failures: Maximum number of failures kept; beyond it the middle ones are
            dropped.
        attempt: Number of the running or last attempt, from 1.
        attempt_started: When it began, in seconds since the call began.
        failures: The failed attempts, in order.
        dropped_failures: Number of failures that were not kept.
        total_delay: Sum of the delays so far, in seconds.
        next_delay: The delay before the next attempt, in seconds; None unless
            one is scheduled.
        stop_reason: Why the call ended; None while it runs.
        elapsed_at_end: The elapsed time of a call that has ended, in seconds.
        rule_counts: Number of failures that each of the policy's rules matched.
        retry_cost: What the last retry cost the policy's budget; None without one.
        depth: Number of retried calls around this one.
        nested_state: The state of the nested call whose failure ended this one. Of
            calls nested deeper than 16 the first and the last ones are kept.
        outer_deadline: When the time limit of a call around this one is reached, in
            seconds since this one began; None if unlimited.
        redact: Whether secrets of requests and URLs are left out of texts about the
            errors.
        frame_locations: Where errors were raised whose frames were released, by the
            number of the attempt.
        read_clock: Reads the clock of a running call; None otherwise.
        started_at_clock: The reading of that clock when the call began.
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
    frame_locations: tuple[tuple[int, FrameLocations], ...] = field(
        default=(), compare=False
    )
    read_clock: Callable[[], float] | None = field(default=None, compare=False)
    started_at_clock: float = field(default=0.0, compare=False)

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
        if self.read_clock is None:
            return self.elapsed_at_end
        return self.read_clock() - self.started_at_clock

    @property
    def remaining(self) -> float | None:
        """Seconds left of `max_elapsed`, >= 0; None if it is unlimited.

        In a nested call, no more than the calls around it have left. Hand it to a
        client as its timeout: ``timeout=current_state().remaining``. Under the
        deadline rules ``"clip"`` and ``"overshoot"`` an attempt may begin when no
        time is left: keep a minimum timeout of your own there.
        """
        limits = [x for x in (self.max_elapsed, self.outer_deadline) if x is not None]
        return max(min(limits) - self.elapsed, 0.0) if limits else None

    def record(self, failure: Failure) -> None:
        """Record a failure and the delay that follows it; for internal use."""
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
            self.frame_locations = tuple(
                each for each in self.frame_locations if each[0] in kept
            )
            self.dropped_failures += surplus

    def begin_attempt(self) -> None:
        """Begin the next attempt, after its delay; for internal use."""
        self.total_delay += self.next_delay or 0.0
        self.next_delay = None
        self.attempt += 1
        # As `elapsed`, without a call.
        read_clock, started = self.read_clock, self.elapsed_at_end
        if read_clock is not None:
            started = read_clock() - self.started_at_clock
        self.attempt_started = started

    def end(self, reason: StopReason) -> None:
        """Record why the call ended, and when; for internal use."""
        self.elapsed_at_end = self.elapsed
        self.read_clock = None
        self.stop_reason = reason

    def describe(self) -> str:
        """Return the outcome of the call, as the end of a sentence.

        >>> state = RetryState("fetch", 7, 0.0, elapsed_at_end=7.2, attempt=4)
        >>> state.end(StopReason.ATTEMPTS)
        >>> state.describe()
        'gave up after 4 attempts in 7.2s: max attempts reached'
        """
        plural = "" if self.attempt == 1 else "s"
        so_far = f"{self.attempt} attempt{plural} in {format_duration(self.elapsed)}"
        if self.stop_reason is None:
            return f"is running: {so_far}"
        if self.stop_reason is StopReason.CANCELLED:
            return f"was cancelled after {so_far}"
        if self.stop_reason is StopReason.SUCCEEDED:
            return f"succeeded after {so_far}"
        why = EXPLANATIONS[self.stop_reason]
        if self.stop_reason is StopReason.ATTEMPTS and self.attempt == 1:
            why = "only one attempt is allowed"
        asked = self.failures[-1].hint if self.failures else None
        if self.stop_reason is StopReason.HINT and asked is not None:
            why = f"{why}: {format_duration(asked)}"
        if self.nested_state is not None:
            why = f"nested call {self.innermost.name} {self.innermost.describe()}"
        return f"gave up after {so_far}: {why}"

    @property
    def innermost(self) -> "RetryState":
        """State of the innermost call that caused this one to stop, or this state."""
        state = self
        while state.nested_state is not None:
            state = state.nested_state
        return state

    def __repr__(self) -> str:
        return f"<RetryState of {self.name}: {self.describe()}>"

    def to_dict(self) -> dict[str, Any]:
        """Return this state as plain data, for JSON.

        Errors become dicts of type, message and formatted traceback, without the
        secrets of requests and URLs unless the policy has ``redact=False``; those of
        a nested call, unless both policies have it. Results stay as they are if they
        are None, a bool, a string or a finite number; all others become a record of
        their type and ``repr``.
        """
        return _data(self, redact=self.redact)

    @classmethod
    def from_dict(cls, data: object) -> "RetryState":
        """Return the state that `to_dict` wrote.

        Its errors are `ErrorRecord`, and its elapsed time is constant until the call
        is resumed.

        Raises:
            ConfigError: *data* has another version or another form.
        """
        version = data.get("version") if isinstance(data, Mapping) else None
        # By its type, too: True is equal to 1.
        if not isinstance(data, Mapping) or (type(version), version) != (int, _VERSION):
            rule = f"a dict from RetryState.to_dict, of version {_VERSION}"
            raise invalid_setting("state", rule, data)
        rule = "a dict from RetryState.to_dict, unchanged"
        if set(data) != {"version", *_READ}:
            raise invalid_setting("state", rule, data)
        try:
            state = cls(**{name: read(data[name]) for name, read in _READ.items()})
        except ConfigError:
            # From the nested state that is wrong: reported once, not at each level.
            raise
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise invalid_setting("state", rule, data) from error
        if sum(state.rule_counts) > state.attempt:
            suggestion = "its rules match more failures than there are attempts"
            raise invalid_setting("state", rule, data, suggestion)
        return state

    def __reduce__(self) -> tuple[Any, ...]:
        return RetryState.from_dict, (self.to_dict(),)


def _data(state: RetryState, *, redact: bool) -> dict[str, Any]:
    locations, inner = dict(state.frame_locations), state.nested_state
    return {name: getattr(state, name) for name in _READ} | {
        "version": _VERSION,
        "rule_counts": list(state.rule_counts),
        "nested_state": inner and _data(inner, redact=redact or inner.redact),
        "elapsed_at_end": state.elapsed,
        "stop_reason": state.stop_reason and state.stop_reason.value,
        "failures": [
            failure_to_dict(each, locations.get(each.attempt), redact=redact)
            for each in state.failures
        ],
    }


_VERSION = 1
# The end of the year 9999, the last one of a datetime.
_LAST = 253_402_300_799.0

_string, _list = strict_type(str), strict_type(list, tuple)


def _epoch(value: object) -> float:
    epoch = read_seconds(value)
    if epoch > _LAST:
        msg = f"{epoch!r} is after the year 9999"
        raise ValueError(msg)
    return epoch


_READ: dict[str, Callable[[Any], Any]] = {
    "name": _string,
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
