"""Presets of job queues against the figures of the originals."""

import math
from collections import Counter
from itertools import islice

import pytest
from hypothesis import example, given, strategies as st

from retrykit import StopReason, presets, schedules as s
from retrykit.analysis.preview._delay_distributions import delay_distributions
from tests._support.exhausted_calls import exhaust
from tests._support.random_sources import FixedRandom

DAY = 86_400
# Closer to 1, a sum may be rounded to the next integer.
chances = st.floats(0, 1 - 1e-9)


def draws(policy, retry, chance):
    return policy.schedule.delay(retry, None, FixedRandom(chance))


# Sidekiq: the column "Next retry backoff" of its wiki, page "Error Handling".
SIDEKIQ = [20, 26, 46, 116, 296, 670, 1346, 2456, 4156, 6626, 10070, 14716, 20816]
SIDEKIQ += [28646, 38506, 50720, 65636, 83626, 105086, 130436, 160120, 194606, 234386]


@given(st.integers(1, 25), chances)
def test_sidekiq_follows_its_formula(retry, chance):
    """``(count ** 4) + 15``, and ``rand(10 * (count + 1))`` more."""
    count = retry - 1
    expected = count**4 + 15 + math.floor(chance * 10 * (count + 1))
    assert draws(presets.sidekiq(), retry, chance) == pytest.approx(expected, abs=1e-6)


def test_sidekiq_has_the_delays_of_its_table_on_average():
    """The table adds half of the range; the mean of whole seconds is 0.5 s less."""
    means = [
        each.mean
        for each in islice(delay_distributions(presets.sidekiq().schedule), 23)
    ]
    assert means == pytest.approx([delay - 0.5 for delay in SIDEKIQ])


def test_sidekiq_draws_each_whole_second_and_none_but_these():
    schedule = presets.sidekiq().schedule
    found = {next(schedule.draw(seed)) for seed in range(500)}
    assert found == set(range(15, 25))


def test_sidekiq_retries_25_times_in_about_20_days(backend, clock):
    calls, state = exhaust(backend, presets.sidekiq())
    assert calls == state.attempt == len(state.errors) == 26
    assert state.stop_reason is StopReason.ATTEMPTS
    assert sum(clock.sleeps) / DAY == pytest.approx(20.4, abs=0.1)
    assert all(nap.is_integer() for nap in clock.sleeps)


# The results of get_exponential_backoff_interval of Celery 5.7.0 for factor 1 and a
# maximum of 600, after 0 to 11 retries; with full jitter, the longest draw.
CELERY = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]


@pytest.mark.parametrize(("retry", "most"), [*enumerate(CELERY, 1)], ids=str)
def test_celery_waits_at_most_as_long_as_celery(retry, most):
    assert presets.celery().schedule.bounds(retry) == (0, most)
    steady = presets.celery(retry_jitter="none").schedule
    assert steady.bounds(retry) == (most, most)


@given(st.integers(1, 12), chances)
@example(1, math.nextafter(1, 0))
def test_celery_draws_whole_seconds_from_zero_to_the_maximum(retry, chance):
    """``randrange(countdown + 1)``."""
    most = CELERY[retry - 1]
    found = draws(presets.celery(), retry, chance)
    assert found == min(math.floor(chance * (most + 1)), most)


def test_celery_draws_each_second_with_equal_probability():
    schedule = presets.celery().schedule
    found = Counter(list(islice(schedule.draw(seed), 3))[2] for seed in range(5000))
    assert set(found) == {0, 1, 2, 3, 4}
    assert all(850 < count < 1150 for count in found.values())


def test_celery_retries_3_times(backend, clock):
    calls, state = exhaust(backend, presets.celery())
    assert calls == len(clock.sleeps) + 1 == 4
    assert state.stop_reason is StopReason.ATTEMPTS


def test_celery_without_backoff_waits_3_minutes():
    """``max_retries`` is 3, ``default_retry_delay`` 3 * 60."""
    assert presets.celery(retry_backoff=0).schedule == s.constant(180)
    policy = presets.celery(retry_backoff=0, default_retry_delay="1m")
    assert policy.schedule == s.constant(60)


