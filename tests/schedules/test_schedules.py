"""Properties of every schedule."""

import copy
import math
import pickle
from itertools import islice

import pytest
from hypothesis import example, given, strategies as st

from retrykit import schedules as s
from retrykit.schedules._parsing import schedule_from_data, schedule_to_text
from retrykit.schedules._randomness import MAX_DELAY, call_random
from retrykit.testing.strategies import durations, schedules, seeds
from tests._support.exports import exports_of
from tests._support.random_sources import FixedRandom, SequenceRandom

ALMOST_ONE = math.nextafter(1.0, 0.0)


def first_retries():
    usual = st.integers(1, 30) | st.integers(1, 2000)
    return usual | st.sampled_from([1024, 1025, 10**6])


def span(retry, schedule):
    return schedule.bounds(retry) or (None, None)


@given(schedules(), first_retries(), st.none() | durations(), seeds())
@example(s.decorrelated(0), 2, 5.0, 0)
@example(s.decorrelated(1) + s.constant(5), 3, 500.0, 7)
@example(s.decorrelated(1) * 0.01, 3, 0.01, 7)
def test_a_drawn_delay_never_leaves_its_bounds(schedule, retry, previous, seed):
    """Whatever the previous delay was."""
    delay = schedule.delay(retry, previous, call_random(seed=seed, retry=retry))
    low, high = span(retry, schedule)
    assert (delay, low, high) == (None, None, None) or low <= delay <= high


@given(schedules(), seeds())
def test_no_delay_of_a_call_leaves_its_bounds(schedule, seed):
    """And the call has as many delays as there are bounds."""
    drawn = [*islice(schedule.draw(seed), 60), None]
    for retry, delay in enumerate(drawn[:60], 1):
        low, high = span(retry, schedule)
        assert (delay, low, high) == (None, None, None) or low <= delay <= high


@given(schedules(), first_retries())
@example(s.constant(MAX_DELAY).round_down(MAX_DELAY / 3), 1)
@example(s.constant(MAX_DELAY) * 2, 1)
@example(s.constant(MAX_DELAY).jitter(0.5), 1)
@example(s.constant(MAX_DELAY) + s.constant(MAX_DELAY).jitter(1), 1)
def test_bounds_are_finite_and_ordered_for_every_retry(schedule, retry):
    """Nothing overflows or turns into NaN at retry 1, 1024, 10**6."""
    for number in (1, retry, 1024, 10**6):
        bounds = schedule.bounds(number)
        assert bounds is None or 0.0 <= bounds[0] <= bounds[1] < math.inf


@given(schedules(correlated=False, rounding=False), first_retries())
def test_extreme_random_numbers_reach_the_bounds(schedule, retry):
    """Bounds are exact."""
    low, high = span(retry, schedule)
    assert schedule.delay(retry, None, FixedRandom(0.0)) == low
    longest = schedule.delay(retry, None, FixedRandom(ALMOST_ONE))
    assert longest == high is None or math.isclose(longest, high)


@given(st.floats(0.001, 1e6), st.floats(1, 10), st.integers(1, 60))
def test_extreme_random_numbers_reach_the_bounds_of_a_walk(first, factor, retry):
    def last(chance):
        previous = None
        for number in range(1, retry + 1):
            previous = walk.delay(number, previous, chance)
        return previous

    walk = s.decorrelated(first, factor=factor)
    low, high = walk.bounds(retry)
    assert last(FixedRandom(0.0)) == low == first
    assert math.isclose(last(FixedRandom(ALMOST_ONE)), high)


ONE, TWO = s.constant(1), s.linear(2)


@given(schedules())
@example(ONE + TWO + ONE | TWO & ONE)
@example((ONE | TWO) + ONE)
@example((ONE & TWO) + (ONE | TWO))
@example(ONE + (TWO + ONE))
@example((ONE + TWO) * 2 + TWO * 3)
@example((ONE * 2 * 3).cap(1).take(2).then((ONE | TWO).full_jitter()))
def test_its_repr_is_the_expression_that_builds_it(schedule):
    """`repr` evaluates back to an equal value."""
    assert eval(repr(schedule), exports_of(s)) == schedule  # noqa: S307  under test


