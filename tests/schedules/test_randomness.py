"""Random numbers: uniform, independent for each retry, reproducible by seed."""

import math
import os
import random
import statistics
import threading
import warnings
from itertools import islice

import pytest
from hypothesis import given, strategies as st

from retrykit import Policy, schedules as s
from retrykit.backoff import Backoff
from retrykit.schedules._randomness import (
    MAX_DELAY,
    SharedDraws,
    call_random,
    first_draw,
    new_draws,
    new_seed,
    previous_random,
    uniform_between,
)
from retrykit.testing.strategies import durations, seeds
from tests._support.concurrency import switching_often
from tests._support.random_sources import SequenceRandom

ALMOST_ONE = math.nextafter(1.0, 0.0)
MANY = 20_000


def take_draws(source, count):
    return [source.random() for _ in range(count)]


def shared_draws(count):
    """Return the draws for retry 1 of so many new calls."""
    calls = [new_draws() for _ in range(count)]
    return [draws[1][number] * 2.0**-53 for draws, number in calls]


# The draws of many calls, of many retries of one call, and of one retry.
DRAWS = {
    "new calls": shared_draws(MANY),
    "calls": [call_random(seed=seed, retry=1).random() for seed in range(MANY)],
    "calls with far seeds": [
        call_random(seed=seed * 2**37 + 12_345, retry=3).random()
        for seed in range(MANY)
    ],
    "retries": [
        call_random(seed=7, retry=retry).random() for retry in range(1, MANY + 1)
    ],
    "one retry": take_draws(call_random(seed=7, retry=1), MANY),
}
every_draw = pytest.mark.parametrize("draws", DRAWS.values(), ids=DRAWS)


# The output of the published algorithm for the seed 1234567, from Rosetta Code.
PUBLISHED = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
]


def test_draws_are_those_of_the_published_generator():
    draws = take_draws(call_random(seed=1234567, retry=0), 5)
    assert draws == [(number >> 11) / 2**53 for number in PUBLISHED]


@every_draw
def test_draws_are_spread_evenly(draws):
    """Chi-squared of 100 bins; 99 degrees of freedom, p below 1 in 100 000."""
    expected = MANY / 100
    found = [0] * 100
    for draw in draws:
        found[int(draw * 100)] += 1
    assert sum((count - expected) ** 2 / expected for count in found) < 170
    assert statistics.fmean(draws) == pytest.approx(0.5, abs=0.01)
    assert statistics.pvariance(draws) == pytest.approx(1 / 12, abs=0.003)


@every_draw
def test_draws_are_not_correlated(draws):
    """Correlation of five standard errors would be 0.035."""
    for step in (1, 2, 3, 7, 32):
        correlation = statistics.correlation(draws[:-step], draws[step:])
        assert abs(correlation) < 0.035, step


@every_draw
def test_draws_do_not_repeat(draws):
    assert len(set(draws)) == MANY


@every_draw
def test_draws_use_every_bit_of_a_float(draws):
    assert max(draw.as_integer_ratio()[1] for draw in draws) == 2**53


def test_no_two_retries_have_the_same_draw():
    found = [
        draw
        for retry in range(1, 1001)
        for draw in take_draws(call_random(seed=7, retry=retry), 5)
    ]
    assert len(set(found)) == 5000


@pytest.mark.thorough
def test_retries_and_concurrent_calls_are_independent():
    for retry in range(1, 6):
        here = [call_random(seed=seed, retry=retry).random() for seed in range(MANY)]
        there = [
            call_random(seed=seed, retry=retry + 1).random() for seed in range(MANY)
        ]
        assert abs(statistics.correlation(here, there)) < 0.035, retry


