"""Messages that Redis has handed to a worker that was killed before it took them."""

import os
import signal

import pytest
import redis

from tests.engines.celery_engine import CeleryOnRedis

pytestmark = [
    pytest.mark.engines,
    pytest.mark.parametrize(
        "engine", [CeleryOnRedis], indirect=True, ids=lambda each: each.name
    ),
]


def test_a_job_whose_message_is_lost_is_sent_again(engine):
    worker = engine.start_worker()
    engine.submit("first")
    engine.wait_until_ended("first")
    os.kill(worker.process.pid, signal.SIGSTOP)
    engine.submit("host", fails=1)
    with redis.Redis(port=engine.server.port) as client:
        engine.wait_until(
            lambda: client.llen("celery") == client.hlen("unacked") == 0,
            "message in the socket of the worker", 10,
        )  # fmt: skip
    worker.kill()
    engine.start_worker()
    report = engine.wait_until_ended("host", 60)
    assert (report["status"], engine.count_attempts("host")) == (
        "succeeded",
        {1: 1, 2: 1},
    )
    assert "host: sent again, its message was lost" in engine.describe()