@given(schedules())
def test_survives_being_written_and_read_as_a_string(schedule):
    assert schedule_from_data(schedule_to_text(schedule)) == schedule


@given(schedules())
def test_copies_are_equal_values(schedule):
    """Schedules compare by value, pickle, and hash."""
    stored = pickle.dumps(schedule)
    again = pickle.loads(stored)  # noqa: S301  pickled here
    for other in (again, copy.copy(schedule), copy.deepcopy(schedule)):
        assert other == schedule
        assert hash(other) == hash(schedule)


@given(schedules(), schedules())
def test_equal_schedules_have_the_same_repr_and_others_do_not(one, other):
    # 0.0 and -0.0 are equal and have different reprs; no value here is negative.
    assert (one == other) == (repr(one) == repr(other))


@given(schedules(), first_retries(), first_retries(), seeds())
def test_an_ended_schedule_stays_ended(schedule, one, other, seed):
    early, late = sorted([one, other])
    if schedule.bounds(early) is None:
        assert schedule.bounds(late) is None
        assert schedule.delay(late, 1.0, call_random(seed=seed, retry=late)) is None


@given(schedules(), first_retries(), seeds())
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


DRAWN_TO_THE_END = s.uniform(0, 1) & s.sequence([9, 9])


@given(
    schedules(),
    st.lists(st.integers(1, 60), min_size=1, max_size=8),
    st.none() | durations(),
    seeds(),
)
@example(DRAWN_TO_THE_END.then(s.uniform(10, 20)), [3, 3], None, 7)
@example(DRAWN_TO_THE_END.then(s.uniform(10, 20)), [5, 3, 9, 4], None, 7)
@example(DRAWN_TO_THE_END.then([1]).then(s.uniform(10, 20)) | [5], [4, 1, 4], 2.0, 7)
@example((DRAWN_TO_THE_END.then(s.polly_interval(1)) * 2).cap(9), [4, 3], 1.0, 7)
@example(s.uniform(0, 1) + DRAWN_TO_THE_END.then(s.decorrelated(1)), [4, 4], 1.0, 7)
def test_a_delay_does_not_depend_on_what_was_asked_before(
    schedule, retries, previous, seed
):
    """Same retry, same randomness, same delay: at each call, in any order."""

    numbers = [call_random(seed, retry).random() for retry in range(90)]

    def delays(known, retry):
        sources = call_random(seed, retry), SequenceRandom(*numbers[retry:])
        return [known.delay(retry, previous, each) for each in sources]

    first = [delays(copy.deepcopy(schedule), retry) for retry in retries]
    assert [delays(schedule, retry) for retry in retries] == first
    assert [schedule.bounds(retry) is None for retry in retries] == [
        None in each for each in first
    ]
    assert [delays(schedule, retry) for retry in reversed(retries)] == first[::-1]


@given(schedules(), first_retries())
def test_reading_delays_changes_nothing(schedule, retry):
    before, text = copy.deepcopy(schedule), repr(schedule)
    answers = [schedule.bounds(number) for number in (retry, 1, retry)]
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
    "uniform": s.uniform(1, 9),
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
def test_draws_differ_without_a_seed(schedule):
    calls = {tuple(islice(schedule.draw(), 3)) for _ in range(100)}
    assert len(calls) == 100


ZERO = [s.constant, s.linear, s.decay, s.fibonacci, s.decorrelated, s.polly_interval]


@pytest.mark.parametrize("make", ZERO, ids=lambda make: make.__name__)
@pytest.mark.parametrize("retry", [1, 2, 1024, 10**6])
def test_a_first_delay_of_zero_stays_zero(make, retry):
    """Neither NaN nor the longest delay."""
    assert make(0).bounds(retry) == (0.0, 0.0)
    assert make(0).delay(retry, 5.0, call_random(seed=7, retry=retry)) == 0.0


@pytest.mark.parametrize("retry", [1, 2, 1024, 10**6])
def test_no_factor_turns_a_positive_delay_into_zero(retry):
    assert s.exponential(0, factor=1e308).bounds(retry) == (0.0, 0.0)
    assert s.polynomial(1e308, first=0).bounds(retry) == (0.0, 0.0)
