"""Workers of Celery as processes that are stopped."""

import os
import signal

import pytest

from tests.engines.celery_engine import CeleryOnClassic, CeleryOnQuorum, CeleryOnRedis

pytestmark = pytest.mark.engines


class Serving:
    """An engine whose workers are run by `serve`.

    Attributes:
        grace: How long attempts may take to end when a worker is stopped, in seconds.
    """

    grace = 60.0

    def environ(self):
        return super().environ() | {"RETRYKIT_ENGINE_GRACE": str(self.grace)}

    def _command(self, *command):
        self.module = "tests.engines.celery_app"
        if command == ("worker",):
            self.module = "tests.engines.celery_serving_app"
        return super()._command(*command)


@pytest.fixture(
    params=[CeleryOnRedis, CeleryOnQuorum, CeleryOnClassic], ids=lambda kind: kind.name
)
def engine(request, tmp_path):
    with type("Engine", (Serving, request.param), {})(tmp_path) as engine:
        yield engine


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_worker_lets_its_attempts_end(engine, number):
    worker = engine.start_worker()
    engine.submit("host", fails=0, slow={"1": 2})
    engine.wait_for_start(1, "host")
    worker.process.send_signal(number)
    assert worker.process.wait(20) == 0
    assert engine.request("status", "host")["status"] == "succeeded"
    engine.start_worker()
    engine.submit("later", fails=0)
    engine.wait_until_ended("later")
    assert engine.count_attempts("host") == {1: 1}


def test_attempts_end_if_all_processes_of_a_worker_are_told_to_stop(tmp_path):
    """As by systemd."""
    with type("Engine", (Serving, CeleryOnRedis), {})(tmp_path) as engine:
        worker = engine.start_worker()
        engine.submit("host", fails=0, slow={"1": 3})
        engine.wait_for_start(1, "host")
        os.killpg(worker.process.pid, signal.SIGTERM)
        assert worker.process.wait(20) == 0
        assert engine.request("status", "host")["status"] == "succeeded"
        assert engine.count_attempts("host") == {1: 1}


def test_an_attempt_that_outlasts_the_grace_is_made_again(engine):
    engine.grace = 0.5
    worker = engine.start_worker()
    engine.submit("host", fails=0, slow={"1": 4})
    engine.wait_for_start(1, "host")
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(20) == 0
    assert not engine.finished_attempts("host")
    engine.start_worker()
    assert engine.wait_until_ended("host")["status"] == "succeeded"
    assert engine.count_attempts("host") == {1: 2}
