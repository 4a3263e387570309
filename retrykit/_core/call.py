"""The running call: its record, and which call runs inside which.

A call knows the call around it wherever its context reaches: in its task or
thread, in the tasks that it starts, and in ``asyncio.to_thread``.
"""

import copyreg
import os
import sys
from _thread import RLock
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from itertools import islice, pairwise
from operator import methodcaller
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, cast, final
from weakref import ref

from retrykit._core.call_record import (
    ITSELF,
    OVER,
    Arguments,
    CallFacts,
    CallRecord,
)
from retrykit._core.events import Pending
from retrykit._core.failures import Failure
from retrykit._core.retry_state import RetryState, view
from retrykit._internal.clocks import read_together, wall
from retrykit._internal.tracebacks import FrameLocations
from retrykit.schedules._randomness import Draws, SharedDraws

if TYPE_CHECKING:
    from retrykit._core.controller import RetryController
    from retrykit.limits._leases import Lease

__all__ = ["ATTEMPT", "BEFORE", "DELAY", "DRAWS", "EARLIER", "ERROR", "FIRST"]
__all__ += [
    "FIRST_ATTEMPT",
    "GIVE_UPS",
    "LOCATIONS",
    "NOTHING_EARLIER",
    "NUMBER",
    "OWNER",
]
__all__ += ["RESULT", "START", "STARTED", "TAPE", "TRACE"]
__all__ += ["Entry", "FallbackValue", "Outcome", "RetryCall"]
__all__ += ["as_failure", "attempt_time_limit", "current_entry", "current_state"]
__all__ += ["innermost_running", "open_entry", "outer_call", "outer_calls"]
__all__ += ["running_call", "state_lock"]


Entry = list[Any]
"""The entry of a call in its context: a list whose items have the indices below.

A list, because nothing is cheaper to make, and most calls need nothing more than its
first four items. The tape is added at the first failure, or when the state is needed.
Only the code that runs calls uses entries.

An interrupt may end a call before it can restore `current_entry`. So an entry that is
found there, or before another one, may belong to a call that has ended:
`innermost_running` finds the nearest one whose call runs.
"""

OWNER, START, BEFORE, GIVE_UPS, TAPE = range(5)
"""The indices of the items of an entry.

- The owner is the controller of the call at first, its `RetryCall` once there is one,
  and None once the call has ended.
- The start is a clock reading, in seconds; it may be None once the call has ended.
- The entry before is the one that was current when the call began, or None.
- The give-ups are the count of `give_ups` when the call or its last retry began.
- The tape is added when it is needed; it is None once the call has ended.
"""

DRAWS, NUMBER, EARLIER, TRACE, FIRST = range(5)
"""The indices of the items of a tape.

- The draws of the call, and its number among the calls that share them.
- The sum of delays that are not on the tape, in seconds, and the number of the first
  attempt whose delay on the tape is added to it.
- The traceback of the last error when it was recorded.
- From the index `FIRST` on, the failed attempts. Each is a `Failure`; or a tuple of the
  same fields up to the delay, with the time of the failure in place of its duration,
  and then the locations of the previous error, if its frames were released. While an
  attempt runs, the last item is a number: when the attempt began, in seconds since the
  call began.

The only writer is the code that runs the call; others may read at any time.
"""

NOTHING_EARLIER: Final = (0.0, 1)
"""The item `EARLIER` of a tape that has all delays of its call."""

FIRST_ATTEMPT: Final = 0.0
"""The item of a tape for a first attempt that began with the call."""

ATTEMPT, ERROR, RESULT, STARTED, DELAY, LOCATIONS = 0, 1, 2, 3, 5, 6
"""The indices of the fields of a failure on a tape, and of the locations after them."""


def open_entry(entry: Entry, draws: Draws) -> list[Any]:
    """Add a tape with these draws to an entry that has none, and return its tape."""
    shared, number = draws
    # In one step: of several threads that do so, the first one wins.
    entry.append([shared, number, NOTHING_EARLIER, None, FIRST_ATTEMPT])
    tape: list[Any] = entry[TAPE]
    return tape


current_entry: ContextVar[Entry | None] = ContextVar("retrykit call", default=None)
"""The entry of the innermost retried call of this context."""


