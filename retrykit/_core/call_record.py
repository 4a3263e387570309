"""The record of one call: what has happened so far, written by the code that runs it.

`RetryState` is a view of it. A record has one writer; other threads may read it.
"""

# `CallRecord` stores what a running call reads from its tape.
# pyright: reportIncompatibleMethodOverride=false

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, Final, final

from retrykit._core.failures import ErrorRecord, Failure, StopReason
from retrykit._internal.locks import ForkSafe
from retrykit._internal.redaction import Redaction
from retrykit._internal.tracebacks import FrameLocations

if TYPE_CHECKING:
    from retrykit._core.retry_state import RetryState
    from retrykit._core.stream_facts import StreamFacts

__all__ = ["ITSELF", "OVER", "Arguments", "CallFacts", "CallRecord", "Terms"]
__all__ += ["SUCCEEDED", "clock_id", "give_ups", "new_record", "swap_outcome"]

SUCCEEDED: Final = StopReason.SUCCEEDED
"""`StopReason.SUCCEEDED`: on Python 3.11, a global name is quicker to look up."""

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""The positional and the keyword arguments of a call."""

OVER: Final = ()
"""Stands for the arguments of a call that is over, which are released."""

_IS_OVER: Final = "state.function, args and kwargs are only available while a call runs"

ITSELF: Final = ErrorRecord("itself", "", "")
"""Stands for an error or a response in the record that is attached to it: a reference
cycle would keep the frames of the error beyond its handler."""


def swap_outcome(failure: Failure, old: object, new: Any) -> Failure:
    """Return a failure, with *new* in place of its error or result if that is *old*."""
    # Records by value, because a pickle makes a new one. Errors by identity, because
    # their ``__eq__`` may run any code.
    same = _equal_records if isinstance(old, ErrorRecord) else is_
    if same(failure.error, old):
        return failure._replace(error=new)
    if failure.result is not None and same(failure.result, old):
        return failure._replace(result=new)
    return failure


def _equal_records(one: object, other: object) -> bool:
    return isinstance(one, ErrorRecord) and one == other


@final
class Terms:
    """The name and the settings of a call, which are known before it begins.

    Attributes:
        name: The name of the policy, function or request; the id of a durable job.
        max_elapsed: Time limit of the call, in seconds; None if there is none, or under
            ``limits="all"``.
        max_failures: Maximum number of failures kept.
        max_attempts: Maximum number of attempts; None if there is none or it is not
            known, or under ``limits="all"``.
        redact: The redaction of the policy.
        polls: Whether the policy has ``on=()``, so that rejected results are expected.
        names: The names of the functions in a chain; None for other calls.
    """

    __slots__ = (
        "max_attempts",
        "max_elapsed",
        "max_failures",
        "name",
        "names",
        "polls",
        "redact",
    )
    name: str
    max_elapsed: float | None
    max_failures: int
    max_attempts: int | None
    redact: Redaction
    polls: bool
    names: Sequence[str] | None

    def __init__(  # noqa: PLR0913, PLR0917  as a policy has them
        self,
        name: str,
        max_elapsed: float | None = None,
        max_failures: int = 100,
        max_attempts: int | None = None,
        redact: Redaction = True,  # noqa: FBT002  by position
        polls: bool = False,  # noqa: FBT001, FBT002  by position
        names: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self.max_elapsed = max_elapsed
        self.max_failures = max_failures
        self.max_attempts = max_attempts
        self.redact = redact
        self.polls = polls
        self.names = names

    def replace(self, **changes: Any) -> "Terms":
        """Return a copy with some settings changed."""
        own = {each: getattr(self, each) for each in Terms.__slots__}
        return Terms(**own | changes)


class CallFacts:
    """Facts of one call; the base of a stored record and of a running call.

    Facts that most calls never have are attributes of the class until they are set.

    Attributes:
        terms: What was known before the call began.
        seed: The seed of the call's random delays.
        started: The reading of the call's clock when the call began, in seconds.
        read_clock: Reads the clock of a running call; None if it is not known.
        attempt: Number of the running or last attempt, from 1; 0 if none was made.
        attempt_started: When that attempt began, in seconds since the call began.
        failures: The failed attempts that are kept, in order.
        next_delay: The delay before the next attempt, in seconds; None unless one is
            scheduled.
        total_delay: Sum of the delays so far, in seconds.
        stop_reason: Why the call ended; None while it runs.
        elapsed_at_end: The elapsed time when the call ended or its state was stored, in
            seconds.
        frame_locations: Where errors with released frames were raised, keyed by attempt
            number.
        outer_deadline: When the time limit of a call around this one is reached, in
            seconds since this one began; None if there is none.
        epoch: When the call began, by the wall clock, in seconds since 1970; None until
            somebody needs it.
        stop_detail: What ended the call, as text; None if `stop_reason` says enough.
        retry_in: Seconds until the limit that refused an attempt will allow one; None
            if that is not known.
        used_fallback: Whether the call returns the policy's fallback.
        dropped_failures: Number of failures that were not kept.
        rule_counts: Numbers of failures that the policy's rules matched, in order;
            zeros at the end are left out.
        hedges: Number of sends beyond the first of each attempt.
        stream: The facts of a stream; None for a call that has a result.
        retry_cost: What the last retry cost the policy's budget; None if the budget did
            not pay for it.
        depth: Number of retried calls around this one.
        nested_state: The state of the nested call whose failure ended this one.
        request: The method and the URL of the request that the call makes.
        clock_id: The identity of the clock of a call that gave up; 0 for other calls.
        give_up_number: The position of the call among the calls that gave up, or were
            read from data, in this process, from 1; 0 for other calls.
        function: The function of a call that has given up, while its fallback runs.
        arguments: The arguments of a running call; None if they have not been found
            yet; `OVER` if the call does not run.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "read_clock",
        "seed",
        "started",
        "terms",
    )

    terms: Terms
    seed: int
    started: float
    read_clock: Callable[[], float] | None

    stop_reason: StopReason | None = None
    elapsed_at_end: float = 0.0
    frame_locations: dict[int, FrameLocations] | None = None
    outer_deadline: float | None = None
    epoch: float | None = None
    stop_detail: str | None = None
    retry_in: float | None = None
    used_fallback: bool = False
    dropped_failures: int = 0
    rule_counts: tuple[int, ...] = ()
    retry_cost: float | None = None
    hedges: int = 0
    stream: "StreamFacts | None" = None
    depth: int = 0
    nested_state: "RetryState | None" = None
    request: tuple[str, object] | None = None
    clock_id: int = 0
    give_up_number: int = 0
    function: Callable[..., Any] | None = None
    arguments: Arguments | tuple[()] | None = OVER

    # A record stores these, and a running call reads them from its tape.

    @property
    @abstractmethod
    def attempt(self) -> int:
        """Number of the running or last attempt, from 1; 0 if none was made."""

    @property
    @abstractmethod
    def attempt_started(self) -> float:
        """Start of the running or last attempt, in seconds since the call began."""

    @property
    @abstractmethod
    def failures(self) -> list[Failure]:
        """The failed attempts that are kept, in order."""

    @property
    @abstractmethod
    def next_delay(self) -> float | None:
        """The delay before the next attempt, in seconds; None if none is scheduled."""

    @property
    @abstractmethod
    def total_delay(self) -> float:
        """Sum of the delays so far, in seconds."""

    @property
    @abstractmethod
    def last_failure(self) -> Failure | None:
        """The last failed attempt; None if none is known."""

    @abstractmethod
    def failures_backwards(self) -> Iterator[Failure]:
        """Yield the failed attempts that are kept, the last one first."""

    @abstractmethod
    def add_failure(self, failure: Failure) -> None:
        """Record a failure and the delay that follows it."""

    def ensure_epoch(self) -> None:
        """Compute `epoch` if it is not known yet; a stored record knows it."""

    def copy(self) -> "CallRecord":
        """Return a stored copy of this record."""
        self.ensure_epoch()
        record = CallRecord()
        record.terms, record.seed, record.started = self.terms, self.seed, self.started
        record.read_clock, record.attempt = self.read_clock, self.attempt
        record.attempt_started, record.failures = self.attempt_started, [*self.failures]
        record.next_delay, record.total_delay = self.next_delay, self.total_delay
        record.copy_rare_facts(self)
        record.frame_locations = dict(self.locations()) or None
        return record

    def record_for(self, outcome: object) -> "CallFacts":
        """Return a record to attach to an outcome, with `ITSELF` for the outcome."""
        record = self.copy()
        record.failures = [swap_outcome(x, outcome, ITSELF) for x in record.failures]
        return record

    def copy_rare_facts(self, other: "CallFacts") -> None:
        """Take over from another record the facts that most calls never have."""
        vars(self).update({x: y for x, y in vars(other).items() if x in _KEPT})
        if self.frame_locations is not None:
            self.frame_locations = self.frame_locations.copy()

    def locations(self) -> dict[int, FrameLocations]:
        """Return where errors with released frames were raised, by attempt number."""
        return self.frame_locations or {}

    def find_function(self) -> Callable[..., Any] | None:
        """Return the function of a running call; None for a block or a client.

        Raises:
            LookupError: The call is over.
        """
        raise LookupError(_IS_OVER)

    def find_arguments(self) -> Arguments:
        """Return the arguments of a running call.

        Raises:
            LookupError: The call is over, or they are not known in this thread.
        """
        raise LookupError(_IS_OVER)

    @property
    def elapsed(self) -> float:
        """Seconds since the call began, until now or until it ended, >= 0."""
        if self.read_clock is None:
            return self.elapsed_at_end
        return self.read_clock() - self.started

    @property
    def row_began(self) -> float:
        """When limits begin to count, in seconds since the call began.

        It is 0, except in a stream whose limits count failures in a row.
        """
        return 0.0 if self.stream is None else self.stream.row_begins(self.elapsed)

    def find_time_limit(self) -> float | None:
        """Return when `max_elapsed` ends the call, in seconds since its start.

        None if it does not end the call.
        """
        limit = self.terms.max_elapsed
        return None if limit is None else limit + self.row_began

    def trim(self, failures: list[Any]) -> list[Failure]:
        """Remove surplus failures from the middle of a list, and return them."""
        surplus = len(failures) - self.terms.max_failures
        if surplus <= 0:
            return []
        middle = self.terms.max_failures // 2
        dropped = failures[middle : middle + surplus]
        del failures[middle : middle + surplus]
        locations = self.frame_locations or {}
        for each in dropped:
            locations.pop(each[0], None)
        self.dropped_failures += surplus
        return dropped

    def count_rule(self, rule: int) -> None:
        """Count a failure that a rule has matched."""
        counts = [*self.rule_counts]
        if rule >= len(counts):
            counts += [0] * (rule + 1 - len(counts))
        counts[rule] += 1
        self.rule_counts = tuple(counts)

    def keep_locations(self, attempt: int, locations: FrameLocations) -> None:
        """Keep where an attempt's error was raised, since its frames are released."""
        if self.frame_locations is None:
            self.frame_locations = {}
        self.frame_locations[attempt] = locations

    def end(self, reason: StopReason, detail: str | None = None) -> None:
        """Record why the call ended, and when."""
        if detail is not None:
            self.stop_detail = detail
        if self.read_clock is not None:
            self.elapsed_at_end = self.read_clock() - self.started
        if reason is not SUCCEEDED:
            self.give_up_number = give_ups.add()
            self.clock_id = clock_id(self.read_clock)
        self.read_clock = None
        self.stop_reason = reason


