"""Simulations with numpy are equal to those without, and their draws to the bit."""

import math

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from retrykit import Policy, schedules as s
from retrykit._core.common_failures import Delays
from retrykit._internal.clocks import LONGEST_SLEEP
from retrykit.schedules._base import is_memoryless
from retrykit.schedules._randomness import MAX_DELAY, call_random
from retrykit.simulate import Clients, Outage, Server
from retrykit.simulate._arrays import exponentials, uniforms
from retrykit.simulate._delay_arrays import DelayArrays, delay_draws
from retrykit.simulate._draws import Stream
from retrykit.simulate._events import Events
from retrykit.simulate._progress import Watcher
from retrykit.simulate._recorder import Recorder
from retrykit.simulate._short_cut import run_arrays
from retrykit.testing.strategies import schedules as schedules_of_any_kind
from tests._support.simulation_cells import scene_of
from tests.simulate.test_engines import counts, halving, recorded, schedules

timeouts = st.builds(
    lambda schedule, most, allowed, seed: Policy(
        schedule=schedule, max_attempts=most, max_elapsed=allowed, seed=seed
    ),
    schedules,
    st.integers(1, 6),
    st.sampled_from([None, None, 2.5]),
    st.sampled_from([None, 7]),
)


@given(
    st.builds(Clients, timeouts, timeout=st.sampled_from([0.3, 1, 2.5])),
    st.builds(
        Server,
        st.sampled_from([10, 30, 99.9]),
        service=st.sampled_from(["constant", "exponential"]),
    ),
    st.none()
    | st.builds(
        Outage,
        st.sampled_from([0.7, 3]),
        st.sampled_from(["hang", "refuse", "error"]),
        begin=st.sampled_from([0, 2.5]),
        share=st.sampled_from([1, 1, 0.4]),
    ),
    st.sampled_from(["50%", "95%"]) | recorded,
    st.sampled_from([0.001, 0.1, 1.1]),
    st.integers(0, 99),
)
def test_arrays_have_equal_results(clients, server, outage, load, network, seed):
    settings = {
        "server": server,
        "outage": outage,
        "load": load,
        "network": network,
        "seed": seed,
        "horizon": "10s",
    }
    expected = counts(clients, "events", **settings)
    assert counts(clients, "arrays", **settings) == expected


@given(st.integers(0, 2**53 - 9), st.integers(1, 2**20))
def test_draws_of_delays_are_equal_to_the_bit(seed, retry):
    sources = [call_random(seed + each, retry) for each in range(8)]
    calls = np.arange(seed, seed + 8)
    for number in (1, 2, 3):
        expected = [each.random() for each in sources]
        for retries in (retry, np.full(8, retry)):
            draws = delay_draws(calls, retries, number)
            assert (draws * 2.0**-53).tolist() == expected


ENDING = s.uniform(0, 1) & s.sequence([9, 9])


@pytest.mark.parametrize("share", [0.99, 0.4])
def test_arrays_have_equal_results_if_all_or_some_requests_fail_in_an_outage(share):
    outage = Outage(3, begin=1, share=share)
    settings = {
        "load": [0.5, *np.arange(1.5, 2, 0.05).tolist(), 9.0],
        "outage": outage,
        "horizon": "10s",
    }
    policy = Policy(schedule=[0.1])
    assert counts(policy, "arrays", **settings) == counts(policy, "events", **settings)


@given(
    schedules_of_any_kind().filter(is_memoryless),
    st.lists(st.integers(1, 40), min_size=1, max_size=5),
    st.integers(0, 2**53 - 9),
)
@example(ENDING.then(s.uniform(0, 1)), [2, 3, 4], 7)
@example((ENDING | s.sequence([1]).full_jitter()).cap(2), [1, 2, 3], 7)
@example(s.uniform(0, 1).take(2).switch(after=3, to=s.uniform(1, 2)), [2, 3, 4], 7)
@example(s.uniform(0, 1).take(3).switch(after=3, to=s.uniform(1, 2)), [3, 4], 7)
@example((s.constant(1) + s.uniform(0, 1)).within(5), [1, 2, 3], 7)
@example((s.constant(MAX_DELAY) + s.uniform(0, 1)) * 2, [1], 7)
@example((s.constant(1e300).jitter(1) * 1).round_down(1e-300), [1], 7)
@example(s.uniform(0, 1).equal_jitter().jitter(0.5).at_least(0.2), [1], 7)
@example(s.uniform(0, 1) + s.google_interval(0.1).full_jitter(), [1, 9], 7)
@example(s.uniform(0, 1) + s.polly_interval(1), [1, 2], 7)
@example(s.sequence(halving) + s.uniform(0, 1), [1, 9], 7)
def test_delays_of_arrays_are_equal_to_the_bit(schedule, retries, seed):
    delays = Delays(schedule)
    asked = [(retry, seed + each) for retry in retries for each in range(3)]
    found = DelayArrays(schedule, delays).find(*map(np.array, zip(*asked, strict=True)))
    for (retry, of_call), delay in zip(asked, found.tolist(), strict=True):
        expected = schedule.delay(retry, None, call_random(of_call, retry))
        if expected is None or expected > LONGEST_SLEEP or delays[retry][0] == math.inf:
            expected = math.inf
        assert delay == expected


@pytest.mark.parametrize("kind", ["hang", "refuse", "error"])
def test_arrays_need_no_help_of_another_engine(kind):
    """Although some retries follow in the window of the attempt before them."""
    policy = Policy(schedule=[0, 0.01, *s.uniform(0, 2).take(5).draw(1)])
    scene = scene_of(policy, kind)
    assert run_arrays(scene, Recorder(scene.seconds), Watcher(), Events())


def test_retries_at_one_time_after_calls_at_one_time_need_another_engine():
    settings = {"load": [1.0, 1.0, 2.0], "outage": Outage(3, "error", begin=0)}
    scene = scene_of(Policy(schedule=[0.1, 0.1]), "error", [11.0, 11.0, 25.0])
    assert not run_arrays(scene, Recorder(scene.seconds), Watcher(), Events())
    policy = Policy(schedule=[0.1, 0.1])
    assert counts(policy, "arrays", **settings) == counts(policy, "events", **settings)


@given(st.integers(0, 99), st.integers(1, 10**15))
def test_exponential_draws_are_equal_to_the_digit(seed, mean):
    expected = Stream(seed, "x").exponentials(mean)
    drawn = exponentials(uniforms(Stream(seed, "x")), mean, 99)
    assert drawn.tolist() == [next(expected) for _ in range(99)]
