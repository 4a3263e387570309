"""Exact means, checked by hand, by counting and by sampling."""

import math
from fractions import Fraction
from itertools import islice

import pytest
from hypothesis import example, given

from retrykit import schedules as s
from retrykit.analysis.preview._delay_distributions import delay_distributions
from retrykit.analysis.preview._distributions import (
    Distribution,
    clamp,
    mixture,
    point,
    round_down,
    saturating_sum,
)
from retrykit.schedules._randomized import MAX_INTERVAL
from retrykit.schedules._randomness import MAX_DELAY
from retrykit.testing.strategies import durations, schedules

# Uniform from 0 to 4, from 0 to 2, and from 1 to 3.
FOUR = s.constant(4).full_jitter()
TWO = s.constant(2).full_jitter()
THREE = s.constant(2).jitter(0.5)
DICE = FOUR.round_down(1)  # 0, 1, 2 or 3, equally likely
WALK = s.decorrelated(1)
LONG = s.constant(1000).full_jitter()  # too many steps of a second to be listed


class CustomSchedule(s.Schedule):
    """A schedule of unknown distribution."""

    def delay(self, retry, _previous, random, /):
        return random.random()

    def bounds(self, retry, /):
        return 0.0, 1.0


WORKED_OUT = {
    "constant": (s.constant(4), [4, 4]),
    "linear": (s.linear(4), [4, 8]),
    "full jitter": (FOUR, [2, 2]),
    "equal jitter": (s.constant(4).equal_jitter(), [3, 3]),
    "jitter": (s.exponential(4).jitter(0.5), [4, 8]),
    "uniform": (s.uniform(1, 4), [2.5, 2.5]),
    "cap of a uniform delay": (s.uniform(1, 5).cap(3), [0.5 * 2 + 0.5 * 3]),
    "scale": (FOUR * 3, [6]),
    "cap of a jittered delay": (FOUR.cap(3), [0.75 * 1.5 + 0.25 * 3]),
    "cap beyond it": (FOUR.cap(5), [2]),
    "at_least of a jittered delay": (FOUR.at_least(1), [0.25 * 1 + 0.75 * 2.5]),
    "intersection": (FOUR.at_least(1).cap(3), [0.25 * 1 + 0.5 * 2 + 0.25 * 3]),
    "round_down of a jittered delay": (DICE, [1.5]),
    "round_down with a last part": (
        s.constant(2.5).full_jitter().round_down(1),
        [(0 + 1 + 2 * 0.5) / 2.5],
    ),
    "round_down with a first part": (
        s.constant(2).jitter(0.75).round_down(1),
        [(0 * 0.5 + 1 + 2 + 3 * 0.5) / 3],
    ),
    "round_down within one step": (s.constant(7).jitter(0.1).round_down(6), [6]),
    "round_down of many steps": (LONG.round_down(1), [499.5]),
    "round_down of the round_down": (DICE.round_down(2), [1]),
    "round_down and a cap": (DICE.cap(1), [0.75]),
    "round_down and a cap of many steps": (LONG.round_down(1).cap(9), [None]),
    "round_down of a cap": (FOUR.cap(2.5).round_down(1), [(0 + 1 + 2 * 2) / 4]),
    "round_down of what is too many steps": (FOUR.round_down(1e-16), [None]),
    "jitter of a jittered delay": (s.constant(8).equal_jitter().jitter(0.5), [6]),
    "times and jitter of a jittered delay": ((FOUR * 2).full_jitter() * 2, [4]),
    "round_down of a jitter of a jittered delay": (
        FOUR.full_jitter().round_down(1),
        [None],
    ),
    "cap of a jitter of a jittered delay": (FOUR.full_jitter().cap(3), [None]),
    "cap beyond a jitter of a jittered delay": (FOUR.full_jitter().cap(4), [1]),
    "jitter of few delays": (DICE.full_jitter().cap(1), [25 / 48]),
    "sum": (s.linear(1) + FOUR, [3, 4, 5]),
    "plus from the other side": (FOUR + s.linear(1), [3, 4, 5]),
    "plus of two jittered delays": (FOUR + TWO, [3]),
    "plus of a nested and a fixed one": (FOUR.full_jitter() + s.constant(1), [2]),
    "plus, capped": ((s.constant(1) + FOUR).cap(3), [0.5 * 2 + 0.5 * 3]),
    "plus of two jittered delays, capped": ((FOUR + TWO).cap(3), [None]),
    "| of two jittered delays": (TWO | THREE, [23 / 24]),
    "& of two jittered delays": (TWO & THREE, [49 / 24]),
    "| of the same": (TWO | TWO, [2 / 3]),
    "& of the same": (TWO & TWO, [4 / 3]),
    "| of what is never short": (THREE | THREE, [5 / 3]),
    "& of what is never short": (THREE & THREE, [7 / 3]),
    "| of what does not meet": (
        s.constant(1).full_jitter() | TWO + s.constant(2),
        [0.5],
    ),
    "| from the other side": (TWO + s.constant(2) | s.constant(1).full_jitter(), [0.5]),
    "& of what does not meet": (s.constant(1).full_jitter() & TWO + s.constant(2), [3]),
    "& from the other side": (TWO + s.constant(2) & s.constant(1).full_jitter(), [3]),
    "| with a fixed one": (FOUR | s.constant(3), [1.875]),
    "| of a fixed one": (s.constant(3) | FOUR, [1.875]),
    "& with a fixed one": (FOUR & s.constant(1), [2.125]),
    "& of a fixed one": (s.constant(1) & FOUR, [2.125]),
    "| of steps": (DICE | DICE, [14 / 16]),
    "& of steps": (DICE & DICE, [3 - 14 / 16]),
    "| of a nested one": (FOUR.full_jitter() | TWO, [None]),
    "& of a nested one": (FOUR.full_jitter() & TWO, [None]),
    "| that one leaves": (FOUR.take(1) | TWO, [5 / 6, 1]),
    "| that the other leaves": (TWO | FOUR.take(1), [5 / 6, 1]),
    "take": (FOUR.take(2), [2, 2]),
    "within": (FOUR.within(10), [2, 2]),
    "then": (s.constant(9).take(1).then(FOUR), [9, 2, 2]),
    "then a walk": (FOUR.take(1).then(WALK), [2, 2, 3.5]),
    "a walk, and then": (WALK.take(2).then(FOUR), [2, 3.5, 2]),
    "switch": (s.linear(9).switch(after=1, to=s.linear(4).full_jitter()), [9, 4, 6]),
    "switch to a walk": (FOUR.switch(after=1, to=WALK), [2, 3.5]),
    "walk": (WALK, [2, 3.5, 5.75, 9.125]),
    "walk without growth": (s.decorrelated(2, factor=1), [2, 2]),
    "walk of half the delay": (WALK * 0.5, [1, 0.5 * (1 + 3 * 1.125) / 2]),
    "walk of twice the delay": (
        s.decorrelated(1, factor=1.5) * 2,
        [2.5, 2 * (1 + 2.25) / 2],
    ),
    "walk that a cap holds back": (WALK.cap(2) * 1, [1.75, None]),
    "capped walk": (WALK.cap(2), [0.5 * 1.5 + 0.5 * 2, None, None]),
    "walk with a cap far away": (WALK.cap(9), [2, 3.5, None]),
    "walk and a fixed one": (WALK + s.constant(0), [2, 3.5, 5.75]),
    "one's own": (CustomSchedule(), [None, None]),
    "of one's own": (CustomSchedule().full_jitter(), [None]),
    "with one's own": (CustomSchedule() + FOUR, [None]),
    "smaller than one's own": (CustomSchedule() | FOUR, [None]),
    "larger than one's own": (FOUR & CustomSchedule(), [None]),
    "one's own, and then": (CustomSchedule().take(1).then(WALK), [None, 2, 3.5]),
    "one's own, and a walk": (CustomSchedule().switch(after=1, to=WALK), [None, None]),
}


