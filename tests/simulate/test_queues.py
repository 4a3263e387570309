"""Mean waits, held against the formulas of queueing theory."""

import math
from itertools import pairwise

import pytest

from retrykit import Policy
from retrykit.simulate import Clients, Outage, Server, Users, simulate
from tests._support.simulated_attempts import attempts_of

PATIENT = Clients(Policy(max_attempts=1), timeout="1h")
NETWORK = 0.001


def mean_and_error(waits):
    """Return the mean of a series and its standard error, from 30 parts of it."""
    size = len(waits) // 30
    parts = [sum(waits[i * size : (i + 1) * size]) / size for i in range(30)]
    mean = sum(parts) / 30
    return mean, math.sqrt(sum((each - mean) ** 2 for each in parts) / 30 / 29)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("service", "expected"),
    [
        # Service, and the wait for it: rho / (mu (1 - rho)), and half of that.
        ("exponential", 1 / 100 + 0.6 / (100 * 0.4)),
        ("constant", 1 / 100 + 0.6 / (2 * 100 * 0.4)),
    ],
    ids=["M/M/1", "M/D/1"],
)
def test_the_mean_wait_is_that_of_theory(service, expected):
    server = Server(100, service=service)
    attempts = attempts_of(PATIENT, "60%", server=server, horizon="150s")
    waits = [end - sent - NETWORK for _, _, sent, end, _, _ in attempts]
    mean, error = mean_and_error(waits)
    assert error < 0.1 * expected
    assert abs(mean - expected) < 3 * error


@pytest.mark.thorough
def test_two_slots_wait_less_than_one():
    """M/M/2 with the utilization 0.6: the wait is rho**2 / (mu (1 - rho**2))."""
    server = Server(100, slots=2, service="exponential")
    attempts = attempts_of(PATIENT, "60%", server=server, horizon="150s")
    waits = [end - sent - NETWORK for _, _, sent, end, _, _ in attempts]
    mean, error = mean_and_error(waits)
    expected = 1 / 50 + 0.36 / (50 * 0.64)
    assert abs(mean - expected) < 3 * error


def test_open_arrivals_are_a_poisson_process():
    attempts = attempts_of(PATIENT, "50%", outage=None, horizon="150s")
    began = sorted(sent for _, _, sent, *_ in attempts)
    gaps = [after - before for before, after in pairwise(began)]
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(1 / 50, rel=0.05)
    # Of an exponential distribution, the deviation is the mean.
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert deviation == pytest.approx(mean, rel=0.05)


def test_users_wait_for_the_end_of_a_call():
    """40 users who think for 1 s make 40 / (1 + 0.011) calls a second."""
    users, server = Users(40, think="1s"), Server(10_000, slots=100)
    result = simulate(PATIENT, load=users, server=server, outage=None, horizon="60s")
    assert result.calls == pytest.approx(60 * 40 / 1.011, rel=0.05)
    assert result.mean_wait == pytest.approx(0.011)


@pytest.mark.thorough
def test_backoff_sheds_the_load_of_users_who_wait():
    """The load in a long outage is k T / (T + the sum of the mean delays)."""
    users, retried = Users(100, think="2s"), Policy(schedule=[0, 0, 0])
    slow = Policy(schedule=[1, 1, 1])
    loads = []
    for policy in (retried, slow):
        result = simulate(
            policy,
            load=users,
            outage=Outage("190s", "refuse"),
            server=Server(1000),
            horizon="10s",
        )
        loads.append(sum(result.load[20:200]) / 180 / 50)
    assert loads == pytest.approx([3.941, 1.6], rel=0.02)
