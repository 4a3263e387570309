"""Retries of layers that multiply: 3^5 and 4^3 requests.

J. Brooker, "Timeouts, retries, and backoff with jitter", Amazon Builders' Library;
"Site Reliability Engineering", chapter 22, 2016.
"""

import pytest

from tests._support.published_tables import LAYERS, layered


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in LAYERS if "half" not in name][:4])
def test_published_multiples_are_reproduced(name):
    depth, attempts, kind, share, published = LAYERS[name]
    found, succeeded = layered(depth, attempts, kind, share)
    # The bucket has ten retries to begin with, in each layer.
    assert found == pytest.approx(published, abs=0.05 if kind == "bucket" else 1e-9)
    assert succeeded == 0


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*LAYERS][4:])
def test_published_multiples_of_a_share_of_failures_are_reproduced(name):
    depth, attempts, kind, share, published = LAYERS[name]
    found, succeeded = layered(depth, attempts, kind, share)
    assert found == pytest.approx(published, rel=0.02)
    assert succeeded == pytest.approx(0.869 if kind == "marker" else 1, abs=0.015)
    # Closed forms: attempts until one succeeds, at most so many.
    most = attempts if kind == "marker" else attempts**depth
    closed = (1 - share**most) / (1 - share)
    assert published == pytest.approx(closed, abs=0.011)
