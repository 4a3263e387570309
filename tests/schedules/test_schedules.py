"""Every schedule keeps the promises that drivers and readers rely on."""

import copy
import math
import pickle
from itertools import islice

import pytest
from hypothesis import example, given, strategies as st

from retrykit import schedules as s
from retrykit.schedules.parsing import schedule_from_data, schedule_to_text
from retrykit.schedules.randomness import MAX_DELAY, call_random
from retrykit.testing.strategies import durations, schedules, seeds

ALMOST_ONE = math.nextafter(1.0, 0.0)


class Always:
    """Chance that always falls the same way."""

    def __init__(self, value):
        self.random = lambda: value


def retries():
    usual = st.integers(1, 30) | st.integers(1, 2000)
    return usual | st.sampled_from([1024, 1025, 10**6])


def span(retry, schedule):
    return schedule.bounds(retry) or (None, None)


@given(schedules(), retries(), st.none() | durations(), seeds())
@example(s.decorrelated(0), 2, 5.0, 0)
@example(s.decorrelated(1) + s.constant(5), 3, 500.0, 7)
@example(s.decorrelated(1) * 0.01, 3, 0.01, 7)
def test_a_drawn_delay_never_leaves_its_bounds(schedule, retry, previous, seed):
    """A drawn delay never leaves its bounds, whatever was waited before."""
    delay = schedule.delay(retry, previous, call_random(seed=seed, retry=retry))
    low, high = span(retry, schedule)
    assert (delay, low, high) == (None, None, None) or low <= delay <= high


@given(schedules(), seeds())
def test_no_delay_of_a_call_leaves_its_bounds(schedule, seed):
    """From one delay to the next, and to the same end as the bounds."""
    drawn = [*islice(schedule.draw(seed), 60), None]
    for retry, delay in enumerate(drawn[:60], 1):
        low, high = span(retry, schedule)
        assert (delay, low, high) == (None, None, None) or low <= delay <= high


@given(schedules(), retries())
@example(s.constant(MAX_DELAY).round_down(MAX_DELAY / 3), 1)
@example(s.constant(MAX_DELAY) * 2, 1)
@example(s.constant(MAX_DELAY).jitter(0.5), 1)
@example(s.constant(MAX_DELAY) + s.constant(MAX_DELAY).jitter(1), 1)
def test_bounds_are_finite_and_ordered_however_late(schedule, retry):
    """Nothing overflows or turns into NaN at retry 1, 1024, 10**6."""
    for asked in (1, retry, 1024, 10**6):
        bounds = schedule.bounds(asked)
        assert bounds is None or 0.0 <= bounds[0] <= bounds[1] < math.inf


@given(schedules(walking=False, rounding=False), retries())
def test_the_extremes_of_chance_reach_the_bounds(schedule, retry):
    """Bounds are exact: nothing shorter and nothing longer is promised."""
    low, high = span(retry, schedule)
    assert schedule.delay(retry, None, Always(0.0)) == low
    longest = schedule.delay(retry, None, Always(ALMOST_ONE))
    assert longest == high is None or math.isclose(longest, high)


@given(st.floats(0.001, 1e6), st.floats(1, 10), st.integers(1, 60))
def test_the_extremes_of_a_walk_reach_its_bounds(first, factor, retry):
    def last(chance):
        previous = None
        for number in range(1, retry + 1):
            previous = walk.delay(number, previous, chance)
        return previous

    walk = s.decorrelated(first, factor=factor)
    low, high = walk.bounds(retry)
    assert last(Always(0.0)) == low == first
    assert math.isclose(last(Always(ALMOST_ONE)), high)


ONE, TWO = s.constant(1), s.linear(2)


@given(schedules())
@example(ONE + TWO + ONE | TWO & ONE)
@example((ONE | TWO) + ONE)
@example((ONE & TWO) + (ONE | TWO))
@example(ONE + (TWO + ONE))
@example((ONE + TWO) * 2 + TWO * 3)
@example((ONE * 2 * 3).cap(1).take(2).then((ONE | TWO).full_jitter()))
def test_prints_as_the_expression_that_builds_it(schedule):
    """`repr` evaluates back to an equal value."""
    assert eval(repr(schedule), dict(vars(s))) == schedule  # noqa: S307  a repr is for that


@given(schedules())
def test_is_the_same_after_writing_and_reading_its_text(schedule):
    assert schedule_from_data(schedule_to_text(schedule)) == schedule


