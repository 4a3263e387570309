"""Every constructor of a schedule against its formula, calculated independently."""

import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import islice

import pytest
from hypothesis import example, given, strategies as st

from retrykit import schedules as s
from retrykit.schedules._randomness import MAX_DELAY
from retrykit.testing.strategies import durations
from tests._support.random_sources import FixedRandom

# Calculated by hand.
TABLES = {
    "constant": (s.constant(1.5), [1.5, 1.5, 1.5, 1.5]),
    "constant of zero": (s.constant(0), [0, 0, 0, 0]),
    "linear": (s.linear(0.5), [0.5, 1, 1.5, 2]),
    "linear from a first delay": (s.linear(2, first="1s"), [1, 3, 5, 7]),
    "linear from nothing": (s.linear("2s", first=0), [0, 2, 4, 6]),
    "linear, constant": (s.linear(0, first=3), [3, 3, 3, 3]),
    "linear, falling": (s.linear(-2, first=5), [5, 3, 1, 0, 0]),
    "linear, falling at once": (s.linear(timedelta(-1), first=5), [5, 0, 0, 0]),
    "exponential": (s.exponential(0.25), [0.25, 0.5, 1, 2]),
    "exponential by three": (s.exponential(1, factor=3), [1, 3, 9, 27]),
    "exponential by one": (s.exponential(7, factor=1), [7, 7, 7, 7]),
    "exponential, Google's": (
        s.exponential("500ms", factor=1.5),
        [0.5, 0.75, 1.125, 1.6875],
    ),
    "decay": (s.decay(8), [8, 8 / math.e, 8 / math.e**2, 8 / math.e**3]),
    "decay by halves": (s.decay("8s", rate=math.log(2)), [8, 4, 2, 1]),
    "decay by nothing": (s.decay(8, rate=0), [8, 8, 8, 8]),
    "decay to a minimum": (s.decay(8, rate=math.log(2)).at_least(3), [8, 4, 3, 3]),
    "polynomial": (s.polynomial(4), [1, 16, 81, 256]),
    "polynomial of nothing": (s.polynomial(0, first=3), [3, 3, 3, 3]),
    "polynomial of a half": (s.polynomial(0.5), [1, 2**0.5, 3**0.5, 2]),
    "polynomial in tens": (s.polynomial(2, first="10s"), [10, 40, 90, 160]),
    "fibonacci": (s.fibonacci(), [1, 1, 2, 3, 5, 8, 13, 21, 34, 55]),
    "fibonacci in halves": (s.fibonacci(0.5), [0.5, 0.5, 1, 1.5, 2.5]),
    "sequence": (s.sequence([9, "1m", timedelta(days=1)]), [9, 60, 86_400]),
    "google": (
        s.google_interval(randomization_factor=0),
        [0.5, 0.75, 1.125, 1.687, 2.53, 3.795, 5.692, 8.538, 12.807, 19.21],
    ),
    "google by one": (
        s.google_interval(0.1, randomization_factor=0, multiplier=1),
        [0.1] * 9,
    ),
    "google, stuck below two milliseconds": (
        s.google_interval(0.001, randomization_factor=0),
        [0.001] * 9,
    ),
}


@pytest.mark.parametrize(("schedule", "delays"), TABLES.values(), ids=TABLES)
def test_delays_are_those_of_the_formula(schedule, delays):
    assert list(islice(schedule.draw(), len(delays))) == pytest.approx(delays)
    bounds = [schedule.bounds(n) for n in range(1, len(delays) + 1)]
    assert bounds == [(pytest.approx(d), pytest.approx(d)) for d in delays]


def firsts():
    return st.floats(1e-6, 1e6)


def near(exact, bounds):
    """Compare the bounds of a delay without jitter with an exact fraction."""
    low, high = bounds
    return low == high and math.isclose(low, min(exact, Fraction(MAX_DELAY)))


@given(firsts(), st.integers(1, 10**6))
def test_linear_is_step_times_n(step, retry):
    assert near(Fraction(step) * retry, s.linear(step).bounds(retry))


@given(firsts(), st.floats(1, 10), st.integers(1, 250))
def test_exponential_is_first_times_a_power_of_the_factor(first, factor, retry):
    """``first * factor ** (n - 1)``"""
    exact = Fraction(first) * Fraction(factor) ** (retry - 1)
    assert near(exact, s.exponential(first, factor=factor).bounds(retry))


@given(firsts(), st.floats(0, 10), st.integers(1, 70))
def test_decay_is_first_times_a_power_of_e(first, rate, retry):
    """``first * e ** (-rate * (n - 1))``"""
    exact = Decimal(first) * (Decimal(rate) * (1 - retry)).exp()
    assert near(Fraction(exact), s.decay(first, rate=rate).bounds(retry))


@given(firsts(), st.floats(0, 10), durations(), st.integers(1, 2000))
def test_decay_has_the_delays_of_backoff(initial_value, decay_factor, minimum, retry):
    """``initial_value * math.e ** (-t * decay_factor)``, never below ``min_value``."""
    delay = initial_value * math.e ** (-(retry - 1) * decay_factor)
    schedule = s.decay(initial_value, rate=decay_factor)
    assert schedule.bounds(retry) == (delay, delay)
    longer = max(delay, minimum)
    assert schedule.at_least(minimum).bounds(retry) == (longer, longer)


