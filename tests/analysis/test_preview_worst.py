"""Worst-case time of calls with an attempt timeout."""

import pytest
from hypothesis import given, strategies as st

from retrykit import Hedge, Policy, hints, schedules as s
from retrykit._cli.summary import summarize
from retrykit._core.limits import override
from retrykit._core.rules import Rule
from retrykit._core.timeouts import AsArgument
from retrykit.analysis.preview import preview
from retrykit.budgets import TokenBucket
from retrykit.limits import CircuitBreaker
from retrykit.schedules._randomness import MAX_DELAY
from retrykit.testing import virtual_time
from retrykit.testing.strategies import durations, policies, schedules


def steps():
    yield from (10, 20)


# Attempt timeout, max_elapsed, deadline, and the worst case.
WORST = {
    "without a limit": (5, None, "stop", 45),
    "attempts as long as any": (MAX_DELAY, None, "stop", MAX_DELAY),
    "within the limit": (5, 60, "stop", 45),
    "an attempt that is cut": (5, 42, "stop", 42),
    "a delay that does not fit": (30, 40, "stop", 40),
    "one attempt alone": (50, 9, "stop", 9),
    "a delay that is clipped": (15, 30, "clip", 45),
    "a delay that overshoots": (15, 30, "overshoot", 65),
}


@pytest.mark.parametrize(
    ("timeout", "limit", "rule", "worst"), WORST.values(), ids=WORST
)
@pytest.mark.parametrize("kind", [float, AsArgument])
def test_the_worst_case_includes_the_attempts(kind, timeout, limit, rule, worst):
    policy = Policy(
        schedule=steps, max_elapsed=limit, deadline=rule, attempt_timeout=kind(timeout)
    )
    assert preview(policy).worst_case == worst


def test_attempts_do_not_exceed_the_attempt_timeout():
    policy = Policy(schedule=steps, attempt_timeout=5)
    assert preview(policy, attempt=3).worst_case == 39
    assert preview(policy, attempt="1m") == preview(policy, attempt=5)
    assert preview(policy.replace(attempt_timeout=None), attempt="1m").attempt == 60


PATIENT = policies(schedules=schedules(), max_attempts=6).map(
    lambda policy: override(policy, rules=(), schedule=policy.schedule.cap("1h"))
)


@given(PATIENT, durations("1ms", "1h"), st.lists(st.floats(0, 1), min_size=1))
def test_no_call_takes_longer_than_its_preview_says(policy, longest, parts):
    policy = policy.replace(attempt_timeout=AsArgument(longest))
    made = []

    def fetch(timeout):
        clock.advance(timeout * parts[len(made) % len(parts)])
        made.append(timeout)
        raise ConnectionError

    worst = preview(policy, samples=0).worst_case
    with virtual_time() as clock:
        elapsed = policy.run(fetch).state.elapsed
    # Sums in another order differ by rounding errors.
    assert elapsed <= worst * (1 + 1e-9) + 2e-6


def caveats(**settings):
    summary = {name: lines for name, *lines in summarize(preview(Policy(**settings)))}
    return " ".join(summary.get("notes", [])) or None


BESIDES = {
    "separate delays for TimeoutError; separate max_attempts for OSError": {
        "rules": [
            Rule(on=TimeoutError, schedule=[1], max_attempts=2),
            Rule(on=OSError, max_attempts=2),
        ]
    },
    "a hint may ask for other delays, up to 1h": {"hint": hints.retry_after()},
    "a hint may ask for other delays": {
        "hint": hints.retry_after(),
        "hint_cap": None,
    },
    "a budget must allow each retry": {"budget": TokenBucket()},
    "limits must allow each attempt": {"admission": [CircuitBreaker()]},
    "limits must allow each attempt, or are waited for": {
        "admission": [CircuitBreaker()],
        "on_refused": "wait",
    },
    "each attempt may be sent 3 times; each send takes 1.5s at most": {
        "hedge": Hedge(0, at_most=3, idempotent=True),
        "attempt_timeout": AsArgument(1.5),
    },
    "each attempt takes 1.5s at most": {"attempt_timeout": AsArgument(1.5)},
    "a nested call that has given up is retried": {"nested": "retry"},
    "a nested call that has given up is a NestedRetryError": {"nested": "raise"},
    "a hint may ask for other delays; each attempt takes 5s at most": {
        "hint": hints.retry_after(),
        "hint_cap": None,
        "attempt_timeout": 5,
    },
}


@pytest.mark.parametrize(("text", "settings"), BESIDES.items(), ids=BESIDES)
def test_settings_that_no_figure_shows_are_caveats(text, settings):
    assert caveats(**settings) == text


def test_a_simple_policy_has_no_caveats():
    assert caveats(schedule=s.constant(1), hint_cap=5) is None


def test_the_worst_case_shows_the_duration_of_attempts():
    def worst(**settings):
        policy = Policy(schedule=steps, attempt_timeout=5)
        return dict(summarize(preview(policy, **settings)))["at worst"]

    assert worst() == "45s in total with attempts of 5s"
    assert worst(attempt=2) == "36s in total with attempts of 2s"


def test_joined_limits_end_a_call_once_both_are_reached():
    policy = Policy(
        schedule=s.constant(20), max_attempts=3, max_elapsed=100, limits="all"
    )
    result = preview(policy)
    assert [row.start_high for row in result.rows] == [20.0, 40.0, 60.0, 80.0, 100.0]
    assert result.end.reasons == ("max_elapsed", "max_elapsed")
    assert (result.attempts, result.worst_case) == ((6, 6), 100.0)
    slow = preview(policy, attempt=200)
    assert (slow.attempts, slow.worst_case) == ((3, 3), 640.0)
