"""Total delay of calls: textbook formulas and samples."""

import math
from fractions import Fraction
from itertools import islice, pairwise

import pytest
from hypothesis import example, given, strategies as st

from retrykit import Policy, schedules as s
from retrykit.analysis.preview import preview
from retrykit.analysis.preview._projection import project
from retrykit.analysis.preview._total_wait import (
    estimate_mean,
    sample_calls,
    sampled_total_wait,
)
from retrykit.schedules._randomness import MAX_DELAY

SHARES = [0.05, 0.25, 0.5, 0.75, 0.95, 0.99]


def window_of(schedule, retries, **changes):
    policy = Policy(schedule=schedule, max_attempts=retries + 1)
    return preview(policy.replace(**changes)).total_wait


def values(window):
    assert [quantile.probability for quantile in window.quantiles] == SHARES
    return [quantile.value for quantile in window.quantiles]


def at_most(total, count):
    """The share of sums of so many numbers from 0 to 1 that a total exceeds.

    By Irwin and Hall, in exact fractions.
    """
    terms = (
        (-1) ** k * math.comb(count, k) * (Fraction(total) - k) ** count
        for k in range(math.floor(total) + 1)
    )
    return sum(terms) / math.factorial(count)


ONE_SECOND = s.constant(1).full_jitter()


def test_without_jitter_every_quantile_is_the_sum():
    window = window_of(s.linear(1), 4)
    assert values(window) == [10.0] * 6
    assert {quantile.error for quantile in window.quantiles} == {0.0}
    figures = (window.mean, window.error, window.attempts, window.attempts_error)
    assert figures == (10.0, 0.0, 5.0, 0.0)
    assert window.samples == 0


def test_without_delays_every_quantile_is_zero():
    window = window_of(ONE_SECOND, 0)
    assert values(window) == [0.0] * 6
    assert (window.mean, window.attempts, window.samples) == (0.0, 1.0, 0)


def test_one_jittered_delay_is_uniform():
    window = window_of(s.constant(8).jitter(0.5), 1)
    assert values(window) == pytest.approx([4 + 8 * share for share in SHARES])
    assert (window.mean, window.samples) == (8.0, 0)


def test_two_equal_jittered_delays_have_a_triangular_distribution():
    window = window_of(s.constant(3).full_jitter(), 2)
    expected = [
        3 * math.sqrt(2 * p) if p <= 0.5 else 6 - 3 * math.sqrt(2 * (1 - p))
        for p in SHARES
    ]
    assert values(window) == pytest.approx(expected, rel=1e-12)


def test_two_different_jittered_delays_have_a_trapezoidal_distribution():
    window = window_of(s.sequence([1, 3]).full_jitter(), 2)
    expected = [math.sqrt(6 * 0.05), 1.25, 2.0, 2.75, 4 - math.sqrt(6 * 0.05)]
    assert values(window)[:5] == pytest.approx(expected, rel=1e-12)
    assert window.mean == 2.0


@pytest.mark.parametrize("count", [1, 2, 3, 8], ids=str)
def test_many_equal_jittered_delays_have_an_irwin_hall_distribution(count):
    window = window_of(ONE_SECOND, count)
    shares = [float(at_most(value, count)) for value in values(window)]
    assert shares == pytest.approx(SHARES, rel=1e-12)
    assert window.mean == count / 2
    assert (window.samples, window.attempts) == (0, count + 1)


def test_a_delay_without_jitter_shifts_the_distribution():
    jittered = window_of(s.sequence([5, 9]).full_jitter(), 2)
    moved = window_of(s.sequence([5, 9]).full_jitter().then(s.constant(7)), 3)
    expected = [value + 7 for value in values(jittered)]
    assert values(moved) == pytest.approx(expected, rel=1e-12)


