"""Estimates of how many attempts a simulation makes, and how long it takes to run."""

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from retrykit._core.limits import most_attempts
from retrykit._core.policy import Policy
from retrykit._core.timeouts import timeout_seconds
from retrykit.budgets._ratio import RatioBudget
from retrykit.simulate._clients import Clients
from retrykit.simulate._engines import Engine
from retrykit.simulate._events import SECOND
from retrykit.simulate._failures import OWN_TIMEOUT, TIMED_OUT
from retrykit.simulate._load import ClosedLoad
from retrykit.simulate._outage import Outage
from retrykit.simulate._progress import Estimate
from retrykit.simulate._scene import Scene

__all__ = ["estimate"]

# Attempts per second on one core, measured.
_RATES: Final[dict[Engine, float]] = {
    "arrays": 4_000_000,
    "one by one": 550_000,
    "events": 130_000,
}
_WITH_BUDGETS: Final = 250_000
_WITH_LAYERS: Final = 35_000
# Added where the whole policy is asked about each failure, in seconds.
_DECISION: Final = 12e-6

_MOST_PER_CALL: Final = 10_000
# Retries per call that a budget pays for, apart from its reserve, or limits allow.
_PAID: Final = 1.0
_FULL: Final = 0.99


def estimate(
    scene: Scene, engine: Engine, state: tuple[int, int] | None = None
) -> Estimate:
    """Estimate the attempts and the time of a simulation.

    The estimate assumes that the server does not recover from its outage.

    Args:
        scene: What is simulated.
        engine: How it is computed.
        state: The number of requests in the queue, and of calls that wait to retry, at
            the beginning.
    """
    parts = [*scene.populations, *((each, rules) for each, rules, _ in scene.layers)]
    clients = [each for each, _ in parts]
    whole = sum(each.share for each in clients)
    requests = sum(_requests(scene, each, each.share / whole) for each in clients)
    queue, retries = state or (0, 0)
    per_call = requests / max(scene.load.rate * scene.seconds, 1.0)
    requests += queue + retries * per_call
    rate = _RATES[engine]
    if engine == "one by one" and any(each.policy.budget for each in clients):
        rate = _WITH_BUDGETS
    if scene.layers:
        rate = _WITH_LAYERS
    takes = requests / rate
    kind = OWN_TIMEOUT if scene.layers else TIMED_OUT
    if not all(rules.by_schedule().kinds[kind] for _, rules in parts):
        takes += requests * _DECISION
    behind = requests
    for server, layer in zip(scene.servers, scene.between, strict=False):
        call = _call(layer.clients, layer.clients.timeout, math.inf)
        most = min(server.capacity, server.slots / call.lasts) * scene.seconds
        behind = min(behind, most) * call.requests
        takes += behind / _WITH_LAYERS
    return Estimate(requests, takes)


def _requests(scene: Scene, clients: Clients, share: float) -> float:
    """Return an estimate of the requests that some clients send.

    Args:
        scene: What is simulated.
        clients: The clients.
        share: Their share of the load, > 0 and <= 1.
    """
    seconds, outage, hedge = float(scene.seconds), scene.outage, clients.policy.hedge
    calls = scene.load.rate * share
    hedged = 1.0 if hedge is None else 1 + min(hedge.extra, 1.0)
    if outage is None:
        return calls * seconds * hedged
    served = 1 - outage.share
    if scene.load.rate < served * scene.server.capacity:
        # The server is not overloaded by the retries of those that fail.
        failing = min(outage.duration, seconds)
        return calls * (seconds - failing + failing / served) * hedged
    paid = math.inf
    if clients.policy.budget is not None or clients.policy.admission:
        paid = 1 + _paid(clients, calls)
    slowly = _per_second(scene, clients, clients.timeout, seconds, paid)
    quick, until = _quick(scene, outage)
    quickly = 0.0
    if quick:
        # An attempt fails as soon as it arrives.
        network = scene.network / SECOND
        most = min(paid, 1 / served) if served else paid
        quickly = _per_second(scene, clients, network, max(until, network), most)
    found = slowly * (seconds - quick) + max(slowly, quickly) * quick
    return share * hedged * found


def _quick(scene: Scene, outage: Outage) -> tuple[float, float]:
    """Return until when new calls fail at once, and until when retries do.

    Both are in seconds since the outage began; 0 if none fail at once.
    """
    quick = min(outage.duration, float(scene.seconds))
    if scene.server.queue_bound is not None:
        # Until the server has worked off what the outage has left.
        used = min(scene.load.rate / scene.server.capacity, _FULL)
        return quick, min(quick / (1 - used), scene.seconds)
    return (0.0, 0.0) if outage.kind == "hang" else (quick, quick)


def _paid(clients: Clients, calls: float) -> float:
    """Return an estimate of the retries per call that a budget or limits allow.

    Args:
        clients: The clients.
        calls: How many calls they make per second.
    """
    budget = clients.policy.budget
    if isinstance(budget, RatioBudget):
        return budget.ratio + budget.reserve * clients.processes / calls
    return _PAID


def _per_second(
    scene: Scene, clients: Clients, answer: float, seconds: float, paid: float
) -> float:
    """Return the requests per second if all clients are like these, and all calls fail.

    Args:
        scene: What is simulated.
        clients: The clients.
        answer: How long a request takes to fail, in seconds.
        seconds: For how long calls are made.
        paid: Maximum number of requests of a call.
    """
    call, load = _call(clients, answer, seconds), scene.load
    if isinstance(load, ClosedLoad):
        users, requests = load.users, min(call.requests, paid)
        return users.number * requests / (users.think + call.lasts)
    # Calls that begin late are not over at the end.
    return load.rate * min(call.mean, paid)


class _Call(NamedTuple):
    """A call whose attempts all fail.

    Attributes:
        requests: Number of its requests.
        mean: The mean number of requests of such calls, some of which begin too late to
            make all of them.
        lasts: How long it lasts, in seconds.
    """

    requests: float
    mean: float
    lasts: float


def _call(clients: Clients, answer: float, seconds: float) -> _Call:
    """Return a call of these clients, cut off after a number of seconds.

    Args:
        clients: The clients.
        answer: How long a request takes to fail, in seconds.
        seconds: When it is cut off, in seconds since it began.
    """
    each = 1
    if clients.sdk is not None:
        own = timeout_seconds(clients.policy.attempt_timeout)
        limit = seconds if own is None else min(seconds, own)
        starts = [*_starts(clients.sdk, answer, limit)]
        each, answer = len(starts), min(starts[-1] + answer, limit)
    starts = [*_starts(clients.policy, answer, seconds)]
    mean = sum(1 - start / seconds for start in starts)
    lasts = min(starts[-1] + answer, seconds)
    return _Call(each * len(starts), each * mean, lasts)


def _starts(policy: Policy, answer: float, seconds: float) -> Iterator[float]:
    """Yield when the attempts of a call begin, in seconds, if all of them fail.

    Args:
        policy: The policy of the call.
        answer: How long an attempt takes to fail, in seconds.
        seconds: Attempts that would begin at this time or later are left out.
    """
    most = min(most_attempts(policy) or math.inf, _MOST_PER_CALL)
    limit = policy.max_elapsed
    end = seconds if limit is None else min(seconds, limit)
    time, attempt = 0.0, 1
    while True:
        yield time
        bounds = policy.schedule.bounds(attempt)
        shortest, longest = (0.0, 0.0) if bounds is None else bounds
        time += answer + (shortest + longest) / 2
        attempt += 1
        if time >= end or attempt > most:
            return