_KEPT: Final = vars(CallFacts).keys() - {"arguments", "function"}
"""The attributes that `copy_rare_facts` takes over, if they are set."""


class CallRecord(CallFacts):
    """A record that stores its facts; a running call reads them from its tape."""

    __slots__ = ("attempt", "attempt_started", "failures", "next_delay", "total_delay")

    attempt: int
    attempt_started: float
    failures: list[Failure]
    next_delay: float | None
    total_delay: float

    @property
    def last_failure(self) -> Failure | None:
        """The last failed attempt; None if none is known."""
        return self.failures[-1] if self.failures else None

    def failures_backwards(self) -> Iterator[Failure]:
        """Yield the failed attempts that are kept, the last one first."""
        return reversed(self.failures)

    def add_failure(self, failure: Failure) -> None:
        """Record a failure and the delay that follows it."""
        self.next_delay = failure.delay
        self.failures.append(failure)
        if failure.rule is not None:
            self.count_rule(failure.rule)
        self.trim(self.failures)

    def begin_attempt(self, started: float) -> None:
        """Record that the next attempt begins, *started* seconds into the call."""
        self.total_delay += self.next_delay or 0.0
        self.next_delay = None
        self.attempt += 1
        self.attempt_started = started


def new_record(terms: Terms, seed: int) -> CallRecord:
    """Return the record of a call in its first attempt, without failures."""
    record = CallRecord()
    record.terms, record.seed = terms, seed
    record.started = record.attempt_started = record.total_delay = 0.0
    record.read_clock = record.next_delay = None
    record.attempt, record.failures = 1, []
    return record


def clock_id(read_clock: Callable[[], float] | None) -> int:
    """Return the identity of a clock, given the method that reads it; 0 for None."""
    return 0 if read_clock is None else id(getattr(read_clock, "__self__", read_clock))


@final
class GiveUps(ForkSafe):
    """Counter of the calls that gave up, or were read from data, in this process.

    The numbers tell the order of the calls; a clock may stand still or be set back.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0
        super().__init__()

    def add(self) -> int:
        """Count one more call, and return its number, >= 1."""
        with self._lock:
            self.count += 1
            return self.count

    def __reduce__(self) -> str:
        # A driver that is pickled by value refers to it.
        return "give_ups"


give_ups = GiveUps()
"""The counter of this process."""
