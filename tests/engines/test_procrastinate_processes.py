"""Workers of Procrastinate as processes: killed by their jobs, and stopped."""

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
