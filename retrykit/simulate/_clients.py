"""The clients of a simulation: processes that share the load."""

from collections.abc import Callable, Sequence
from typing import Any, Final, final

from retrykit._core.policy import Policy
from retrykit._core.timeouts import timeout_seconds
from retrykit._internal.durations import Duration, parse_positive_duration
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    check_number,
    invalid_setting,
    user_facing,
)
from retrykit.schedules._randomness import SharedDraws
from retrykit.simulate._calls import Attempt, Call, Process, Rules
from retrykit.simulate._deal import call_draws, deal, first_seed
from retrykit.simulate._draws import Stream
from retrykit.simulate._events import Events, nanoseconds
from retrykit.simulate._failures import TIMED_OUT
from retrykit.simulate._load import Arrivals, ClosedLoad
from retrykit.simulate._named_values import NamedValue
from retrykit.simulate._recorder import Recorder

__all__ = ["Clients", "Fleet", "Told"]

Told = Callable[[Call, Attempt, int, int | None, float | None], None]
"""Takes a call, its attempt that has ended, the time, how it failed, and a delay.

The time is in nanoseconds. The way to fail is None if the attempt succeeded. The delay
is in seconds, before the next attempt, and None if no attempt follows.
"""

_MOST_PROCESSES: Final = 100_000
_TIMEOUT: Final = 1.0
# So that sums of shares are finite.
_LARGEST_SHARE: Final = 1e9


@final
class Clients(NamedValue):
    """Processes with one policy, which share a part of the load.

    >>> from retrykit import Policy
    >>> Clients(Policy(attempt_timeout="3s"), processes=10).timeout
    3.0

    Args:
        policy: The policy of all calls. Each process has a budget of its own, new and
            full, with the settings of the policy's budget; a budget of your own class
            is copied.
        share: The weight of these clients among all, for a fleet in which some have
            another policy. Dimensionless, > 0 and <= 1e9; 1 by default.
        processes: Number of processes. Count, 1 to 100,000; 100 by default.
        timeout: How long a client waits for an answer. A duration, > 0. By default
            the `attempt_timeout` of the policy, or 1 s if it has none. With an SDK, how
            long the SDK waits for an answer; by default the `attempt_timeout` of *sdk*,
            or 1 s.
        sdk: The policy of an SDK that retries without the knowledge of *policy*: each
            attempt is a call of the SDK. It has no limits and no hedge. None, the
            default, means no SDK.
        connections: Number of connections of each process. A request waits for one
            within its timeout. Count, >= 1; None, the default, is unlimited.

    Raises:
        ConfigError: A setting is invalid.
    """

    __slots__ = ("connections", "policy", "processes", "sdk", "share", "timeout")
    policy: Policy
    share: float
    processes: int
    timeout: float
    sdk: Policy | None
    connections: int | None

    @user_facing
    def __init__(  # noqa: PLR0913  named
        self,
        policy: Policy,
        *,
        share: float = 1.0,
        processes: int = 100,
        timeout: Duration | None = None,
        sdk: Policy | None = None,
        connections: int | None = None,
    ) -> None:
        check_instance("policy", policy, Policy)
        if sdk is not None:
            _check_sdk(sdk)
        if connections is not None:
            check_integer("connections", connections, at_least=1)
        if not check_number("share", share, at_most=_LARGEST_SHARE):
            rule = f"a number > 0 and <= {_LARGEST_SHARE:g}"
            raise invalid_setting("share", rule, share, code="out-of-range")
        name, of_requests = ("policy", policy) if sdk is None else ("sdk", sdk)
        own = timeout_seconds(of_requests.attempt_timeout)
        given = _TIMEOUT if own is None else own
        if timeout is not None:
            given = parse_positive_duration("timeout", timeout)
            if own is not None and own != given:
                rule = f"the attempt_timeout of the {name}, {own:g} s, or left out"
                raise invalid_setting("timeout", rule, timeout, code="contradiction")
        Frozen.__init__(
            self,
            policy=policy,
            share=float(share),
            processes=check_integer(
                "processes", processes, at_least=1, at_most=_MOST_PROCESSES
            ),
            timeout=given,
            sdk=sdk,
            connections=connections,
        )


def _check_sdk(sdk: object) -> None:
    policy = check_instance("sdk", sdk, Policy)
    if policy.admission or policy.hedge is not None:
        rule = "a policy without limits and hedge, which only the policy may have"
        suggestion = "write sdk.replace(admission=(), hedge=None)"
        raise invalid_setting("sdk", rule, policy, suggestion, code="not-here")


