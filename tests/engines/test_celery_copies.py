"""A worker of Celery that dies when it has sent a message leaves two of a job."""

import pytest

from tests.engines.celery_engine import CeleryOnClassic, CeleryOnQuorum, CeleryOnRedis

KINDS = [CeleryOnRedis, CeleryOnQuorum, CeleryOnClassic]

pytestmark = [
    pytest.mark.engines,
    pytest.mark.parametrize("engine", KINDS, indirect=True, ids=lambda each: each.name),
]


def test_makes_each_attempt_once_though_two_messages_come_at_the_same_time(engine):
    """Slowly enough that both are judged before either has written anything."""
    engine.dies = 2
    worker = engine.work()
    engine.submit("host", fails=3, slow={"3": 2})
    engine.until(lambda: worker.process.poll() is not None, "end of the worker")
    engine.dies, engine.slow = 0, 0.2
    engine.work()
    engine.settled("host")
    assert engine.counted("host") == {1: 1, 2: 1, 3: 1, 4: 1}
