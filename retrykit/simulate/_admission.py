"""Limits of a policy in a simulation: each process has its own, in virtual time.

As in a real call, each attempt asks the limits, and its end is reported to them before
the budget pays for a retry.
"""

import math
from collections.abc import Callable
from typing import Final, final

from retrykit._core.admission import foresee, give_back, report_failure, report_success
from retrykit._core.failures import Evaluation, Failure, StopReason
from retrykit._core.limits import override
from retrykit._core.policy import Policy
from retrykit._internal.validation import invalid_setting
from retrykit.limits._base import Limit
from retrykit.limits._circuit_breaker import CircuitBreaker
from retrykit.limits._leases import Lease, Refusal
from retrykit.limits._permits import QueuedLease
from retrykit.limits._shared_limits import SerializableLimit
from retrykit.schedules._base import Schedule
from retrykit.simulate._calls import Call, Process
from retrykit.simulate._events import SECOND, Event, Events, nanoseconds

__all__ = ["Admission", "Admitted", "check_limits"]

# How long a call waits if a limit refuses it without saying for how long.
_POLLING: Final = 0.25
_OPENINGS: Final = range(1, 9)


def check_limits(policy: Policy) -> None:
    """Raise an error unless the limits of a policy can be simulated.

    Raises:
        ConfigError: They cannot.
    """
    without = "simulate the policy without it: policy.replace(admission=...)"
    for index, limit in enumerate(policy.admission):
        name = f"admission[{index}]"
        if not isinstance(limit, SerializableLimit):
            rule = "a CircuitBreaker, Concurrency, RateLimit or AdaptiveRateLimit"
            raise invalid_setting(
                name, f"{rule} in a simulation", limit, without, code="not-here"
            )
        duration = limit.open_for if isinstance(limit, CircuitBreaker) else None
        if isinstance(duration, Schedule):
            bounds = [duration.bounds(number) for number in _OPENINGS]
            if any(each is None or each[0] != each[1] for each in bounds):
                rule = "without random numbers in the open_for of a simulated breaker"
                raise invalid_setting(
                    name, rule, limit, 'write open_for="30s"', code="not-here"
                )


@final
class Admission:
    """The limits of a process: new ones, with the settings of the policy's limits.

    Args:
        process: The process, whose policy has limits.
        events: The events of the simulation.

    Attributes:
        events: The events of the simulation.
        rules: The decisions of the policy.
        limits: The limits.
        policy: The policy, with these limits.
        queued: The attempts that wait for a permit, kept here since a limit takes back
            the leases that nobody refers to.
    """

    def __init__(self, process: Process, events: Events) -> None:
        self.events, self.rules = events, process.rules
        given = process.clients.policy
        self.limits: tuple[Limit, ...] = tuple(
            type(each)(**each.settings)
            for each in given.admission
            if isinstance(each, SerializableLimit)
        )
        self.policy = override(given, admission=self.limits)
        self.queued: set[Admitted] = set()

    def admitted(self, call: Call) -> "Admitted":
        """Return the object that asks the limits for the attempts of a call."""
        return Admitted(self, call)


