"""Jobs on Celery whose attempts kill the processes that make them."""

import pytest

from tests.engines.celery_engine import CeleryOnQuorum, CeleryOnRedis

KINDS = [CeleryOnRedis, CeleryOnQuorum]

pytestmark = [
    pytest.mark.engines,
    pytest.mark.parametrize("engine", KINDS, indirect=True, ids=lambda each: each.name),
]


def test_an_attempt_that_kills_its_worker_each_time_makes_its_job_dead(engine):
    engine.start_worker()
    engine.submit("host", fails=3, exits=2)
    engine.submit("good", fails=1)
    report = engine.wait_until_ended("host")
    assert report["reason"] == "its worker was killed 3 times in attempt 2"
    keys = [each.key for each in engine.started_attempts("host")]
    assert keys == ["host:1", "host:2", "host:2", "host:2"]
    assert engine.wait_until_ended("good")["status"] == "succeeded"
    # Celery writes the ledger before it moves the message.
    engine.wait_until(
        lambda: engine.request("dead") == ["host"], "dead job that is listed"
    )
    engine.request("requeue", "host")
    engine.wait_for_start(2, "host#2")