@final
class Fleet:
    """All clients, while the simulation runs.

    Args:
        populations: The clients, with the decisions of their policies.
        events: The events of the simulation.
        recorder: Counts what happens.
        load: When calls begin.
        seed: The seed of the simulation.
        late_answers: Whether the answer to an attempt that has timed out ends its call.
        made_by: The process of each call; by default, each is drawn.
        told: Called with each attempt that has ended.
    """

    def __init__(  # noqa: PLR0913
        self,
        populations: Sequence[tuple[Clients, Rules]],
        events: Events,
        recorder: Recorder,
        load: Arrivals,
        *,
        seed: int,
        late_answers: bool,
        made_by: Sequence[int] | None = None,
        told: Told | None = None,
    ) -> None:
        self._events, self._recorder, self._load = events, recorder, load
        self._late_answers, self._told = late_answers, told
        self._seed, self._draws = seed, call_draws(first_seed(seed))
        processes = [
            [Process(clients, rules) for _ in range(clients.processes)]
            for clients, rules in populations
        ]
        shares = [clients.share for clients, _ in populations]
        self._next_process = deal(processes, shares, seed, made_by)
        self._wait = recorder.waits.add
        # A user makes the next call after the end of this one.
        self._end = load.end if isinstance(load, ClosedLoad) else None
        self._to_server: Callable[[Attempt], None]
        # Bound once, not for each event.
        self._resending, self._timing_out = self._resend, self._fail

    def start(self, send: Callable[[Attempt], None]) -> None:
        """Begin calls, whose attempts are sent to the server."""
        self._to_server = send
        self._load.start(self._events, self._seed, self._begin)

    def _begin(self, user: int | None) -> None:
        """Begin a call by one of the processes."""
        self._recorder.begun += 1
        self._send(self._new_call(self._events.now, user))

    def abandoned(self, requests: int) -> list[Attempt]:
        """Return attempts for which no client waits any more."""
        call = self._new_call(0, None)
        return [Attempt(call, 0, 0) for _ in range(requests)]

    def begin_with(self, retries: int) -> None:
        """Begin with calls that wait to retry an attempt that has timed out.

        Their retries are due at random times within the delays of the policy. Calls
        that the policy does not retry are left out.
        """
        due = Stream(self._seed, "pending retries")
        for _ in range(retries):
            call = self._new_call(0, None)
            call.began, call.attempt = -call.process.timeout, 1
            delay = call.process.rules.delay_after(call, 0, TIMED_OUT)
            if delay is not None:
                self._recorder.begin_with(1)
                time = due.below(nanoseconds(delay) + 1)
                call.timer = self._events.at(time, self._resending, call)

    def _new_call(self, began: int, user: int | None) -> Call:
        """Return a new call by one of the processes."""
        process, draws = self._next_process(), next(self._draws)
        if process.seed is not None:
            draws = SharedDraws(process.seed), 0
        return Call(process, began, draws, user)

    def _resend(self, call: Call) -> None:
        """Make another attempt of a call."""
        self._recorder.resent += 1
        self._send(call)

    def _send(self, call: Call) -> None:
        """Make the next attempt of a call."""
        events, process = self._events, call.process
        now = events.now
        call.attempt += 1
        deadline = now + process.timeout
        if process.time_limit is not None:
            deadline = min(deadline, max(now, call.began + process.time_limit))
        attempt = call.waiting = Attempt(call, now, deadline)
        call.timer = events.at(deadline, self._timing_out, attempt)
        self._to_server(attempt)

    def awaits(self, attempt: Attempt) -> bool:
        """Return whether a client still waits for the answer to an attempt."""
        call = attempt.call
        if self._late_answers:
            return call.timer is not None
        return call.waiting is attempt

    def answer(self, attempt: Attempt, failure: int | None) -> None:
        """Handle the server's answer; *failure* is None for a success."""
        call = attempt.call
        if call.waiting is not attempt and (
            not self._late_answers or failure is not None or call.timer is None
        ):
            return
        # Of an answer that is late, that of a later attempt, or the attempt itself.
        timer: Any = call.timer
        self._events.cancel(timer)
        if failure is not None:
            self._fail(attempt, failure)
            return
        now, recorder = self._events.now, self._recorder
        waiting, call.waiting, call.timer = call.waiting, None, None
        if waiting is not None:
            recorder.finish(waiting.sent, succeeded=True)
        if self._told is not None:
            self._told(call, attempt, now, None, None)
        if call.process.budget is not None:
            call.process.budget.deposit(call.cost)
        if now < recorder.end:
            recorder.won += 1
            self._wait(now - call.began)
        if self._end is not None:
            self._end(call.user)

    def _fail(self, attempt: Attempt, failure: int = TIMED_OUT) -> None:
        """Decide what follows an attempt that has failed."""
        call, now = attempt.call, self._events.now
        call.waiting = call.timer = None
        self._recorder.finish(attempt.sent, succeeded=False)
        delay = call.process.delay_after(call, now, failure)
        if self._told is not None:
            self._told(call, attempt, now, failure, delay)
        if delay is None:
            self._recorder.lost += 1
            if self._end is not None:
                self._end(call.user)
            return
        due = now + nanoseconds(delay) if delay else now
        call.timer = self._events.at(due, self._resending, call)
