"""The google preset against `ExponentialBackOff`, to the millisecond."""

import math
from itertools import islice

import pytest
from hypothesis import example, given, strategies as st

from retrykit import StopReason, presets, schedules as s
from retrykit.backoff import STOP, Backoff
from retrykit.schedules._randomness import call_random
from retrykit.testing import FakeClock
from tests._support.random_sources import FixedRandom
from tests._support.reference_data import reference_data

GOOGLE = reference_data("exponential_backoff")
DEFAULTS = GOOGLE["defaults"]
ROWS = GOOGLE["example"]

# The formulas of the original, quoted.
FORMULAS = {
    "increment": "current = max if current >= max / multiplier "
    "else int(current * multiplier)",
    "randomise": "int(current - f*current + r * (2*f*current + 1)), "
    "r uniform in [0, 1)",
    "stop": "elapsed_ms > max_elapsed_ms, asked before the interval is drawn",
}


def intervals(initial, multiplier, maximum):
    current = initial
    while True:
        yield current
        grown = int(current * multiplier)
        current = maximum if current >= maximum / multiplier else grown


def randomised(current, f, r):
    # Java converts a number above its largest int to that int.
    return min(int(current - f * current + r * (2 * f * current + 1)), 2**31 - 1)


def drain(policy):
    """Yield the delays of a loop of instant attempts, until it stops."""
    clock = FakeClock()
    backoff = Backoff(policy, clock)
    while (wait := backoff.next()) is not STOP:
        yield wait
        clock.advance(wait)


def test_the_reference_functions_match_the_original():
    assert GOOGLE["integer_ms"] == FORMULAS


def test_google_has_the_defaults_of_its_documentation():
    assert presets.google() == presets.google(
        initial_interval=f"{DEFAULTS['initial_interval_ms']}ms",
        randomization_factor=DEFAULTS["randomization_factor"],
        multiplier=DEFAULTS["multiplier"],
        max_interval=f"{DEFAULTS['max_interval_ms']}ms",
        max_elapsed_time=f"{DEFAULTS['max_elapsed_time_ms']}ms",
    )


def test_the_settings_of_google_are_attributes():
    policy = presets.google()
    assert policy.schedule.initial_interval * 1000 == DEFAULTS["initial_interval_ms"]
    assert policy.schedule.randomization_factor == DEFAULTS["randomization_factor"]
    assert policy.schedule.multiplier == DEFAULTS["multiplier"]
    assert policy.schedule.max_interval * 1000 == DEFAULTS["max_interval_ms"]
    assert policy.max_elapsed * 1000 == DEFAULTS["max_elapsed_time_ms"]
    assert (policy.deadline, policy.max_attempts) == ("overshoot", None)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"request {row['request']}")
def test_google_has_the_intervals_of_its_example(row):
    schedule = presets.google().schedule
    interval = row["retry_interval_s"]
    assert schedule.without_jitter().bounds(row["request"]) == (interval, interval)


@pytest.mark.parametrize("row", ROWS[:-1], ids=lambda row: f"request {row['request']}")
def test_google_has_the_ranges_of_its_example_within_a_millisecond(row):
    bounds = presets.google().schedule.bounds(row["request"])
    assert bounds == pytest.approx(row["randomized_interval_s"], rel=0, abs=0.001001)


def test_google_stops_on_the_tenth_request_after_max_elapsed():
    """STOP, if the maximum elapsed time is passed on this request."""
    clock = FakeClock()
    backoff = Backoff(presets.google(), clock)
    assert STOP not in [backoff.next() for _ in range(9)]
    clock.advance(900.001)
    assert backoff.next() is STOP
    assert "STOP" in ROWS[9]["randomized_interval_s"]


def settings_in_ms():
    """Draw initial interval, factor, multiplier and longest interval."""
    return st.tuples(
        st.integers(1, 10_000),
        st.floats(0, 1, exclude_max=True),
        st.floats(1, 10),
        st.integers(10_000, 10_000_000),
    )


# Closer to 1, the sum may be rounded to the next integer.
draws = st.floats(0, 1 - 1e-9)


