"""Which process of DBOS runs a job, and which one continues it after a kill."""

import signal
import time

import pytest
from dbos import DBOS

from retrykit import ConfigError
from retrykit.integrations import dbos as durable
from tests.engines.dbos_engine import DbosOnPostgres, DbosOnSqlite

pytestmark = pytest.mark.engines


@pytest.fixture(params=[DbosOnSqlite, DbosOnPostgres], ids=lambda kind: kind.name)
def engine(request, tmp_path):
    with request.param(tmp_path) as engine:
        yield engine


def test_a_connected_process_runs_no_attempt(engine):
    engine.policy = "longer"
    worker = engine.start_worker()
    engine.submit("host", fails=2)
    engine.wait_for_failures(2, "host")
    worker.kill()
    time.sleep(10)
    assert engine.request("status", "host")["status"] == "waiting", "it is due"
    engine.start_worker()
    engine.wait_until_ended("host")
    assert engine.count_attempts("host") == {1: 1, 2: 1, 3: 1}


def test_a_new_version_of_the_application_continues_a_waiting_job(engine):
    """Attempts are enqueued without a version."""
    engine.policy = "slow"
    engine.version = "1.0"
    worker = engine.start_worker()
    engine.submit("host", fails=2)
    engine.wait_for_failures(1, "host")
    worker.kill()
    engine.version, engine.policy = "1.1", "changed"
    engine.start_worker()
    report = engine.wait_until_ended("host")
    assert (report["status"], report["delays"]) == ("succeeded", [4, 2])
    assert engine.count_attempts("host") == {1: 1, 2: 1, 3: 1}


def test_another_executor_continues_a_waiting_job(engine):
    engine.policy = "slow"
    worker = engine.start_worker("one")
    engine.submit("host", fails=1)
    engine.wait_for_failures(1, "host")
    worker.kill()
    engine.start_worker("two")
    engine.wait_until_ended("host")
    assert engine.count_attempts("host") == {1: 1, 2: 1}


def test_an_interrupted_attempt_is_repeated_by_its_own_executor(engine):
    """Another executor cannot know that the first one is dead."""
    worker = engine.start_worker("one")
    engine.submit("host", fails=0, slow={"1": 3})
    engine.wait_for_start(1, "host")
    worker.kill()
    engine.start_worker("two")
    time.sleep(4)
    assert engine.request("status", "host")["status"] == "running"
    assert len(engine.started_attempts("host")) == 1
    engine.start_worker("one")
    assert engine.wait_until_ended("host")["status"] == "succeeded"
    assert engine.count_attempts("host") == {1: 2}


def test_take_over_repeats_an_interrupted_attempt_on_another_executor(engine):
    worker = engine.start_worker("one")
    engine.submit("host", fails=1, slow={"1": 3})
    engine.wait_for_start(1, "host")
    worker.kill()
    engine.start_worker("two")
    assert engine.request("take_over", "one") == ["host"]
    assert engine.wait_until_ended("host")["status"] == "succeeded"
    assert engine.count_attempts("host") == {1: 2, 2: 1}


def test_a_second_process_of_an_executor_is_rejected_while_the_first_lives(tmp_path):
    with DbosOnSqlite(tmp_path) as engine:
        worker = engine.start_worker("one")
        engine.submit("host", fails=0, slow={"1": 3})
        engine.wait_for_start(1, "host")
        second = engine.start_worker("one")
        assert second.process.wait(30) == 1
        error = "executor_id must be an id that no other process has, got 'one'"
        assert error in engine.describe()
        engine.wait_until_ended("host")
        assert engine.count_attempts("host") == {1: 1}, "nothing ran twice"
        worker.kill()
        engine.start_worker("one")
        engine.submit("another", fails=0)
        engine.wait_until_ended("another")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_signal_lets_a_running_attempt_end_and_takes_no_other(engine, kind, number):
    worker = engine.start_worker()
    engine.submit("host", fails=0, slow={"1": 2}, kind=kind)
    engine.wait_for_start(1, "host")
    worker.process.send_signal(number)
    time.sleep(0.5)
    engine.submit("late", fails=0)
    assert worker.process.wait(20) == 0
    assert engine.request("status", "host")["status"] == "succeeded"
    assert engine.request("status", "late")["status"] == "waiting"
    assert engine.count_attempts("host") == {1: 1}


def test_an_attempt_longer_than_the_grace_is_repeated_by_the_next_worker(engine):
    engine.grace = "1s"
    worker = engine.start_worker()
    engine.submit("host", fails=0, slow={"1": 20})
    engine.wait_for_start(1, "host")
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(15) == 0
    assert "not ended, to be repeated: host:1" in engine.describe()
    (engine.folder / "host.json").write_text("{}")
    engine.start_worker()
    assert engine.wait_until_ended("host")["status"] == "succeeded"
    assert engine.count_attempts("host") == {1: 2}


def test_a_command_does_not_migrate_a_database(tmp_path):
    with DbosOnPostgres(tmp_path) as engine, pytest.raises(ConfigError) as caught:
        durable.connect(
            durable.config("shop", database=engine.url, run_migrations=False)
        )
    DBOS.destroy()
    assert (
        "database must be one that a worker or connect(...) has" in caught.value.message
    )
    assert "retrykit@" not in caught.value.message, "without the user info"


@pytest.mark.parametrize("outage", [signal.SIGQUIT, signal.SIGSTOP])
def test_a_worker_ends_whose_server_is_killed_or_hangs(tmp_path, outage):
    with DbosOnPostgres(tmp_path) as engine:
        engine.grace = "1s"
        worker = engine.start_worker()
        engine.submit("host", fails=0, slow={"1": 1})
        engine.wait_for_start(1, "host")
        engine.server.send_to_all(outage)
        worker.process.send_signal(signal.SIGTERM)
        try:
            assert worker.process.wait(20) == 0
        finally:
            engine.server.send_to_all(signal.SIGCONT)
    assert "not ended, to be repeated: host:1" in engine.describe()


def test_a_second_signal_ends_a_worker_at_once(engine):
    worker = engine.start_worker()
    engine.submit("host", fails=0, slow={"1": 20})
    engine.wait_for_start(1, "host")
    worker.process.send_signal(signal.SIGINT)
    time.sleep(1)
    worker.process.send_signal(signal.SIGINT)
    assert worker.process.wait(5) == 128 + signal.SIGINT


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_job_that_ends_its_process_is_dead_and_the_others_go_on(engine, kind):
    others = [f"host-{number}" for number in range(10)]
    for host in (*others[:5], "poison", *others[5:]):
        engine.submit(host, fails=0, slow={"1": 1}, exits=host == "poison", kind=kind)
    workers = [engine.start_worker()]

    def all_ended():
        if workers[-1].process.poll() is not None:
            workers.append(engine.start_worker())
        statuses = {engine.request("status", host)["status"] for host in others}
        return statuses == {"succeeded"} and is_dead()

    def is_dead():
        return engine.request("status", "poison")["status"] == "dead"

    engine.wait_until(all_ended, "end of all jobs")
    report = engine.request("status", "poison")
    assert report["reason"] == "its worker was killed 3 times in attempt 1"
    assert len(engine.started_attempts("poison")) == 3
    assert [worker.process.poll() for worker in workers] == [9, 9, 9, None]
    assert engine.request("dead") == ["poison"]

    (engine.folder / "poison.json").write_text("{}")
    engine.request("requeue", "poison")
    assert engine.wait_until_ended("poison")["status"] == "succeeded"
    assert engine.count_attempts("poison#2") == {1: 1}