def _reduce_variable(variable: ContextVar[Any]) -> Any:
    """Return what pickle needs for `current_entry`; treat other variables as before.

    A driver that is pickled by value, as in scripts and notebooks, refers to
    `current_entry`.
    """
    if variable is current_entry:
        return _find_current_entry, ()
    return _reduce_others(variable)


def _find_current_entry() -> ContextVar[Entry | None]:
    return current_entry


# By default, Python's own error.
_reduce_others: Callable[[Any], Any] = copyreg.dispatch_table.get(
    ContextVar, methodcaller("__reduce_ex__", 2)
)
copyreg.pickle(ContextVar, _reduce_variable)


class RetryCall(CallFacts):
    """A running call whose state is needed; for other calls, a plain `Entry` is enough.

    A `RetryController` creates it.

    Attributes:
        controller: The controller of the call; None once the call has ended.
        entry: The entry of the call.
        tape: The tape of the entry.
        resumed_delay: The delay before the next attempt of a resumed call, in seconds,
            if the failure before the delay is not known; else None.
        unrecorded: Number of attempts between the last known failure and the running
            attempt; -1 if the first attempt is not made.
        exhausted_marker: The number of an attempt, and what is attached to the final
            errors of calls nested in it that have exhausted their retries.
        exhausted_client: The number of the last attempt in which a client of an
            integration has exhausted its retries, the name of the client's call, and
            the number of its requests.
        notified: Whether observers were notified of an event of the call.
        pending: What async observers have returned and nothing has awaited yet.
        rule: The index of the rule that rejected the last result; None if the policy's
            own `on_result` did.
        leases: The leases of the running attempt, in the order of the policy's limits.
        warning_issued: Whether a warning was logged for this call: its hint failed, or
            its clock stood still.
    """

    __slots__ = ("controller", "entry", "tape")

    controller: "RetryController | None"
    entry: Entry
    tape: list[Any]
    # The view of the call, as long as somebody has it.
    _state: "ref[RetryState] | None" = None

    resumed_delay: float | None = None
    unrecorded: int = 0
    arguments: Arguments | tuple[()] | None = None
    exhausted_marker: tuple[int, object] | None = None
    exhausted_client: tuple[int, str, int] | None = None
    leases: "list[Lease] | None" = None
    notified: bool = False
    pending: Pending | None = None
    rule: int | None = None
    warning_issued: bool = False

    @property
    def before(self) -> Entry | None:
        """The entry before this call's entry, or None."""
        before: Entry | None = self.entry[BEFORE]
        return before

    @property
    def attempt(self) -> int:
        """Number of the running or last attempt, from 1; 0 if none was made."""
        return self.running[0]

    @property
    def attempt_started(self) -> float:
        """Start of the running or last attempt, in seconds since the call began."""
        return self.running[1]

    @property
    def running(self) -> tuple[int, float]:
        """The `attempt` and `attempt_started` of the call, read at one moment."""
        # Read at once, since the driver may add to it.
        before, last = self.tape[-2:]
        if isinstance(last, tuple):
            return last[ATTEMPT], last[STARTED]
        failed = before[ATTEMPT] if isinstance(before, tuple) else 0
        return failed + 1 + self.unrecorded, last

    @property
    def has_failed(self) -> bool:
        """True if a failed attempt is on the tape."""
        return isinstance(self.tape[FIRST], tuple)

    @property
    def failures(self) -> list[Failure]:
        """The failed attempts that are kept, in order."""
        return [as_failure(x) for x in self.tape[FIRST:] if isinstance(x, tuple)]

    def failures_backwards(self) -> Iterator[Failure]:
        """Yield the failed attempts that are kept, the last one first."""
        items = islice(reversed(self.tape), len(self.tape) - FIRST)
        return (as_failure(x) for x in items if isinstance(x, tuple))

    @property
    def last_failure(self) -> Failure | None:
        """The last failed attempt; None if none is known."""
        before, last = self.tape[-2:]
        if isinstance(last, tuple):
            return as_failure(last)
        return as_failure(before) if isinstance(before, tuple) else None

    @property
    def next_delay(self) -> float | None:
        """The delay before the next attempt, in seconds; None if none is scheduled."""
        last = self.tape[-1]
        is_failed = isinstance(last, tuple)
        delay: float | None = last[DELAY] if is_failed else self.resumed_delay
        return delay

    @property
    def total_delay(self) -> float:
        """Sum of the delays so far, in seconds."""
        earlier, _, *failed, _ = self.tape[EARLIER:]
        total, first = cast("tuple[float, int]", earlier)
        for each in failed:
            if each[ATTEMPT] >= first:
                total += each[DELAY] or 0.0
        return total

    def add_failure(self, failure: Failure) -> None:
        """Record a failure and the delay that follows it."""
        tape = self.tape
        if len(tape) - FIRST <= self.terms.max_failures:
            tape[-1] = failure
        else:
            if type(tape[FIRST]) is not Failure:
                # The locations of errors before a dropped one must be kept.
                self.frame_locations = self.locations()
            (total, first), trace, *failed, _ = tape[EARLIER:]
            kept = [*map(as_failure, failed), failure]
            for each in self.trim(kept):
                if each.attempt >= first:
                    total += each.delay or 0.0
            # In one step, since others may read.
            tape[EARLIER:] = [(total, first), trace, *kept]
        self.unrecorded = 0
        if failure.rule is not None:
            self.count_rule(failure.rule)

    def locations(self) -> dict[int, FrameLocations]:
        """Return where errors with released frames were raised, by attempt number."""
        found = dict(self.frame_locations or {})
        failed = [x for x in self.tape[FIRST:] if isinstance(x, tuple)]
        for before, each in pairwise(failed):
            if type(each) is not Failure and len(each) > LOCATIONS:
                found[before[ATTEMPT]] = (each[LOCATIONS],)
        return found

    def begin_attempt(self, started: float) -> None:
        """Record that the next attempt begins, *started* seconds into the call."""
        if isinstance(self.tape[-1], tuple):
            self.tape.append(started)
        else:
            # The delay of a resumed call, whose failure is not known.
            total, first = self.tape[EARLIER]
            self.tape[EARLIER] = total + (self.resumed_delay or 0.0), first
            self.tape[-1], self.resumed_delay = started, None
            self.unrecorded += 1

    def resume(self, other: RetryState) -> None:
        """Continue the call that a state describes."""
        record, tape = other._record, self.tape
        tape[FIRST:] = other.failures
        attempt = first = record.attempt
        last = tape[-1].attempt if len(tape) > FIRST else 0
        if last != attempt:
            tape.append(record.attempt_started)
            self.unrecorded, self.resumed_delay = attempt - last - 1, record.next_delay
        elif record.next_delay is None:
            # Others have waited.
            first += 1
            tape.append(self.elapsed)
        else:
            tape[-1] = tape[-1]._replace(delay=record.next_delay)
        self.copy_rare_facts(record)
        for name in _OF_ITS_END:
            vars(self).pop(name, None)
        self.frame_locations = {**record.locations()} or None
        tape[EARLIER], self.seed = (record.total_delay, first), record.seed
        tape[DRAWS:EARLIER] = SharedDraws(record.seed), 0

    @property
    def state(self) -> RetryState:
        """The view of the call; the same object as long as somebody refers to it."""
        state = self._view()
        if state is None:
            made = view(self)
            with state_lock:
                state = self._view()
                if state is None:
                    # Not the view itself, which refers to this call.
                    state, self._state = made, ref(made)
        return state

    def copy(self) -> CallRecord:
        """Return a snapshot of the record; the call may still be running."""
        self.ensure_epoch()
        still = RetryCall()
        # What is written after the tape is read before it.
        vars(still).update(vars(self))
        still.terms, still.seed, still.started = self.terms, self.seed, self.started
        still.read_clock, still.tape = self.read_clock, self.tape[:]
        return CallFacts.copy(still)

    def record_for(self, outcome: object) -> CallFacts:
        """Return a record to attach to an outcome, with `ITSELF` for the outcome.

        It is this call if the call is over and no view shows the outcome; else a copy.
        """
        if self.stop_reason is not None and not self.has_failed:
            # Nothing of it refers to the outcome.
            return self
        is_seen = self.notified or self.used_fallback or self._view() is not None
        if self.stop_reason is None or (is_seen and self._items_of(outcome)):
            return super().record_for(outcome)
        self._put_stand_in(outcome)
        return self

    def leave_to_view(self, error: BaseException) -> None:
        """Put `ITSELF` in place of an error whose frames refer to this call.

        Do nothing if observers were notified. A view that somebody has gets a copy of
        the record, which keeps the error.
        """
        if self.notified:
            # An event may be asked for the state later, and shows the error.
            return
        state = self._view()
        if state is not None:
            state._record = self.copy()
        self._put_stand_in(error)

    def _items_of(self, outcome: object) -> list[int]:
        """Return the indices of the items on the tape with this error or result."""
        return [
            index
            for index, item in enumerate(self.tape[FIRST:], FIRST)
            if isinstance(item, tuple)
            and (item[ERROR] is outcome or item[RESULT] is outcome)
        ]

    def _put_stand_in(self, outcome: object) -> None:
        """Put `ITSELF` on the tape in place of an error or a result."""
        tape = self.tape
        for index in self._items_of(outcome):
            kept = [ITSELF if each is outcome else each for each in tape[index]]
            is_made = type(tape[index]) is Failure
            tape[index] = Failure._make(kept) if is_made else tuple(kept)

    def _view(self) -> RetryState | None:
        """Return the view of this call; None if nobody has it."""
        return None if self._state is None else self._state()

    def notify(self) -> None:
        """Prepare for an event, which may be asked for the state at any time."""
        self.notified = True
        if self.epoch is None:
            self.ensure_epoch()

    def ensure_epoch(self) -> None:
        """Compute `epoch` if it is not known yet."""
        if self.epoch is not None:
            return
        if self.read_clock is None:
            self.epoch = wall() - self.elapsed_at_end
        else:
            begun, now = read_together(self.read_clock)
            self.epoch = begun - (now - self.started)

    def find_function(self) -> Callable[..., Any] | None:
        """Return the function of a running call; see `CallFacts`."""
        if self.arguments is OVER:
            return super().find_function()
        controller = self.controller
        return self.function if controller is None else controller.function

    def known_arguments(self) -> Arguments:
        """Return the arguments of a running call; empty if they are not found yet."""
        return self.arguments or ((), {})

    def find_arguments(self) -> Arguments:
        """Find the arguments of a running call; see `CallFacts`."""
        if self.arguments is None and self.find_function() is not None:
            frame: FrameType | None = sys._getframe()  # noqa: SLF001  documented
            while frame is not None and not self._take_arguments(frame):
                frame = frame.f_back
            if self.arguments is None:
                msg = "state.args must be read in the thread or task of the call"
                raise LookupError(msg)
        if self.arguments is OVER:
            return CallFacts.find_arguments(self)
        return self.arguments or ((), {})

    def _take_arguments(self, frame: FrameType) -> bool:
        """Take the arguments from a frame, if it runs the driver of this call.

        Returns:
            Whether it does.
        """
        if frame.f_code.co_name != "call_with_retries":
            return False
        variables = frame.f_locals
        entry, args, kwargs = (variables[name] for name in ("entry", "args", "kwargs"))
        if sys.version_info < (3, 13):  # pragma: no branch
            # It is a copy, which lives as long as the frame.
            variables.clear()
        if type(entry) is not list or entry[OWNER] is not self:
            return False
        self.arguments = args, kwargs or {}
        return True

    def release(self) -> None:
        """Release what only a running call needs, since contexts keep the entry."""
        entry, self.entry = self.entry, _ENDED
        entry[OWNER] = entry[TAPE] = None
        self.arguments, self.function = OVER, None
        self.tape[TRACE] = None

    def already_warned(self) -> bool:
        """Return whether a warning was logged before; the caller logs one if not."""
        before, self.warning_issued = self.warning_issued, True
        return before