@final
class Admitted:
    """The leases of the current attempt of a call, and its wait for them."""

    __slots__ = (
        "_admission",
        "_begin",
        "_call",
        "_leases",
        "_queued",
        "_refuse",
        "_timer",
    )

    def __init__(self, admission: Admission, call: Call) -> None:
        self._admission, self._call = admission, call
        self._leases: list[Lease] = []
        self._timer: Event | None = None
        self._queued: QueuedLease | None = None
        self._begin: Callable[[], None]
        self._refuse: Callable[[], None]

    def ask(self, begin: Callable[[], None], refuse: Callable[[], None]) -> None:
        """Ask the limits for the next attempt.

        Args:
            begin: Called when the attempt may be made.
            refuse: Called if a limit refuses the attempt, so that the call ends.
        """
        self._begin, self._refuse = begin, refuse
        self._ask_limits()

    def _ask_limits(self, _: object = None) -> None:
        """Ask the limits that have not given a lease yet."""
        self._timer = None
        leases = self._leases
        for limit in self._admission.limits[len(leases) :]:
            answer = limit.acquire()
            if isinstance(answer, Refusal):
                self._handle(answer)
                return
            leases.append(answer)
            if isinstance(answer, QueuedLease) and answer.delay == math.inf:
                self._wait_in_queue(answer)
                return
            if answer.delay:
                refusal = answer.refuse_long_wait(self._time_left())
                if refusal is None:
                    self._wait(answer.delay)
                else:
                    leases.pop()
                    self._handle(refusal)
                return
        self._begin()

    def _handle(self, refusal: Refusal) -> None:
        """Handle a refusal: ask again later, or end the call."""
        give_back(self._leases)
        delay = self._delay_until_allowed(refusal)
        if delay is None:
            self._refuse()
        else:
            self._wait(delay)

    def _wait(self, delay: float) -> None:
        events = self._admission.events
        # A breaker may find that a billionth of a second is left of its time.
        due = events.now + max(nanoseconds(delay), 1)
        self._timer = events.at(due, self._ask_limits, None)

    def _wait_in_queue(self, lease: QueuedLease) -> None:
        """Wait for a permit of a concurrency limit."""
        events, limit = self._admission.events, lease.limit
        if limit is None:  # pragma: no cover  (it was just given)
            return
        wait = limit.time_to_wait(lease, self._time_left())

        def end(_: object) -> None:
            self._timer = None
            self._leave_queue()
            refusal = limit.end_wait(lease, wait)
            if refusal is None:
                self._ask_limits()
            else:
                self._leases.pop()
                self._handle(refusal)

        def wake() -> None:
            if self._queued is lease:
                self._stop_timer()
                self._timer = events.at(events.now, end, None)

        self._queued = lease
        self._admission.queued.add(self)
        limit.arm(lease, wake)
        if wait < math.inf:
            self._timer = events.at(events.now + nanoseconds(wait), end, None)

    def _time_left(self) -> float | None:
        """Return how long the call may wait, in seconds, >= 0; None if unlimited."""
        policy, call = self._admission.policy, self._call
        limit = policy.max_elapsed
        if limit is None or policy.deadline == "overshoot":
            return None
        elapsed = (self._admission.events.now - call.began) / SECOND
        return max(limit - elapsed, 0.0)

    def _delay_until_allowed(self, refusal: Refusal) -> float | None:
        """Return the seconds to wait before a limit is asked again; None to give up."""
        if self._admission.policy.on_refused != "wait":
            return None
        delay = _POLLING if refusal.retry_in is None else refusal.retry_in
        left = self._time_left()
        return None if left is not None and delay > left else delay

    def succeeded(self) -> None:
        """Tell the limits that the attempt has succeeded."""
        report_success(self._admission.limits, self._leases, None)

    def failed(self, kind: int, delay: float | None) -> float | None:
        """Tell the limits that the attempt has failed.

        Args:
            kind: The way in which it failed.
            delay: The delay before the next attempt, in seconds; None if none follows.

        Returns:
            *delay*, or a longer delay if a limit would refuse the attempt then and the
            policy waits; None if no attempt follows.
        """
        admission, rules = self._admission, self._admission.rules
        error, retryable = rules.error(kind), rules.retries(kind)
        number, elapsed = self._call.attempt, 0.0
        failure = Failure(number, error, None, elapsed, 0.0, delay)
        decision = StopReason.NOT_RETRYABLE if delay is None else delay
        evaluation = Evaluation(failure, decision, retryable)
        report_failure(admission.limits, self._leases, evaluation, error)
        refused = None if delay is None else foresee(admission.limits, delay)
        if delay is None or refused is None:
            return delay
        until = self._delay_until_allowed(refused[1])
        return None if until is None else max(until, delay)

    def stop(self) -> None:
        """Stop waiting, and give back the leases: nothing more is sent."""
        self._stop_timer()
        self._leave_queue()
        give_back(self._leases)

    def _leave_queue(self) -> None:
        self._queued = None
        self._admission.queued.discard(self)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._admission.events.cancel(self._timer)
            self._timer = None
