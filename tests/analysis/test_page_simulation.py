"""The simulation of the HTML report equals that of the library, to the digit."""

import math
from fractions import Fraction
from itertools import islice
from random import Random
from threading import Event

import pytest
from hypothesis import given, settings, strategies as st

from retrykit import Policy, Rule, budgets, hints, schedules as s
from retrykit._internal.durations import duration_in_words
from retrykit.analysis.html_report._policy_data import policy_data
from retrykit.analysis.html_report._simulation_data import (
    simulation_data,
    stream_keys,
)
from retrykit.schedules._base import is_uniform
from retrykit.schedules._basic import saturated_product
from retrykit.schedules._randomness import call_random
from retrykit.simulate._draws import logarithm
from retrykit.testing import strategies
from tests._support.outage_vectors import VECTORS, result_of
from tests._support.page_scripts import run_in_node
from tests._support.reference_data import reference_data
from tests._support.schedule_data import schedule_data

pytestmark = pytest.mark.thorough

RESULTS = reference_data("outages")

REPLAY = (
    "return given[0].map(([policy, settings, digits]) => {"
    "  const named = Object.entries(digits).map(([n, d]) => [n, keyOf(d)]);"
    "  return simulate(policy, settings, Object.fromEntries(named), given[1]);"
    "})"
)


def replay(vectors, most=1e9):
    cases = [
        (policy_data("page", policy), chosen, stream_keys(chosen["seed"]))
        for policy, chosen in vectors
    ]
    return run_in_node(REPLAY, cases, most)


def test_the_page_has_the_stored_results():
    for (policy, chosen), ours, theirs in zip(
        VECTORS, replay(VECTORS), RESULTS, strict=True
    ):
        assert ours == theirs, (policy, chosen)


def test_the_stored_results_are_those_of_the_library():
    for (policy, chosen), stored in zip(VECTORS, RESULTS, strict=True):
        assert result_of(policy, chosen) == stored, (policy, chosen)


def test_the_stored_results_have_every_outcome():
    outcomes = {stored["outcome"] for stored in RESULTS}
    assert outcomes == {"recovers", "does not recover", "not decided", "fails again"}
    assert any(", and for good" in stored["verdict"] for stored in RESULTS)


def test_too_many_events_end_a_simulation():
    assert replay(VECTORS[:2], most=10_000)[0] is None
    assert replay(VECTORS[:2], most=10_000)[1] is not None


def test_streams_are_those_of_the_library():
    digits = stream_keys(7)
    found = run_in_node(
        "return Object.values(given[0]).map((digits) => {"
        "  const random = mersenneTwister(keyOf(digits));"
        "  return Array.from({ length: 1500 }, random);"
        "})",
        digits,
    )
    for name, ours in zip(digits, found, strict=True):
        random = Random(f"7 {name}")  # noqa: S311  as in `Stream`
        assert ours == [random.random() for _ in ours]


def test_draws_of_delays_are_those_of_a_call():
    seeds = [0, 1, 2**32 - 1, 2**32, 2**53 - 1, 2**64 - 1, 0x0123_4567_89AB_CDEF]
    retries = [1, 2, 63, 1000, 10**6]
    found = run_in_node(
        "return given[0].map(([high, low]) => given[1].map((retry) => {"
        "  const random = new CallDraws(high, low).of(retry);"
        "  return [random(), random(), random.previous()(), random()];"
        "}))",
        [[seed >> 32, seed & 0xFFFF_FFFF] for seed in seeds],
        retries,
    )
    for seed, ours in zip(seeds, found, strict=True):
        for retry, draws in zip(retries, ours, strict=True):
            random = call_random(seed, retry)
            theirs = [random.random(), random.random()]
            theirs += [random.previous_retry().random(), random.random()]
            assert draws == theirs, (seed, retry)


def test_logarithms_are_those_of_the_library():
    random = Random(5)  # noqa: S311  the same numbers in every run
    numbers = [1.0, 0.5, 2**-53, math.sqrt(0.5), *(random.random() for _ in range(99))]
    found = run_in_node("return given[0].map(logarithm)", numbers)
    assert found == [logarithm(number) for number in numbers]


def test_integer_powers_are_right_to_the_last_bit():
    """Like Python's, nearly all; `Math.pow` is off by a bit in one of ten."""
    random = Random(6)  # noqa: S311  the same numbers in every run
    cases = [(random.uniform(1, 3), random.randint(0, 60)) for _ in range(500)]
    exact = [float(Fraction(base) ** exponent) for base, exponent in cases]
    edges = [(1.1, 7000), (10.0, 308), (10.0, 309), (1e200, 2), (0.0, 3), (1.5, 0.5)]
    exact += [saturated_product(1.0, base, exponent) for base, exponent in edges]
    powers = "return given[0].map(([base, exponent]) => product(1, base, exponent))"
    assert [*map(float, run_in_node(powers, cases + edges))] == exact


