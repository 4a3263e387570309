"""The history of one retried call, as data.

Only the code that runs the call changes it, such as its controller or a `Backoff`.
"""

from collections.abc import Callable
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, final

from retrykit._internal.durations import duration_in_words
from retrykit._internal.locks import ForkSafe
from retrykit._internal.redaction import Redaction, combine_redactions
from retrykit._internal.tracebacks import FrameLocations
from retrykit._internal.user_facing import user_facing
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
from retrykit.state.records import (
    ErrorRecord,
    FieldError,
    read_fields,
    read_list,
    strict_type,
)

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["Failure", "RetryState", "Status", "StopReason", "read_state"]

Status = Literal["running", "succeeded", "dead"]
"""A call is running, has its result, or has given up."""


def _no_call() -> None:
    """Return None: the call is over, or ran in another process."""


@final
class RetryState:  # noqa: PLW1641  it changes
    """The history of one call, up to now.

    Attributes:
        name: The policy's name, or that of the function; the id of a durable job.
        seed: The seed of the call's random delays.
        epoch: When the call began, by the wall clock, in seconds since 1970.
        max_elapsed: Time limit of the call, in seconds; None if unlimited.
        max_attempts: Maximum number of attempts; None if unlimited.
        max_failures: Maximum number of failures kept; beyond it the middle ones are
            dropped.
        attempt: Number of the running or last attempt, from 1.
        attempt_started: When it began, in seconds since the call began.
        dropped_failures: Number of failures that were not kept.
        total_delay: Sum of the delays so far, in seconds.
        next_delay: The delay before the next attempt, in seconds; None unless
            one is scheduled.
        stop_reason: Why the call ended; None while it runs.
        stop_detail: The limit that ended the call and its value, as text such as
            ``max_attempts=5 reached``; None if no limit did.
        used_fallback: Whether the call returned the policy's `fallback` in place of
            its error.
        elapsed_at_end: The elapsed time of a call that has ended, in seconds.
        rule_counts: Number of failures that each of the policy's rules matched.
        retry_cost: What the last retry cost the policy's budget; None without one.
        depth: Number of retried calls around this one.
        nested_state: The state of the nested call whose failure ended this one. Of
            calls nested deeper than 16 the first and the last ones are kept.
        redact: Whether secrets of requests and URLs are left out of texts about the
            errors, or the function of the policy that leaves out more of them.
    """

    __slots__ = (
        "_call",
        "_clock_id",
        "_failures",
        "_frame_locations",
        "_give_up_number",
        "_outer_deadline",
        "_polls",
        "_read_clock",
        "_request",
        "_started_at_clock",
        "attempt",
        "attempt_started",
        "depth",
        "dropped_failures",
        "elapsed_at_end",
        "epoch",
        "max_attempts",
        "max_elapsed",
        "max_failures",
        "name",
        "nested_state",
        "next_delay",
        "redact",
        "retry_cost",
        "rule_counts",
        "seed",
        "stop_detail",
        "stop_reason",
        "total_delay",
        "used_fallback",
    )

    def __init__(  # noqa: PLR0913, PLR0917  all that is known of a call
        self,
        name: str,
        seed: int,
        epoch: float,
        max_elapsed: float | None = None,
        max_failures: int = 100,
        max_attempts: int | None = None,
        *,
        attempt: int = 1,
        attempt_started: float = 0.0,
        failures: tuple[Failure, ...] = (),
        dropped_failures: int = 0,
        total_delay: float = 0.0,
        next_delay: float | None = None,
        stop_reason: StopReason | None = None,
        stop_detail: str | None = None,
        used_fallback: bool = False,
        elapsed_at_end: float = 0.0,
        rule_counts: tuple[int, ...] = (),
        retry_cost: float | None = None,
        depth: int = 0,
        nested_state: "RetryState | None" = None,
        redact: Redaction = True,
        _outer_deadline: float | None = None,
        _polls: bool = False,
        _read_clock: Callable[[], float] | None = None,
        _started_at_clock: float = 0.0,
        _clock_id: int = 0,
        _call: Callable[[], Any] = _no_call,
    ) -> None:
        self.name = name
        self.seed = seed
        self.epoch = epoch
        self.max_elapsed = max_elapsed
        self.max_failures = max_failures
        self.max_attempts = max_attempts
        self.attempt = attempt
        self.attempt_started = attempt_started
        self.dropped_failures = dropped_failures
        self.total_delay = total_delay
        self.next_delay = next_delay
        self.stop_reason = stop_reason
        self.stop_detail = stop_detail
        self.used_fallback = used_fallback
        self.elapsed_at_end = elapsed_at_end
        self.rule_counts = rule_counts
        self.retry_cost = retry_cost
        self.depth = depth
        self.nested_state = nested_state
        self.redact = redact
        # A list, since there may be thousands.
        self._failures = list(failures)
        # For the code that runs the call: the method and the URL of the request that
        # it is, for texts; when the time limit of a call around it is reached, in
        # seconds since this one began; whether it retries results but no errors;
        # where errors were raised whose
        # frames were released, by the number of the attempt; the clock of a running
        # call, its reading when the call began, and its identity; and the number of
        # this call among those that gave up or were read in this process.
        self._outer_deadline = _outer_deadline
        # Returns the running call, which refers to this state, or None.
        self._call = _call
        self._polls = _polls
        self._frame_locations: dict[int, FrameLocations] | None = None
        self._read_clock = _read_clock
        self._request: tuple[str, object] | None = None
        self._started_at_clock = _started_at_clock
        self._clock_id = _clock_id
        self._give_up_number = 0

    def _replace(self, **changes: Any) -> "RetryState":
        """Return a copy with some attributes changed."""
        other = object.__new__(RetryState)
        # A loop without steps of Python: `setattr` returns None, so it goes to the end.
        any(map(setattr, repeat(other), self.__slots__, _slots_of(self)))
        other._failures = list(changes.pop("failures", self._failures))
        if self._frame_locations is not None:
            other._frame_locations = dict(self._frame_locations)
        for name, value in changes.items():
            setattr(other, name, value)
        return other

    def __eq__(self, other: object) -> bool:
        """Return whether all is equal that `to_dict` returns."""
        if not isinstance(other, RetryState):
            return NotImplemented
        return all(getattr(self, x) == getattr(other, x) for x in _READ)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The failed attempts, in order."""
        return tuple(self._failures)

    @property
    def errors(self) -> tuple[Exception | ErrorRecord, ...]:
        """The errors of the failed attempts, in order."""
        return tuple(f.error for f in self._failures if f.error is not None)

    @property
    def function(self) -> Callable[..., Any] | None:
        """The function that is retried; None for a block of code.

        As `args` and `kwargs`, it is known while the call runs, in the policy's
        `fallback`, too, and is no part of the data. Afterwards it is released.

        Raises:
            LookupError: The call is over; or the arguments are not known yet in another
                thread or task than that of the call.
        """
        function: Callable[..., Any] | None = self._running_call().function
        return function

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments of the call; the first one of a method is `self`.

        >>> from retrykit import Policy
        >>> policy = Policy(schedule=[0], fallback=lambda state: len(*state.args))
        >>> policy.call(int, "seven")
        5
        """
        args: tuple[Any, ...] = self._running_call().arguments()[0]
        return args

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments of the call."""
        kwargs: dict[str, Any] = self._running_call().arguments()[1]
        return kwargs

    def _running_call(self) -> Any:
        call = self._call()
        if call is None:
            msg = "state.function, args and kwargs are only available while a call runs"
            raise LookupError(msg)
        return call

    @property
    def status(self) -> Status:
        """``running``, ``succeeded`` or ``dead``."""
        if self.stop_reason is None:
            return "running"
        return "succeeded" if self.stop_reason is StopReason.SUCCEEDED else "dead"

    @property
    def started_at(self) -> "datetime":
        """When the call began, by the wall clock, in UTC."""
        # Imported here: few programs ask for it.
        from datetime import UTC, datetime  # noqa: PLC0415

        return datetime.fromtimestamp(self.epoch, UTC)

    @property
    def elapsed(self) -> float:
        """Seconds since the call began, until now or until it ended, >= 0."""
        if self._read_clock is None:
            return self.elapsed_at_end
        return self._read_clock() - self._started_at_clock

    @property
    def remaining(self) -> float | None:
        """Seconds left of `max_elapsed`, >= 0; None if it is unlimited.

        In a nested call, no more than the calls around it have left. Hand it to a
        client as its timeout: ``timeout=current_state().remaining``. Under the
        deadline rules ``"clip"`` and ``"overshoot"`` an attempt may begin when no
        time is left: keep a minimum timeout of your own there.
        """
        limits = [x for x in (self.max_elapsed, self._outer_deadline) if x is not None]
        return max(min(limits) - self.elapsed, 0.0) if limits else None

    def _record(self, failure: Failure) -> None:
        """Record a failure and the delay that follows it."""
        self.next_delay = failure.delay
        self._failures.append(failure)
        if failure.rule is not None:
            counts = [
                *self.rule_counts,
                *[0] * (failure.rule + 1 - len(self.rule_counts)),
            ]
            counts[failure.rule] += 1
            self.rule_counts = tuple(counts)
        surplus = len(self._failures) - self.max_failures
        if surplus > 0:
            middle = self.max_failures // 2
            if self._frame_locations:
                for each in self._failures[middle : middle + surplus]:
                    self._frame_locations.pop(each.attempt, None)
            del self._failures[middle : middle + surplus]
            self.dropped_failures += surplus

    def _keep_locations(self, attempt: int, locations: FrameLocations) -> None:
        """Keep where the error of an attempt was raised, whose frames are released."""
        if self._frame_locations is None:
            self._frame_locations = {}
        self._frame_locations[attempt] = locations

    def _begin_attempt(self, started: float) -> None:
        """Begin the next attempt, after its delay, when so many seconds had elapsed."""
        self.total_delay += self.next_delay or 0.0
        self.next_delay = None
        self.attempt += 1
        self.attempt_started = started

    def _end(self, reason: StopReason, detail: str | None = None) -> None:
        """Record why the call ended, and when."""
        self.stop_detail = detail
        self.elapsed_at_end = self.elapsed
        self._read_clock = None
        self.stop_reason = reason
        if reason is not StopReason.SUCCEEDED:
            self._give_up_number = give_ups.add()

    def describe(self) -> str:
        """Return the outcome of the call, as the end of a sentence.

        >>> state = RetryState("fetch", 7, 0.0, elapsed_at_end=7.2, attempt=5)
        >>> state._end(StopReason.ATTEMPTS, "max_attempts=5 reached")
        >>> state.describe()
        'gave up after 5 attempts in 7.2 s: max_attempts=5 reached'
        """
        plural = "" if self.attempt == 1 else "s"
        so_far = f"{self.attempt} attempt{plural} in {duration_in_words(self.elapsed)}"
        if self.stop_reason is None:
            return f"is running: {so_far}"
        if self.stop_reason is StopReason.CANCELLED:
            return f"was cancelled after {so_far}"
        if self.stop_reason is StopReason.SUCCEEDED:
            return f"succeeded after {so_far}"
        why = self.stop_detail or EXPLANATIONS[self.stop_reason]
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
    @user_facing
    def from_dict(cls, data: object) -> "RetryState":
        """Return the state that `to_dict` wrote.

        Its errors are `ErrorRecord`, and its elapsed time is constant until the call
        is resumed.

        Raises:
            ConfigError: *data* has another version or another form.
        """
        try:
            state = read_state(data)
        except FieldError as error:
            raise error.as_setting("state") from None
        # An error that another process has pickled arrives.
        state._give_up_number = give_ups.add()
        return state

    def __reduce__(self) -> tuple[Any, ...]:
        return RetryState.from_dict, (self.to_dict(),)


@final
class GiveUps(ForkSafe):
    """Counts the calls that have given up in this process.

    So calls are ordered without a clock, which may stand still or be set back.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0
        super().__init__()

    def add(self) -> int:
        """Count one more, and return its number, >= 1."""
        with self._lock:
            self.count += 1
            return self.count

    def __reduce__(self) -> str:
        # A driver that is pickled by value refers to it.
        return "give_ups"


