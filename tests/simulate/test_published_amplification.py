"""Attempts per call and successes, where each attempt fails with one probability.

The axes of M. Brooker, "Fixing retries with token buckets and circuit breakers", 2022;
and the closed forms of N attempts.
"""

import pytest

from tests._support.published_tables import AMPLIFICATION, FAILING, amplify, documented

SOME = [("4 attempts", 4), ("0.1 per success", 3), ("Finagle", 5), ("AWS SDK 2.0", 5)]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "index"), SOME)
def test_some_published_cells_are_reproduced(name, index):
    policy, attempts, succeed = AMPLIFICATION[name]
    found = amplify(policy, FAILING[index], calls=12_000)
    assert found == pytest.approx((attempts[index], succeed[index]), abs=0.02)


@pytest.mark.parametrize("name", AMPLIFICATION)
def test_the_documented_cells_are_near_the_published_ones(name):
    for index, cell in enumerate(documented("amplification")[name]):
        found = [float(x) for x in cell.partition(" / ")[2].split(", ")]
        published = [row[index] for row in AMPLIFICATION[name][1:]]
        assert found == pytest.approx(published, abs=0.008)


def test_the_closed_forms_agree_with_the_published_cells():
    for index, x in enumerate(FAILING):
        _, attempts, succeed = AMPLIFICATION["4 attempts"]
        assert sum(x**n for n in range(4)) == pytest.approx(attempts[index], abs=6e-3)
        assert 1 - x**4 == pytest.approx(succeed[index], abs=1e-3)
    _, attempts, _ = AMPLIFICATION["0.1 per success"]
    for index in (2, 3, 4, 5):
        earned = 0.1 * (1 - FAILING[index])
        assert attempts[index] == pytest.approx(1 + earned / (1 - earned), abs=2e-3)
