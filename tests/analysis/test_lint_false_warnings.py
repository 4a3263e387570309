"""Settings besides the schedule do not cause false warnings."""

import pytest

from retrykit import Policy, hints, schedules as s
from retrykit._core.rules import Rule
from retrykit._core.timeouts import AsArgument
from retrykit.analysis.lint import check
from retrykit.budgets import RatioBudget


def two_delays():
    yield from (1.0, 2.0)


GROWING = s.exponential(1).jitter(0.5)
# Its limits are not checked when it is written, since it is user code.
OWN = s.sequence(two_delays).jitter(0.5)
OFTEN = Rule(on=TimeoutError, schedule=GROWING)
SELDOM = Rule(on=TimeoutError, max_attempts=2)


def rule_names(**settings):
    policy = Policy(**{"on": OSError, "schedule": GROWING} | settings)
    return {finding.rule: finding for finding in check(policy)}


ENDS = {
    "deadline-before-first-delay": {"schedule": OWN, "max_elapsed": 0.25},
    "max-attempts-unreachable": {"schedule": OWN, "max_attempts": 4},
    "delays-never-used": {"schedule": GROWING.take(4), "max_elapsed": 3},
}


@pytest.mark.parametrize(("name", "settings"), ENDS.items(), ids=ENDS)
def test_the_end_of_a_schedule_is_no_end_if_rules_have_other_delays(name, settings):
    assert name in rule_names(**settings)
    assert name in rule_names(**settings, rules=[SELDOM])
    assert name not in rule_names(**settings, rules=[OFTEN])
    assert name not in rule_names(**settings, hint=hints.retry_after())


def test_max_attempts_before_the_end_of_the_schedule_applies_to_rules():
    settings = {"schedule": GROWING.take(4), "max_attempts": 3}
    assert "delays-never-used" in rule_names(**settings, rules=[OFTEN])


def test_a_budget_may_end_an_endless_policy():
    endless = {"max_attempts": None, "max_elapsed": None}
    assert rule_names(**endless)["unbounded"].reason.endswith("never ends")
    paid = rule_names(**endless, budget=RatioBudget())["unbounded"]
    assert paid.reason.endswith("every time goes on while its budget allows")


def test_a_long_policy_without_a_budget_causes_no_warning():
    schedule = s.constant(60).jitter(0.5)
    assert rule_names(schedule=schedule, max_attempts=10, max_elapsed="30m") == {}


WINDOW = "call-outlives-process"


def test_the_total_time_includes_slow_attempts():
    settings = {"max_attempts": 3, "max_elapsed": None}
    assert rule_names(**settings) == {}
    slow = rule_names(**settings, attempt_timeout=AsArgument("1h"))
    assert "takes up to 3h" in slow[WINDOW].reason


@pytest.mark.parametrize("deadline", ["stop", "clip", "overshoot"])
def test_the_fix_of_slow_attempts_shortens_the_call(deadline):
    settings = {"max_elapsed": 7200, "attempt_timeout": 600, "deadline": deadline}
    fix = rule_names(**settings, schedule=s.constant(3000).jitter(0.1))[WINDOW].fix
    rule = "" if deadline == "stop" else ', deadline="stop"'
    assert fix.endswith(f"or set max_elapsed=3600.0{rule}")
    shorter = settings | {"max_elapsed": 3600.0, "deadline": "stop"}
    assert WINDOW not in rule_names(**shorter, schedule=s.constant(3000).jitter(0.1))
