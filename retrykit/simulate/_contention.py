"""Clients that update one row under optimistic concurrency control."""

import math
from functools import cache
from heapq import heapify, heappop, heapreplace
from typing import Any, Final, final

from retrykit._core.policy import Policy
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    invalid_setting,
    user_facing,
)
from retrykit.schedules._randomness import SHARED_CALLS, SharedDraws
from retrykit.simulate._calls import Call, Process, Rules, check_policy
from retrykit.simulate._clients import Clients
from retrykit.simulate._draws import Stream, normal_quantile
from retrykit.simulate._events import SECOND, nanoseconds
from retrykit.simulate._failures import FAILED

__all__ = ["Contention", "WriteConflict", "contend"]

_MOST_CLIENTS: Final = 100_000
_MOST_RUNS: Final = 100_000
_TIMES: Final = 1 << 13
# 95 % of a normal distribution are within this many standard deviations.
_WITHIN: Final = 1.96


@final
class WriteConflict(Exception):  # noqa: N818  what it is
    """A stand-in for the error of a write whose row has changed since it was read."""

    def __init__(self) -> None:
        super().__init__("the row has changed since it was read")


@final
class Contention(Frozen):
    """The result of `contend`: means of all runs.

    Attributes:
        attempts: Number of writes that the clients made: the work of the server.
        attempts_within: Half the width of the 95 % confidence interval of *attempts*;
            None for a single run.
        time: When the last client was done, in seconds.
        time_within: Half the width of the 95 % confidence interval of *time*; None for
            a single run.
        given_up: Number of clients that gave up.
    """

    __slots__ = ("attempts", "attempts_within", "given_up", "time", "time_within")
    attempts: float
    attempts_within: float | None
    time: float
    time_within: float | None
    given_up: float

    def __str__(self) -> str:
        gave_up = f", and {self.given_up:g} give up" if self.given_up else ""
        return f"{self.attempts:.4g} attempts in {self.time:.3g} s{gave_up}"


@user_facing
def contend(  # noqa: PLR0913  all but the first have defaults
    policy: Policy,
    *,
    clients: int = 100,
    network: Duration = 0.010,
    deviation: Duration = 0.002,
    runs: int = 100,
    error: Exception | None = None,
    seed: int = 1,
) -> Contention:
    """Simulate clients that all try to update one row at the same time.

    A client reads the row, and writes it if it has not changed since, or else fails and
    retries. So one write in each round trip succeeds, and the others are wasted work;
    with delays, fewer writes are wasted, and the whole update takes longer.

    >>> from retrykit.schedules import exponential
    >>> jittered = Policy(schedule=exponential(0.01).cap(2).full_jitter(), on=Exception)
    >>> print(contend(jittered.replace(max_attempts=None), clients=20, runs=10))
    101.2 attempts in 1.2 s

    Args:
        policy: The policy of each client, without limits and a hedge. Each has a budget
            of its own.
        clients: Number of clients. Count, 1 to 100,000.
        network: Mean time between a client and the server, in each direction. A
            duration, > 0; 10 ms by default.
        deviation: Standard deviation of these times, which are normally distributed. A
            duration, >= 0; 2 ms by default.
        runs: Number of runs, whose means are returned. Count, 1 to 100,000.
        error: What a client raises if the row has changed; a `WriteConflict` by
            default.
        seed: Seed of all draws. Integer, 0 to 2**53 - 1.

    Raises:
        ConfigError: An argument is invalid, or the policy cannot be simulated.

    Source:
        M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015, with
        the program ``backoff_simulator.py`` of aws-arch-backoff-simulator.
    """
    check_instance("policy", policy, Policy)
    if policy.admission or policy.hedge is not None:
        rule = "without limits and a hedge where clients contend"
        suggestion = "policy.replace(admission=(), hedge=None)"
        raise invalid_setting("policy", rule, policy, suggestion, code="not-here")
    check_integer("clients", clients, at_least=1, at_most=_MOST_CLIENTS)
    check_integer("runs", runs, at_least=1, at_most=_MOST_RUNS)
    check_integer("seed", seed, at_least=0)
    raised = WriteConflict() if error is None else error
    check_instance("error", raised, Exception)
    mean = nanoseconds(parse_duration("network", network))
    if not mean:
        raise invalid_setting("network", "a duration > 0", network, code="out-of-range")
    spread = nanoseconds(parse_duration("deviation", deviation))
    rules = check_policy(policy, [raised] * (FAILED + 1), FAILED)
    row = _Row(policy, rules, _normal_times(mean, spread), seed)
    found = [row.update(clients) for _ in range(runs)]
    attempts, ends, given_up = zip(*found, strict=True)
    return Contention(
        attempts=sum(attempts) / runs,
        attempts_within=_within(attempts),
        time=sum(ends) / runs / SECOND,
        time_within=_within([each / SECOND for each in ends]),
        given_up=sum(given_up) / runs,
    )


def _within(values: Any) -> float | None:
    """Return half the width of the 95 % confidence interval of a mean.

    None for a single value.
    """
    number = len(values)
    if number < 2:  # noqa: PLR2004
        return None
    mean = sum(values) / number
    squares = sum((each - mean) ** 2 for each in values)
    return _WITHIN * math.sqrt(squares / (number - 1) / number)


def _normal_times(mean: int, deviation: int) -> list[int]:
    """Return equally probable times of a normal distribution, in nanoseconds.

    Negative times lose their sign.
    """
    return [round(abs(mean + deviation * each)) for each in _quantiles()]


@cache
def _quantiles() -> list[float]:
    """Return equally probable numbers of the standard normal distribution."""
    return [normal_quantile((index + 0.5) / _TIMES) for index in range(_TIMES)]


@final
class _Row:
    """A database row, and the clients that update it."""

    def __init__(
        self, policy: Policy, rules: Rules, times: list[int], seed: int
    ) -> None:
        self._clients, self._rules, self._times = Clients(policy), rules, times
        self._random = Stream(seed, "network").random
        self._first = Stream(seed, "delays").below(2**46) * SHARED_CALLS

    def _calls(self, clients: int) -> list[Call]:
        calls = []
        draws = SharedDraws(self._first)
        for number in range(clients):
            if not number % SHARED_CALLS:
                draws = SharedDraws(self._first)
                self._first += SHARED_CALLS
            process = Process(self._clients, self._rules)
            calls.append(Call(process, 0, (draws, number % SHARED_CALLS), None))
        return calls

    def update(self, clients: int) -> tuple[int, int, int]:
        """Return the number of writes, when they ended, and how many clients gave up.

        The end is when the last client was done, in nanoseconds. A write succeeds if no
        other one has succeeded since its read. So the write is the only event of an
        attempt.
        """
        calls, heap = self._calls(clients), []
        random, times, number_of_times = self._random, self._times, len(self._times)

        def draw() -> int:
            return times[int(random() * number_of_times)]

        for number in range(clients):
            read = draw()
            heap.append((read + draw() + draw(), number, read))
        heapify(heap)
        attempts = changed = end = given_up = 0
        while heap:
            time, number, read = heap[0]
            attempts += 1
            if changed < read:
                changed = time
                heappop(heap)
                end = max(end, time + draw())
                continue
            call = calls[number]
            call.attempt += 1
            answered = time + draw()
            delay = call.process.delay_after(call, answered, FAILED)
            if delay is None:
                heappop(heap)
                given_up += 1
                end = max(end, answered)
                continue
            read = answered + nanoseconds(delay) + draw()
            heapreplace(heap, (read + draw() + draw(), number, read))
        return attempts, end, given_up