_ENDED: Final[Entry] = [None] * (TAPE + 1)
"""The entry of each call that is over; nobody writes to it."""

_OF_ITS_END: Final = (
    *("clock_id", "depth", "elapsed_at_end", "give_up_number", "nested_state"),
    *("outer_deadline", "stop_detail", "stop_reason", "used_fallback"),
)
"""The facts that a resumed call does not take over from the stored record."""


def as_failure(fields: tuple[Any, ...]) -> Failure:
    """Return an item of a tape as a `Failure`."""
    if type(fields) is Failure:
        return fields
    attempt, error, _, started, elapsed, delay, *_ = fields
    took = elapsed - started
    return _new(Failure, (attempt, error, None, started, took, delay, None, None))


_new = tuple.__new__


@final
class FallbackValue:
    """The value that a call returns in place of the error that it gives up with."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


Outcome = Exception | FallbackValue | None
"""The end of a call: an error to raise or a value to return; None while it runs."""


def running_call(entry: Entry) -> RetryCall | None:
    """Return the `RetryCall` of an entry, made if needed; None after the call's end."""
    owner = entry[0]
    if owner is not None and not isinstance(owner, RetryCall):
        owner = cast("RetryController", owner).ensure_call(entry)
    return owner if owner is not None and owner.controller is not None else None


