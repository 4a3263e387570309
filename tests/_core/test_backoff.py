"""Backoff: the delays for a loop of the user's own."""

import copy
import pickle
from itertools import islice

import pytest
from hypothesis import assume, given

from retrykit import ConfigError, Policy, presets, schedules as s
from retrykit.backoff import STOP, Backoff
from retrykit.testing import FakeClock, virtual_time
from retrykit.testing.strategies import schedules, seeds

UNLIMITED = Policy(max_attempts=None)


def all_delays(backoff, most=1000):
    return list(islice(iter(backoff.next, STOP), most))


@given(schedules(), seeds())
def test_gives_the_delays_of_the_schedule_and_then_stops(schedule, seed):
    # Without a delay it is no schedule of a policy.
    assume(schedule.bounds(1) is not None)
    policy = UNLIMITED.replace(schedule=schedule, seed=seed)
    expected = list(islice(schedule.draw(seed), 50))
    assert all_delays(Backoff(policy, FakeClock()), 50) == expected


def test_stops_after_max_attempts():
    """The first call counts."""
    backoff = Backoff(Policy(schedule=s.constant(1), max_attempts=4), FakeClock())
    assert all_delays(backoff) == [1.0, 1.0, 1.0]


def test_stops_at_once_if_one_attempt_is_allowed():
    assert all_delays(Backoff(Policy(max_attempts=1), FakeClock())) == []


def test_stays_stopped():
    backoff = Backoff(Policy(schedule=[1]), FakeClock())
    assert [backoff.next() for _ in range(4)] == [1.0, STOP, STOP, STOP]


# The delays of 4 s each that max_elapsed=10 allows.
RULES = {"stop": [4, 4], "clip": [4, 4, 2], "overshoot": [4, 4, 4]}


@pytest.mark.parametrize(("rule", "delays"), RULES.items(), ids=RULES)
def test_obeys_the_deadline_rule(rule, delays):
    policy = Policy(schedule=s.constant(4), max_elapsed=10, deadline=rule)
    clock = FakeClock()
    backoff = Backoff(policy, clock)
    delays_seen = []
    for wait in iter(backoff.next, STOP):
        delays_seen.append(wait)
        clock.sleep(wait)
    assert delays_seen == clock.sleeps == delays


def test_checks_the_elapsed_time_before_it_draws_a_delay():
    def count_draws():
        while True:
            drawn.append(1.0)
            yield 1.0

    drawn = []
    clock = FakeClock()
    policy = Policy(schedule=count_draws, max_elapsed=10, deadline="overshoot")
    backoff = Backoff(policy, clock)
    backoff.next()
    clock.advance(10)
    assert backoff.next() == 1.0
    clock.advance(0.001)
    assert backoff.next() is STOP
    assert drawn == [1.0, 1.0]


def test_its_repr_shows_the_policy_and_the_retry():
    backoff = Backoff(Policy(schedule=[1, 2]))
    backoff.next()
    assert (
        repr(backoff) == "<Backoff of Policy(schedule=sequence([1.0, 2.0])), retry 2>"
    )


def test_reset_restores_the_first_interval():
    """Quoted from Google: it restores the initial interval and restarts the timer."""
    clock = FakeClock(start=50)
    backoff = Backoff(presets.google(randomization_factor=0), clock)
    waited = [backoff.next() for _ in range(5)]
    clock.advance(901)
    assert backoff.next() is STOP
    backoff.reset()
    assert (backoff.elapsed, backoff.current_interval) == (0.0, 0.5)
    assert [backoff.next() for _ in range(5)] == waited


def test_reset_restores_all_attempts():
    backoff = Backoff(Policy(schedule=s.constant(1), max_attempts=3), FakeClock())
    assert all_delays(backoff) == [1.0, 1.0]
    backoff.reset()
    assert all_delays(backoff) == [1.0, 1.0]


def test_reset_draws_a_new_seed_unless_the_policy_has_one():
    fresh = Backoff(Policy(schedule=s.constant(1).full_jitter()))
    fixed = Backoff(Policy(schedule=s.constant(1).full_jitter(), seed=7))
    for backoff, different in ((fresh, 2), (fixed, 1)):
        first = backoff.next()
        backoff.reset()
        assert len({first, backoff.next()}) == different