@given(schedules())
def test_copies_are_equal_values(schedule):
    """Schedules compare by value, pickle, and hash."""
    stored = pickle.dumps(schedule)
    again = pickle.loads(stored)  # noqa: S301  written in the line above
    for other in (again, copy.copy(schedule), copy.deepcopy(schedule)):
        assert other == schedule
        assert hash(other) == hash(schedule)


@given(schedules(), schedules())
def test_equal_values_print_alike_and_others_do_not(one, other):
    # 0.0 and -0.0 are equal and print apart; nothing drawn here is negative.
    assert (one == other) == (repr(one) == repr(other))


@given(schedules(), retries(), retries(), seeds())
def test_an_ended_schedule_stays_ended(schedule, one, other, seed):
    early, late = sorted([one, other])
    if schedule.bounds(early) is None:
        assert schedule.bounds(late) is None
        assert schedule.delay(late, 1.0, call_random(seed=seed, retry=late)) is None


@given(schedules(), retries(), seeds())
def test_without_jitter_there_is_nothing_to_draw(schedule, retry, seed):
    plain = schedule.without_jitter()
    low, high = span(retry, plain)
    assert low == high == plain.delay(retry, None, call_random(seed=seed, retry=retry))
    assert plain.without_jitter() == plain


@given(schedules(), seeds())
def test_the_same_seed_draws_the_same_delays(schedule, seed):
    """Same seed, same delays."""
    once, twice = (list(islice(schedule.draw(seed), 20)) for _ in range(2))
    assert once == twice


@given(schedules(), retries())
def test_asking_changes_nothing(schedule, retry):
    before, text = copy.deepcopy(schedule), repr(schedule)
    answers = [schedule.bounds(asked) for asked in (retry, 1, retry)]
    assert answers[0] == answers[2]
    assert (schedule, repr(schedule)) == (before, text)


def test_schedules_are_values():
    assert s.constant(2) == s.constant("2s")
    assert s.constant(2) != s.linear(2)
    assert s.exponential(1) != s.exponential(1, factor=3)
    assert {s.constant(2).cap(1): "found"}[s.constant("2s").cap("1s")] == "found"


def test_a_schedule_cannot_be_changed():
    schedule = s.constant(2)
    with pytest.raises(AttributeError):
        schedule.wait = 3
    with pytest.raises(AttributeError):
        del schedule.wait
    assert schedule == s.constant(2)


JITTERED = {
    "full": s.constant(9).full_jitter(),
    "equal": s.constant(9).equal_jitter(),
    "proportional": s.constant(9).jitter(0.1),
    "decorrelated": s.decorrelated(9),
    "google": s.google_interval(900, max_interval=900),
    "polly": s.polly_interval(900),
    "within a sum": s.constant(9) + s.constant(1).full_jitter(),
    "after a switch": s.constant(9).switch(after=1, to=s.linear(9).full_jitter()),
}


@pytest.mark.parametrize("schedule", JITTERED.values(), ids=JITTERED)
def test_different_seeds_draw_different_delays(schedule):
    calls = {tuple(islice(schedule.draw(seed), 3)) for seed in range(1000)}
    assert len(calls) == 1000


@pytest.mark.parametrize("schedule", JITTERED.values(), ids=JITTERED)
def test_without_a_seed_every_draw_is_another(schedule):
    calls = {tuple(islice(schedule.draw(), 3)) for _ in range(100)}
    assert len(calls) == 100


ZERO = [s.constant, s.linear, s.fibonacci, s.decorrelated, s.polly_interval]


@pytest.mark.parametrize("make", ZERO, ids=lambda make: make.__name__)
@pytest.mark.parametrize("retry", [1, 2, 1024, 10**6])
def test_a_first_delay_of_zero_stays_zero(make, retry):
    """No zero becomes NaN, and none the longest delay."""
    assert make(0).bounds(retry) == (0.0, 0.0)
    assert make(0).delay(retry, 5.0, call_random(seed=7, retry=retry)) == 0.0


@pytest.mark.parametrize("retry", [1, 2, 1024, 10**6])
def test_no_factor_makes_a_delay_of_zero(retry):
    assert s.exponential(0, factor=1e308).bounds(retry) == (0.0, 0.0)
    assert s.polynomial(1e308, first=0).bounds(retry) == (0.0, 0.0)
