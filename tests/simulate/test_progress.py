"""How far a simulation is, how long it takes, and what is left if it is interrupted."""

import logging

import pytest

from retrykit import ConfigError, Policy
from retrykit.budgets import Budget, Throttle
from retrykit.schedules import constant
from retrykit.simulate import (
    Clients,
    Outage,
    Server,
    Users,
    simulate,
    simulation_of,
)

IMMEDIATE = Policy(schedule=[0, 0, 0])


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
        (40, {}, "40 s of 50 s: it has not recovered, 3.7 times its load"),
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
    ],
    ids=["before", "in it", "after", "at once", "recovered", "none"],
)
def test_the_verdict_of_an_interrupted_simulation_says_how_far_it_came(
    second, settings, verdict
):
    assert str(interrupted(second, **settings)) == f"interrupted after {verdict}"


def test_attempts_that_still_run_are_no_recovery():
    """All attempts of the last second before the interruption may still fail."""
    assert interrupted(25, load="20%", outage=Outage("10s", begin=10)).recovery is None


def test_nothing_is_left_of_less_than_a_second():
    policy = IMMEDIATE.replace(budget=Interrupting())
    with pytest.raises(KeyboardInterrupt) as caught:
        simulate(policy, outage=Outage("1s", "error", begin=0))
    assert simulation_of(caught.value) is None
    assert simulation_of(ValueError()) is None


WARNING = (
    "this simulation may take 2 min 50 s, for up to 17,000,000 attempts; with a "
    "shorter horizon, or a server of less capacity, it takes less"
)


class BegunError(Exception):
    """Ends a simulation that would take long."""


def begin(policy, **settings):
    def stop(seconds, of):
        raise BegunError

    with pytest.raises(BegunError):
        simulate(policy, progress=stop, **settings)


def warnings(caplog):
    return [record.getMessage() for record in caplog.records]


def test_a_simulation_that_may_take_minutes_is_logged_before_it_begins(caplog):
    begin(IMMEDIATE, server=Server(1000), horizon="5990s")
    assert warnings(caplog) == [WARNING]
    [record] = caplog.records
    assert (record.name, record.levelno) == ("retrykit", logging.WARNING)


@pytest.mark.parametrize(
    ("policy", "horizon"),
    [
        (IMMEDIATE, "2000s"),
        (IMMEDIATE.replace(max_attempts=1), "8000s"),
        (IMMEDIATE.replace(budget=Throttle()), "4000s"),
        (Policy(max_attempts=None, max_elapsed="3s"), "2000s"),
        (Policy(max_attempts=26, schedule=constant("1h")), "2000s"),
        ([Clients(IMMEDIATE), Clients(IMMEDIATE.replace(max_attempts=1))], "3000s"),
    ],
    ids=["short", "once", "budget", "max_elapsed", "delays", "mixed"],
)
def test_a_simulation_is_short_if_its_attempts_are_few(policy, horizon, caplog):
    begin(policy, server=Server(1000), horizon=horizon)
    assert warnings(caplog) == []


def test_users_and_endless_retries_are_expected_to_make_the_most_attempts(caplog):
    endless = Policy(max_attempts=None, max_elapsed=None, schedule=constant(0))
    begin(endless, load=Users(1000, "20s"), horizon="1000s")
    assert warnings(caplog)[0].startswith(
        "this simulation may take 8 min 40 s, for up to 52,000,000"
    )


def test_progress_must_be_a_function():
    with pytest.raises(ConfigError, match="progress must be a function"):
        simulate(IMMEDIATE, progress="bar")