def test_eight_different_delays_have_the_quantiles_of_a_large_sample():
    schedule = s.exponential(0.5, factor=1.4).jitter(0.75)
    count = 20_000
    totals = sorted(math.fsum(islice(schedule.draw(seed), 8)) for seed in range(count))
    window = window_of(schedule, 8)
    assert window.samples == 0
    for quantile in window.quantiles:
        below = sum(total <= quantile.value for total in totals) / count
        error = math.sqrt(quantile.probability * (1 - quantile.probability) / count)
        assert below == pytest.approx(quantile.probability, abs=4 * error)


@given(st.lists(st.just(0.0) | st.floats(0.001, 1e9), max_size=8))
@example([1e300, 1e-300, 1.0])
def test_a_larger_quantile_is_longer(delays):
    window = window_of(s.sequence(delays).full_jitter(), len(delays))
    assert all(a <= b for a, b in pairwise(values(window)))
    assert values(window)[0] >= 0.0
    assert values(window)[-1] <= math.fsum(delays)
    # Symmetrical: half of all sums are below the mean.
    assert values(window)[2] == pytest.approx(window.mean, rel=1e-12)
    assert window.mean == pytest.approx(math.fsum(delays) / 2)
    assert window.samples == 0


def exact_quantile(share, count):
    low, high = 0.0, float(count)
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if at_most(middle, count) < share else (low, middle)
    return high


NINE = [exact_quantile(share, 9) for share in SHARES]


def test_nine_jittered_delays_are_sampled():
    window = window_of(ONE_SECOND, 9)
    assert window.samples == 2000
    assert window.attempts == 10.0
    assert window.attempts_error == 0.0
    for quantile, exact in zip(window.quantiles, NINE, strict=True):
        assert 0 < quantile.error < 0.3
        assert abs(quantile.value - exact) <= quantile.error
    # The mean is exact, since the means of the delays are known.
    assert (window.mean, window.error) == (4.5, 0.0)


def test_the_quantiles_are_those_of_the_sampled_calls():
    window = window_of(ONE_SECOND, 9, seed=7)
    totals = sorted(
        math.fsum(islice(ONE_SECOND.draw(7 + number), 9)) for number in range(2000)
    )
    assert values(window) == [totals[round(share * 2001) - 1] for share in SHARES]


def test_every_run_has_the_same_numbers():
    policy = Policy(schedule=ONE_SECOND, max_attempts=10)
    assert preview(policy) == preview(policy)
    assert preview(policy) != preview(policy.replace(seed=1))
    assert preview(policy).total_wait == preview(policy.replace(seed=0)).total_wait


@pytest.mark.needs("speed")
@pytest.mark.thorough
def test_an_error_is_a_95_percent_interval():
    """A true 95 % interval has fewer than 181 of 200 hits once in 200 runs."""
    covered = dict.fromkeys(SHARES, 0)
    for turn in range(200):
        policy = Policy(schedule=ONE_SECOND, max_attempts=10, seed=turn * 1000)
        for quantile, exact in zip(
            preview(policy, samples=150).total_wait.quantiles, NINE, strict=True
        ):
            covered[quantile.probability] += (
                abs(quantile.value - exact) <= quantile.error
            )
    assert all(count >= 181 for count in covered.values()), covered
    # Symmetrical about its value, it is slightly too wide for some.
    assert covered[0.5] < 200


def test_the_error_of_a_mean_is_a_95_percent_interval():
    covered = 0
    for turn in range(200):
        draws = [next(ONE_SECOND.draw(turn * 1000 + number)) for number in range(100)]
        mean, error = estimate_mean(draws, 1.0)
        assert mean == pytest.approx(math.fsum(draws) / 100)
        covered += abs(mean - 0.5) <= error
    assert 181 <= covered < 200


def test_estimates_the_mean_and_its_error():
    assert estimate_mean([1.0, 3.0], 9.0) == pytest.approx((2.0, 1.959964))
    assert estimate_mean([4.0] * 5, 9.0) == (4.0, 0.0)
    assert estimate_mean([4.0], 9.0) == (4.0, 9.0)
    assert estimate_mean([5e-324] * 3, 9.0) == (5e-324, 0.0)
    mean, error = estimate_mean([0.0, MAX_DELAY], 9.0)
    assert mean == MAX_DELAY / 2
    assert math.isfinite(error)