@settings(max_examples=3)
@given(st.lists(strategies.schedules(), min_size=60, max_size=120))
def test_delays_are_those_of_the_library(drawn):
    seed, retries = 2**40 + 7, 12
    found = run_in_node(
        "return given[0].map((s) => {"
        "  const [delayOf, delays] = [drawnDelays(s), []];"
        "  for (let retry = 1; retry <= given[2]; retry++) {"
        "    const draws = new CallDraws(...given[1]);"
        "    const delay = delayOf(retry, delays.at(-1) ?? null, draws);"
        "    if (delay === null) break;"
        "    delays.push(delay);"
        "  }"
        "  return delays;"
        "})",
        [schedule_data(schedule) for schedule in drawn],
        [seed >> 32, seed & 0xFFFF_FFFF],
        retries,
    )
    for schedule, ours in zip(drawn, found, strict=True):
        theirs = [*islice(schedule.draw(seed), retries)]
        assert len(ours) == len(theirs), schedule
        for one, other in zip(ours, theirs, strict=True):
            assert math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12), schedule


def test_uniform_schedules_are_those_of_the_library():
    schedules = [
        s.exponential(1).jitter(0.5),
        s.exponential(1).jitter(0.5).cap(60),
        s.uniform(1, 2).take(3),
        s.constant(1).within(5),
        s.constant(1) + s.uniform(1, 2),
        s.uniform(1, 2).full_jitter(),
        s.google_interval(),
    ]
    found = run_in_node(
        "return given[0].map(isUniform)", [schedule_data(each) for each in schedules]
    )
    assert found == [is_uniform(each) for each in schedules]


def test_words_and_numbers_are_those_of_the_library():
    durations = [0, 1e-10, 0.0123, 7.25, 59.95, 90.4, 300, 3600, 5400, 90_000]
    tenths = [0.25, 0.35, 0.75, 2.25, 4.0, 14.449999, 1 / 3]
    quotients = [(0.3, 0.1), (0.7, 0.1), (10.0, 0.7), (1.0, 0.1), (299.9999, 1.0)]
    found = run_in_node(
        "return [given[0].map(durationInWords), given[1].map(formatTenths),"
        " given[2].map(([x, y]) => floorDivide(x, y))]",
        durations,
        tenths,
        quotients,
    )
    assert found[0] == [duration_in_words(each) for each in durations]
    assert found[1] == [f"{each:.1f}" for each in tenths]
    assert found[2] == [x // y for x, y in quotients]


def fail(error):
    raise LookupError(error)


async def is_busy(error):
    return bool(error)


MISSING = {
    "rules": Policy(rules=[Rule(on=OSError, schedule=[1])]),
    "stop_event": Policy(stop_event=Event()),
    "sleep": Policy(sleep=print),
    "on_result": Policy(on_result=callable),
    "hint": Policy(hint=lambda _error: 5.0),
    "hint that fails": Policy(hint=fail),
    "budget": Policy(budget=budgets.RatioBudget(0.1234567, reserve=999_999.7654321)),
    "budget of large numbers": Policy(budget=budgets.Throttle(2**53 - 1)),
    "budget of a large bank": Policy(budget=budgets.FleetBudget(capacity=2**53 - 1)),
    "budget with a predicate that fails": Policy(
        budget=budgets.FleetBudget(timeouts=fail)
    ),
    "budget that fails": Policy(budget=budgets.TokenBucket(costs=((fail, 3),))),
}


@pytest.mark.parametrize("name", MISSING)
def test_what_the_page_cannot_simulate_is_named(name):
    assert simulation_data(MISSING[name]) == {"missing": name.partition(" ")[0]}


def test_a_hint_that_says_nothing_is_no_obstacle():
    found = simulation_data(Policy(hint=hints.retry_after()))
    assert found["retried"] == [True] * 4


def test_outages_whose_errors_are_not_retried_have_a_reason():
    found = simulation_data(Policy(on=ConnectionError))
    assert found["retried"] == [False, True, False, False]
    assert found["reasons"]["refuse"] is None
    assert "matches TimeoutError" in found["reasons"]["hang"]
    assert "503" in found["reasons"]["error"]
    found = simulation_data(Policy(on=is_busy))
    assert found["retried"] is None
    assert "sync" in found["reasons"]["hang"]


def test_budgets_are_data():
    bucket = budgets.TokenBucket(70, cost=7, costs=((TimeoutError, 9),), reward=2)
    costs = [9, 7, 7, 7]
    data = simulation_data(Policy(budget=bucket))["budget"]
    assert data == {
        "kind": "token_bucket",
        "costs": costs,
        "capacity": 70,
        "reward": 2,
        "refunds": True,
    }
    fleet = budgets.FleetBudget(0.15, capacity=3, recent="50ms")
    assert simulation_data(Policy(budget=fleet))["budget"] == {
        "kind": "fleet_budget",
        "retry": 20,
        "gain": 3,
        "full": 60,
        "recent": 0.05,
        "late": [True, False, False, False],
    }
    data = simulation_data(Policy(budget=budgets.Throttle(20, 0.1239)))["budget"]
    assert data == {"kind": "throttle", "gain": 123, "full": 20_000}
    data = simulation_data(Policy(budget=budgets.RatioBudget(0.25, reserve=10)))[
        "budget"
    ]
    whole = {"retry": 4, "gain": 1, "least": 400, "width": 1.0}
    assert data == {"kind": "ratio_budget", **whole}


def test_a_seed_is_words():
    assert simulation_data(Policy(seed=2**32 + 5))["seed"] == [1, 5]
