"""Jobs on DBOS: start, attempts and end."""

import asyncio
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from dbos import DBOS, SetEnqueueOptions, SetWorkflowTimeout

from retrykit import ConfigError, Policy, current_state
from retrykit._internal.clocks import wall
from retrykit.durable import Job, idempotency_key
from retrykit.integrations import dbos as durable
from retrykit.integrations.dbos import _job_functions as jobs
from tests._support.dbos_jobs import execute, launched, read, wait_until_ended

__all__ = ["launched"]

pytestmark = pytest.mark.usefixtures("launched")

AT_ONCE = Policy(schedule=[0, 0], on=ConnectionError, name="at once")
LATER = AT_ONCE.replace(schedule=["1h"], name="later")
STARTED_KEYS = []


def fail_or_return(fails, value=None, *, key=""):
    STARTED_KEYS.append(idempotency_key())
    if current_state().attempt <= fails:
        raise ConnectionError(f"refused {key}")
    return value


@durable.job(AT_ONCE, name="blocking")
def sync_job(fails: int, value: object = None, *, key: str = "") -> object:
    return fail_or_return(fails, value, key=key)


@durable.job(AT_ONCE, name="awaited")
async def async_job(fails: int, value: object = None, *, key: str = "") -> object:
    return fail_or_return(fails, value, key=key)


@durable.job(LATER, name="patient")
def hourly_job() -> None:
    raise ConnectionError("refused")


@durable.job(AT_ONCE, name="renamed", previous_names=["once"])
def renamed() -> None:
    """Do nothing."""


@durable.job(AT_ONCE, name="odd")
def odd(what: str) -> object:
    return {"set": {1, 2}, "half": "\udcff"}[what]


@durable.job(AT_ONCE, name="leaves")
def exits() -> None:
    sys.exit(3)


@durable.job(AT_ONCE, name="aleaves")
async def aexits() -> None:
    raise KeyboardInterrupt


@durable.job(AT_ONCE, name="cancels")
def cancels() -> None:
    raise asyncio.CancelledError


@durable.job(AT_ONCE, name="acancels")
async def acancels() -> None:
    inner = asyncio.ensure_future(asyncio.sleep(60))
    inner.cancel()
    await inner


@durable.job(AT_ONCE, name="starts")
def starts_another() -> str:
    return sync_job.start_as(f"{idempotency_key()} has started it", 0, "child")


@durable.job(AT_ONCE, name="astarts")
async def astarts_another() -> str:
    return await async_job.astart_as(f"{idempotency_key()} has started it", 0, "child")


@DBOS.workflow()
def workflow() -> list[str]:
    return [sync_job.start(0), DBOS.run_step({"name": "after"}, str)]


@DBOS.workflow()
async def aworkflow() -> str:
    return await async_job.astart(0)


@pytest.fixture(params=[sync_job, async_job], ids=["blocking", "awaited"])
def job(request):
    return request.param


class TestAJob:
    def test_runs_until_it_succeeds(self, job):
        report = wait_until_ended(job.start(2, {"verified": [1, None]}, key="a"))
        assert (report.status, report.result) == ("succeeded", {"verified": [1, None]})
        assert [str(failure.error) for failure in report.failures] == [
            "ConnectionError: refused a",
            "ConnectionError: refused a",
        ]

    def test_runs_each_attempt_under_its_own_key(self, job):
        name = f"keys of {job.job.name}"
        wait_until_ended(job.start_as(name, 2))
        assert [key for key in STARTED_KEYS if name in key] == [
            f"{name}:1",
            f"{name}:2",
            f"{name}:3",
        ]

    def test_is_dead_after_its_last_attempt_failed(self, job):
        report = wait_until_ended(job.start(9))
        assert (report.status, report.envelope.failed_attempts) == ("dead", 3)
        assert "the schedule has ended; last failure: ConnectionError" in report.reason

    def test_waits_as_a_workflow_with_its_due_time(self):
        job_id = hourly_job.start()
        DBOS.retrieve_workflow(f"{job_id}:1").get_result(polling_interval_sec=0.01)
        report = durable.status(job_id)
        assert (report.status, report.engine_id) == ("waiting", f"{job_id}:2")
        assert report.due.timestamp() - report.envelope.written == pytest.approx(
            3600, abs=5
        )

    def test_waits_no_longer_if_the_clock_is_set_back(self):
        envelope, later = hourly_job.job.envelope("set back"), wall() + 86_400
        envelope = replace(envelope, written=later, due=later + 60)
        key = jobs.enqueue(hourly_job.job, envelope, [], {})
        row = DBOS.retrieve_workflow(key).get_status()
        assert row.status == "DELAYED"
        assert row.delay_until_epoch_ms / 1000 == pytest.approx(wall() + 60, abs=10)

    def test_calls_its_function_directly(self):
        assert repr(sync_job) == "<DurableJob blocking>"
        assert odd("set") == {1, 2}

    def test_may_become_async_in_a_deploy(self):
        before = Job(fail_or_return, AT_ONCE, "awaited")
        envelope = before.envelope("became-async")
        jobs.enqueue(before, envelope, [1, "now awaited"], {})
        assert wait_until_ended("became-async").result == "now awaited"

    def test_continues_under_a_renamed_policy(self):
        before = replace(renamed.job.envelope("renamed"), policy="once")
        jobs.enqueue(renamed.job, before, [], {})
        assert wait_until_ended("renamed").status == "succeeded"

    @pytest.mark.parametrize("value", ["set", "half"])
    def test_is_dead_if_its_result_is_not_json(self, value):
        report = wait_until_ended(odd.start(value))
        assert report.status == "dead"
        assert "result must be" in report.reason

    def test_rejects_arguments_that_are_not_json(self, job):
        with pytest.raises(ConfigError, match=r"args|kwargs"):
            job.start(0, value=object())

    def test_is_dead_instead_of_stopping_its_worker(self):
        for exiting in (exits, aexits, cancels, acancels):
            why = wait_until_ended(exiting.start()).reason
            assert why.startswith("the job would have stopped its worker: ")
        assert wait_until_ended(async_job.start(0, "alive")).result == "alive"

    def test_runs_even_if_it_was_recovered_very_often(self, launched):
        job_id = hourly_job.start()
        DBOS.retrieve_workflow(f"{job_id}:1").get_result(polling_interval_sec=0.01)
        execute(launched, "UPDATE workflow_status SET recovery_attempts = 10000 "
                          "WHERE workflow_uuid = ?", f"{job_id}:2")  # fmt: skip
        durable.retry_at(job_id, datetime.now(UTC))
        assert wait_until_ended(job_id).envelope.failed_attempts == 2

    def test_is_stored_as_json(self, launched, job):
        job_id = job.start(1, "verified")
        wait_until_ended(job_id)
        inputs = "SELECT inputs FROM workflow_input WHERE workflow_uuid LIKE ?"
        outputs = "SELECT output FROM workflow_output WHERE workflow_uuid LIKE ?"
        step_outputs = (
            "SELECT output FROM operation_outputs WHERE workflow_uuid LIKE ? AND "
        )
        texts = [
            *read(launched, inputs, f"{job_id}:_"),
            *read(launched, outputs, f"{job_id}:_"),
            *read(launched, f"{step_outputs} output IS NOT NULL", f"{job_id}:_"),
        ]
        assert [*map(type, map(json.loads, texts))] == [dict] * 6

    def test_rejects_arguments_that_its_function_does_not_accept(self, job):
        with pytest.raises(TypeError, match="required"):
            job.start()

    def test_is_dead_in_a_process_that_does_not_know_its_name(self):
        unknown = Job(fail_or_return, AT_ONCE, "blockin")
        jobs.enqueue(unknown, unknown.envelope("unknown"), [0], {})
        report = wait_until_ended("unknown")
        assert report.status == "dead"
        assert "the name of a job that this process has imported" in report.reason
        assert "did you mean blocking?" in report.reason


