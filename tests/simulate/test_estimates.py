"""How many attempts a simulation is expected to make, and how long it may take."""

import logging

import pytest

from retrykit import Hedge, Policy, presets
from retrykit.budgets import FleetBudget, RatioBudget
from retrykit.config._preset_names import BUILT_IN
from retrykit.limits import CircuitBreaker
from retrykit.schedules import constant, decorrelated, exponential
from retrykit.simulate import Clients, Outage, Server, Users, simulate
from retrykit.simulate._progress import Watcher
from retrykit.simulate._simulate import run

IMMEDIATE = Policy(schedule=[0, 0, 0])
ONCE = Policy(max_attempts=1)
ENDLESS = Policy(max_attempts=None, max_elapsed=None, schedule=constant(0))
ERROR = Outage("3s", "error")
CHAIN = [Server(1000, slots=50), Clients(IMMEDIATE), Server(20)]


class BegunError(Exception):
    """Ends a simulation that would take long."""


class Asking(Watcher):
    """Keeps the estimate of a simulation; may end it."""

    def __init__(self, *, ends=True):
        super().__init__()
        self.ends = ends

    def expect(self, estimate):
        self.found = estimate()
        if self.ends:
            raise BegunError


def estimated(policy, **settings):
    """Return the estimate of a simulation that does not run."""
    watcher = Asking()
    with pytest.raises(BegunError):
        run(policy, watcher=watcher, **{"load": "70%", "outage": "10s"} | settings)
    return watcher.found


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        (ONCE, {}),
        (IMMEDIATE, {}),
        (IMMEDIATE, {"outage": None}),
        (IMMEDIATE, {"load": [n / 15 for n in range(600)]}),
        (IMMEDIATE, {"load": Users(15, "1s")}),
        (Policy(schedule=exponential(1).full_jitter(), max_attempts=4), {}),
        (Policy(max_attempts=None, max_elapsed="3s"), {}),
        (Policy(max_attempts=26, schedule=constant("1h")), {}),
        ([Clients(IMMEDIATE), Clients(ONCE)], {}),
        (IMMEDIATE.replace(budget=FleetBudget()), {}),
        (IMMEDIATE.replace(budget=RatioBudget(reserve=10)), {}),
        (IMMEDIATE.replace(admission=[CircuitBreaker()]), {}),
        (ONCE.replace(hedge=Hedge("10ms", extra=1, idempotent=True)), {}),
        (Clients(IMMEDIATE, sdk=IMMEDIATE), {}),
        (Clients(IMMEDIATE.replace(attempt_timeout="2s"), sdk=IMMEDIATE), {}),
        (ENDLESS, {}),
        (ENDLESS, {"outage": ERROR}),
        (ENDLESS, {"load": Users(30, "3s"), "outage": ERROR}),
        (IMMEDIATE, {"outage": ERROR.replace(share=0.1)}),
        (ENDLESS, {"outage": "3s", "server": Server(20, queue_bound="500ms")}),
        (IMMEDIATE, {"server": CHAIN}),
    ],
    ids=[
        "once",
        "immediate",
        "no outage",
        "recorded",
        "users",
        "jitter",
        "max_elapsed",
        "long delays",
        "mixed",
        "budget",
        "reserve",
        "breaker",
        "hedge",
        "sdk",
        "sdk in a timeout",
        "endless",
        "endless errors",
        "users without an end",
        "partial",
        "bound",
        "chain",
    ],
)
def test_an_estimate_of_attempts_is_right_within_a_factor_of_three(policy, settings):
    watcher = Asking(ends=False)
    given = {"server": Server(20), "load": "70%", "outage": "10s", "horizon": "20s"}
    result = run(policy, watcher=watcher, **given | settings)
    assert result.attempts / 3 < watcher.found.attempts < result.attempts * 3


@pytest.mark.parametrize(
    ("policy", "settings", "expected"),
    [
        (IMMEDIATE, {}, 1.8),
        (IMMEDIATE.replace(budget=FleetBudget()), {}, 4.0),
        (Policy(schedule=decorrelated(0.1), max_attempts=9), {}, 13.8),
        (IMMEDIATE, {"server": Server(order="newest_first")}, 7.7),
        (IMMEDIATE, {"state": (100, 100)}, 7.7),
        (IMMEDIATE.replace(admission=[CircuitBreaker()]), {}, 28.6),
        (IMMEDIATE, {"server": CHAIN}, 122),
    ],
    ids=["plain", "budget", "decided", "events", "state", "layers", "chain"],
)
def test_an_estimate_knows_how_long_each_attempt_takes(policy, settings, expected):
    """In microseconds, without numpy."""
    found = estimated(policy, engine="one by one", **{"load": "10%"} | settings)
    micros = found.seconds / found.attempts * 1e6
    assert micros == pytest.approx(expected, rel=0.1)


def test_a_state_at_the_beginning_is_part_of_the_estimate():
    less, more = (estimated(IMMEDIATE, state=(n, n)).attempts for n in (0, 10_000))
    assert 30_000 < more - less < 60_000


@pytest.mark.parametrize("name", ["zizq", *BUILT_IN])
def test_no_preset_takes_minutes_by_default(name):
    policy = getattr(presets, name.replace("-", "_"))()
    assert estimated(policy).seconds < 20


def begin(policy, **settings):
    def stop(seconds, of):
        raise BegunError

    with pytest.raises(BegunError):
        simulate(policy, progress=stop, **settings)


LONG = {"server": Server(1000, order="newest_first"), "horizon": "5990s"}


def test_a_simulation_that_may_take_minutes_is_logged_before_it_begins(caplog):
    begin(IMMEDIATE, **LONG)
    [record] = caplog.records
    assert record.getMessage() == (
        "this simulation may take 2 min 10 s, for about 17,000,000 attempts; with a "
        "shorter horizon, or a server of less capacity, it takes less"
    )
    assert (record.name, record.levelno) == ("retrykit", logging.WARNING)


def test_a_simulation_that_takes_seconds_is_not_logged(caplog):
    # The same attempts, of a server whose ends of service are known at arrival.
    begin(IMMEDIATE, **LONG | {"server": Server(1000)})
    begin(IMMEDIATE, **LONG | {"horizon": "1000s"})
    assert caplog.records == []


def test_no_estimate_is_made_where_nobody_is_told():
    Watcher(runs=0).expect(pytest.fail)
