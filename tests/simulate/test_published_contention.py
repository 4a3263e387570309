"""The table of "Exponential Backoff And Jitter", M. Brooker, AWS, 2015, and `contend`.

Its figures are of aws-arch-backoff-simulator, ``src/backoff_simulator.py``, ported to
Python 3: means of 300 runs, with 95 % confidence intervals.
"""

from statistics import NormalDist

import pytest

from retrykit import ConfigError, Hedge, Policy
from retrykit.budgets import TokenBucket
from retrykit.limits import RateLimit
from retrykit.schedules import constant, exponential
from retrykit.simulate import Contention, WriteConflict, contend
from retrykit.simulate._draws import normal_quantile
from tests._support.published_tables import CONTENTION, contended, documented

FOREVER = Policy(max_attempts=None, schedule=constant(0), on=Exception)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["full jitter", "decorrelated"])
def test_the_published_work_and_time_are_reproduced(name):
    schedule, calls, error, time, width = CONTENTION[name]
    found = contended(schedule, runs=20)
    within = error + found.attempts_within
    assert found.attempts == pytest.approx(calls, abs=1.5 * within)
    within = (width + 1000 * found.time_within) / 1000
    assert found.time == pytest.approx(time / 1000, abs=1.5 * within)
    assert found.given_up == 0


@pytest.mark.parametrize("name", CONTENTION)
def test_the_documented_rows_are_near_the_published_ones(name):
    cells = [map(float, cell.split(" ± ")) for cell in documented("contention")[name]]
    for (published, error), (found, within) in (cells[:2], cells[2:]):
        assert found == pytest.approx(published, abs=1.5 * (error + within))


def test_one_client_makes_one_attempt():
    found = contend(FOREVER, clients=1, network="10ms", deviation=0, runs=1)
    # To the server and back, twice.
    assert found == Contention(
        attempts=1, attempts_within=None, time=0.04, time_within=None, given_up=0
    )
    assert str(found) == "1 attempts in 0.04 s"


def test_without_a_deviation_one_of_each_round_succeeds():
    found = contend(FOREVER, clients=4, network="10ms", deviation=0, runs=1)
    assert (found.attempts, found.time) == (4 + 3 + 2 + 1, 0.16)


def test_clients_may_give_up():
    settings = {"clients": 4, "network": "10ms", "deviation": 0, "runs": 2}
    policy = Policy(schedule=[0])
    found = contend(policy, **settings)
    assert (found.attempts, found.given_up, found.time) == (4 + 3, 2, 0.08)
    assert str(found) == "7 attempts in 0.08 s, and 2 give up"
    budget = TokenBucket(capacity=5, cost=5)
    found = contend(policy.replace(schedule=[0] * 9, budget=budget), **settings)
    assert (found.attempts, found.given_up) == (4 + 3, 2)


def test_the_error_of_a_client_is_matched():
    policy = Policy(on=KeyError, schedule=[0] * 9)
    found = contend(policy, clients=2, runs=1, error=KeyError("changed"))
    assert (found.given_up, found.attempts) == (0, 3)
    with pytest.raises(ConfigError, match="on must be a condition that matches Write"):
        contend(policy)
    assert str(WriteConflict()) == "the row has changed since it was read"


def test_the_same_arguments_give_the_same_digits():
    policy = FOREVER.replace(schedule=exponential(0.01).cap(2).full_jitter())
    first, second = (contend(policy, clients=70, runs=3) for _ in range(2))
    assert first == second != contend(policy, clients=70, runs=3, seed=2)
    assert (first.attempts * 3, round(first.time * 3e9)) == (1531, 12_124_444_721)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clients": 0}, "clients must be an integer >= 1, got 0"),
        ({"runs": 0}, "runs must be an integer >= 1, got 0"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"network": 0}, "network must be a duration > 0, got 0"),
        ({"deviation": "2"}, "deviation must be a duration such as"),
        ({"error": 5}, "error must be an Exception, got 5"),
        ({"policy": 5}, "policy must be a Policy, got 5"),
        (
            {"policy": Policy(admission=[RateLimit(5)])},
            "policy must be without limits and a hedge where clients contend, got ",
        ),
        (
            {"policy": Policy(hedge=Hedge("1s", idempotent=True))},
            "policy must be without limits and a hedge where clients contend, got ",
        ),
    ],
    ids=[
        "clients",
        "runs",
        "seed",
        "network",
        "deviation",
        "error",
        "policy",
        "limit",
        "hedge",
    ],
)
def test_an_argument_out_of_bounds_is_an_error(settings, message):
    with pytest.raises(ConfigError) as raised:
        contend(**{"policy": FOREVER} | settings)
    assert raised.value.message.startswith(message)


@pytest.mark.parametrize("share", [1e-300, 1e-20, 0.01, 0.075, 0.3, 0.6, 0.93, 0.9999])
def test_quantiles_of_the_normal_distribution_are_exact(share):
    exact = NormalDist().inv_cdf(share)
    assert normal_quantile(share) == pytest.approx(exact, rel=1e-14)