@pytest.mark.parametrize(("schedule", "means"), WORKED_OUT.values(), ids=WORKED_OUT)
def test_means_are_those_calculated_by_hand(schedule, means):
    found = [
        spread and spread.mean
        for spread in islice(delay_distributions(schedule), len(means))
    ]
    assert [mean is None for mean in found] == [mean is None for mean in means]
    known = [mean for mean in means if mean is not None]
    assert [mean for mean in found if mean is not None] == pytest.approx(known)


def test_a_finite_schedule_has_as_many_distributions():
    assert len(list(delay_distributions(FOUR.take(3)))) == 3
    assert list(delay_distributions(s.sequence([]))) == []
    assert len(list(delay_distributions(FOUR.within(10)))) == 2


def mean_by_counting(interval, part):
    """Return the mean over all whole milliseconds of a draw."""
    delta = Fraction(part) * interval
    low, high = interval - delta, interval + delta + 1
    shares = {
        step: min(high, step + 1) - max(low, step)
        for step in range(math.floor(low), math.ceil(high))
    }
    assert sum(shares.values()) == 2 * delta + 1
    return float(sum(ms * share for ms, share in shares.items()) / (high - low) / 1000)


@pytest.mark.parametrize("part", [0.0, 0.01, 0.3, 0.5, 0.99], ids=str)
@pytest.mark.parametrize("first", [0.001, 0.007, 0.05, 0.5, 2.0], ids=str)
def test_google_interval_has_the_mean_of_its_milliseconds(first, part):
    schedule = s.google_interval(first, randomization_factor=part)
    for retry, spread in enumerate(islice(delay_distributions(schedule), 5), 1):
        interval = round(schedule.without_jitter().bounds(retry)[0] * 1000)
        assert spread.mean == pytest.approx(mean_by_counting(interval, part), rel=1e-9)
        low, high = schedule.bounds(retry)
        assert low <= spread.mean <= high