def test_each_jitter_of_a_delay_has_its_own_draw():
    full_of_8 = s.constant(8).full_jitter()
    assert (full_of_8 + full_of_8).delay(1, None, SequenceRandom(0.25, 0.75)) == 2 + 6
    assert (full_of_8 | full_of_8).delay(1, None, SequenceRandom(0.25, 0.75)) == 2
    assert (full_of_8 & full_of_8).delay(1, None, SequenceRandom(0.25, 0.75)) == 6
    nested = s.constant(8).equal_jitter().jitter(0.5)
    assert nested.delay(1, None, SequenceRandom(0.5, 0.0)) == 6 * 0.5


@given(seeds() | st.integers(), st.integers(1, 10**6), st.integers(1, 5))
def test_a_draw_is_in_0_to_1_and_belongs_to_seed_and_retry(seed, retry, count):
    found = take_draws(call_random(seed=seed, retry=retry), count)
    assert found == take_draws(call_random(seed=seed, retry=retry), count)
    assert all(0.0 <= draw < 1.0 for draw in found)


@given(durations(), durations(), st.floats(0, ALMOST_ONE) | st.just(ALMOST_ONE))
def test_uniform_between_stays_between_its_bounds(one, other, chance):
    low, high = sorted([one, other])
    assert low <= uniform_between(low, high, SequenceRandom(chance)) <= high


@given(durations(), st.floats(0, 1))
def test_ranges_are_those_of_the_literature(delay, factor):
    plain = s.constant(delay)
    assert plain.full_jitter().bounds(1) == (0, delay)
    assert plain.equal_jitter().bounds(1) == (delay / 2, delay)
    low, high = plain.jitter(factor).bounds(1)
    assert low == delay * (1 - factor)
    assert high == min(delay * (1 + factor), MAX_DELAY)


JITTERS = {
    "full": (s.constant(8).full_jitter(), 0, 8),
    "equal": (s.constant(8).equal_jitter(), 4, 8),
    "proportional": (s.constant(8).jitter(0.25), 6, 10),
    "at the cap": (s.exponential(1).cap(8).jitter(0.25), 6, 10),
    "uniform": (s.uniform(6, 10), 6, 10),
    "google": (s.google_interval(8, max_interval=8, randomization_factor=0.25), 6, 10),
}


@pytest.mark.parametrize(("schedule", "low", "high"), JITTERS.values(), ids=JITTERS)
def test_delays_are_uniform_over_their_range(schedule, low, high):
    delays = [
        schedule.delay(50, None, call_random(seed=seed, retry=50))
        for seed in range(4000)
    ]
    width = high - low
    assert min(delays) == pytest.approx(low, abs=width / 200)
    assert max(delays) == pytest.approx(high, abs=width / 200)
    quarters = statistics.quantiles(delays, n=4)
    expected = [low + width * part / 4 for part in (1, 2, 3)]
    assert quarters == pytest.approx(expected, abs=width / 30)


def test_the_delays_of_a_call_are_drawn_with_its_seed(backend, clock):
    """The draw for retry n of a call is a function of the call's seed and n."""
    schedule = s.decorrelated(1) + s.linear(1).full_jitter()
    policy = Policy(schedule=schedule)
    state = backend.run(policy, lambda: 1 / 0).state
    assert clock.sleeps == list(islice(policy.schedule.draw(state.seed), 4))
    assert [failure.delay for failure in state.failures] == [*clock.sleeps, None]


def test_a_policy_with_a_seed_has_the_same_delays_each_time(backend, clock):
    """The seed can be set (`seed=`) in tests."""
    policy = Policy(seed=7)
    states = [backend.run(policy, lambda: 1 / 0).state for _ in range(2)]
    assert (
        clock.sleeps[:4] == clock.sleeps[4:] == list(islice(policy.schedule.draw(7), 4))
    )
    assert [state.seed for state in states] == [7, 7]


def test_backoff_has_the_same_delays_for_the_same_seed():
    backoff = Backoff(Policy(seed=7))
    waited = [backoff.next() for _ in range(4)]
    assert waited == list(islice(Policy().schedule.draw(7), 4))
    backoff.reset()
    assert [backoff.next() for _ in range(4)] == waited


