"""Workers of Procrastinate as processes: killed by their jobs, and stopped."""

import signal
import time

import pytest

from tests.engines.procrastinate_engine import Procrastinate

pytestmark = pytest.mark.engines


@pytest.fixture
def engine(tmp_path):
    with Procrastinate(tmp_path) as engine:
        yield engine


def test_a_job_that_kills_its_workers_is_dead_after_three_attempts(engine):
    jobs = [f"host-{number}" for number in range(6)]
    for job in jobs[:3]:
        engine.submit(job, fails=2)
    engine.submit("poison", kind="poison")
    for job in jobs[3:]:
        engine.submit(job, fails=2)
    for _ in range(3):
        # Like a supervisor.
        assert engine.start_worker().process.wait(60) == 1
    engine.start_worker()
    report = engine.wait_until_ended("poison")
    assert report["reason"] == "its worker was killed 3 times in attempt 1"
    assert (report["status"], report["failed"]) == ("dead", 0)
    assert len(engine.started_attempts("poison")) == 3
    for job in jobs:
        assert engine.wait_until_ended(job)["status"] == "succeeded"
        assert engine.count_attempts(job) == {1: 1, 2: 1, 3: 1}
    engine.wait_until(lambda: engine.request("dead") == ["poison"], "dead job")
    engine.request("requeue", "poison")
    engine.wait_for_start(1, "poison#2")


@pytest.mark.parametrize("kind", ["sync", "threaded"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_worker_lets_its_attempts_end(engine, kind, number):
    worker = engine.start_worker()
    engine.submit("host", kind=kind, fails=0, slow={"1": 2})
    engine.wait_for_start(1, "host")
    engine.submit("later", kind=kind, fails=0)
    worker.process.send_signal(number)
    assert worker.process.wait(20) == 0
    assert engine.request("status", "host")["status"] == "succeeded"
    assert engine.request("status", "later")["status"] == "waiting"
    engine.start_worker()
    engine.wait_until_ended("later")
    assert engine.count_attempts("host") == {1: 1}


@pytest.mark.parametrize(("kind", "times"), [("sync", 4), ("threaded", 1)])
def test_an_attempt_that_outlasts_the_grace_is_made_again(engine, kind, times):
    engine.grace = 0.5
    engine.submit("host", kind=kind, fails=0, slow={"1": 6})
    for begun in range(1, times + 1):
        worker = engine.start_worker()
        engine.wait_until(
            lambda n=begun: len(engine.started_attempts("host")) == n, "next attempt"
        )
        stopped = time.monotonic()
        worker.process.send_signal(signal.SIGTERM)
        assert worker.process.wait(20) == 0
        assert time.monotonic() - stopped < 5
        assert engine.request("status", "host")["status"] == "waiting"
    engine.start_worker()
    assert engine.wait_until_ended("host")["status"] == "succeeded", "it was not killed"
    assert engine.count_attempts("host") == {1: times + 1}
    assert "attempts are cut off after 0.5 s" in engine.describe()


def test_a_stopping_worker_is_not_mistaken_for_a_killed_one(engine):
    """Its last attempt takes longer than workers may be silent."""
    worker = engine.start_worker("one")
    engine.submit("host", fails=0, slow={"1": 6})
    engine.wait_for_start(1, "host")
    engine.start_worker("two")
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(20) == 0
    assert engine.request("status", "host")["status"] == "succeeded"
    assert engine.count_attempts("host") == {1: 1}
