"""Surprising outcomes, which agreed with real servers and clients."""

import pytest

from retrykit import Policy
from retrykit.budgets import RatioBudget, Throttle, TokenBucket
from retrykit.schedules import exponential
from retrykit.simulate import Clients, Outage, Server, simulate

IMMEDIATE = Policy(schedule=[0, 0, 0])
JITTERED = Policy(schedule=exponential(1).cap(20).full_jitter(), max_attempts=4)
EXPONENTIAL = Policy(schedule=exponential(1).cap(20), max_attempts=4)
QUICK = exponential(0.1).cap(20).full_jitter()


def recoveries(policy, **settings):
    """Return the recovery of several seeds, in seconds; None of those without one."""
    return [simulate(policy, seed=seed, **settings).recovery for seed in range(1, 5)]


@pytest.mark.thorough
def test_a_budget_with_a_reserve_saves_one_process_but_not_ten():
    policy = Policy(schedule=QUICK, max_attempts=4, budget=RatioBudget(reserve=10))
    alone = recoveries(Clients(policy, processes=1), load="60%", horizon="100s")
    assert None not in alone
    assert sum(alone) / 4 == pytest.approx(41, rel=0.15)
    fleet = Clients(policy, processes=10)
    assert simulate(fleet, load="60%").outcome == "does not recover"
    assert simulate(fleet, load="33%").outcome == "does not recover"


@pytest.mark.thorough
def test_a_budget_without_a_reserve_does_not_depend_on_the_size_of_the_fleet():
    budget = RatioBudget(0.2, reserve=0)
    policy = Policy(schedule=QUICK, max_attempts=4, budget=budget)
    for processes in (1, 10, 100):
        clients = Clients(policy, processes=processes)
        found = recoveries(clients, load="60%", horizon="60s")
        assert sum(found) / 4 == pytest.approx(23, rel=0.15)


@pytest.mark.thorough
def test_a_bucket_of_aws_grows_with_the_fleet():
    policy = JITTERED.replace(max_attempts=3, budget=TokenBucket(costs=()))
    times = [
        simulate(Clients(policy, processes=n), load="60%").recovery for n in (1, 10)
    ]
    assert times == pytest.approx([15, 38], rel=0.2)


def test_the_default_policy_does_not_recover_at_a_quarter_of_the_capacity():
    result = simulate(Policy(), load="25%")
    assert result.verdict == "does not recover within 5 min: 5.0 times its load"
    # Below a fifth it does: it makes five attempts.
    assert simulate(Policy(), load="15%").outcome == "recovers"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "policy",
    [JITTERED, EXPONENTIAL, Policy()],
    ids=["jitter", "exponential", "default"],
)
def test_backoff_kills_after_an_outage_that_answers_at_once(policy):
    outage = Outage("10s", "error")
    settings = {"load": "73%", "outage": outage, "horizon": "130s"}
    assert simulate(policy, **settings).outcome == "does not recover"
    assert simulate(IMMEDIATE, **settings).verdict == "recovers at once"


def test_immediate_retries_kill_after_an_outage_that_hangs():
    settings = {"load": "33%", "horizon": "60s"}
    assert simulate(IMMEDIATE, **settings).outcome == "does not recover"
    assert recoveries(Policy(max_attempts=1), **settings) == pytest.approx(
        [2.8] * 4, rel=0.5
    )


@pytest.mark.parametrize(("timeout", "saves"), [(1, False), (7, False), (9, True)])
def test_a_short_timeout_kills_and_a_long_one_saves(timeout, saves):
    result = simulate(Clients(IMMEDIATE, timeout=timeout), load="60%", horizon="100s")
    assert (result.verdict == "recovers at once") is saves
    assert (result.outcome == "does not recover") is not saves


@pytest.mark.thorough
@pytest.mark.parametrize("policy", [IMMEDIATE, JITTERED], ids=["immediate", "jitter"])
def test_a_queue_bound_below_the_timeout_saves(policy):
    for bound, expected in (("0.9s", "recovers"), ("2s", "does not recover")):
        server = Server(queue_bound=bound)
        result = simulate(policy, load="60%", server=server, horizon="100s")
        assert result.outcome == expected


def test_newest_first_saves():
    server = Server(order="newest_first")
    result = simulate(IMMEDIATE, load="60%", server=server, horizon="60s")
    assert result.recovery == pytest.approx(2.2, rel=0.5)


@pytest.mark.parametrize(
    ("load", "late_answers", "goodput"),
    [
        ("30%", False, 3.0),
        ("50%", False, 0.0),
        ("50%", True, 5.0),
        ("70%", False, 0.0),
        ("70%", True, 0.0),
    ],
)
def test_one_pause_of_a_second_is_enough(load, late_answers, goodput):
    """After happysim: evenly spaced calls of 100 ms, a timeout of 500 ms."""
    rate = float(load[:-1]) / 10
    policy = Policy(schedule=[0.05, 0.05, 0.05])
    result = simulate(
        Clients(policy, timeout="500ms"),
        load=[(index + 0.5) / rate for index in range(int(200 * rate))],
        outage=Outage("1s", begin="30s"),
        server=Server(10),
        late_answers=late_answers,
        horizon="165s",
    )
    assert sum(result.goodput[100:190]) / 90 == pytest.approx(goodput, abs=0.1)


NO_RETRY = Policy(max_attempts=1)
SRE = Policy(
    schedule=QUICK, max_attempts=3, budget=RatioBudget(0.1, reserve=0, window=120)
)
GRPC = Policy(schedule=QUICK, max_attempts=4, budget=Throttle())


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("policy", "rate", "published"),
    [
        (NO_RETRY, 60, 2),
        (NO_RETRY, 180, 13),
        (NO_RETRY, 220, 24),
        (Policy(schedule=[0]), 60, 5),
        (Policy(schedule=[0]), 100, 17),
        (Policy(schedule=[0]), 180, None),
        (IMMEDIATE, 60, 32),
        (IMMEDIATE, 100, None),
        (JITTERED, 60, 24),
        (JITTERED, 100, None),
        (GRPC, 180, 14),
        (SRE, 100, 6),
        (SRE, 180, 20),
    ],
)
def test_published_recoveries_are_reproduced(policy, rate, published):
    """Seconds after an outage of 10 s of a server of 300/s, with one budget.

    The model of N. Bronson et al., "Metastable Failures in Distributed Systems", HotOS
    2021.
    """
    settings = {"load": rate / 300, "server": Server(300), "horizon": "60s"}
    clients = Clients(policy, processes=1)
    seeds = (1, 2) if published else (1,)
    found = [simulate(clients, seed=seed, **settings).recovery for seed in seeds]
    if published is None:
        assert found == [None]
    else:
        assert sum(found) / 2 == pytest.approx(published, rel=0.2, abs=1.5)
