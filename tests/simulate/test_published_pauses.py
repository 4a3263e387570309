"""Collapse by one pause, as in happy-simulator 0.2.5.

``examples/queuing/gc_caused_collapse.py``: evenly spaced calls of 100 ms, a timeout of
500 ms, three retries after 50 ms, a garbage collection of a second at 30 s.
"""

import pytest

from tests._support.published_tables import LATE_LOADS, PAUSED, RETRIES, pause


@pytest.mark.thorough
@pytest.mark.parametrize("rate", LATE_LOADS)
def test_its_figures_are_reproduced_where_late_answers_count(rate):
    goodput, published = LATE_LOADS[rate]
    found, timeouts = pause(RETRIES, rate, late_answers=True)
    assert found == pytest.approx(goodput, abs=0.05)
    assert timeouts == pytest.approx(published, rel=0.01, abs=8)


@pytest.mark.thorough
@pytest.mark.parametrize("name", PAUSED)
def test_one_setting_decides(name):
    policy, settings, goodput = PAUSED[name]
    found, _ = pause(policy, **settings)
    assert found == pytest.approx(goodput, abs=0.05)


@pytest.mark.parametrize(("rate", "goodput"), [(3, 3.0), (4, 0.0), (5, 0.0)])
def test_less_load_collapses_where_late_answers_do_not_count(rate, goodput):
    assert pause(RETRIES, rate)[0] == pytest.approx(goodput, abs=0.05)


@pytest.mark.parametrize(("most", "timeouts"), [("10", 46), ("100", 345)])
def test_a_budget_bounds_the_timeouts(most, timeouts):
    policy, settings, _ = PAUSED[f"... and 0.1 per success, at most {most}"]
    assert pause(policy, **settings)[1] == pytest.approx(timeouts, abs=2)