def test_a_few_milliseconds_are_a_discrete_distribution():
    few = s.google_interval(0.002, randomization_factor=0.5)
    # 1, 2 and 3 ms: the draw is uniform from 1 to 4.
    assert next(delay_distributions(few.cap(0.002))).mean == pytest.approx(0.005 / 3)
    many = s.google_interval(60)
    assert next(delay_distributions(many.cap(40))) is None


def test_the_mean_of_google_interval_counts_the_longest_delay_of_the_original():
    longest = MAX_INTERVAL
    schedule = s.google_interval(longest, max_interval=longest)
    # Half of the draws are shorter, by a quarter in the mean.
    spread = next(delay_distributions(schedule))
    assert spread.mean == pytest.approx(longest * 7 / 8)
    assert spread.high == longest


def reachable(schedule):
    return schedule.cap("1h")


def assert_is_the_mean(mean, sample, width):
    """Six standard errors, plus the weight of draws too rare to occur."""
    count = len(sample)
    found = math.fsum(sample) / count
    error = math.hypot(*(x - found for x in sample)) / count
    # The smallest float has no half.
    tolerance = 6 * error + 8 * width / count + math.ulp(0.0)
    assert mean == pytest.approx(found, abs=tolerance, rel=1e-9)


MANY = 300


@given(schedules().map(reachable))
@example((FOUR & TWO + s.constant(1)).round_down(0.5))
@example((WALK * 0.5 + s.constant(1)).cap(50))
@example(s.decorrelated(0.5).cap(5).at_least(1))
@example(s.constant(5e-324).full_jitter())
def test_a_mean_is_near_that_of_many_samples(schedule):
    known = list(islice(delay_distributions(schedule), 4))
    drawn = [list(islice(schedule.draw(seed), len(known))) for seed in range(MANY)]
    for spread, sample in zip(known, zip(*drawn, strict=True), strict=True):
        if spread is not None:
            width = spread.high - spread.low
            assert_is_the_mean(spread.mean, sample, width)
            assert max(sample) <= spread.high + 1e-9 * width + 1e-12
            assert min(sample) >= spread.low - 1e-9 * width - 1e-12


