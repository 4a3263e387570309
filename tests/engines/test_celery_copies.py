"""A Celery worker that dies before it acknowledges leaves two messages of a job."""

import pytest

from tests.engines.celery_engine import CeleryOnClassic, CeleryOnQuorum, CeleryOnRedis

KINDS = [CeleryOnRedis, CeleryOnQuorum, CeleryOnClassic]

pytestmark = [
    pytest.mark.engines,
    pytest.mark.parametrize("engine", KINDS, indirect=True, ids=lambda each: each.name),
]


def test_runs_each_attempt_once_if_two_messages_arrive_at_the_same_time(engine):
    """Results are stored so slowly that both are checked before either is recorded."""
    engine.dies = 2
    worker = engine.start_worker()
    engine.submit("host", fails=3, slow={"3": 2})
    engine.wait_until(lambda: worker.process.poll() is not None, "end of the worker")
    engine.dies, engine.slow = 0, 0.2
    engine.start_worker()
    engine.wait_until_ended("host")
    assert engine.count_attempts("host") == {1: 1, 2: 1, 3: 1, 4: 1}
