"""Previews agree with live calls in virtual time."""

from typing import NamedTuple

import pytest
from hypothesis import example, given, strategies as st

from retrykit import Policy, StopReason, schedules as s
from retrykit._core.limits import override
from retrykit._core.retry_state import RetryState
from retrykit.analysis.preview import preview
from retrykit.analysis.preview._distributions import saturating_sum
from retrykit.testing import virtual_time
from retrykit.testing.strategies import durations, policies, schedules, seeds

DAY = 86_400
SETTINGS = {
    StopReason.ATTEMPTS: "max_attempts",
    StopReason.ELAPSED: "max_elapsed",
    StopReason.SCHEDULE_ENDED: "schedule",
}


class Call(NamedTuple):
    """A call in virtual time that failed every time."""

    began: list[float]
    sleeps: list[float]
    state: RetryState


def play(policy, taken):
    """Call a function that always fails after some time."""
    began = []

    def fetch():
        began.append(clock.now())
        clock.advance(taken)
        raise ConnectionError

    with virtual_time() as clock:
        return Call(began, clock.sleeps, policy.run(fetch).state)


def within_reach(policy):
    """Scale a policy's delays so that a call reaches its limits in a few attempts."""
    longest = min(policy.max_elapsed or DAY, DAY) / 3
    return override(policy, schedule=policy.schedule.cap(longest), rules=())


def tolerance(moment):
    """Return the tolerance for rounding errors of clock arithmetic, in seconds."""
    return 2e-6 + abs(moment) * 1e-12


def assert_agree(seen, call):
    made, end = len(call.sleeps), seen.end
    assert end.min_retries <= made <= end.max_retries
    assert SETTINGS[call.state.stop_reason] in end.reasons
    assert seen.attempts[0] <= len(call.began) <= seen.attempts[1]
    assert call.state.elapsed <= seen.worst_case + tolerance(seen.worst_case)
    moments = zip(seen.rows, call.sleeps, call.began[1:], strict=False)
    for row, nap, began in moments:
        clipped = seen.policy.deadline == "clip" and row.retry == made
        assert (0 if clipped else row.low) <= nap <= row.high
        assert row.start_low - tolerance(began) <= began
        assert began <= row.start_high + tolerance(row.start_high)
        waited = saturating_sum(call.sleeps[: row.retry])
        assert (
            row.total_low - tolerance(waited)
            <= waited
            <= row.total_high + tolerance(waited)
        )


# A preview follows the schedule of errors without a rule.
EVERY = policies(schedules=schedules(), max_attempts=12).map(
    lambda policy: override(policy, rules=())
)
REACHING = EVERY.map(within_reach)
TAKEN = st.just(0.0) | durations(at_most="1h")


@given(REACHING | EVERY, TAKEN, seeds())
@example(
    Policy(schedule=s.constant(5).jitter(1), max_attempts=5, max_elapsed=12, seed=3),
    0.1,
    3,
)
def test_a_call_behaves_as_its_preview_says(policy, taken, seed):
    seen = preview(policy, attempt=taken, samples=0)
    assert_agree(seen, play(policy.replace(seed=seed), taken))


class ExtremeSchedule(s.Schedule):
    """A user-defined schedule with a fixed random value."""

    __slots__ = ("chance", "of")
    of: s.Schedule
    chance: float

    def random(self):
        return self.chance

    def delay(self, retry, previous, _random, /):
        return self.of.delay(retry, previous, self)

    def bounds(self, retry, /):
        return self.of.bounds(retry)


STEADY = policies(
    schedules=schedules(correlated=False, rounding=False), max_attempts=12
).map(within_reach)


@given(STEADY, TAKEN)
@example(
    Policy(schedule=s.constant(4).full_jitter(), max_attempts=5, max_elapsed=9), 0.5
)
@example(Policy(schedule=s.decorrelated(1), max_elapsed=60, max_attempts=9), 0.5)
@example(
    Policy(
        schedule=s.constant(54).jitter(46 / 54), max_elapsed=10, deadline="overshoot"
    ),
    0.25,
)
def test_the_shortest_and_longest_delays_reach_both_ends(policy, taken):
    seen = preview(policy, attempt=taken, samples=0)
    for chance, end in [
        (0.0, seen.end.max_retries),
        (1 - 2**-53, seen.end.min_retries),
    ]:
        edge = policy.replace(schedule=ExtremeSchedule(policy.schedule, chance))
        call = play(edge, taken)
        assert_agree(seen, call)
        assert len(call.sleeps) == end
        if chance == 0.0:
            begins = [row.start_low for row in seen.rows]
            assert call.began[1:] == pytest.approx(begins)
    assert len(seen.rows) == seen.end.max_retries


@pytest.mark.parametrize(
    ("rule", "begins", "worst"),
    [
        ("stop", [(8.5, 10.0)], 10.5),
        ("clip", [(8.5, 10.0), (10.0, 10.0)], 10.5),
        ("overshoot", [(8.5, 100.5), (17.0, 110.0)], 110.5),
    ],
    ids=["stop", "clip", "overshoot"],
)
def test_the_worst_case_can_happen(rule, begins, worst):
    """Two delays of 8 to 100 s, and attempts that may start within 10 s."""
    policy = Policy(
        schedule=s.constant(54).jitter(46 / 54), max_elapsed=10, deadline=rule
    )
    seen = preview(policy, attempt=0.5)
    found = [(row.start_low, row.start_high) for row in seen.rows]
    assert [*map(pytest.approx, begins)] == found
    assert seen.worst_case == pytest.approx(worst)