@given(settings_in_ms(), st.lists(draws, min_size=30, max_size=30))
@example((500, 0.5, 1.5, 60_000), [n / 30 for n in range(30)])
def test_google_draws_the_same_milliseconds_for_the_same_random_numbers(
    settings, chances
):
    initial, factor, multiplier, longest = settings
    schedule = presets.google(
        initial_interval=f"{initial}ms",
        randomization_factor=factor,
        multiplier=multiplier,
        max_interval=f"{longest}ms",
    ).schedule
    found = [
        schedule.delay(retry, None, FixedRandom(chance))
        for retry, chance in enumerate(chances, 1)
    ]
    currents = intervals(initial, multiplier, longest)
    pairs = zip(currents, chances, strict=False)
    assert found == [randomised(c, factor, r) / 1000 for c, r in islice(pairs, 30)]


@pytest.mark.parametrize("request_", range(1, 40))
def test_google_draws_every_millisecond_of_its_range_and_no_other(request_):
    schedule = presets.google(initial_interval="7ms", max_interval="20ms").schedule
    low, high = (round(bound * 1000) for bound in schedule.bounds(request_))
    found = {
        schedule.delay(request_, None, call_random(seed=seed, retry=request_))
        for seed in range(1000)
    }
    assert found == {ms / 1000 for ms in range(low, high + 1)}


@given(settings_in_ms(), st.integers(1, 100))
def test_google_stays_in_its_range_for_the_largest_random_number(settings, request_):
    initial, factor, multiplier, longest = settings
    schedule = s.google_interval(
        f"{initial}ms",
        randomization_factor=factor,
        multiplier=multiplier,
        max_interval=f"{longest}ms",
    )
    low, high = schedule.bounds(request_)
    assert schedule.delay(request_, None, FixedRandom(0.0)) == low
    assert schedule.delay(request_, None, FixedRandom(math.nextafter(1, 0))) == high


@given(st.floats(0, 1, exclude_max=True), draws)
@example(0.9, 0.999)
@example(0.0, 0.999)
def test_google_saturates_at_the_longest_delay_of_the_original(factor, chance):
    """An int of milliseconds is at most 2 ** 31 - 1: 24.9 days."""
    longest = 2**31 - 1
    schedule = s.google_interval(
        longest / 1000, randomization_factor=factor, max_interval=longest / 1000
    )
    found = schedule.delay(1, None, FixedRandom(chance))
    assert found == randomised(longest, factor, chance) / 1000
    assert schedule.bounds(1)[1] == longest / 1000


def test_google_gives_25_delays_to_a_loop_of_instant_attempts():
    found = list(drain(presets.google(randomization_factor=0)))
    assert len(found) == 25
    assert found == [ms / 1000 for ms in islice(intervals(500, 1.5, 60_000), 25)]
    # The last delay starts within the 15 minutes, and ends after them.
    assert sum(found[:-1]) <= 900 < sum(found)


@given(
    st.integers(1, 3000),
    st.sampled_from([1, 1.25, 1.5, 2]),
    st.integers(3000, 60_000),
    st.integers(1, 60_000),
)
@example(100, 1, 100, 300)
def test_google_stops_when_the_original_does(initial, multiplier, longest, allowed):
    policy = presets.google(
        initial_interval=f"{initial}ms",
        randomization_factor=0,
        multiplier=multiplier,
        max_interval=f"{longest}ms",
        max_elapsed_time=f"{allowed}ms",
    )
    elapsed, expected = 0, []
    for current in islice(intervals(initial, multiplier, longest), 300):
        if elapsed > allowed:
            break
        expected.append(current / 1000)
        elapsed += current
    assert list(islice(drain(policy), 300)) == expected


def test_google_stops_only_once_the_time_has_passed():
    clock = FakeClock()
    backoff = Backoff(presets.google(), clock)
    clock.advance(900)
    assert backoff.next() is not STOP
    clock.advance(0.001)
    assert backoff.next() is STOP
    assert backoff.next() is STOP


def test_a_retried_call_overshoots_like_the_original(backend, clock):
    state = backend.run(presets.google(randomization_factor=0), lambda: 1 / 0).state
    assert len(clock.sleeps) == 25
    assert state.attempt == len(state.errors) == 26
    assert state.stop_reason is StopReason.ELAPSED
    assert state.elapsed == sum(clock.sleeps) > 900


def test_the_duration_of_attempts_counts(backend, clock):
    def slow():
        clock.advance(100)
        raise ConnectionError

    state = backend.run(presets.google(randomization_factor=0), slow).state
    assert state.attempt == 9
    assert state.failures[-1].started <= 900 < state.elapsed