# Reentrant, since a signal handler or a finalizer may make retried calls too
# while the lock is held.
state_lock = RLock()
"""Held while threads agree on the `RetryCall`, view, marker or warning of a call."""

if hasattr(os, "register_at_fork"):  # pragma: no branch  (Windows has no fork)
    # A fork must not copy the lock while another thread holds it.
    os.register_at_fork(
        before=state_lock.acquire,
        after_in_parent=state_lock.release,
        after_in_child=state_lock.release,
    )


def current_state() -> RetryState:
    """Return the state of the retried call that this code runs in.

    >>> from retrykit import Policy
    >>> Policy().call(lambda: current_state().attempt)
    1

    Returns:
        The state of the innermost call: the number of the attempt, the
        failures so far, the time that remains, how deep it is nested. It
        changes while the call runs. Do not keep it in a local variable: the
        variable, the errors in the state and the frames in their tracebacks
        would be a reference cycle, which only the garbage collector frees.

    Raises:
        LookupError: No retried call runs in this context.
    """
    current = current_entry.get()
    # Read once, since the call may end in another thread.
    owner = None if current is None else current[0]
    if type(owner) is RetryCall and owner.used_fallback:
        # The fallback runs: the call is over for nested calls only.
        return owner.state
    entry = innermost_running(current)
    call = None if entry is None else running_call(entry)
    if call is None:
        msg = "current_state() was called outside a retried call"
        raise LookupError(msg)
    return call.state


