"""The clients of a simulation: processes that share the load."""

from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final, cast, final

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
from retrykit.schedules._randomness import SHARED_CALLS, SharedDraws
from retrykit.simulate._calls import Attempt, Call, Process, Rules
from retrykit.simulate._draws import Stream
from retrykit.simulate._events import Events, nanoseconds
from retrykit.simulate._failures import TIMED_OUT
from retrykit.simulate._load import Arrivals
from retrykit.simulate._named_values import NamedValue
from retrykit.simulate._recorder import Recorder

__all__ = ["Clients", "Fleet", "Told"]

Told = Callable[[Call, Attempt, int, int | None, float | None], None]
"""Gets a call, its attempt that has ended, when, how it failed, and the delay."""

_MOST_PROCESSES: Final = 100_000
_TIMEOUT: Final = 1.0


@final
class Clients(NamedValue):
    """Processes with one policy, which share a part of the load.

    >>> from retrykit import Policy
    >>> Clients(Policy(attempt_timeout="3s"), processes=10).timeout
    3.0

    Args:
        policy: The policy of all calls. Each process has a budget of its own, new and
            full, with the settings of the policy's budget.
        share: The weight of these clients among all, for a fleet in which some have
            another policy. Dimensionless, > 0; 1 by default.
        processes: Number of processes. Count, 1 to 100,000; 100 by default.
        timeout: How long a client waits for an answer. A duration, > 0. By default
            the `attempt_timeout` of the policy, or 1 s if it has none.

    Raises:
        ConfigError: A setting is invalid.
    """

    __slots__ = ("policy", "processes", "share", "timeout")
    policy: Policy
    share: float
    processes: int
    timeout: float

    @user_facing
    def __init__(
        self,
        policy: Policy,
        *,
        share: float = 1.0,
        processes: int = 100,
        timeout: Duration | None = None,
    ) -> None:
        check_instance("policy", policy, Policy)
        if not check_number("share", share):
            raise invalid_setting("share", "a finite number > 0", share)
        own = timeout_seconds(policy.attempt_timeout)
        given = _TIMEOUT if own is None else own
        if timeout is not None:
            given = parse_positive_duration("timeout", timeout)
            if own is not None and own != given:
                rule = f"the attempt_timeout of the policy, {own:g} s, or left out"
                raise invalid_setting("timeout", rule, timeout)
        Frozen.__init__(
            self,
            policy=policy,
            share=float(share),
            processes=check_integer(
                "processes", processes, at_least=1, at_most=_MOST_PROCESSES
            ),
            timeout=given,
        )


@final
class Fleet:
    """All clients, while the simulation runs.

    Args:
        populations: The clients, with the decisions of their policies.
        events: The events of the simulation.
        recorder: Counts what happens.
        load: When calls begin.
        seed: The seed of the simulation.
        network: Time between a client and the server, in nanoseconds.
        late_answers: Whether the answer to an attempt that has timed out ends its call.
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
        network: int,
        late_answers: bool,
        told: Told | None = None,
    ) -> None:
        self._events, self._recorder, self._load = events, recorder, load
        self._late_answers, self._told = late_answers, told
        self._after_network = events.always_after(network)
        self._processes = [
            [Process(clients, rules, events) for _ in range(clients.processes)]
            for clients, rules in populations
        ]
        self._ends = [*accumulate(clients.share for clients, _ in populations)]
        self._seed, self._dealt = seed, Stream(seed, "processes")
        # Below 2**53, as those of calls.
        first = Stream(seed, "delays").below(2**46) * SHARED_CALLS
        self._first_seed, self._calls = first, 0
        self._draws = SharedDraws(first)
        self._receive: Callable[[Attempt], None]

    def start(self, receive: Callable[[Attempt], None]) -> None:
        """Begin calls, whose attempts the server receives."""
        self._receive = receive
        self._load.start(self._events, self._seed, self._begin)

    def _begin(self, user: int | None) -> None:
        """Begin a call of some process."""
        number = self._calls % SHARED_CALLS
        if not number:
            self._draws = SharedDraws(self._first_seed + self._calls)
        self._calls += 1
        process = self._deal()
        draws = self._draws, number
        seed = process.clients.policy.seed
        if seed is not None:
            draws = SharedDraws(seed), 0
        now = self._events.now
        self._recorder.begin(now)
        self._send(Call(process, now, draws, user))

    def _deal(self) -> Process:
        """Return the process that makes the next call."""
        ends = self._ends
        drawn = self._dealt.random() * ends[-1]
        index = bisect(ends, drawn, hi=len(ends) - 1)
        processes = self._processes[index]
        below = ends[index - 1] if index else 0.0
        part = (drawn - below) / (ends[index] - below)
        return processes[min(int(part * len(processes)), len(processes) - 1)]

    def _send(self, call: Call) -> None:
        """Make the next attempt of a call."""
        now, process = self._events.now, call.process
        call.attempt += 1
        left = process.rules.time_left(call, now)
        attempt = call.waiting = Attempt(call, now, now + process.timeout)
        self._recorder.send(now, first=call.attempt == 1)
        if left is None or left >= process.timeout:
            call.timer = process.after_timeout(self._time_out, attempt)
        else:
            attempt.deadline = now + left
            call.timer = self._events.at(now + left, self._time_out, attempt)
        self._after_network(self._receive, attempt)

    def _time_out(self, attempt: Attempt) -> None:
        self._fail(attempt, TIMED_OUT)

    def awaits(self, attempt: Attempt) -> bool:
        """Return whether a client still waits for the answer of an attempt."""
        call = attempt.call
        if self._late_answers:
            return call.timer is not None
        return call.waiting is attempt

    def answer(self, attempt: Attempt, failure: int | None) -> None:
        """Take the answer of the server: None is a success."""
        call = attempt.call
        timely = call.waiting is attempt
        if not timely and (failure is not None or not self.awaits(attempt)):
            return
        # Of an answer that is late, that of a later attempt, or the attempt itself.
        self._events.cancel(cast("list[object]", call.timer))
        if failure is not None:
            self._fail(attempt, failure)
            return
        now = self._events.now
        waiting, call.waiting, call.timer = call.waiting, None, None
        if waiting is not None:
            self._recorder.finish(waiting.sent, succeeded=True)
        if self._told is not None:
            self._told(call, attempt, now, None, None)
        call.process.succeed(call)
        self._recorder.succeed(call.began, now)
        self._load.end(call.user)

    def _fail(self, attempt: Attempt, failure: int) -> None:
        """Decide what follows an attempt that has failed."""
        call, now = attempt.call, self._events.now
        call.waiting = call.timer = None
        self._recorder.finish(attempt.sent, succeeded=False)
        delay = call.process.delay_after(call, now, failure)
        if self._told is not None:
            self._told(call, attempt, now, failure, delay)
        if delay is None:
            self._recorder.give_up(now)
            self._load.end(call.user)
            return
        call.timer = self._events.at(now + nanoseconds(delay), self._send, call)