give_ups: Final = GiveUps()
"""Those of this process."""


def _data(state: RetryState, *, redact: Redaction) -> dict[str, Any]:
    locations, inner = state._frame_locations or {}, state.nested_state
    within = combine_redactions(redact, redact if inner is None else inner.redact)
    return {name: getattr(state, name) for name in _READ} | {
        "version": _VERSION,
        "rule_counts": list(state.rule_counts),
        "nested_state": inner and _data(inner, redact=within),
        "elapsed_at_end": state.elapsed,
        "stop_reason": state.stop_reason and state.stop_reason.value,
        "failures": [
            failure_to_dict(each, locations.get(each.attempt), redact=redact)
            for each in state._failures
        ],
    }


def read_state(data: object) -> RetryState:
    """Return the state that `RetryState.to_dict` wrote, as part of other data.

    Raises:
        FieldError: It has another version, or a field is invalid.
    """
    fields = read_fields({"version": _read_version, **_READ}, data, _ADDED)
    del fields["version"]
    state = RetryState(**fields)
    if sum(state.rule_counts) > state.attempt:
        counts, fault = state.rule_counts, "they are more than there were attempts"
        raise FieldError("rule_counts", counts, fault)
    return state


def _read_version(version: object) -> None:
    # By its type, too: True is equal to 1.
    if (type(version), version) != (int, _VERSION):
        msg = f"it is not {_VERSION}"
        raise ValueError(msg)


