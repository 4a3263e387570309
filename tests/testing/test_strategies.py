"""The strategies draw everything that their arguments allow, and nothing else."""

import math
from datetime import timedelta
from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from retrykit import Failure, RetryState, StopReason, schedules as s
from retrykit._core.limits import override
from retrykit._core.settings import SETTINGS
from retrykit.schedules._kinds import SCHEDULE_KINDS
from retrykit.testing.strategies import (
    durations,
    failure_scripts,
    policies,
    schedules,
    seeds,
)
from tests._support.schedule_data import kinds_of

BUSY = OSError("busy")


def drawn(strategy, examples=400):
    found = []

    @settings(max_examples=examples)
    @given(strategy)
    def draw(value):
        found.append(value)

    draw()
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0.0, math.nextafter(math.inf, 0.0)),
        (1.0, 1.0),
        (2.0, 3.0),
        (1e300, 1.5e300),
        ("1m", timedelta(hours=4)),
    ],
    ids=str,
)
def test_durations_stay_within_their_bounds(low, high):
    shortest, longest = s.sequence([low, high]).delays
    found = drawn(durations(low, high))
    assert all(type(x) is float and shortest <= x <= longest for x in found)
    assert len(set(found)) > 10 or shortest == longest


@pytest.mark.thorough
def test_durations_include_ordinary_and_extreme_values():
    found = drawn(durations())
    assert {0.0, 0.5, 60.0, 5e-324, 1e300, math.nextafter(math.inf, 0.0)} <= {*found}


@pytest.mark.thorough
def test_seeds_are_exact_in_json():
    found = drawn(seeds())
    assert all(type(seed) is int and 0 <= seed < 2**53 for seed in found)
    assert max(found) > 2**50


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ({}, set()),
        pytest.param(
            {"correlated": False},
            {"decorrelated", "polly_interval"},
            marks=pytest.mark.thorough,
        ),
        pytest.param({"rounding": False}, {"round_down"}, marks=pytest.mark.thorough),
    ],
    ids=["all", "correlated=False", "rounding=False"],
)
def test_draws_schedules_of_every_kind_that_is_not_excluded(options, missing):
    found = drawn(schedules(**options))
    assert set().union(*(kinds_of(schedule) for schedule in found)) == (
        set(SCHEDULE_KINDS) - missing
    )


def test_schedules_of_one_leaf_have_no_operators():
    found = drawn(schedules(max_leaves=1), 100)
    joined = {"sum", "union", "intersection", "then", "switch"}
    assert all(not joined & kinds_of(schedule) for schedule in found)


@pytest.fixture(scope="module")
def drawn_policies():
    return drawn(policies())


@pytest.mark.thorough
def test_policies_vary_all_settings_with_values(drawn_policies):
    found = [settings_of(policy) for policy in drawn_policies]
    values = {name: {repr(each[name]) for each in found} for name in found[0]}
    assert {name for name in values if len(values[name]) == 1} == {
        "admission",
        "attempt_timeout",
        "budget",
        "fallback",
        "hedge",
        "observers",
        "on_result",
        "sleep",
        "stop_event",
    }
    assert {"5", "None"} < values["max_attempts"]
    assert {"60.0", "None"} < values["max_elapsed"]
    assert {len(each["rules"]) for each in found} == {0, 1, 2, 3}
    assert values["deadline"] == {"'stop'", "'clip'", "'overshoot'"}
    rules = [rule for each in found for rule in each["rules"]]
    assert any(rule.hint and rule.schedule is None for rule in rules)


@pytest.mark.thorough
def test_policies_vary_which_limits_are_written(drawn_policies):
    names = ("schedule", "max_attempts", "max_elapsed")
    found = {
        tuple(name in policy.non_default_settings() for name in names)
        for policy in drawn_policies
    }
    assert found == set(product([True, False], repeat=3))


def settings_of(policy):
    return {name: getattr(policy, name) for name in SETTINGS}


@given(policies(max_attempts=3))
def test_policies_have_at_most_max_attempts(policy):
    assert policy.max_attempts in {1, 2, 3}
    assert policy.limits == "any"


@given(policies(schedules=st.just([1, "2s"])))
def test_policies_use_the_given_schedules(policy):
    assert policy.schedule == s.sequence([1.0, 2.0])


LONG = [s.constant(1).take(5000), s.constant(0).take(5000), s.linear(1e-9)]


@given(policies(schedules=st.sampled_from(LONG)))
def test_policies_may_have_long_schedules(policy):
    assert policy.schedule in LONG


def generated():
    yield 1.0


@given(policies(schedules=st.just(generated), max_attempts=9))
def test_policies_may_have_schedules_of_user_code(policy):
    assert policy.max_attempts <= 9


@given(policies(), st.sampled_from([ConnectionError, TimeoutError]))
def test_every_policy_retries_the_errors_of_scripts(policy, kind):
    state = RetryState("fetch", seed=7, epoch=0.0)
    failure = Failure(1, kind(), None, 0.0, 0.0, None)
    one = override(policy, max_attempts=None, schedule=s.sequence([1]), rules=())
    one = override(one, limits="any")
    stopped = getattr(one.decide(state, failure), "reason", None)
    assert stopped in {None, StopReason.ELAPSED}


@pytest.mark.parametrize(
    ("succeeds", "endings"),
    [(True, {True}), (False, {False}), (None, {True, False})],
    ids=["succeeds", "never succeeds", "union"],
)
def test_scripts_are_failures_followed_by_the_value_if_any(succeeds, endings):
    scripts = failure_scripts(
        errors=[OSError, BUSY], value=None, max_failures=3, succeeds=succeeds
    )
    found = drawn(scripts)
    assert {script[-1] is None for script in found} == endings
    failures = [[each for each in script if each is not None] for script in found]
    shortest = 0 if True in endings else 1
    assert {len(failed) for failed in failures} == set(range(shortest, 4))
    for script, failed in zip(found, failures, strict=True):
        assert set(failed) <= {OSError, BUSY}
        assert script in (failed, [*failed, None])
        assert script


@pytest.mark.thorough
def test_scripts_raise_network_errors_by_default():
    found = drawn(failure_scripts())
    assert {item for script in found for item in script} == {
        ConnectionError,
        TimeoutError,
        "done",
    }
    assert max(map(len, found)) == 6
