"""The smallest change after which a server recovers."""

import logging

import pytest

from retrykit import AsArgument, ConfigError, Policy
from retrykit.budgets import TokenBucket
from retrykit.schedules import constant
from retrykit.simulate import (
    Clients,
    Outage,
    Server,
    basin,
    simulate,
    smallest_change,
)
from retrykit.simulate._changes import _retry_dials, _Setup

IMMEDIATE = Policy(schedule=[0, 0, 0])
# A small server is quick to simulate.
SMALL = {"server": Server(20), "horizon": "60s"}
NEW = "FleetBudget()"
BUDGET = f"budget={NEW}"


def search(policy, **settings):
    """Return the change, and in which order what was tried."""
    tried = []
    found = smallest_change(policy, progress=tried.append, **SMALL | settings)
    return found, tried


@pytest.mark.thorough
def test_a_server_that_fails_again_has_not_recovered():
    policy, outage = Policy(schedule=[30, 0, 0, 0]), Outage("10s", "error")
    settings = {"load": "90%", "outage": outage, "horizon": "2m"}
    change, _ = search(policy, **settings)
    assert change.words != "no change"
    assert change.simulation.outcome == "recovers"


def test_as_many_attempts_as_possible_are_kept():
    policy = Policy(schedule=[0] * 5)
    change, tried = search(policy, load="22%")
    assert tried[:3] == ["no change", "no retries", "max_attempts=2"]
    assert change.words in tried
    left = change.policy.max_attempts
    assert change.policy == policy.replace(max_attempts=left)
    assert 2 <= left < 6
    for attempts, outcome in ((left, True), (left + 1, False)):
        changed = policy.replace(max_attempts=attempts)
        seeds = [
            simulate(changed, load="22%", seed=seed, **SMALL).outcome == "recovers"
            for seed in (1, 2, 3)
        ]
        assert all(seeds) is outcome
    assert change.simulation == simulate(change.policy, load="22%", **SMALL)
    assert smallest_change(policy, load="22%", **SMALL) == change
    assert str(change) == f"max_attempts={left}: {change.simulation}"


def test_a_budget_comes_next():
    change, tried = search(IMMEDIATE, load="60%")
    assert tried == ["no change", "no retries", "max_attempts=2", BUDGET]
    assert change.words == BUDGET
    assert repr(change.policy.budget) == NEW
    assert change.server == Server(20)


def test_delays_come_last_of_what_a_policy_can_change():
    """Only those that are longer than its own, and as many as before."""
    setup = _Setup((Clients(Policy(schedule=[8, 1])),), Server())
    attempts, *budgets, delay = _retry_dials(setup)
    assert [each.words(1) for each in (attempts, *budgets, delay)] == [
        "max_attempts=2",
        BUDGET,
        "budget=RatioBudget(reserve=0.0)",
        "budget=Throttle()",
        "budget=TokenBucket()",
        "schedule=constant('10s').equal_jitter()",
    ]
    assert [each.steps for each in (attempts, *budgets, delay)] == [1, 1, 1, 1, 1, 4]
    assert delay.words(4) == "schedule=constant('60s').equal_jitter()"
    [changed] = delay.turned(4).clients
    assert changed.policy == Policy(
        schedule=constant(60).equal_jitter(), max_attempts=3
    )


def test_a_policy_that_ends_by_time_is_expected_to_make_a_few_attempts():
    endless = Policy(max_attempts=None, max_elapsed="1m", schedule=constant(0))
    attempts, *_ = _retry_dials(_Setup((Clients(endless),), Server()))
    assert (attempts.steps, attempts.words(1)) == (8, "max_attempts=9")
    assert attempts.turned(1).clients[0].policy.max_attempts == 9


def test_nothing_is_changed_where_nothing_need_be():
    change, tried = search(IMMEDIATE, load="20%", outage=Outage("1s", "error"))
    assert (change.words, tried) == ("no change", ["no change"])
    assert change.clients == (Clients(IMMEDIATE),)


def test_a_longer_timeout_is_tried_where_retries_are_not_to_blame():
    settings = {"load": "97%", "outage": "5s"}
    change, tried = search(Clients(Policy(max_attempts=1)), **settings)
    assert tried[2].startswith("timeout=")
    assert change.clients[0].timeout in {2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}


@pytest.mark.parametrize("timeout", [1.0, AsArgument(1.0)], ids=["seconds", "argument"])
def test_the_timeout_of_a_policy_is_changed_with_it(timeout):
    policy = Policy(max_attempts=1, attempt_timeout=timeout)
    change, tried = search(policy, load="97%", outage="5s")
    assert tried[2].startswith("attempt_timeout=")
    changed = change.clients[0]
    assert changed == Clients(changed.policy)
    assert changed.timeout > 1


def test_the_bound_of_the_queue_is_as_high_as_possible():
    """During a slow start, the queue grows above any timeout."""
    settings = {"load": "90%", "outage": Outage("2s", slow_start="30s")}
    change, tried = search(Policy(max_attempts=1), **settings)
    assert tried[2:4] == ["timeout='3s'", "server: queue_bound='500ms'"]
    assert change.words == "server: queue_bound='1s'"
    assert change.server == Server(20, queue_bound=1)
    assert change.clients == (Clients(Policy(max_attempts=1)),)


@pytest.mark.parametrize("order", ["oldest_first", "newest_first"])
def test_nothing_is_found_for_a_server_that_stays_slow(order):
    settings = {"load": "90%", "outage": Outage("1s", slow_start="1000s")}
    server = Server(20, order=order, queue_bound="400ms")
    change, tried = search(Policy(schedule=[0]), server=server, **settings)
    assert change is None
    newest = [each for each in tried if each == "server: order='newest_first'"]
    assert len(newest) == (order == "oldest_first")


def test_all_clients_are_changed():
    old = Clients(IMMEDIATE.replace(budget=TokenBucket()), share=1)
    new = Clients(Policy(schedule=[0]), share=4)
    change, _ = search([old, new], load="60%")
    assert change.words == BUDGET
    assert [repr(each.policy.budget) for each in change.clients] == [NEW, NEW]


def test_there_is_nothing_to_change_without_an_outage():
    with pytest.raises(ConfigError, match="outage must be an outage, to recover from"):
        smallest_change(IMMEDIATE, outage=None)


def test_retries_are_not_to_be_changed_where_there_are_none():
    setup = _Setup((Clients(Policy(max_attempts=1)),), Server())
    assert [*_retry_dials(setup)] == []


class BegunError(Exception):
    """Ends what would take long."""


class Ending(logging.Handler):
    """Ends what warns."""

    def emit(self, record):
        raise BegunError(record.getMessage())


@pytest.mark.parametrize(
    ("find", "name"), [(smallest_change, "this search"), (basin, "this basin")]
)
def test_what_takes_long_is_told_before_it_begins(find, name):
    clients = Clients(Policy(), sdk=Policy() if find is smallest_change else None)
    settings = {"load": "20%", "server": Server(1000), "horizon": "2000s"}
    logger, ending = logging.getLogger("retrykit"), Ending()
    logger.addHandler(ending)
    try:
        with pytest.raises(BegunError, match=f"{name} may take "):
            find(clients, **settings)
    finally:
        logger.removeHandler(ending)