# Returns all of a state, to copy it.
_slots_of = attrgetter(*RetryState.__slots__)

_VERSION = 1
# The end of the year 9999, the last one of a datetime.
_LAST = 253_402_300_799.0

_string = strict_type(str)


def _epoch(value: object) -> float:
    epoch = read_seconds(value)
    if epoch > _LAST:
        msg = "it is after the year 9999"
        raise ValueError(msg)
    return epoch


# A state that waits in a queue may have been written before these were added.
_ADDED = {"max_attempts", "stop_detail", "used_fallback"}

_READ: dict[str, Callable[[Any], Any]] = {
    "name": _string,
    "seed": strict_type(int),
    "epoch": _epoch,
    "max_elapsed": read_delay,
    "max_failures": read_count,
    "max_attempts": lambda count: None if count is None else read_attempt(count),
    "attempt": read_attempt,
    "attempt_started": read_seconds,
    "failures": read_list(failure_from_dict),
    "dropped_failures": read_count,
    "total_delay": read_seconds,
    "next_delay": read_delay,
    "stop_reason": lambda reason: None if reason is None else StopReason(reason),
    "stop_detail": strict_type(str, type(None)),
    "used_fallback": strict_type(bool),
    "elapsed_at_end": read_seconds,
    "rule_counts": read_list(read_count),
    "retry_cost": read_delay,
    "depth": read_count,
    "nested_state": lambda data: None if data is None else read_state(data),
}
