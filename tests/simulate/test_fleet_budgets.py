"""Budgets of fleets: the critical cells of ``python -m benchmarks.fleet_budgets``."""

import pytest

from retrykit import Policy
from retrykit.budgets import FleetBudget, RatioBudget, TokenBucket
from retrykit.schedules import exponential
from retrykit.simulate import Clients, Outage, Server, simulate

NO_RETRY = Policy(max_attempts=1)
QUICK = Policy(schedule=exponential(0.1).cap(20).full_jitter(), max_attempts=4)
FLEET = QUICK.replace(budget=FleetBudget())
FLEETS = (1, 10, 100, 1_000, 10_000)


def recovery(policy, processes, load, kind="hang", seeds=(1, 2), **settings):
    """Return the mean time to recovery of some seeds, within 40 s."""
    settings = {"outage": Outage("10s", kind), "horizon": "40s"} | settings
    clients = Clients(policy, processes=processes)
    found = [
        simulate(clients, load=load, seed=seed, **settings).recovery for seed in seeds
    ]
    assert None not in found
    return sum(found) / len(found)


def success(policy, processes, kind, load="60%"):
    """Return the share of calls that succeed if 10 % of the requests fail."""
    failing = Outage("100s", kind, begin=0, share=0.1)
    clients = Clients(policy, processes=processes)
    result = simulate(clients, load=load, outage=failing, horizon="10s")
    return result.succeeded / result.calls


@pytest.mark.parametrize("processes", [1, 100, 1_000])
def test_a_fleet_recovers_from_a_hang_as_fast_as_without_retries(processes):
    least = recovery(NO_RETRY, processes, "73%")
    assert recovery(FLEET, processes, "73%") <= 1.15 * least


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["hang", "refuse", "error"])
@pytest.mark.parametrize("load", ["60%", "73%"])
def test_fleets_of_all_sizes_recover_as_fast_as_without_retries(kind, load):
    seeds = range(1, 9) if kind == "hang" else (1, 2)
    least = recovery(NO_RETRY, 1, load, kind, seeds)
    for processes in FLEETS:
        # Without retries, a server that fails at once recovers at once.
        found = recovery(FLEET, processes, load, kind, seeds)
        assert found <= max(1.15 * least, 0.1)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "settings",
    [
        {"server": Server(service="exponential")},
        {"server": Server(slots=10)},
        {"late_answers": True},
        {"server": Server(queue_bound="2s")},
    ],
    ids=["service", "slots", "late answers", "queue bound"],
)
def test_it_holds_for_other_servers(settings):
    least = recovery(NO_RETRY, 100, "73%", seeds=(1,), **settings)
    found = recovery(FLEET, 100, "73%", seeds=(1,), **settings)
    assert found <= 1.15 * least


def test_a_lone_caller_gets_its_retries_but_not_after_a_timeout():
    calls = [60.0 * minute for minute in range(1, 1001)]
    found = []
    for kind in ("error", "hang"):
        failing = Outage("60000s", kind, begin=0, share=0.1)
        clients = Clients(FLEET, processes=1)
        result = simulate(clients, load=calls, outage=failing, horizon="10s")
        found.append(result.succeeded / result.calls)
    assert found[0] >= 0.995
    assert found[1] == pytest.approx(0.9, abs=0.03)


@pytest.mark.thorough
@pytest.mark.parametrize("processes", [1, 10, 100])
def test_random_failures_are_retried(processes):
    assert success(FLEET, processes, "error") >= 0.995


@pytest.mark.thorough
def test_random_timeouts_are_retried_by_processes_that_make_many_calls():
    assert success(FLEET, 1, "hang") >= 0.995
    assert success(FLEET, 10, "hang") >= 0.995
    # It makes one call in two seconds.
    assert success(FLEET, 100, "hang") == pytest.approx(0.94, abs=0.02)


@pytest.mark.thorough
def test_a_single_retry_of_each_process_delays_recovery():
    """The least that a caller of few calls can ask for; see `least_recovery`."""
    once = QUICK.replace(max_attempts=2, budget=TokenBucket(1, cost=1, costs=()))
    # Each of a hundred processes makes a call in the outage, and retries it.
    expected = (600 + 100 - 100) / 40
    assert recovery(once, 100, "60%") == pytest.approx(expected, rel=0.1)
    clients = Clients(once, processes=10_000)
    result = simulate(clients, load="60%", horizon="60s")
    assert result.outcome == "does not recover"


@pytest.mark.thorough
def test_the_default_reserve_saves_ten_processes_and_that_of_finagle_does_not():
    for reserve, recovers in ((0.1, True), (10, False)):
        policy = QUICK.replace(budget=RatioBudget(reserve=reserve))
        result = simulate(Clients(policy, processes=10), load="60%", horizon="60s")
        assert (result.outcome == "recovers") is recovers


@pytest.mark.thorough
def test_the_default_of_a_ratio_budget_recovers_at_60_percent_up_to_a_hundred():
    policy = QUICK.replace(budget=RatioBudget())
    for processes, recovers in ((1, True), (10, True), (100, True), (1_000, False)):
        clients = Clients(policy, processes=processes)
        result = simulate(clients, load="60%", horizon="100s")
        assert (result.outcome == "recovers") is recovers
