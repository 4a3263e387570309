"""All engines of simulations have the same results, to the digit."""

import hashlib
import json

import pytest
from hypothesis import given, strategies as st

from retrykit import Policy, Rule
from retrykit.budgets import RatioBudget, Throttle, TokenBucket
from retrykit.hints import retry_after
from retrykit.schedules import (
    Schedule,
    constant,
    decorrelated,
    exponential,
    google_interval,
    polly_interval,
    sequence,
    uniform,
)
from retrykit.simulate import Clients, Outage, Server
from retrykit.simulate._fifo import AmbiguousOrderError
from retrykit.simulate._short_cut import ANYWHERE
from retrykit.simulate._simulate import run
from tests._support.simulation_cells import CELLS
from tests._support.thorough import first_are_quick

ENGINES = ["events", "one by one", "arrays"]

# Counted since then.
LATER = {"outage", "pending", "queue", "requests"}

# Written by the first engine there was.
DIGESTS = {
    "once": "6af3a03a2d548783",
    "immediate": "ddc182e8f666027b",
    "immediate, high load": "0671ef795e00b21b",
    "jittered": "adcc59997fb6265e",
    "default": "6cddfcc408826aef",
    "seed": "804841fc1d256b45",
    "no outage": "d8954a2e3dd7741d",
    "max_elapsed": "1b51a9d56329ddb8",
    "clip": "1b51a9d56329ddb8",
    "attempt timeout": "80040ed64df08c8c",
    "decorrelated": "38ed379722835d87",
    "rules": "54178eb838248e41",
    "refuse": "bbcf9c029e214271",
    "refuse, immediate": "c7c324fcb6923fcb",
    "error": "bbcf9c029e214271",
    "error, immediate": "c7c324fcb6923fcb",
    "retry after": "e58991ac9534f335",
    "partial hang": "28bbe3830610650b",
    "partial error": "03ae2835ad9eb1a8",
    "partial refuse": "cbfa7753d8a0d206",
    "slow start": "adcc59997fb6265e",
    "exponential": "7470d36b66d0ec41",
    "slots": "0e0bb438f1d479de",
    "slots, exponential": "52d0d89c88f5dabd",
    "queue bound": "e666e609868fe4b9",
    "queue bound, jittered": "d0f4ba5d9dbb5e8a",
    "newest first": "730926a2c05a3b8e",
    "drops abandoned": "2976b80cd5b02447",
    "drops late": "a51441ddb0e5cb01",
    "late answers": "6a094419cc395f9e",
    "users": "810c000d2e9b7ceb",
    "recorded": "b89163094e2949c0",
    "recorded, ties": "c63cfa77c0f9f8be",
    "far": "b9be8cf3cda93861",
    "too far": "0e055fcce45e7d52",
    "ratio, one process": "f7adf69741344922",
    "ratio, many processes": "adcc59997fb6265e",
    "bucket": "a17957d81c3d6f5e",
    "throttle": "a35e83592a58f958",
    "throttle, error": "c26ae38fec8cbf3a",
    "sum": "2d56d576a8586ae1",
    "rounded": "a25d744b4a09b0e6",
    "rounded, error": "5cb05cb119424353",
    "union": "83e7ee688f82f5c1",
    "google": "a7b971ae8e81b965",
    "polly": "838e73d2fcf00dca",
    "polly, refuse": "ddcc7933c5b36bcd",
    "decorrelated, then": "5ca1973b74ccbdce",
    "all limits": "57e97f7e72b76f63",
    "delays of a rule": "206d82b555887c4f",
    "mixed": "456755a688e61570",
    "mixed timeouts": "8f4b2b7d67d26f38",
}


def counts(clients, engine, **settings):
    settings = {"load": "70%", "hopeless": True} | settings
    found = run(clients, engine=engine, **settings).to_dict()
    del found["settings"]
    return found


@pytest.mark.parametrize("name", first_are_quick(12, CELLS))
@pytest.mark.parametrize("engine", ENGINES)
def test_a_result_never_changes(name, engine):
    clients, settings = CELLS[name]
    found = counts(clients, engine, **settings)
    text = json.dumps({key: found[key] for key in found if key not in LATER})
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == DIGESTS[name]


limits = st.sampled_from(
    [
        {},
        {"max_elapsed": 60},
        {"max_elapsed": 0.5, "deadline": "clip"},
        {"max_elapsed": 2.5},
        {"max_elapsed": 2.5, "deadline": "overshoot", "seed": 7},
        {"max_elapsed": 2.5, "attempt_timeout": 0.9},
        {"hint": retry_after()},
        {"budget": RatioBudget()},
        {"budget": RatioBudget(0.1, reserve=0), "seed": 7},
        {"budget": TokenBucket(50), "attempt_timeout": 0.3},
        {"budget": Throttle(), "max_elapsed": 1.5, "hint": retry_after()},
        {"rules": [Rule(on=TimeoutError, schedule=uniform(0, 0.5), max_attempts=3)]},
        {"max_elapsed": 1.5, "limits": "all"},
    ]
)


