"""Recovery after an outage: twelve policies at five loads, on a server of 300/s.

The model of N. Bronson et al., "Metastable Failures in Distributed Systems", HotOS
2021.
"""

import pytest

from retrykit.budgets import RatioBudget
from tests._support.published_tables import METASTABILITY, documented, recovery

SOME = [
    ("no retries", 180, 13),
    ("1 at once", 100, 17),
    ("3 at once", 60, 32),
    ("gRPC's throttle", 180, 14),
    ("SRE book, 10 %", 180, 20),
    ("AWS SDK 2.1", 100, 5),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "load", "published"), SOME)
def test_some_published_recoveries_are_reproduced(name, load, published):
    policy, _ = METASTABILITY[name]
    found = [recovery(policy, load, seed, horizon=60) for seed in (1, 2)]
    assert sum(found) / 2 == pytest.approx(published, rel=0.2, abs=1.5)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "load"), [("1 at once", 180), ("3, full jitter from 1 s", 100)]
)
def test_some_policies_do_not_recover(name, load):
    policy, _ = METASTABILITY[name]
    assert recovery(policy, load, horizon=60) is None


@pytest.mark.parametrize("name", METASTABILITY)
def test_the_documented_recoveries_are_near_the_published_ones(name):
    policy, seconds = METASTABILITY[name]
    # Retries count for a tenth of the window longer than published, so that there
    # are fewer.
    allowed = 0.15 if isinstance(policy.budget, RatioBudget) else 0.1
    for cell, published in zip(documented("metastability")[name], seconds, strict=True):
        first, _, found = cell.partition(" / ")
        assert first == str(published or "-")
        if published is None:
            assert found == "-"
        else:
            assert float(found) == pytest.approx(published, rel=allowed, abs=2)
