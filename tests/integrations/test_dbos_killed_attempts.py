"""Attempts during which a worker was killed, in this process."""

import asyncio
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from dbos import DBOS

from retrykit import Policy
from retrykit.integrations import dbos as durable
from retrykit.integrations.dbos._killed_attempts import forgive_running, stopping
from tests._support.dbos_jobs import (
    execute,
    launched,
    read,
    wait_until,
    wait_until_ended,
)

__all__ = ["launched"]

HOURLY = Policy(schedule=["1h"], on=ConnectionError, name="hourly")
BEGUN = "retrykit.begun"
RUNNING, MOST, LOCK = [], [], threading.Lock()
MAY_END = threading.Event()


@pytest.fixture(autouse=True)
def fresh(launched):
    MOST.clear()
    MAY_END.set()
    yield
    MAY_END.set()
    stopping.clear()


@contextmanager
def counted(fails):
    with LOCK:
        RUNNING.append(None)
        MOST.append(len(RUNNING))
    yield
    with LOCK:
        RUNNING.pop()
    if fails:
        fails.pop()
        raise ConnectionError


@durable.job(HOURLY, name="suspect")
def suspect(fails: list[int]) -> None:
    with counted(fails):
        time.sleep(0.2)
        MAY_END.wait(20)


@durable.job(HOURLY, name="asuspect")
async def asuspect(fails: list[int]) -> None:
    with counted(fails):
        await asyncio.sleep(0.2)


@durable.job(HOURLY, name="endless", max_killed=None)
def never_dead(fails: list[int]) -> None:
    with counted(fails):
        """Do nothing."""


def killed(database, job, job_id, recoveries=2, begun=None):
    """Start a job of which the second attempt was begun before, and wait for it."""
    job.start_as(job_id, [1])
    DBOS.retrieve_workflow(f"{job_id}:1").get_result(polling_interval_sec=0.01)
    execute(database, "UPDATE workflow_status SET recovery_attempts = ? WHERE "
            "workflow_uuid = ?", recoveries - 1, f"{job_id}:2")  # fmt: skip
    if begun is not None:
        attributes = {"mine": 1, BEGUN: begun}
        DBOS.update_workflow_attributes(f"{job_id}:2", attributes)


def attributes(key):
    return DBOS.retrieve_workflow(key).get_status().attributes


def let_go(*jobs):
    for job_id in jobs:
        durable.retry_at(job_id, datetime.now(UTC))


@pytest.mark.parametrize("job", [suspect, asuspect], ids=["blocking", "awaited"])
class TestARecoveredAttempt:
    def test_is_repeated_alone(self, launched, job):
        names = [f"alone {job.job.name} {number}" for number in range(3)]
        for name in names:
            killed(launched, job, name)
        MOST.clear()
        let_go(*names)
        for name in names:
            wait_until_ended(name)
            assert attributes(f"{name}:2") == {BEGUN: 2}
        assert MOST == [1, 1, 1]

    def test_is_counted_each_time_it_begins(self, launched, job):
        name = f"counted {job.job.name}"
        killed(launched, job, name, recoveries=100, begun=2)
        let_go(name)
        assert wait_until_ended(name).status == "succeeded"
        assert attributes(f"{name}:2") == {"mine": 1, BEGUN: 3}

    def test_is_dead_after_three_kills_until_it_is_requeued(self, launched, job):
        name = f"dead {job.job.name}"
        killed(launched, job, name, begun=3)
        let_go(name)
        report = wait_until_ended(name)
        assert report.status == "dead"
        assert report.reason == "its worker was killed 3 times in attempt 2"
        assert report.envelope.failed_attempts == 1
        assert report.ended.timestamp() == pytest.approx(time.time(), abs=9)
        assert len(MOST) == 1, "it did not begin"
        durable.requeue(name)
        assert wait_until_ended(name).status == "succeeded"
        assert attributes(f"{name}#2:1") is None

    def test_does_not_begin_when_its_process_stops(self, launched, job):
        name = f"stopped {job.job.name}"
        killed(launched, job, name)
        stopping.set()
        let_go(name)
        time.sleep(3)
        assert durable.status(name).status == "running", "it is recovered later"
        assert attributes(f"{name}:2") is None
        assert len(MOST) == 1

    def test_is_not_counted_if_it_was_not_recovered(self, launched, job):
        name = f"usual {job.job.name}"
        killed(launched, job, name, recoveries=1)
        let_go(name)
        wait_until_ended(name)
        assert attributes(f"{name}:2") is None

    def test_is_not_to_blame_if_its_process_was_told_to_stop(self, launched, job):
        name = f"forgiven {job.job.name}"
        killed(launched, job, name, begun=0)
        let_go(name)
        wait_until_ended(name)
        assert attributes(f"{name}:2") == {"mine": 1, BEGUN: 1}


def test_others_run_while_an_attempt_is_repeated(launched):
    killed(launched, suspect, "slow suspect")
    MAY_END.clear()
    MOST.clear()
    let_go("slow suspect")
    suspect.start_as("another", [])
    wait_until(lambda: MOST == [1, 2])
    MAY_END.set()
    assert wait_until_ended("another").status == "succeeded"
    wait_until_ended("slow suspect")


def test_a_job_may_be_killed_any_number_of_times(launched):
    killed(launched, never_dead, "endless", begun=1000)
    let_go("endless")
    wait_until_ended("endless")
    assert attributes("endless:2") == {"mine": 1, BEGUN: 1001}


def test_running_attempts_are_forgiven(launched):
    MAY_END.clear()
    suspect.start_as("runs", [])
    wait_until(lambda: MOST)
    forgive_running()
    assert attributes("runs:1") == {BEGUN: 0}
    MAY_END.set()
    wait_until_ended("runs")


def test_take_over_counts_and_keeps_what_was_counted(launched):
    for name, begun in (("first", None), ("again", 2), ("pardoned", 0)):
        killed(launched, suspect, name, begun=begun)
        execute(launched, "UPDATE workflow_status SET status = 'PENDING', executor_id "
                "= 'gone' WHERE workflow_uuid = ?", f"{name}:2")  # fmt: skip
    assert durable.take_over("gone") == ["first", "again", "pardoned"]
    for name, begun in (("first", 2), ("again", 3), ("pardoned", 1)):
        wait_until_ended(name)
        assert attributes(f"{name}:2")[BEGUN] == begun


def test_a_recorded_outcome_is_used_and_not_counted(launched):
    suspect.start_as("recorded", [])
    wait_until_ended("recorded")
    MOST.clear()
    execute(launched, "UPDATE workflow_status SET status = 'ENQUEUED', "
            "recovery_attempts = 9 WHERE workflow_uuid = 'recorded:1'")  # fmt: skip
    query = (
        "SELECT recovery_attempts || status FROM workflow_status "
        "WHERE workflow_uuid = 'recorded:1'"
    )
    wait_until(lambda: read(launched, query) == ["10SUCCESS"])
    assert not MOST
    assert attributes("recorded:1") is None
