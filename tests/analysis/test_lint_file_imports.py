"""Settings besides the schedule do not cause false warnings."""

import pytest

from retrykit import Policy, hints, schedules as s
from retrykit.analysis.lint import check
from retrykit.budgets import RatioBudget
from retrykit.policy.rules import Rule
from retrykit.policy.timeouts import AsArgument

GROWING = s.exponential(1).jitter(0.5)
OFTEN = Rule(on=TimeoutError, schedule=GROWING)
SELDOM = Rule(on=TimeoutError, max_attempts=2)


def found(**settings):
    policy = Policy(**{"on": OSError, "schedule": GROWING} | settings)
    return {finding.rule: finding for finding in check(policy)}


ENDS = {
    "never-retries": {"schedule": []},
    "deadline-before-first-delay": {"max_elapsed": 0.25},
    "max-attempts-unreachable": {"schedule": GROWING.take(2), "max_attempts": 4},
    "delays-never-used": {"schedule": GROWING.take(4), "max_elapsed": 3},
}


@pytest.mark.parametrize(("name", "settings"), ENDS.items(), ids=ENDS)
def test_an_end_by_the_schedule_is_none_where_other_delays_are(name, settings):
    assert name in found(**settings)
    assert name in found(**settings, rules=[SELDOM])
    assert name not in found(**settings, rules=[OFTEN])
    assert name not in found(**settings, hint=hints.retry_after())


def test_attempts_that_end_before_the_schedule_do_so_under_any_rule():
    settings = {"schedule": GROWING.take(4), "max_attempts": 3}
    assert "delays-never-used" in found(**settings, rules=[OFTEN])


def test_a_budget_may_end_what_nothing_else_does():
    endless = {"max_attempts": None, "max_elapsed": None}
    assert found(**endless)["unbounded"].reason.endswith("never ends")
    paid = found(**endless, budget=RatioBudget())["unbounded"]
    assert paid.reason.endswith("every time goes on as long as its budget pays")


def test_a_long_policy_without_a_budget_is_no_finding():
    schedule = s.constant(60).jitter(0.5)
    assert found(schedule=schedule, max_attempts=10, max_elapsed="30m") == {}


WINDOW = "call-outlives-process"


def test_attempts_that_may_take_long_belong_to_the_window():
    settings = {"max_attempts": 3, "max_elapsed": None}
    assert found(**settings) == {}
    slow = found(**settings, attempt_timeout=AsArgument("1h"))
    assert "takes up to 3h" in slow[WINDOW].reason


@pytest.mark.parametrize("deadline", ["stop", "clip", "overshoot"])
def test_the_fix_of_slow_attempts_is_one_that_shortens_the_window(deadline):
    settings = {"max_elapsed": 7200, "attempt_timeout": 600, "deadline": deadline}
    fix = found(**settings, schedule=s.constant(3000).jitter(0.1))[WINDOW].fix
    rule = "" if deadline == "stop" else ', deadline="stop"'
    assert fix.endswith(f"or set max_elapsed=3600.0{rule}")
    shorter = settings | {"max_elapsed": 3600.0, "deadline": "stop"}
    assert WINDOW not in found(**shorter, schedule=s.constant(3000).jitter(0.1))
