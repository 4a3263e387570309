"""Simulations of outages, whose results are stored for the script of the HTML report.

After a change of the model, ``python -m tests._support.outage_vectors`` stores them
again.
"""

import json

from retrykit import Policy, budgets, presets, schedules as s
from retrykit.simulate import Clients, Outage, simulate
from tests._support.reference_data import FOLDER

__all__ = ["RESULTS", "VECTORS", "result_of"]

RESULTS = ["verdict", "outcome", "recovery", "peak", "final_load", "calls", "succeeded"]
RESULTS += ["given_up", "attempts", "retries", "amplification", "load", "goodput"]

IMMEDIATE = Policy(schedule=[0, 0, 0])
JITTERED = Policy(schedule=s.exponential(0.1).cap(20).full_jitter(), max_attempts=4)
RATIO = budgets.RatioBudget(0.33, reserve=0.5, window=7)
FLEET = budgets.FleetBudget(0.15, capacity=3, recent="50ms", timeouts=ConnectionError)
BROOKER = budgets.TokenBucket(100, cost=10, costs=(), refunds=False)
SMALL = budgets.TokenBucket(50, cost=14, reward=2)


def vector(policy, load, kind, **changed):
    """Return a policy and the settings of a simulation of it, on the page's names."""
    settings = {"duration": 3, "processes": 10, "timeout": 1, "horizon": 20, "seed": 1}
    return policy, {"load": load, "kind": kind, **settings, **changed}


VECTORS = [
    vector(Policy(), 70, "hang"),
    vector(Policy(), 25, "error"),
    vector(Policy(), 15, "refuse", duration=12.5, horizon=30),
    vector(Policy(max_attempts=1), 70, "hang", duration=10, horizon=25),
    vector(Policy(max_attempts=1), 95, "refuse", duration=10, horizon=10),
    vector(IMMEDIATE, 60, "hang", seed=3),
    vector(IMMEDIATE, 60, "error", seed=4),
    vector(IMMEDIATE, 40, "refuse", timeout=9),
    vector(IMMEDIATE.replace(budget=budgets.Throttle()), 60, "hang", duration=10),
    vector(IMMEDIATE.replace(budget=budgets.Throttle(100, 0.25)), 73, "error"),
    vector(JITTERED, 60, "hang"),
    vector(JITTERED, 73, "error", duration=10, horizon=40),
    vector(
        JITTERED.replace(budget=budgets.RatioBudget(reserve=10)),
        60,
        "hang",
        processes=1,
    ),
    vector(
        JITTERED.replace(budget=budgets.RatioBudget(reserve=10)),
        60,
        "hang",
        processes=50,
    ),
    vector(JITTERED.replace(budget=RATIO), 70, "refuse", duration=10, horizon=40),
    vector(JITTERED.replace(budget=budgets.TokenBucket()), 60, "hang", processes=1),
    vector(JITTERED.replace(budget=BROOKER), 60, "hang", processes=3),
    vector(JITTERED.replace(budget=budgets.FleetBudget()), 60, "hang"),
    vector(JITTERED.replace(budget=FLEET), 73, "error", duration=10, processes=1),
    vector(JITTERED.replace(budget=SMALL), 80, "error", processes=5000),
    vector(JITTERED.replace(attempt_timeout=0.5, max_elapsed=1.5), 50, "hang"),
    vector(Policy(max_elapsed=1.2, deadline="clip"), 50, "error"),
    vector(Policy(max_elapsed=1.2, deadline="overshoot"), 40, "hang"),
    vector(Policy(max_attempts=3, max_elapsed=3, limits="all"), 40, "hang"),
    vector(Policy(on=TimeoutError), 50, "hang"),
    vector(Policy(seed=2**63 + 5), 50, "hang"),
    vector(Policy(schedule=s.decorrelated(0.1).cap(2), max_attempts=4), 55, "hang"),
    vector(Policy(schedule=s.polynomial(1.5, first=0.1).jitter(0.5)), 55, "hang"),
    vector(Policy(schedule=s.uniform(0.1, 1).take(2).then([3, 3])), 55, "error"),
    vector(presets.zizq(), 70, "hang", duration=20, horizon=60),
    vector(presets.google(), 30, "hang"),
    vector(presets.polly(), 50, "refuse"),
    vector(presets.aws_standard(), 60, "hang", processes=1, duration=10, horizon=60),
    vector(Policy(schedule=[20, 0, 0, 0]), 90, "error", duration=10, horizon=40),
    vector(presets.dramatiq(), 70, "error", duration=10, horizon=80),
]


def result_of(policy, settings):
    """Return the result of the library, in the settings and names of the page."""
    timeout = settings["timeout"] if policy.attempt_timeout is None else None
    clients = Clients(policy, processes=settings["processes"], timeout=timeout)
    whole = simulate(
        clients,
        load=f"{settings['load']}%",
        outage=Outage(settings["duration"], settings["kind"]),
        horizon=settings["horizon"],
        seed=settings["seed"],
    ).to_dict()
    return {name: whole[name] for name in RESULTS}


def _store():
    results = (json.dumps(result_of(*each)) for each in VECTORS)
    lines = ",\n".join(results)
    (FOLDER / "outages.json").write_text(f"[\n{lines}\n]\n", "utf-8")


if __name__ == "__main__":
    _store()
