"""Simulations with numpy are equal to those without, and their draws to the bit."""

import numpy as np
from hypothesis import given, strategies as st

from retrykit import Policy
from retrykit.schedules._randomness import call_random
from retrykit.simulate import Clients, Outage, Server
from retrykit.simulate._arrays import delay_draws, exponentials, uniforms
from retrykit.simulate._draws import Stream
from tests.simulate.test_engines import counts, recorded, schedules

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
    expected = [call_random(seed + each, retry).random() for each in range(8)]
    draws = delay_draws(np.arange(seed, seed + 8), retry)
    assert (draws * 2.0**-53).tolist() == expected


@given(st.integers(0, 99), st.integers(1, 10**15))
def test_exponential_draws_are_equal_to_the_digit(seed, mean):
    expected = Stream(seed, "x").exponentials(mean)
    drawn = exponentials(uniforms(Stream(seed, "x")), mean, 99)
    assert drawn.tolist() == [next(expected) for _ in range(99)]
