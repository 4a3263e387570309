"""Lint rules about many processes that call one server."""

import pytest

from retrykit import Policy, presets, schedules as s
from retrykit.analysis.lint import check
from retrykit.budgets import FleetBudget, RatioBudget, TokenBucket

RESERVE, STORM = "reserve-of-each-process", "retry-storm"
RECENT = "recent-after-timeout"
RULES_OF_FLEETS = {RESERVE, RECENT, STORM}


def found(policy, **thresholds):
    findings = check(policy, rules=RULES_OF_FLEETS, **thresholds)
    return {each.rule: str(each) for each in findings}


def test_the_reserve_of_ten_processes_is_added_up():
    policy = Policy(budget=RatioBudget(0.3, reserve=10))
    assert found(policy) == {
        RESERVE: "reserve-of-each-process: reserve=10.0 applies to each process: 10 of "
        "them may make 100 retries a second beyond the ratio, and with 10 a second, a "
        "simulated server of 100 requests a second does not recover from a hang of "
        "10 s at a load of 73 %; FleetBudget(), or RatioBudget(0.3, reserve=0)"
    }
    assert found(presets.finagle()).keys() == {RESERVE}


@pytest.mark.parametrize(
    ("budget", "processes", "warns"),
    [
        (RatioBudget(reserve=10), 1, False),
        (RatioBudget(reserve=5), 2, True),
        (RatioBudget(), 10, False),
        (RatioBudget(), 100, True),
        (RatioBudget(reserve=0), 10_000, False),
        (FleetBudget(), 10_000, False),
        (None, 10_000, False),
    ],
    ids=str,
)
def test_only_much_reserve_is_too_much(budget, processes, warns):
    policy = Policy(budget=budget)
    assert (RESERVE in found(policy, processes=processes)) is warns


def test_a_success_before_a_hang_must_not_be_recent_in_it():
    policy = Policy(attempt_timeout="500ms", budget=FleetBudget())
    assert found(policy) == {
        RECENT: "recent-after-timeout: recent='1s' is longer than the timeout of an "
        "attempt, 500ms: when the first attempts of a hang time out, the last "
        "successes before it are still recent, so that they are retried and lengthen "
        "its queue; recent='500ms'"
    }


@pytest.mark.parametrize(
    "policy",
    [
        Policy(attempt_timeout="1s", budget=FleetBudget()),
        Policy(attempt_timeout="500ms", budget=FleetBudget(recent="500ms")),
        Policy(attempt_timeout="500ms", budget=RatioBudget(reserve=0)),
        Policy(budget=FleetBudget(recent="1h")),
    ],
    ids=["equal", "shorter", "another budget", "no timeout"],
)
def test_what_is_recent_is_no_longer_than_a_timeout(policy):
    assert RECENT not in found(policy)


def test_attempts_beyond_the_capacity_need_a_budget():
    assert found(Policy(), load="30%") == {
        STORM: "retry-storm: 5 attempts at a load of 30% are 1.5 times what the server "
        "can serve: after a hang it does not recover while its callers retry, as "
        "retrykit.simulate shows; budget=FleetBudget(), or max_attempts=3"
    }
    assert found(Policy(), load=0.7)[STORM].endswith("; budget=FleetBudget()")


@pytest.mark.parametrize(
    ("policy", "load"),
    [
        (Policy(), None),
        (Policy(), "20%"),
        (Policy(max_attempts=1), "99%"),
        (Policy(budget=TokenBucket()), "99%"),
        (Policy(on=(ConnectionRefusedError, ConnectionResetError)), "99%"),
        (Policy(on=(), on_result=callable), "99%"),
        (Policy(schedule=s.constant(30).jitter(0.5), max_attempts=9), "99%"),
    ],
    ids=[
        "of an unknown load",
        "within the capacity",
        "of one attempt",
        "with a budget",
        "of failures at once",
        "of polls",
        "after long delays",
    ],
)
def test_a_policy_is_no_storm(policy, load):
    assert found(policy, load=load) == {}


def test_an_error_or_timeout_among_others_may_be_a_storm():
    for kinds in (OSError, (ConnectionError, TimeoutError)):
        assert STORM in found(Policy(on=kinds), load="60%")