class TestStartingAJob:
    def test_leaves_a_job_of_the_same_id_unchanged(self, job):
        name = f"once, {job.job.name}"
        assert job.start_as(name, 0, "first") == name
        wait_until_ended(name)
        assert job.start_as(name, 0, "second") == name
        assert wait_until_ended(name).result == "first"

    def test_does_not_restart_a_dead_job(self, job):
        name = f"dead, {job.job.name}"
        job.start_as(name, 9)
        before = wait_until_ended(name)
        job.start_as(name, 0)
        assert wait_until_ended(name) == before

    def test_does_not_restart_a_killed_job(self):
        job_id = hourly_job.start()
        durable.kill(job_id)
        hourly_job.start_as(job_id)
        assert durable.status(job_id).status == "dead"

    def test_works_in_a_coroutine(self, job):
        async def main():
            return await job.astart(0, 1), await job.astart_as(name, 0, 2), job.start(0)

        name = f"in a coroutine, {job.job.name}"
        first, second, _ = asyncio.run(main())
        assert second == name
        assert [wait_until_ended(first).result, wait_until_ended(second).result] == [
            1,
            2,
        ]

    @pytest.mark.parametrize(
        "starter", [starts_another, astarts_another], ids=["blocking", "awaited"]
    )
    def test_works_in_an_attempt_of_another_job(self, starter):
        job_id = starter.start()
        child = wait_until_ended(job_id).result
        assert child == f"{job_id}:1 has started it"
        assert wait_until_ended(child).result == "child"

    def test_happens_once_in_a_replayed_workflow(self):
        handle = DBOS.start_workflow(workflow)
        [first, _] = handle.get_result(polling_interval_sec=0.01)
        again = DBOS.fork_workflow(handle.workflow_id, 2)
        assert again.get_result(polling_interval_sec=0.01)[0] == first
        assert wait_until_ended(first).status == "succeeded"

    def test_works_in_an_async_workflow(self):
        handle = DBOS.start_workflow(aworkflow)
        assert (
            wait_until_ended(handle.get_result(polling_interval_sec=0.01)).result
            is None
        )

    def test_ignores_the_timeout_and_options_of_its_caller(self):
        with SetWorkflowTimeout(60), SetEnqueueOptions(app_version="9", priority=7):
            job_id = hourly_job.start()
        DBOS.retrieve_workflow(f"{job_id}:1").get_result(polling_interval_sec=0.01)
        for attempt in (1, 2):
            row = DBOS.retrieve_workflow(f"{job_id}:{attempt}").get_status()
            assert row.workflow_timeout_ms is None
            assert row.workflow_deadline_epoch_ms is None
            assert row.priority == 0

    def test_rejects_the_name_of_another_function(self):
        with pytest.raises(ConfigError, match="the name of one function only"):
            durable.job(AT_ONCE, name="blocking")(len)

    def test_accepts_the_same_function_when_its_module_is_reloaded(self):
        again = durable.job(AT_ONCE, name="again")
        again(fail_or_return)
        assert wait_until_ended(again(fail_or_return).start(0)).status == "succeeded"
