"""Speed of simulations: ``python -m benchmarks.simulation``.

Each model is the same for all libraries that can describe it: times of arrivals,
service, outage, timeouts and retries. Processor time, the best of three runs, in one
process. happysim, which needs Python 3.13, and Ciw, which hides the folder of the tests
by its own, have rows if they are installed.
"""

import random
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import takewhile
from typing import Any, cast

import simpy

from benchmarks.table import machine, markdown, number, versions
from retrykit import Policy
from retrykit.budgets import RatioBudget
from retrykit.schedules import exponential
from retrykit.schedules._randomness import call_random
from retrykit.simulate import Clients, Outage, Server, Simulation, Users
from retrykit.simulate._engines import Engine
from retrykit.simulate._load import OpenLoad, parse_load
from retrykit.simulate._simulate import run

RUNS = 3
REQUESTS = 60_000
RATE, CAPACITY, BEGIN, END, HORIZON = 600.0, 1000.0, 10.0, 20.0, 60.0
NETWORK, TIMEOUT = 0.001, 1.0
ENGINES: tuple[Engine, ...] = ("events", "one by one", "arrays")

POLICIES = {
    "no retries": Policy(max_attempts=1),
    "3 immediate retries": Policy(schedule=[0, 0, 0]),
    "3 retries, full jitter": Policy(
        schedule=exponential(1).cap(20).full_jitter(), max_attempts=4
    ),
}


def measure(work: Callable[[], Any], runs: int = RUNS) -> tuple[float, Any]:
    """Return the least processor time that some work takes, and its result."""
    best, result = float("inf"), None
    for _ in range(runs):
        before = time.process_time()
        result = work()
        best = min(best, time.process_time() - before)
    return best, result


class Retries:
    """Clients that retry and their server, in SimPy."""

    def __init__(self, policy: Policy, arrivals: list[float]) -> None:
        self.env: Any = simpy.Environment()
        self.queue: Any = simpy.Store(self.env)
        seconds = int(HORIZON) + 1
        self.sent, self.succeeded = [0] * seconds, [0] * seconds
        self.policy, self.arrivals = policy, arrivals

    def serve(self) -> Any:
        """Serve requests, one after another."""
        env = self.env
        while True:
            answer = yield self.queue.get()
            if BEGIN <= env.now < END:
                yield env.timeout(END - env.now)
            yield env.timeout(1 / CAPACITY)
            answer.succeed()

    def arrive(self, event: Any) -> None:
        """Queue a request."""
        self.queue.put(event.value)

    def call(self, seed: int) -> Any:
        """Make attempts until one succeeds, or no more are allowed."""
        env, schedule = self.env, self.policy.schedule
        for attempt in range(1, (self.policy.max_attempts or 4) + 1):
            answer = env.event()
            env.timeout(NETWORK, answer).callbacks.append(self.arrive)
            self.sent[int(env.now)] += 1
            yield answer | env.timeout(TIMEOUT)
            if answer.processed:
                self.succeeded[int(env.now)] += 1
                return
            bounds = schedule.bounds(attempt)
            low, high = bounds or (0.0, 0.0)
            delay = low
            if high > low:
                delay += (high - low) * call_random(seed, attempt).random()
            if delay:
                yield env.timeout(delay)

    def begin(self) -> Any:
        """Begin calls."""
        for each, due in enumerate(self.arrivals):
            yield self.env.timeout(due - self.env.now)
            self.env.process(self.call(each))

    def run(self) -> int:
        """Run the simulation, and return the number of attempts."""
        self.env.process(self.serve())
        self.env.process(self.begin())
        self.env.run(until=HORIZON)
        return sum(self.sent)


def ours(policy: Policy, engine: Engine, **others: Any) -> Simulation:
    """Simulate the same with one of our engines."""
    settings: dict[str, Any] = {
        "load": RATE / CAPACITY,
        "server": Server(CAPACITY),
        "outage": Outage(END - BEGIN, begin=BEGIN),
        "horizon": HORIZON - END,
        "network": NETWORK,
    }
    return run(policy, engine=engine, **settings | others)


def queue_of_simpy() -> int:
    """Simulate an M/M/1 queue with SimPy, and return the number of requests."""
    env: Any = simpy.Environment()
    draw, done = random.Random(1).expovariate, [0]  # noqa: S311
    server: Any = simpy.Resource(env)

    def request() -> Any:
        with server.request() as turn:
            yield turn
            yield env.timeout(draw(1.0))
            done[0] += 1

    def begin() -> Any:
        for _ in range(REQUESTS):
            yield env.timeout(draw(0.8))
            env.process(request())

    env.process(begin())
    env.run()
    return done[0]


