"""polly_interval against the formula of Polly."""

import math
from itertools import accumulate, islice
from random import Random
from statistics import median

import pytest
from hypothesis import example, given, strategies as st

from retrykit import schedules as s
from retrykit.schedules._randomness import MAX_DELAY, call_random
from retrykit.testing.strategies import durations, seeds
from tests._support.random_sources import SequenceRandom


def polly_reference(first, chances):
    """The formula as its source states it, with the value kept between retries.

    pFactor is 4.0 and rpScalingFactor 1 / 1.4.
    """
    previous = 0.0
    for i, chance in enumerate(chances):
        t = i + chance
        following = 2**t * math.tanh(math.sqrt(4.0 * t))
        yield (following - previous) * (1 / 1.4) * first
        previous = following


@given(st.floats(0.001, 1e6), seeds(), st.integers(1, 40))
def test_polly_has_the_same_delays_for_the_same_random_numbers(first, seed, retries):
    chances = [
        call_random(seed=seed, retry=retry).random() for retry in range(1, retries + 1)
    ]
    found = list(islice(s.polly_interval(first).draw(seed), retries))
    expected = list(polly_reference(first, chances))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9 * first * 2**retries)


@given(seeds(), st.integers(1, 30))
def test_each_retry_lies_within_its_own_interval(seed, retry):
    """It does not depend on the earlier retries."""
    *_, time = accumulate(islice(s.polly_interval(1.4).draw(seed), retry))
    steps = [2**t * math.tanh(math.sqrt(4 * t)) for t in (retry - 1, retry)]
    assert steps[0] * (1 - 1e-9) - 1e-9 <= time <= steps[1] * (1 + 1e-9)


def test_polly_stays_within_the_limits_of_its_own_tests():
    """At most 4 times the first delay for try 1, and 2^(t+1) - 2^(t-1) for try t."""
    for seed in range(0, 1000, 7):
        drawn = islice(s.polly_interval(3).draw(seed), 6)
        for t, delay in enumerate(drawn, 1):
            factor = 4 if t < 2 else 2 ** (t + 1) - 2 ** (t - 1)
            assert 0 <= delay <= 3 * factor, seed


def test_the_medians_of_the_times_of_polly_are_near_to_1_2_4_and_8():
    """These are times of retries, not delays: 2x, 4x, 8x the first."""
    schedule = s.polly_interval("1s")
    calls = [accumulate(islice(schedule.draw(seed), 5)) for seed in range(2000)]
    found = [median(times) for times in zip(*calls, strict=True)]
    assert found == pytest.approx([1, 2, 4, 8, 16], rel=0.12)
    calm = accumulate(schedule.without_jitter().take(5).draw())
    assert list(calm) == [1, 2, 4, 8, 16]


@given(durations(0.001, 1e6), st.integers(2, 2000))
@example(1.0, 2)
@example(1.0, 10**6)
def test_extreme_random_numbers_reach_the_bounds_of_polly(first, retry):
    schedule = s.polly_interval(first)
    low, high = schedule.bounds(retry)
    assert schedule.delay(retry, None, SequenceRandom(1.0, 0.0)) == low == 0.0
    assert schedule.delay(retry, None, SequenceRandom(0.0, 1.0)) == high
    assert schedule.delay(1, None, SequenceRandom(0.0)) == schedule.bounds(1)[0]
    assert schedule.delay(1, None, SequenceRandom(1.0)) == schedule.bounds(1)[1]


@given(st.integers(0, 10**6), st.integers(1, 2000))
def test_any_random_source_draws_within_the_bounds(seed, retry):
    """A random source without previous draws is used for the previous retry, too."""
    schedule = s.polly_interval(5)
    low, high = schedule.bounds(retry)
    assert low <= schedule.delay(retry, None, Random(seed)) <= high  # noqa: S311


def test_polly_saturates_instead_of_overflowing():
    for retry in (1100, 10**6):
        assert s.polly_interval(1).bounds(retry) == (0.0, MAX_DELAY)


def test_a_part_of_another_schedule_repeats_its_previous_draw():
    """At the same position among the draws of the previous retry."""
    alone = s.polly_interval(1.4)
    beside = s.constant(0).full_jitter() + alone
    times = list(accumulate(islice(beside.draw(7), 10)))
    steps = [2**t * math.tanh(math.sqrt(4 * t)) for t in range(11)]
    assert all(steps[n] <= times[n] <= steps[n + 1] for n in range(10))
    assert times != list(accumulate(islice(alone.draw(7), 10)))
