"""The history of one retried call, as data: a view of its record."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, final

from retrykit._core.call_record import (
    ITSELF,
    CallFacts,
    Terms,
    give_ups,
    new_record,
    swap_outcome,
)
from retrykit._core.failures import (
    EXPLANATIONS,
    ErrorRecord,
    Failure,
    StopReason,
)
from retrykit._internal.durations import duration_in_words
from retrykit._internal.late_modules import import_late
from retrykit._internal.redaction import Redaction
from retrykit._internal.validation import user_facing

if TYPE_CHECKING:
    from datetime import datetime

    from retrykit._core.stream_facts import StreamProgress

__all__ = ["Failure", "RetryState", "Status", "StopReason", "view"]

Status = Literal["running", "succeeded", "dead"]
"""A call is running, has its result, or has given up."""


@final
class RetryState:  # noqa: PLW1641  it changes
    """The history of one call so far.

    It is a read-only view, which changes while the call runs.

    Args:
        name: The name of the policy, function or request; the id of a durable job.
        seed: The seed of the call's random delays.
        epoch: When the call began, by the wall clock, in seconds since 1970.
        max_elapsed: Time limit of the call, in seconds; None if there is none, or under
            ``limits="all"``.
        max_failures: Maximum number of failures kept; beyond it the middle ones are
            dropped.
        max_attempts: Maximum number of attempts; None if there is none or it is not
            known, or under ``limits="all"``.
        attempt: Number of the running or last attempt, from 1; 0 if none was made.
        attempt_started: When that attempt began, in seconds since the call began.
        failures: The failed attempts that were kept, in order.
        dropped_failures: Number of failures that were not kept.
        total_delay: Sum of the delays so far, in seconds.
        next_delay: The delay before the next attempt, in seconds; None unless
            one is scheduled.
        stop_reason: Why the call ended; None while it runs.
        stop_detail: What ended the call, such as ``max_attempts=5 reached``; None if
            `stop_reason` says enough.
        retry_in: Seconds until the limit that refused an attempt will allow one; None
            if that is not known.
        used_fallback: Whether the call returned the policy's `fallback`.
        elapsed_at_end: The elapsed time when the call ended or this state was stored,
            in seconds.
        rule_counts: Numbers of failures that the policy's rules matched, in order;
            zeros at the end are left out.
        retry_cost: What the last retry cost the policy's budget; None if the budget did
            not pay for it.
        hedges: Number of sends beyond the first of each attempt.
        depth: Number of retried calls around this one.
        nested_state: The state of the nested call whose failure ended this one.
        redact: Whether secrets of requests and URLs are left out of texts about the
            errors, or the policy's function that leaves out more of them.
    """

    __slots__ = ("__weakref__", "_outcome", "_record")

    _record: CallFacts
    # What `ITSELF` stands for in the record: the error or the response to which it is
    # attached; None if the record has it.
    _outcome: object

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
        retry_in: float | None = None,
        used_fallback: bool = False,
        elapsed_at_end: float = 0.0,
        rule_counts: tuple[int, ...] = (),
        retry_cost: float | None = None,
        hedges: int = 0,
        depth: int = 0,
        nested_state: "RetryState | None" = None,
        redact: Redaction = True,
    ) -> None:
        terms = Terms(name, max_elapsed, max_failures, max_attempts, redact)
        self._outcome = None
        self._record = record = new_record(terms, seed)
        record.epoch = epoch
        record.attempt, record.attempt_started = attempt, attempt_started
        record.failures, record.dropped_failures = list(failures), dropped_failures
        record.total_delay, record.next_delay = total_delay, next_delay
        record.stop_reason, record.stop_detail = stop_reason, stop_detail
        record.retry_in, record.hedges = retry_in, hedges
        record.used_fallback, record.elapsed_at_end = used_fallback, elapsed_at_end
        record.rule_counts, record.retry_cost = rule_counts, retry_cost
        record.depth, record.nested_state = depth, nested_state

    def _replace(self, **changes: Any) -> "RetryState":
        """Return the state of a call that has ended, with some attributes changed."""
        record = self._record.copy()
        record.failures = list(self.failures)
        record.nested_state = self.nested_state
        own = {name: changes.pop(name) for name in Terms.__slots__ if name in changes}
        record.terms = record.terms.replace(**own)
        for name, value in changes.items():
            setattr(record, name, list(value) if name == "failures" else value)
        return view(record)

    def __eq__(self, other: object) -> bool:
        """Return whether all fields that `to_dict` writes are equal."""
        if not isinstance(other, RetryState):
            return NotImplemented
        fields = _records().STATE_FIELDS
        return all(getattr(self, x) == getattr(other, x) for x in fields)

    @property
    def name(self) -> str:
        """The name of the policy, function or request; the id of a durable job."""
        return self._record.terms.name

    @property
    def seed(self) -> int:
        """The seed of the call's random delays."""
        return self._record.seed

    @property
    def epoch(self) -> float:
        """Start of the call by the wall clock, in seconds since 1970."""
        return self._record.epoch or 0.0

    @property
    def max_elapsed(self) -> float | None:
        """Time limit of the call, in seconds.

        None if there is none, or under ``limits="all"``.
        """
        return self._record.terms.max_elapsed

    @property
    def max_attempts(self) -> int | None:
        """Maximum number of attempts.

        None if there is none or it is not known, or under ``limits="all"``.
        """
        return self._record.terms.max_attempts

    @property
    def max_failures(self) -> int:
        """Maximum number of failures kept; beyond it the middle ones are dropped."""
        return self._record.terms.max_failures

    @property
    def redact(self) -> Redaction:
        """The policy's `redact`, for texts about errors: a bool or a function."""
        return self._record.terms.redact

    @property
    def attempt(self) -> int:
        """Number of the running or last attempt, from 1; 0 if none was made."""
        return self._record.attempt

    @property
    def attempt_started(self) -> float:
        """Start of the running or last attempt, in seconds since the call began."""
        return self._record.attempt_started

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The failed attempts that were kept, in order."""
        failures, outcome = tuple(self._record.failures), self._outcome
        if outcome is None:
            return failures
        return tuple(swap_outcome(each, ITSELF, outcome) for each in failures)

    @property
    def errors(self) -> tuple[Exception | ErrorRecord, ...]:
        """The errors of the failed attempts that were kept, in order."""
        return tuple(f.error for f in self.failures if f.error is not None)

    @property
    def dropped_failures(self) -> int:
        """Number of failures that were not kept."""
        return self._record.dropped_failures

    @property
    def total_delay(self) -> float:
        """Sum of the delays so far, in seconds."""
        return self._record.total_delay

    @property
    def next_delay(self) -> float | None:
        """The delay before the next attempt, in seconds; None if none is scheduled."""
        return self._record.next_delay

    @property
    def stop_reason(self) -> StopReason | None:
        """Reason for which the call ended; None while it runs."""
        return self._record.stop_reason

    @property
    def stop_detail(self) -> str | None:
        """Text about what ended the call; None if `stop_reason` says enough.

        It names a limit and its value, such as ``max_attempts=5 reached``; or it says
        why a limit refused an attempt, or what made the call give up.
        """
        return self._record.stop_detail

    @property
    def hedges(self) -> int:
        """Number of sends beyond the first of each attempt, under a `Hedge`."""
        return self._record.hedges

    @property
    def stream(self) -> "StreamProgress | None":
        """Progress of a retried generator; None for other calls.

        It is not part of the state as data.
        """
        stream = self._record.stream
        return None if stream is None else stream.progress()

    @property
    def retry_in(self) -> float | None:
        """Seconds until the limit that refused an attempt will allow one.

        None if no limit refused one, or the limit cannot tell.
        """
        return self._record.retry_in

    @property
    def used_fallback(self) -> bool:
        """True if the call returned the policy's `fallback` in place of its error."""
        return self._record.used_fallback

    @property
    def elapsed_at_end(self) -> float:
        """The elapsed time when the call ended or this state was stored, in seconds."""
        return self._record.elapsed_at_end

    @property
    def rule_counts(self) -> tuple[int, ...]:
        """Numbers of failures that the policy's rules matched, in order.

        Zeros at the end are left out.
        """
        return self._record.rule_counts

    @property
    def retry_cost(self) -> float | None:
        """Cost of the last retry to the policy's budget; None if no budget paid."""
        return self._record.retry_cost

    @property
    def depth(self) -> int:
        """Number of retried calls around this one."""
        return self._record.depth

    @property
    def nested_state(self) -> "RetryState | None":
        """The state of the nested call whose failure ended this one.

        If more than 16 calls are nested, only the nearest and the 15 innermost are
        kept.
        """
        nested = self._record.nested_state
        if nested is None or self._outcome is None or nested._outcome is not None:
            return nested
        return view(nested._record, self._outcome)

    @property
    def function(self) -> Callable[..., Any] | None:
        """The function that is retried; None for a block of code or a client.

        Like `args` and `kwargs`, it is known while the call runs, also in the policy's
        `fallback`, and is not part of the state as data. Afterwards it is released.

        Raises:
            LookupError: The call is over; or `args` or `kwargs` are not known yet, and
                are read in another thread or task than the call's.
        """
        return self._record.find_function()

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments of the call; the first one of a method is `self`.

        >>> from retrykit import Policy
        >>> policy = Policy(schedule=[0], fallback=lambda state: len(*state.args))
        >>> policy.call(int, "seven")
        5
        """
        return self._record.find_arguments()[0]

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments of the call."""
        return self._record.find_arguments()[1]

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
        return self._record.elapsed

    @property
    def remaining(self) -> float | None:
        """Seconds left of `max_elapsed`, >= 0; None if nothing limits the time.

        In a nested call, no more than the calls around it have left. Hand it to a
        client as its timeout: ``timeout=current_state().remaining``. Under the
        deadline rules ``"clip"`` and ``"overshoot"`` an attempt may begin when no
        time is left: keep a minimum timeout of your own there.
        """
        ends = self._record.find_time_limit(), self._record.outer_deadline
        limits = [each for each in ends if each is not None]
        return max(min(limits) - self.elapsed, 0.0) if limits else None

    def describe(self) -> str:
        """Return a description of the call so far, as the end of a sentence.

        >>> state = RetryState("fetch", 7, 0.0, elapsed_at_end=7.2, attempt=5,
        ...     stop_reason=StopReason.ATTEMPTS, stop_detail="max_attempts=5 reached")
        >>> state.describe()
        'gave up after 5 attempts in 7.2 s: max_attempts=5 reached'
        """
        record = self._record
        attempt, reason = record.attempt, record.stop_reason
        plural = "" if attempt == 1 else "s"
        so_far = f"{attempt} attempt{plural} in {duration_in_words(record.elapsed)}"
        if record.stream is not None:
            items = record.stream.items
            so_far += f" and {items} item{'' if items == 1 else 's'}"
        if reason is None:
            return f"is running: {so_far}"
        if reason is StopReason.CANCELLED:
            return f"was cancelled after {so_far}"
        if reason is StopReason.SUCCEEDED:
            return f"succeeded after {so_far}"
        why = record.stop_detail or EXPLANATIONS[reason]
        if record.nested_state is not None:
            why = f"nested call {self.innermost.name} {self.innermost.describe()}"
        if not attempt:
            return f"gave up before its first attempt: {why}"
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

        Errors become dicts of type, message and formatted traceback. The secrets of
        requests and URLs are left out unless the policy has ``redact=False``; those in
        the state of a nested call are left out unless both policies have it. Results
        that are None, a bool or a finite number stay as they are, and strings lose such
        secrets; all others become a record of their type and their ``repr`` or, if they
        are responses, their status.
        """
        plain: dict[str, Any] = _records().state_to_dict(self, redact=self.redact)
        return plain

    @classmethod
    @user_facing
    def from_dict(cls, data: object) -> "RetryState":
        """Return the state that `to_dict` wrote.

        Its errors are `ErrorRecord`, and its elapsed time does not change.

        Raises:
            ConfigError: *data* is not such a state, or has another version.
        """
        records = _records()
        try:
            state: RetryState = records.read_state(data)
        except records.FieldError as error:
            raise error.as_setting("state") from None
        # An error that another process has pickled arrives.
        state._record.give_up_number = give_ups.add()
        return state

    def __reduce__(self) -> tuple[Any, ...]:
        return RetryState.from_dict, (self.to_dict(),)


def view(record: CallFacts, outcome: object = None) -> RetryState:
    """Return a view of a record; an outcome is shown in place of `ITSELF`."""
    state = object.__new__(RetryState)
    state._record, state._outcome = record, outcome
    record.ensure_epoch()
    return state


def _records() -> Any:
    # Late, since few states become data.
    return import_late("retrykit._core.records")