def queue_of_ciw() -> int:
    """Simulate an M/M/1 queue with Ciw, and return the number of requests."""
    ciw: Any = import_module("ciw")
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(0.8)],
        service_distributions=[ciw.dists.Exponential(1.0)],
        number_of_servers=[1],
    )
    ciw.seed(1)
    simulation: Any = ciw.Simulation(network)
    simulation.simulate_until_max_customers(REQUESTS, method="Finish")
    return REQUESTS


def queue_of_happysim() -> int:
    """Simulate an M/M/1 queue with happysim, and return the number of requests."""
    happysim: Any = import_module("happysimulator")
    server = happysim.Server("server", service_time=happysim.ExponentialLatency(1.0))
    source = happysim.Source.poisson(0.8, server, stop_after=REQUESTS / 0.8)
    # Without an end, it runs on when all requests are served.
    end = REQUESTS / 0.8 + 1000
    happysim.Simulation(sources=[source], entities=[server], duration=end).run()
    completed: int = server.stats.requests_completed
    return completed


def our_queue(engine: Engine) -> int:
    """Simulate an M/M/1 queue with one of our engines."""
    # In thousandths of the time unit, since counts are kept for each second.
    server = Server(1000, service="exponential")
    policy = Clients(Policy(max_attempts=1), timeout="1h")
    found = run(
        policy,
        load=0.8,
        server=server,
        outage=None,
        horizon=REQUESTS / 800,
        engine=engine,
    )
    return found.calls


Measured = dict[str, tuple[float, int]]
"""Seconds and number of attempts, by engine."""


def queues() -> Measured:
    """Measure M/M/1 queues."""
    measured = {"SimPy": measure(queue_of_simpy)}
    if find_spec("ciw") is not None:
        measured["Ciw"] = measure(queue_of_ciw)
    if find_spec("happysimulator") is not None:
        measured["happysim"] = measure(queue_of_happysim)
    for engine in ENGINES:
        measured[f"retrykit, {engine}"] = measure(partial(our_queue, engine))
    return measured


def retries(policy: Policy) -> Measured:
    """Measure clients that retry."""
    load = cast("OpenLoad", parse_load(RATE / CAPACITY, Server(CAPACITY)))
    times = load.times(1)
    arrivals = [each / 1e9 for each in takewhile(lambda at: at < HORIZON * 1e9, times)]
    measured = {"SimPy": measure(lambda: Retries(policy, arrivals).run())}
    for engine in ENGINES:
        took, result = measure(partial(ours, policy, engine))
        measured[f"retrykit, {engine}"] = took, result.attempts
    return measured


def rows(model: str, measured: Measured) -> list[list[str]]:
    """Return the rows of a model."""
    base, attempts = measured["SimPy"]
    return [
        [
            model,
            name,
            f"{count:,}",
            f"{took:.3f}",
            number(count / took),
            f"{count / took / (attempts / base):.1f}",
        ]
        for name, (took, count) in measured.items()
    ]


def large() -> list[list[str]]:
    """Return the rows of large simulations, each of which runs once."""
    found = []

    def add(text: str, policy: Policy, engine: Engine, **settings: Any) -> None:
        took, result = measure(partial(ours, policy, engine, **settings), 1)
        found.append([text, engine, f"{result.attempts:,}", f"{took:.1f}"])

    million = 1_000_000 / RATE - END
    for name in ("3 immediate retries", "3 retries, full jitter"):
        for engine in ENGINES[1:]:
            text = f"a million calls, {name}"
            add(text, POLICIES[name], engine, horizon=million)
    policy = Policy(schedule=[0, 0, 0], budget=RatioBudget())
    text = "a million calls, 3 immediate retries, 100 budgets"
    add(text, policy, "one by one", horizon=million)
    for name, each in POLICIES.items():
        text = f"10,000 users, a call a minute, for an hour, {name}"
        users, server = Users(10_000, think="1m"), Server(250)
        add(text, each, "events", load=users, server=server, horizon=3600 - END)
    return found


def main() -> None:
    """Print both tables."""
    heads = ["model", "engine", "attempts", "s", "attempts/s", "times SimPy"]
    found = rows("M/M/1, load 0.8", queues())
    for name, policy in POLICIES.items():
        found += rows(name, retries(policy))
    print(markdown(heads, found, words=2))
    print()
    heads = ["simulation", "engine", "attempts", "s"]
    print(markdown(heads, large(), words=2))
    print()
    others = {"ciw": "ciw", "happysim": "happysimulator"}
    found_too = [name for name, module in others.items() if find_spec(module)]
    print(f"{machine()}; {versions(['simpy', 'numpy', *found_too])}.")


if __name__ == "__main__":
    main()
