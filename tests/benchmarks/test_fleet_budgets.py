"""The table of budgets and fleets."""

import pytest

from benchmarks.fleet_budgets import BUDGETS, NO_RETRY, least_recovery, recovery
from retrykit import Policy
from tests._support.documents import ROOT

PAGE = ROOT / "docs" / "avoiding_retry_storms.md"


def test_the_page_has_a_row_for_each_budget():
    text = PAGE.read_text("utf-8")
    assert [name for name in BUDGETS if text.count(f"\n| {name} |") != 2] == []


def test_the_formula_of_one_retry_agrees_with_the_simulation():
    name = "one retry: `TokenBucket(1, cost=1, costs=())`"
    for processes, load in ((1, "73%"), (100, "60%"), (1_000, "60%")):
        found = recovery(BUDGETS[name], processes, load, seeds=(1, 2))
        assert found == pytest.approx(least_recovery(processes, load), rel=0.1)


def test_without_retries_the_formula_is_that_of_the_queue():
    least = least_recovery(100, "60%", retried=0.0)
    assert least == pytest.approx((600 - 100) / 40)
    assert recovery(NO_RETRY, 100, "60%", seeds=(1, 2)) == pytest.approx(
        least, rel=0.15
    )


def test_a_cell_without_recovery_is_none():
    stubborn = Policy(schedule=[0, 0, 0])
    assert recovery(stubborn, 1, "60%", seeds=(1,)) is None