def test_every_call_has_its_own_seed(backend, clock):
    states = [backend.run(Policy(), lambda: 1 / 0).state for _ in range(5)]
    assert len({state.seed for state in states}) == 5
    assert len(set(clock.sleeps)) == len(clock.sleeps) == 20


def test_seeds_survive_json():
    fresh = {new_seed() for _ in range(1000)}
    assert len(fresh) == 1000
    assert all(type(seed) is int and 0 <= seed < 2**53 for seed in fresh)
    assert max(fresh) > 2**52


@given(seeds(), st.lists(st.integers(1, 10**6), min_size=1, max_size=3))
def test_shared_draws_are_the_first_draws_of_each_seed(seed, retries):
    draws = SharedDraws(seed)
    for retry in retries:
        found = [units * 2.0**-53 for units in draws[retry]]
        own = [call_random(seed + number, retry).random() for number in range(64)]
        assert found == own


def test_shared_draws_are_few_at_a_time():
    draws = SharedDraws(7)
    first = draws[1]
    assert draws[1] is first
    for retry in range(10_000):
        assert draws[retry]
    assert len(draws) < 40
    assert draws[1] == first


@pytest.mark.needs("threads")
def test_threads_never_get_the_draws_of_another_call():
    def take(taken):
        for _ in range(5_000):
            draws, number = new_draws()
            taken.append(draws.seed + number)

    taken = [[], [], [], []]
    threads = [threading.Thread(target=take, args=(each,)) for each in taken]
    with switching_often():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = [seed for each in taken for seed in each]
    assert len({*found}) == len(found) == 20_000
    assert all(0 <= seed < 2**53 for seed in found)


@pytest.fixture
def global_chance():
    state = random.getstate()
    yield random
    random.setstate(state)


def test_seeding_the_global_generator_does_not_affect_retries(global_chance):
    found = []
    for _ in range(2):
        global_chance.seed(7)
        found += [new_seed(), next(Policy().schedule.draw())]
    assert len(set(found)) == 4


def test_retries_do_not_affect_the_global_generator(global_chance, clock):
    global_chance.seed(7)
    numbers = [global_chance.random() for _ in range(3)]
    global_chance.seed(7)
    Policy().run(lambda: 1 / 0)
    assert len(clock.sleeps) == 4
    assert [global_chance.random() for _ in range(3)] == numbers


def test_the_first_draw_of_a_call_is_that_of_its_seed():
    for _ in range(100):
        draws, number, first = first_draw()
        drawn = call_random(draws.seed + number, retry=1).random()
        assert drawn == first * 2.0**-53


def prepared_seed():
    draws, number = new_draws()
    return draws.seed + number


def forked_seed(draw):
    """Return the first seed that a forked child draws."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # A warning from 3.12 on, if another test has left a thread.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        # The child must not continue with the tests.
        try:
            os.write(writing, str(draw()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        seed = int(pipe.read())
    os.waitpid(child, 0)
    return seed


@pytest.mark.needs("processes")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
@pytest.mark.parametrize("draw", [new_seed, prepared_seed])
def test_a_forked_child_draws_other_seeds(draw):
    # Prepares draws that the children must not use.
    draw()
    children = [forked_seed(draw), forked_seed(draw)]
    assert len({*children, draw()}) == 3


@given(seeds(), st.integers(2, 1000), st.integers(0, 5))
def test_the_draws_of_the_previous_retry_can_be_repeated(seed, retry, draws):
    """At the same position among its draws."""
    now, then = (
        call_random(seed=seed, retry=retry),
        call_random(seed=seed, retry=retry - 1),
    )
    take_draws(now, draws)
    take_draws(then, draws)
    assert take_draws(previous_random(now), 3) == take_draws(then, 3)


def test_another_random_source_has_no_previous_retry():
    chance = random.Random(7)  # noqa: S311  like a user's
    assert previous_random(chance) is chance