def test_a_small_sample_has_a_large_error():
    window = sampled_total_wait([[2.0, 1.0]], 8.0, 2)
    assert values(window) == [3.0] * 6
    assert [quantile.error for quantile in window.quantiles] == [3, 3, 5, 5, 5, 5]
    assert (window.mean, window.error) == (3.0, 8.0)
    assert (window.attempts, window.attempts_error, window.samples) == (3.0, 2.0, 1)


def test_calls_ended_by_a_limit_are_sampled():
    policy = Policy(schedule=s.constant(4).jitter(0.5), max_elapsed=10)
    window = preview(policy).total_wait
    pairs = []
    for seed in range(2000):
        total, calls = 0.0, 1
        for delay in policy.schedule.draw(seed):
            if total + delay > 10:
                break
            total, calls = total + delay, calls + 1
        pairs.append((total, calls))
    totals, calls = zip(*pairs, strict=True)
    assert values(window)[2] == pytest.approx(sorted(totals)[999])
    assert (window.mean, window.error) == pytest.approx(estimate_mean(totals, 10))
    assert (window.attempts, window.attempts_error) == pytest.approx(
        estimate_mean(calls, 10)
    )
    assert window.samples == 2000


def test_clipped_calls_are_sampled():
    """All make three calls, but limits shorten some delays."""
    clipped = {"max_attempts": 3, "max_elapsed": 10, "deadline": "clip"}
    policy = Policy(schedule=s.constant(4).jitter(0.5), **clipped)
    assert preview(policy).end.min_retries == preview(policy).end.max_retries == 2
    window = preview(policy).total_wait
    assert window.samples == 2000
    assert values(window)[-1] == 10.0
    assert preview(policy.replace(max_elapsed=12)).total_wait.samples == 0


def test_figures_without_a_formula_are_none_without_samples():
    policy = Policy(schedule=ONE_SECOND, max_attempts=10)
    assert preview(policy, samples=0).total_wait is None
    assert preview(policy.replace(max_attempts=9), samples=0).total_wait is not None


def test_total_waits_saturate():
    longest = s.constant(MAX_DELAY)
    assert values(window_of(longest, 3)) == [MAX_DELAY] * 6
    assert values(window_of(longest.full_jitter(), 3))[-1] == MAX_DELAY
    jittered = longest.take(1).then(s.constant(1e307).full_jitter())
    assert values(window_of(jittered, 2)) == [MAX_DELAY] * 6
    mixed = s.sequence([MAX_DELAY, MAX_DELAY, 1]) + ONE_SECOND.round_down(0.5)
    assert window_of(mixed, 3).mean == MAX_DELAY


@pytest.mark.parametrize("seed", [0, 7, 2**53 - 1])
@pytest.mark.parametrize(
    "schedule",
    [
        s.exponential(1, factor=2).full_jitter(),
        s.constant(15) + s.polynomial(4, first=1) + s.linear(30).full_jitter(),
        s.constant(3),
    ],
)
def test_independent_delays_are_sampled_together_as_they_are_drawn(schedule, seed):
    policy = Policy(schedule=schedule, max_attempts=13, seed=seed)
    distributions = project(policy, 0.0, 99).distributions
    one_by_one = sample_calls(policy, 12, 150)
    together = sample_calls(policy, 12, 150, independent=distributions)
    for drawn, sampled in zip(one_by_one, together, strict=True):
        assert sampled == pytest.approx([*drawn], rel=1e-12)


def test_other_delays_are_sampled_one_by_one():
    policy = Policy(schedule=s.decorrelated(1), max_attempts=4, seed=7)
    calls = sample_calls(policy, 3, 2, independent=(None, None, None))
    assert [[*call] for call in calls] == [
        [*islice(policy.schedule.draw(seed), 3)] for seed in (7, 8)
    ]
