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


def lose_message(engine, worker):
    """Stop the worker, and start a job whose message goes to it; return the job.

    Between two requests to Redis the worker takes no message: another one is needed.
    """
    with redis.Redis(port=engine.server.port) as client:

        def is_idle():
            return client.llen("celery") == client.hlen("unacked") == 0

        for job in (f"host-{number}" for number in range(20)):
            engine.wait_until(is_idle, "idle worker", 20)
            os.kill(worker.process.pid, signal.SIGSTOP)
            engine.submit(job, fails=1)
            if is_idle():
                return job
            os.kill(worker.process.pid, signal.SIGCONT)
            engine.wait_until_ended(job)
    pytest.fail("no message was taken by a stopped worker")


def test_a_job_whose_message_is_lost_is_sent_again(engine):
    worker = engine.start_worker()
    engine.submit("first")
    engine.wait_until_ended("first")
    job = lose_message(engine, worker)
    worker.kill()
    engine.start_worker()
    report = engine.wait_until_ended(job, 60)
    assert report["status"] == "succeeded"
    assert engine.count_attempts(job) == {1: 1, 2: 1}
    assert f"{job}: sent again, its message was lost" in engine.describe()
