"""How far a simulation is, and what is left if it is interrupted."""

from operator import lt

import pytest

from retrykit import ConfigError, Policy
from retrykit.budgets import Budget
from retrykit.limits import CircuitBreaker
from retrykit.simulate import Clients, Outage, Server, simulate, simulation_of

IMMEDIATE = Policy(schedule=[0, 0, 0])
AGAIN = "2 min 20 s: it has recovered at once, but fails again: 4.9 times its load"
LONG_DELAY = Policy(schedule=[30, 0, 0, 0])


class Interrupting(Budget):
    """A budget that is asked when somebody interrupts the program."""

    def withdraw(self, error):
        raise KeyboardInterrupt

    def deposit(self, cost):
        """Take no note."""

    @property
    def balance(self):
        return 1.0


def interrupted(second, policy=IMMEDIATE, **settings):
    """Return what is left of a simulation that is interrupted after a second."""

    def stop(seconds, of):
        if seconds == second:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        simulate(policy, progress=stop, **{"horizon": "30s"} | settings)
    return simulation_of(caught.value)


def test_progress_is_told_second_by_second():
    told = []
    simulate(
        IMMEDIATE,
        load="20%",
        outage=Outage("1s", begin="1s"),
        horizon="10s",
        progress=lambda *given: told.append(given),
    )
    assert told == [(second, 12) for second in range(1, 13)]


def test_an_interrupted_simulation_is_the_beginning_of_the_whole_one():
    whole = simulate(IMMEDIATE, load="60%", horizon="30s")
    part = interrupted(25)
    again = interrupted(25, load="60%")
    assert part.outcome == again.outcome == "interrupted"
    for name in ("load", "goodput", "queue", "pending"):
        assert getattr(again, name) == getattr(whole, name)[:25], name
    assert again.calls == sum(again.load) - again.retries
    assert again.attempts == sum(again.load)


@pytest.mark.parametrize(
    ("second", "settings", "verdict"),
    [
        (8, {}, "8 s of 50 s, before the end of the outage"),
        (19, {}, "19 s of 50 s, before the end of the outage"),
        (40, {}, "40 s of 50 s: it has not recovered, 3.8 times its load"),
        (
            40,
            {"load": "20%", "outage": Outage("10s", "error")},
            "40 s of 50 s: it has recovered at once",
        ),
        (
            45,
            {"load": "60%", "policy": Policy(max_attempts=1)},
            "45 s of 50 s: it has recovered 13.5 s after the outage",
        ),
        (12, {"outage": None}, "12 s of 30 s"),
        (
            110,
            {
                "policy": LONG_DELAY,
                "load": "90%",
                "outage": Outage("10s", "error"),
                "horizon": "2m",
            },
            f"1 min 50 s of {AGAIN}",
        ),
    ],
    ids=["before", "in it", "after", "at once", "recovered", "none", "again"],
)
def test_the_verdict_of_an_interrupted_simulation_says_how_far_it_came(
    second, settings, verdict
):
    assert str(interrupted(second, **settings)) == f"interrupted after {verdict}"


@pytest.mark.parametrize(
    ("second", "outage", "seconds"),
    [
        (25, Outage("10s"), 2),
        (8, Outage("10s"), 2),
        (21, None, 6),
        (21, Outage("1s"), 3),
    ],
)
def test_the_final_load_is_that_of_the_last_quarter_since_the_outage(
    second, outage, seconds
):
    """Before its end, it is that of the last quarter of all seconds."""
    found = interrupted(second, load="60%", outage=outage)
    last = found.load[-seconds:]
    assert found.final_load == sum(last) / seconds / found.normal


def test_no_counts_of_a_second_that_is_not_over_are_left():
    """Nor of the servers behind the first one, nor of clients with layers."""
    policy = IMMEDIATE.replace(admission=[CircuitBreaker(open_for="1s")])
    settings = {
        "server": [Server(1000, slots=100), Clients(IMMEDIATE), Server(20)],
        "outage": Outage("5s", begin="1s"),
        "horizon": "10s",
    }
    whole = simulate(policy, **settings)
    requests = [0] * 2
    for second in (5, 10, 15):
        found = interrupted(second, policy, **settings)
        assert found.load == whole.load[:second]
        assert found.attempts == sum(found.load)
        assert found.calls >= found.attempts - found.retries
        assert all(map(lt, requests, found.requests))
        requests = found.requests
    assert requests[1] < whole.requests[1]


def test_attempts_that_still_run_are_no_recovery():
    """All attempts of the last second before the interruption may still fail."""
    assert interrupted(25, load="20%", outage=Outage("10s", begin=10)).recovery is None


def test_nothing_is_left_of_less_than_a_second():
    policy = IMMEDIATE.replace(budget=Interrupting())
    with pytest.raises(KeyboardInterrupt) as caught:
        simulate(policy, outage=Outage("1s", "error", begin=0))
    assert simulation_of(caught.value) is None
    assert simulation_of(ValueError()) is None


def test_progress_must_be_a_function():
    with pytest.raises(ConfigError, match="progress must be a function"):
        simulate(IMMEDIATE, progress="bar")