def test_celery_grows_from_its_backoff_to_its_maximum():
    """Celery 5.7.0 gives 5, 10 and 15 for factor 5 and maximum 15."""
    steady = presets.celery(
        retry_backoff=5, retry_backoff_max=15, retry_jitter="none", max_retries=0
    )
    assert list(islice(steady.schedule.draw(), 3)) == [5, 10, 15]
    assert steady.max_attempts == 1


# The results of compute_backoff of Dramatiq 2.2.1 in milliseconds, with the defaults
# of its middleware, if uniform returns these fractions of its range.
PARTS = [0.0, 0.12345, 0.5, 0.75, 0.98765]
DRAMATIQ = {
    1: [15000, 16851, 22500, 26250, 29814],
    2: [30000, 33703, 45000, 52500, 59629],
    3: [60000, 67407, 90000, 105000, 119259],
    8: [1920000, 2157024, 2880000, 3360000, 3816288],
    15: [245760000, 276099072, 368640000, 430080000, 488484864],
    17: [302400000, 339731280, 453600000, 529200000, 601065360],
    20: [302400000, 339731280, 453600000, 529200000, 601065360],
}


@pytest.mark.parametrize(("retry", "delays"), DRAMATIQ.items(), ids=str)
def test_dramatiq_waits_the_same_milliseconds_for_the_same_random_numbers(
    retry, delays
):
    found = [draws(presets.dramatiq(), retry, part) * 1000 for part in PARTS]
    assert found == pytest.approx(delays, abs=1e-6)


def test_dramatiq_has_the_bounds_of_the_original():
    """Retry 16: from 302400000 ms to just below 604800000."""
    low, high = presets.dramatiq().schedule.bounds(16)
    assert (low, high) == (302_400, 604_800)
    assert "draws twice" in presets.dramatiq.__doc__


@pytest.mark.thorough
def test_dramatiq_retries_20_times_and_keeps_every_error(backend, clock):
    calls, state = exhaust(backend, presets.dramatiq())
    assert calls == len(clock.sleeps) + 1 == len(state.errors) == 21
    assert state.stop_reason is StopReason.ATTEMPTS
    many = presets.dramatiq(max_retries=300)
    assert len(exhaust(backend, many)[1].errors) == 301


def test_dramatiq_never_waits_for_more_than_7_days():
    """``min(max_backoff, DEFAULT_MAX_BACKOFF)``"""
    assert presets.dramatiq(max_backoff="30d") == presets.dramatiq()
    hourly = presets.dramatiq(min_backoff="1ms", max_backoff="1h").schedule
    assert hourly.bounds(1) == (0.001, 0.002)
    assert hourly.bounds(60) == (1800, 3600)


def test_temporal_has_the_defaults_of_its_retry_policy():
    """1 s, doubled each time, up to 100 s, without a limit of attempts."""
    policy = presets.temporal()
    found = list(islice(policy.schedule.draw(), 9))
    assert found == [1, 2, 4, 8, 16, 32, 64, 100, 100]
    assert (policy.max_attempts, policy.max_elapsed) == (None, None)


@given(st.integers(1, 1000), st.floats(1, 5), st.integers(1, 60))
def test_temporal_waits_at_most_100_times_its_first_interval(first, growth, retry):
    policy = presets.temporal(initial_interval=first, backoff_coefficient=growth)
    expected = min(first * growth ** (retry - 1), 100 * first)
    assert policy.schedule.bounds(retry) == pytest.approx((expected, expected))


def test_temporal_accepts_an_interval_and_a_limit():
    policy = presets.temporal(maximum_interval="5s", maximum_attempts=3)
    assert policy.schedule == s.exponential(1).cap(5)
    assert policy.max_attempts == 3
    assert presets.temporal(maximum_interval=1).schedule.bounds(9) == (1, 1)