def halving():
    delay = 1.0
    while True:
        yield delay
        delay /= 2


class Doubling(Schedule):
    """The previous delay, doubled."""

    def delay(self, _retry, previous, _random, /):
        return 0.1 if previous is None else min(previous * 2, 5.0)

    def bounds(self, retry, /):
        return (min(0.1 * 2 ** (retry - 1), 5.0),) * 2


schedules = st.sampled_from(
    [
        [0, 0, 0],
        [0.5],
        [0, 1, 0.01, 30],
        constant(0.4),
        exponential(0.1).cap(2).full_jitter(),
        exponential(0.5).jitter(0.2),
        constant(0.3) + uniform(0, 0.2),
        exponential(0.1).equal_jitter().round_down(0.01) | constant(0.5),
        (uniform(0, 1) & sequence([0.5])).then(uniform(1, 2)) * 0.5,
        google_interval(0.1),
        polly_interval(0.1),
        decorrelated(0.1).cap(1),
        halving,
        Doubling(),
    ]
)


def policy_of(schedule, most, settings):
    if settings.get("limits") == "all" and isinstance(schedule, list):
        # It must not end before them.
        schedule = sequence(schedule, repeat_last=True)
    return Policy(schedule=schedule, max_attempts=most, **settings)


policies = st.builds(
    policy_of,
    schedules,
    st.integers(1, 6),
    limits,
)
fleets = st.builds(
    Clients,
    policies,
    share=st.sampled_from([1, 0.3]),
    processes=st.sampled_from([1, 2, 20]),
    timeout=st.none(),
) | st.builds(
    Clients,
    schedules.map(lambda schedule: Policy(schedule=schedule, max_attempts=4)),
    timeout=st.sampled_from([0.3, 2.5]),
)
servers = st.builds(
    Server,
    st.sampled_from([10, 30, 33.3]),
    slots=st.sampled_from([1, 1, 2, 5]),
    service=st.sampled_from(["constant", "exponential"]),
    queue_bound=st.sampled_from([None, "300ms", "2s"]),
)
outages = st.builds(
    Outage,
    st.sampled_from([0.7, 3]),
    st.sampled_from(["hang", "refuse", "error"]),
    begin=st.sampled_from([0, 2.5]),
    share=st.sampled_from([1, 1, 0.4]),
    slow_start=st.sampled_from([0, 0, 2]),
)
# Many events have the same time.
recorded = st.lists(st.integers(0, 80), min_size=1, max_size=60).map(
    lambda numbers: [each / 10 for each in sorted(numbers)]
)


@given(
    st.lists(fleets, min_size=1, max_size=3),
    servers,
    st.none() | outages,
    st.sampled_from(["50%", "95%"]) | recorded,
    st.sampled_from([0.001, 0.1, 1.1]),
    st.integers(0, 99),
)
def test_the_engines_have_equal_results(fleet, server, outage, load, network, seed):
    settings = {
        "server": server,
        "outage": outage,
        "load": load,
        "network": network,
        "seed": seed,
        "horizon": "10s",
    }
    expected = counts(fleet, "events", **settings)
    for engine in ENGINES[1:]:
        assert counts(fleet, engine, **settings) == expected


@pytest.mark.parametrize("engine", ENGINES[1:])
@pytest.mark.parametrize(
    ("policy", "server", "network"),
    [
        (Policy(schedule=[0.1] * 3, budget=TokenBucket()), Server(10), 0.001),
        (
            Policy(
                schedule=[0.1] * 3,
                budget=Throttle(),
                attempt_timeout=0.3,
                max_elapsed=0.5,
            ),
            Server(10),
            0.1,
        ),
        (Policy(schedule=[0.1] * 3), Server(10, queue_bound="300ms"), 0.1),
        (Policy(schedule=[0.1] * 3), Server(10), 0.1),
    ],
    ids=["a success and a retry", "a time limit", "a queue", "a call and a retry"],
)
def test_events_at_one_time_are_in_the_order_of_their_making(
    engine, policy, server, network
):
    clients = Clients(policy, processes=1, timeout="300ms")
    settings = {
        "load": [0.2 * index for index in range(60)] + [20],
        "server": server,
        "network": network,
        "outage": Outage(1, begin=1),
        "horizon": "10s",
    }
    expected = counts(clients, "events", **settings)
    assert counts(clients, engine, **settings) == expected


def test_an_order_that_is_unknown_is_not_guessed():
    events = [(5, 1, 2), (5, 2, ANYWHERE, 7), (5, 2, ANYWHERE, 6)]
    assert sorted(events)[1][3] == 6
    with pytest.raises(AmbiguousOrderError):
        sorted([*events, (5, 2, 9)])