@given(schedules() | schedules().map(reachable))
@example(s.constant(MAX_DELAY) + s.constant(MAX_DELAY).full_jitter())
@example(s.constant(MAX_DELAY).full_jitter() * 2)
@example(s.decorrelated(1e308))
@example(s.decorrelated(1e306, factor=1.5))
@example(s.constant(1).jitter(1.2e-16).round_down(3))
@example(s.constant(0.3).jitter(1e-9).round_down(0.1))
@example(s.constant(1e-323).full_jitter().at_least(5e-324))
@example((s.constant(1e-323).full_jitter() | s.constant(5e-324)).at_least(5e-324))
@example((s.constant(1e307).full_jitter() & s.constant(1e307).jitter(0.5)) * 0.9)
def test_every_mean_lies_within_the_bounds_of_its_delay(schedule):
    for retry, spread in enumerate(islice(delay_distributions(schedule), 20), 1):
        low, high = schedule.bounds(retry)
        if spread is not None:
            assert low <= spread.mean <= high
            assert low <= spread.low <= spread.high <= high
            assert math.isfinite(spread.mean)
        if low == high:
            assert spread == point(low)


@given(schedules())
def test_the_weights_of_a_mixture_add_up_to_one(schedule):
    for spread in islice(delay_distributions(schedule), 10):
        if spread is not None and spread.pieces is not None:
            assert math.fsum(share for share, *_ in spread.pieces) == pytest.approx(1)
            assert all(a <= b for _, a, b in spread.pieces)


def test_saturated_delays_have_no_exact_mean():
    assert next(delay_distributions(s.constant(MAX_DELAY).full_jitter())) is None
    assert next(delay_distributions(s.constant(MAX_DELAY))) == point(MAX_DELAY)
    assert (
        next(delay_distributions(s.constant(MAX_DELAY / 17).full_jitter())) is not None
    )
    # The earlier cut is no longer known.
    assert (
        next(delay_distributions((s.constant(MAX_DELAY).full_jitter() * 2).cap(5)))
        is None
    )


def test_a_delay_clamped_to_one_number_is_that_number():
    even = mixture([(1.0, 2.0, 4.0)])
    assert clamp(even, 5.0, 9.0) == Distribution(5.0, 5.0, 5.0, ((1.0, 5.0, 5.0),))
    assert clamp(even, 0.0, 1.0) == Distribution(1.0, 1.0, 1.0, ((1.0, 1.0, 1.0),))
    assert clamp(even, 2.0, 4.0) is even
    assert clamp(point(3.0), 0.0, 1.0).mean == 1.0


@given(durations(0.001, 1e6), durations(0.001, 1e6))
def test_a_stepped_distribution_has_the_mean_of_its_steps(width, unit):
    low = width / 3
    found = round_down(mixture([(1.0, low, low + width)]), unit)
    if found.pieces is not None:
        assert all(a == b for _, a, b in found.pieces)
        assert mixture(found.pieces).mean == pytest.approx(found.mean, abs=1e-9 * unit)


def test_the_bounds_of_a_rounded_distribution_are_rounded():
    found = round_down(mixture([(1.0, 1.5, 3.5)]), 1.0)
    assert (found.low, found.high) == (1.0, 3.0)


def test_a_width_lost_to_rounding_is_zero():
    low, unit = 5e-324, 4.0
    assert round_down(mixture([(1.0, low, 2 * low)]), unit).mean == 0.0


def test_sums_of_delays_saturate():
    assert saturating_sum([0.1] * 10) == 1.0
    assert saturating_sum([]) == 0.0
    assert saturating_sum([MAX_DELAY, MAX_DELAY]) == MAX_DELAY
