"""A short run of ``python -m tests.engines.chaos`` on every engine."""

import pytest

from tests.engines.chaos import run

pytestmark = pytest.mark.engines


def test_loses_and_doubles_nothing_if_workers_are_killed_at_random_moments(engine):
    outcome = run(engine, jobs=20, kills=3, seed=1)
    assert outcome.run - outcome.cut - outcome.again == outcome.expected, outcome
    assert (outcome.lost, outcome.doubled, outcome.unended) == (0, 0, 0), outcome
    engine.table.append(f"{outcome.cut} cut, {outcome.again} again before recorded")