@given(durations(), durations(at_least=1e-6))
def test_decay_never_increases_and_ends_at_zero(first, rate):
    schedule = s.decay(first, rate=rate)
    found = [schedule.bounds(retry)[0] for retry in (1, 2, 3, 50, 1000, 10**6, 10**12)]
    assert found[0] == first
    assert found == sorted(found, reverse=True)
    assert found[-1] == 0.0


@given(st.integers(0, 12), firsts(), st.integers(1, 10**6))
def test_polynomial_is_first_times_a_power_of_the_number(exponent, first, retry):
    """``first * n ** exponent``"""
    exact = Fraction(first) * retry**exponent
    assert near(exact, s.polynomial(exponent, first=first).bounds(retry))


@given(firsts(), st.integers(3, 1000))
def test_fibonacci_is_the_sum_of_the_last_two(first, retry):
    def delay(number):
        low, high = schedule.bounds(number)
        assert low == high
        return low

    schedule = s.fibonacci(first)
    before = delay(retry - 2) + delay(retry - 1)
    assert math.isclose(delay(retry), before)


@given(firsts(), st.floats(1, 10), st.integers(1, 250))
def test_decorrelated_has_bounds_of_first_and_the_longest_walk(first, factor, retry):
    low, high = s.decorrelated(first, factor=factor).bounds(retry)
    assert low == first
    assert near(Fraction(first) * Fraction(factor) ** retry, (high, high))


@given(durations(), durations(), st.floats(0, 1), st.integers(1, 10**6))
def test_uniform_draws_between_low_and_high(one, other, chance, retry):
    """``low + (high - low) * random``, as tenacity's `wait_random`."""
    low, high = sorted([one, other])
    schedule = s.uniform(low, high)
    assert schedule.bounds(retry) == (low, high)
    drawn = schedule.delay(retry, None, FixedRandom(chance))
    assert drawn == min(low + (high - low) * chance, high)
    assert low <= drawn <= high


@given(durations(), durations())
@example(5e-324, 5e-324)
@example(MAX_DELAY, MAX_DELAY)
def test_uniform_without_jitter_is_the_middle(one, other):
    low, high = sorted([one, other])
    middle, same = s.uniform(low, high).without_jitter().bounds(1)
    assert low <= middle == same <= high
    assert math.isclose(middle, low / 2 + high / 2, abs_tol=math.ulp(0.0))


def test_decorrelated_draws_between_first_and_a_multiple_of_the_previous_delay():
    walk = s.decorrelated(2, factor=3)
    assert walk.delay(1, None, FixedRandom(0.5)) == (2 + 2 * 3) / 2
    assert walk.delay(2, 4.0, FixedRandom(0.5)) == (2 + 4 * 3) / 2
    assert walk.delay(3, 5.0, FixedRandom(0.5)) == (2 + 5 * 3) / 2


def test_decorrelated_clamps_the_previous_delay_to_its_bounds():
    walk = s.decorrelated(2, factor=3)
    assert walk.delay(2, 0.5, FixedRandom(0.5)) == (2 + 2 * 3) / 2
    assert walk.delay(2, 900.0, FixedRandom(0.5)) == (2 + 2 * 3 * 3) / 2


def test_decorrelated_without_jitter_grows_by_its_factor():
    assert s.decorrelated(2, factor=3).without_jitter() == s.exponential(2, factor=3)


ENDLESS = {
    "linear": s.linear(MAX_DELAY / 1000),
    "exponential": s.exponential(0.5),
    "exponential, hardly growing": s.exponential(60, factor=1.001),
    "exponential of an extreme factor": s.exponential(1, factor=1e308),
    "polynomial": s.polynomial(60),
    "fibonacci": s.fibonacci(60),
    "decorrelated": s.decorrelated(0.5),
}


@pytest.mark.parametrize("schedule", ENDLESS.values(), ids=ENDLESS)
def test_an_uncapped_schedule_saturates_at_the_largest_float(schedule):
    assert schedule.bounds(10**6)[1] == MAX_DELAY
    assert schedule.bounds(10**9)[1] == MAX_DELAY
    assert schedule.cap("1h").bounds(10**6)[1] == 3600.0


@pytest.mark.parametrize("schedule", ENDLESS.values(), ids=ENDLESS)
def test_delays_never_decrease_before_they_saturate(schedule):
    retries = [*range(1, 2000), 10**4, 10**5, 10**6]
    longest = [schedule.bounds(retry)[1] for retry in retries]
    assert longest == sorted(longest)


@pytest.mark.parametrize("longest", [1e3, 1e6, (2**31 - 1) / 1000])
@pytest.mark.parametrize("factor", [0, 0.5, 0.75])
def test_google_intervals_keep_their_bounds_far_out(longest, factor):
    for schedule in (
        s.google_interval(max_interval=longest, randomization_factor=factor),
        s.google_interval(longest, max_interval=longest, randomization_factor=factor),
    ):
        for retry in (1, 2, 30, 1024, 10**6):
            low, high = schedule.bounds(retry)
            assert (
                0
                <= low
                <= schedule.delay(retry, None, FixedRandom(0.5))
                <= high
                < math.inf
            )
