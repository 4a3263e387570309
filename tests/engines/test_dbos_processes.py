"""Which process of DBOS attempts what, and who goes on where one was killed."""

import time

import pytest

from tests.engines.dbos_engine import DbosOnPostgres, DbosOnSqlite

pytestmark = pytest.mark.engines


@pytest.fixture(params=[DbosOnSqlite, DbosOnPostgres], ids=lambda kind: kind.name)
def engine(request, tmp_path):
    with request.param(tmp_path) as engine:
        yield engine


def test_attempts_nothing_in_a_process_that_only_asks(engine):
    engine.policy = "longer"
    worker = engine.work()
    engine.submit("host", fails=2)
    engine.until_waiting(2, "host")
    worker.kill()
    time.sleep(10)
    assert engine.ask("status", "host")["status"] == "waiting", "though it is due"
    engine.work()
    engine.settled("host")
    assert engine.counted("host") == {1: 1, 2: 1, 3: 1}


def test_goes_on_under_another_version_of_the_application(engine):
    """A job that waits was enqueued under none."""
    engine.policy = "slow"
    engine.version = "1.0"
    worker = engine.work()
    engine.submit("host", fails=2)
    engine.until_waiting(1, "host")
    worker.kill()
    engine.version, engine.policy = "1.1", "changed"
    engine.work()
    report = engine.settled("host")
    assert (report["status"], report["delays"]) == ("succeeded", [4, 2])
    assert engine.counted("host") == {1: 1, 2: 1, 3: 1}


def test_lets_another_executor_go_on_with_what_waits(engine):
    engine.policy = "slow"
    worker = engine.work("one")
    engine.submit("host", fails=1)
    engine.until_waiting(1, "host")
    worker.kill()
    engine.work("two")
    engine.settled("host")
    assert engine.counted("host") == {1: 1, 2: 1}


def test_leaves_half_an_attempt_to_the_executor_that_comes_back(engine):
    """Another one does not take it over: it cannot know that the first is dead."""
    worker = engine.work("one")
    engine.submit("host", fails=0, slow={"1": 3})
    engine.until_run(1, "host")
    worker.kill()
    engine.work("two")
    time.sleep(4)
    assert engine.ask("status", "host")["status"] == "running"
    assert len(engine.runs("host")) == 1
    engine.work("one")
    assert engine.settled("host")["status"] == "succeeded"
    assert engine.counted("host") == {1: 2}


def test_hands_half_an_attempt_over_when_it_is_told_that_its_executor_is_gone(engine):
    worker = engine.work("one")
    engine.submit("host", fails=1, slow={"1": 3})
    engine.until_run(1, "host")
    worker.kill()
    engine.work("two")
    assert engine.ask("take_over", "one") == ["host"]
    assert engine.settled("host")["status"] == "succeeded"
    assert engine.counted("host") == {1: 2, 2: 1}


def test_refuses_a_second_process_of_an_executor_until_the_first_is_dead(tmp_path):
    with DbosOnSqlite(tmp_path) as engine:
        worker = engine.work("one")
        engine.submit("host", fails=0, slow={"1": 3})
        engine.until_run(1, "host")
        second = engine.work("one")
        assert second.process.wait(30) == 1
        refused = "executor_id must be an id that no other process has, got 'one'"
        assert refused in engine.told()
        engine.settled("host")
        assert engine.counted("host") == {1: 1}, "the second one has doubled nothing"
        worker.kill()
        engine.work("one")
        engine.submit("another", fails=0)
        engine.settled("another")
