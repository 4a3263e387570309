"""Far retries are computed directly, or rejected."""

import json
import sys
from itertools import count

import pytest

from retrykit import (
    ConfigError,
    Failure,
    Policy,
    RetryState,
    StopReason,
    schedules as s,
)
from retrykit._core.decision import decide
from retrykit.analysis.preview import preview
from retrykit.schedules._base import is_endless
from retrykit.schedules._parsing import parse_schedule

LONG_SUM = "constant('1us')"
FAR_RETRY = 10**12


MOST_CALLS = 6_000_000


@pytest.fixture(autouse=True)
def limited_function_calls():
    """Limit the number of functions that a test calls."""
    calls = count(1)

    def count_call(_frame, event, _arg):
        if event == "call" and next(calls) > MOST_CALLS:
            sys.setprofile(None)
            raise AssertionError(f"more than {MOST_CALLS:,} functions were called")

    sys.setprofile(count_call)
    yield
    sys.setprofile(None)


@pytest.mark.parametrize("levels", [0, 1, 10, 90])
def test_reading_a_policy_computes_no_sums(levels):
    text = LONG_SUM + ".within('0.9s')" * levels + ".take(3)" * (levels == 0)
    policy = Policy.from_dict({"schedule": f"{text}.then([1])"})
    assert policy.schedule.bounds(2) == (1e-6, 1e-6)


class Counted(s.Schedule):
    """A schedule that counts how many delays are computed."""

    def __init__(self, most):
        self.computed = 0
        self.most = most

    def delay(self, retry, previous, random, /):
        bounds = self.bounds(retry)
        return bounds and bounds[0]

    def bounds(self, retry, /):
        self.computed += 1
        return (1.0, 1.0) if retry <= self.most else None


def test_nested_within_computes_each_delay_once():
    delays = Counted(10**9)
    schedule = delays
    for _ in range(50):
        schedule = schedule.within("1w")
    assert [schedule.bounds(retry) for retry in range(1, 101)] == [(1.0, 1.0)] * 100
    assert delays.computed <= 200


def test_within_computes_a_bounded_number_of_delays():
    delays = Counted(10**9)
    schedule = delays.within("1w").cap(1).within("1w")
    assert schedule.bounds(15_000) == (1.0, 1.0)
    with pytest.raises(ConfigError, match="retry must be at most 30000 with"):
        schedule.bounds(FAR_RETRY)
    assert delays.computed <= 30_001


def test_a_call_resumed_after_thousands_of_retries_has_its_delay():
    policy = Policy(schedule=s.constant("1m").within("1w"), max_attempts=None)
    resumed = RetryState("job", 1, 0.0, attempt=10_000)
    assert [decide(policy, resumed._record, 10_000, 0.0) for _ in range(2)] == [
        60.0,
        60.0,
    ]
    assert decide(policy, resumed._record, 10_081, 0.0) is StopReason.SCHEDULE_ENDED


def test_then_continues_after_thousands_of_delays():
    schedule = s.constant(1).within("2h").switch(after=5_000, to=[1, 2]).then([3])
    assert list(schedule.draw())[4_999:] == [1.0, 3.0]


def test_the_end_of_within_is_known_for_every_later_retry():
    schedule = s.exponential(1).cap(60).within("1d")
    assert schedule.bounds(FAR_RETRY) is None
    assert schedule.delay(FAR_RETRY, None, None) is None
    assert len(list(schedule.draw())) == 1444


@pytest.mark.parametrize(
    "text",
    [
        LONG_SUM + ".within('1h')" * 90,
        "linear('1us').within('0.9s').then([1])",
        "fibonacci(1).cap(60)",
        "google_interval('1d', multiplier=1.01, max_interval='24d')",
        "polly_interval(1).cap(60)",
        "constant(1).take(3).switch(after=999999999999, to=[1])",
    ],
)
def test_a_decision_after_a_far_attempt_is_fast(text):
    policy = Policy.from_dict(
        {"schedule": text, "max_attempts": "unlimited", "max_elapsed": "unlimited"}
    )
    state = RetryState.from_dict(
        RetryState("far", seed=1, epoch=0.0, attempt=FAR_RETRY).to_dict()
    )
    failure = Failure(FAR_RETRY, OSError(), None, 0.0, 0.0, None)
    try:
        decided = policy.decide(state, failure)
    except ConfigError as error:
        assert "with .within(), which adds up" in str(error)
    else:
        assert decided is not None


