"""What the rules of a policy stand for, compared with calls that fail as they say."""

import pytest
from hypothesis import given, strategies as st

from retrykit import Policy, Rule
from retrykit.analysis.preview import preview
from retrykit.analysis.preview._rule_policies import has_only_rules, rule_policies
from retrykit.schedules import constant
from retrykit.testing import virtual_time


def delays_of(policy, error):
    def fail():
        raise error

    with virtual_time() as clock, pytest.raises(type(error)):
        policy.call(fail)
    return clock.sleeps


counts = st.none() | st.integers(1, 6)
times = st.none() | st.integers(1, 30)
schedules = st.none() | st.lists(st.integers(0, 9), min_size=1, max_size=6)


@given(counts, times, st.sampled_from(["any", "all"]), counts, schedules)
def test_a_call_that_fails_by_a_rule_waits_as_the_policy_of_that_rule(
    most, longest, limits, own, schedule
):
    if None in {most, longest}:
        limits = "any"
    if own is None and schedule is None:
        own = 3
    policy = Policy(
        rules=[Rule(on=OSError, max_attempts=own, schedule=schedule)],
        schedule=constant(2).take(7),
        max_attempts=most,
        max_elapsed=longest,
        limits=limits,
        on=ValueError,
    )
    [part] = rule_policies(policy)
    expected = [row.low for row in preview(part).rows]
    assert delays_of(policy, OSError()) == expected
    assert delays_of(part, OSError()) == expected


def test_a_policy_with_errors_or_results_of_its_own_has_more_than_rules():
    rules = [Rule(on=OSError, max_attempts=2)]
    assert has_only_rules(Policy(rules=rules, on=()))
    assert not has_only_rules(Policy(rules=rules))
    assert not has_only_rules(Policy(rules=rules, on=(), on_result=lambda _: False))
    assert not has_only_rules(Policy(on=(), on_result=lambda _: False))


def test_the_other_settings_are_kept():
    policy = Policy(rules=[Rule(on=OSError, max_attempts=2)], fallback=None, name="x")
    [part] = rule_policies(policy)
    assert (part.fallback, part.name, part.max_elapsed) == (None, "x", 60)