def test_elapsed_is_the_time_since_its_creation():
    clock = FakeClock(start=1000)
    backoff = Backoff(Policy(), clock)
    assert backoff.elapsed == 0.0
    clock.advance(2.5)
    assert backoff.elapsed == 2.5
    backoff.next()
    clock.advance(1)
    assert backoff.elapsed == 3.5


def test_elapsed_uses_the_virtual_clock():
    with virtual_time() as clock:
        backoff = Backoff(Policy())
        clock.advance(7)
        assert backoff.elapsed == 7.0


def test_the_current_interval_is_the_next_delay_without_jitter():
    backoff = Backoff(presets.google(), FakeClock())
    delays_seen = []
    for _ in range(13):
        delays_seen.append(backoff.current_interval)
        wait = backoff.next()
        assert delays_seen[-1] * 0.499 <= wait <= delays_seen[-1] * 1.501
    assert delays_seen == [
        *(0.5, 0.75, 1.125, 1.687, 2.53, 3.795, 5.692, 8.538, 12.807, 19.21),
        *(28.815, 43.222, 60.0),
    ]


def test_reading_the_current_interval_does_not_advance():
    backoff = Backoff(Policy(schedule=[1, 2]), FakeClock())
    assert [backoff.current_interval for _ in range(3)] == [1.0, 1.0, 1.0]
    assert all_delays(backoff) == [1.0, 2.0]


ENDING = {
    "list": s.sequence([1, 2]),
    "take": s.constant(4).take(2),
    "within": s.constant(4).within(10),
    "jitter, and within the longest": s.constant(4).jitter(0.5).within(12),
    "jitter within another's length": s.constant(4).take(2).full_jitter(),
}


@pytest.mark.parametrize("schedule", ENDING.values(), ids=ENDING)
def test_the_current_interval_is_none_at_the_end(schedule):
    backoff = Backoff(UNLIMITED.replace(schedule=schedule), FakeClock())
    assert len(all_delays(backoff)) == 2
    assert backoff.current_interval is None


def test_two_loops_of_one_policy_are_independent():
    policy = Policy(schedule=[1, 2, 3])
    one, other = Backoff(policy, FakeClock()), Backoff(policy, FakeClock())
    assert [one.next(), one.next(), other.next(), one.next()] == [1, 2, 1, 3]
    assert other.next() == 2


def test_each_loop_draws_its_own_seed():
    policy = Policy(schedule=s.constant(1).full_jitter())
    assert len({Backoff(policy).next() for _ in range(100)}) == 100


def test_the_conditions_of_the_policy_are_not_called():
    def never(_outcome):
        raise AssertionError

    policy = Policy(schedule=[1], on=never, on_result=never, give_up_on=never)
    assert all_delays(Backoff(policy, FakeClock())) == [1.0]


def test_gives_all_delays_of_a_long_schedule():
    backoff = Backoff(presets.hostname_verification(), FakeClock())
    assert all_delays(backoff) == list(presets.hostname_verification().schedule.draw())


def test_a_delay_of_zero_is_not_the_end():
    backoff = Backoff(Policy(schedule=[0, 0]), FakeClock())
    assert [backoff.next() for _ in range(3)] == [0.0, 0.0, STOP]
    assert bool(STOP)


def test_stop_is_a_singleton():
    assert repr(STOP) == "STOP"
    assert copy.deepcopy(STOP) is STOP
    assert pickle.loads(pickle.dumps(STOP)) is STOP  # noqa: S301  pickled here


def test_rejects_a_schedule_that_returns_a_negative_delay():
    class Broken(s.Schedule):
        def delay(self, _retry, _previous, _random, /):
            return -1.0

        def bounds(self, _retry, /):
            return 0.0, 0.0

    with pytest.raises(ConfigError, match=r"schedule must be .* got -1.0"):
        Backoff(Policy(schedule=Broken())).next()