def forever():
    while True:
        yield 1


def twice():
    yield from (1, 2)


@pytest.mark.parametrize(
    ("schedule", "endless"),
    [
        (s.linear(1), True),
        (s.linear(1).jitter(0.5).cap(9).round_down(1), True),
        (s.linear(1).take(10**9), False),
        (s.constant("1us").within("1w"), False),
        (s.sequence([1, 2]), False),
        (s.sequence(forever), True),
        (s.sequence(twice), False),
        (Counted(10**9), True),
        (Counted(9), False),
        (s.sequence([1]).then(s.linear(1)), True),
        (s.sequence([1]).then([2]), False),
        (s.sequence([1]).switch(after=1, to=s.linear(1)), True),
        (s.sequence([1]).switch(after=2, to=s.linear(1)), False),
        (s.linear(1).switch(after=2, to=[1, 2, 3]), False),
        (s.linear(1) + s.constant(1), True),
        (s.linear(1) + s.sequence([1, 2]), False),
        (s.linear(1) & [1, 2], False),
        (s.linear(1) | [1, 2], True),
    ],
)
def test_an_endless_schedule_is_recognized_by_its_parts(schedule, endless):
    assert is_endless(schedule) is endless


@pytest.mark.needs("speed")
@pytest.mark.parametrize(
    "text",
    [
        "exponential(1).cap(60).jitter(0.5)",
        "constant(0.1).jitter(0.5)" + ".within('1d')" * 90,
        *(
            pytest.param(text, marks=pytest.mark.thorough)
            for text in (
                "google_interval()",
                "polynomial(4).full_jitter().round_down('1s') + linear(1).jitter(0.5)",
                "linear(0.1).jitter(0.5)" + ".round_down('1ms')" * 90,
                "+".join(["linear(1).jitter(0.1)"] * 45),
            )
        ),
    ],
)
def test_a_preview_of_a_thousand_attempts_samples_fewer_calls(text):
    policy = Policy.from_dict(
        {"schedule": text, "max_attempts": 1001, "max_elapsed": "unlimited"}
    )
    seen = preview(policy, samples=10**12)
    assert len(seen.rows) == 1000
    assert 1 <= seen.samples < 2000
    assert all(row.low <= row.mean <= row.high for row in seen.rows)


@pytest.mark.thorough
@pytest.mark.needs("speed")
def test_fewer_calls_are_sampled_if_each_has_more_delays():
    schedule = s.constant(1).full_jitter()
    drawn = [
        preview(Policy(schedule=schedule, max_attempts=most)).samples
        for most in (10, 101, 1001)
    ]
    assert drawn == [2000, 1000, 100]


def test_the_means_of_a_large_schedule_are_sampled():
    text = "linear(1).jitter(0.5)" + ".cap('1d')" * 29
    seen = preview(Policy.from_dict({"schedule": text}), samples=100)
    assert seen.samples == 100
    assert [row.mean_error > 0 for row in seen.rows] == [True] * len(seen.rows)
    steady = preview(Policy.from_dict({"schedule": text.replace("0.5", "0")}))
    assert [row.mean for row in steady.rows] == [1.0, 2.0, 3.0, 4.0]


def nested(levels):
    return f"constant(1){'.cap(1)' * (levels - 1)}"


def test_data_has_a_limited_depth():
    policy = Policy.from_dict({"schedule": nested(100)})
    assert Policy.from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
    for deeper in (nested(101), f"({nested(100)}).cap(1)"):
        with pytest.raises(ConfigError, match="schedule must be of at most 100 levels"):
            Policy.from_dict({"schedule": deeper})


def test_a_string_has_a_limited_depth():
    text = f"sequence([1]){'.cap(1)' * 99}"
    assert repr(parse_schedule(text)).count("cap") == 99


def balanced(leaves):
    if leaves == 1:
        return "constant(1)"
    return f"({balanced(leaves // 2)} + {balanced(leaves - leaves // 2)})"


def test_a_schedule_has_a_limited_number_of_parts():
    assert parse_schedule(balanced(500)).bounds(1) == (500.0, 500.0)
    with pytest.raises(ConfigError, match="schedule must be of at most 1000 parts"):
        parse_schedule(balanced(501))