def innermost_running(entry: Entry | None) -> Entry | None:
    """Return *entry* or the nearest one before it whose call is running, or None."""
    while entry is not None:
        owner = entry[0]
        controller = owner.controller if isinstance(owner, RetryCall) else owner
        if controller is not None and not controller.runner_is_gone():
            return entry
        entry = entry[2]
    return None


def outer_call(call: RetryCall) -> RetryCall | None:
    """Return the running call around a call, or None."""
    entry = innermost_running(call.before)
    if entry is None:
        return None
    # The outermost first, since each call takes over what the one around it knows.
    without_state = []
    outer: Entry | None = entry
    while outer is not None and not isinstance(outer[0], RetryCall):
        without_state.append(outer)
        outer = innermost_running(outer[2])
    for each in reversed(without_state):
        running_call(each)
    return running_call(entry)


def outer_calls(call: RetryCall) -> list[RetryCall]:
    """Return the running calls around a call, the nearest first."""
    found = []
    outer = outer_call(call)
    while outer is not None:
        found.append(outer)
        outer = outer_call(outer)
    return found


def attempt_time_limit(call: RetryCall | None = None) -> float:
    """Return the time limit of the attempt that begins.

    Returns:
        Seconds, >= 0: the policy's `attempt_timeout`; or less, if this call, or a call
        around it, has less time left and ``deadline="stop"``.
    """
    call = call or cast("RetryCall", running_call(cast("Entry", current_entry.get())))
    timeout = cast("RetryController", call.controller).policy.attempt_timeout
    if timeout is not None and not isinstance(timeout, int | float):
        timeout = timeout.seconds
    limits = [timeout]
    for each in (call, *outer_calls(call)):
        controller = each.controller
        # Under the other rules an attempt may begin when no time is left.
        if controller is not None and controller.policy.deadline == "stop":
            limits.append(controller.time_left(each))
    return max(min(limit for limit in limits if limit is not None), 0.0)
