"""Simulated calls that a policy retries, above layers that send each attempt."""

from typing import TYPE_CHECKING, Final, cast, final

from retrykit._core.timeouts import timeout_seconds
from retrykit.schedules._randomness import SHARED_CALLS, SharedDraws
from retrykit.simulate._admission import Admission
from retrykit.simulate._calls import Attempt, Call, Process
from retrykit.simulate._draws import Stream
from retrykit.simulate._events import Event, nanoseconds
from retrykit.simulate._failures import OWN_TIMEOUT
from retrykit.simulate._requests import NEVER, Done, Layer, Line, Sending, Whole

if TYPE_CHECKING:
    from retrykit.simulate._clients import Told

__all__ = ["Draws", "RetriedCall", "Retries"]


@final
class Draws:
    """The random draws for the delays of calls; 64 calls share an object.

    Args:
        seed: The seed of the simulation.
        purpose: The name of their stream.
    """

    def __init__(self, seed: int, purpose: str) -> None:
        # Below 2**53, as the seeds of calls are.
        self._first = Stream(seed, purpose).below(2**46) * SHARED_CALLS
        self._calls = 0
        self._shared = SharedDraws(self._first)

    def take(self, own: int | None) -> tuple[SharedDraws, int]:
        """Return the draws of the next call, and its number in the draws.

        Args:
            own: The seed of its policy, with which every call has the same draws; None
                if the policy has no seed.
        """
        number = self._calls % SHARED_CALLS
        if not number:
            self._shared = SharedDraws(self._first + self._calls)
        self._calls += 1
        return (self._shared, number) if own is None else (SharedDraws(own), 0)


@final
class Retries:
    """The retries of a policy in one process.

    Args:
        process: The process, with its policy and its budget.
        line: The way to the server.
        draws: The draws of the delays.
        below: Sends each attempt.
        told: Called with each attempt that has ended.
    """

    def __init__(
        self,
        process: Process,
        line: Line,
        draws: Draws,
        below: Layer,
        told: "Told | None" = None,
    ) -> None:
        policy = process.clients.policy
        self.process, self.line, self.below, self.told = process, line, below, told
        self._draws = draws
        limit = timeout_seconds(policy.attempt_timeout)
        self.timeout: Final = NEVER if limit is None else nanoseconds(limit)
        self.admission = Admission(process, line.events) if policy.admission else None

    def send(self, whole: Whole, deadline: int, done: Done, /) -> "RetriedCall":
        """Begin a call."""
        call = self.prepare(whole, deadline, done)
        call.begin()
        return call

    def prepare(self, whole: Whole, deadline: int, done: Done) -> "RetriedCall":
        """Return a call that has not begun."""
        draws = self._draws.take(self.process.clients.policy.seed)
        call = Call(self.process, self.line.events.now, draws, whole.user)
        return RetriedCall(self, whole, call, deadline, done)


@final
class RetriedCall:
    """A call of a policy, whose attempts are sent by the layer below.

    Attributes:
        call: What the decisions of the policy need to know.
    """

    __slots__ = (
        "_admitted",
        "_attempt",
        "_deadline",
        "_done",
        "_retries",
        "_sending",
        "_timer",
        "_whole",
        "call",
    )

    def __init__(
        self, retries: Retries, whole: Whole, call: Call, deadline: int, done: Done
    ) -> None:
        self._retries, self._whole, self.call = retries, whole, call
        self._deadline, self._done = deadline, done
        self._sending: Sending | None = None
        self._attempt: Attempt | None = None
        self._timer: Event | None = None
        admission = retries.admission
        self._admitted = None if admission is None else admission.admitted(call)

    def begin(self, _: object = None) -> None:
        """Make the next attempt, as soon as the limits allow it."""
        self._timer = None
        if self._admitted is None:
            self._send()
        else:
            self._admitted.ask(self._send, self._refuse)

    def _refuse(self) -> None:
        """End the call, since a limit has refused its next attempt.

        The budget gets back what it paid for this attempt.
        """
        line, call = self._retries.line, self.call
        line.recorder.refuse(line.events.now)
        budget = call.process.budget
        if budget is not None and call.cost is not None:
            budget.refund(call.cost)
        self._done(OWN_TIMEOUT)

    def _send(self) -> None:
        retries, call = self._retries, self.call
        now, deadline = retries.line.events.now, self._deadline
        call.attempt += 1
        limit, left = retries.timeout, call.process.rules.time_left(call, now)
        span = limit if left is None else min(limit, left)
        if now + span < deadline:
            deadline = now + span
            self._timer = retries.line.events.at(deadline, self._time_out, None)
        self._attempt = Attempt(call, now, deadline)
        self._sending = retries.below.send(self._whole, deadline, self._end)

    def _time_out(self, _: object) -> None:
        self._timer = None
        cast("Sending", self._sending).cancel(succeeded=False)
        self._fail(OWN_TIMEOUT)

    def _end(self, failure: int | None) -> None:
        """Handle the outcome of an attempt; *failure* is None if it succeeded."""
        self._stop_timer()
        if failure is None:
            self._succeed()
            self._done(None)
        else:
            self._fail(failure)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._retries.line.events.cancel(self._timer)
            self._timer = None

    def _succeed(self) -> None:
        self._sending = None
        if self._admitted is not None:
            self._admitted.succeeded()
        self._tell(None, None)
        self.call.process.succeed(self.call)

    def _fail(self, failure: int) -> None:
        """Decide what follows an attempt that has failed."""
        call, events = self.call, self._retries.line.events
        self._sending = None
        delay = call.process.rules.delay_after(call, events.now, failure)
        if self._admitted is not None:
            delay = self._admitted.failed(failure, delay)
        delay = call.process.pay(call, failure, delay)
        self._tell(failure, delay)
        if delay is None:
            self._done(failure)
        else:
            due = events.now + nanoseconds(delay)
            self._timer = events.at(due, self.begin, None)

    def _tell(self, failure: int | None, delay: float | None) -> None:
        told, now = self._retries.told, self._retries.line.events.now
        if told is not None:
            told(self.call, cast("Attempt", self._attempt), now, failure, delay)

    def succeed(self) -> None:
        """End the call, since the answer to an earlier request has come."""
        self._stop_timer()
        sending = self._sending
        if sending is not None:
            sending.cancel(succeeded=True)
        elif self._admitted is not None:
            self._admitted.stop()
        self._succeed()
        self._done(None)

    def cancel(self, *, succeeded: bool | None) -> None:
        """End the call without an outcome, and cancel what it has sent."""
        self._stop_timer()
        if self._sending is not None:
            self._sending.cancel(succeeded=succeeded)
