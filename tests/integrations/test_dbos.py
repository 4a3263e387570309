"""Jobs on DBOS: how they are started, attempted, and end."""

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
from retrykit.integrations.dbos import jobs
from tests._support.dbos_jobs import changed, ended, launched, read

__all__ = ["launched"]

pytestmark = pytest.mark.usefixtures("launched")

AT_ONCE = Policy(schedule=[0, 0], max_elapsed=None, on=ConnectionError, name="at once")
LATER = AT_ONCE.replace(schedule=["1h"], name="later")
BEGUN = []


def tried(fails, value=None, *, key=""):
    BEGUN.append(idempotency_key())
    if current_state().attempt <= fails:
        raise ConnectionError(f"refused {key}")
    return value


@durable.job(AT_ONCE, name="blocking")
def blocking(fails: int, value: object = None, *, key: str = "") -> object:
    return tried(fails, value, key=key)


@durable.job(AT_ONCE, name="awaited")
async def awaited(fails: int, value: object = None, *, key: str = "") -> object:
    return tried(fails, value, key=key)


@durable.job(LATER, name="patient")
def patient() -> None:
    raise ConnectionError("refused")


@durable.job(AT_ONCE, name="renamed", previous_names=["once"])
def renamed() -> None:
    """Nothing."""


@durable.job(AT_ONCE, name="odd")
def odd(what: str) -> object:
    return {"set": {1, 2}, "half": "\udcff"}[what]


@durable.job(AT_ONCE, name="leaves")
def leaves() -> None:
    sys.exit(3)


@durable.job(AT_ONCE, name="aleaves")
async def aleaves() -> None:
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
def starts() -> str:
    return blocking.start_as(f"{idempotency_key()} has started it", 0, "child")


@durable.job(AT_ONCE, name="astarts")
async def astarts() -> str:
    return await awaited.astart_as(f"{idempotency_key()} has started it", 0, "child")


@DBOS.workflow()
def outer() -> list[str]:
    return [blocking.start(0), DBOS.run_step({"name": "after"}, str)]


@DBOS.workflow()
async def aouter() -> str:
    return await awaited.astart(0)


@pytest.fixture(params=[blocking, awaited], ids=["blocking", "awaited"])
def job(request):
    return request.param


class TestAJob:
    def test_is_attempted_until_it_succeeds(self, job):
        report = ended(job.start(2, {"verified": [1, None]}, key="a"))
        assert (report.status, report.result) == ("succeeded", {"verified": [1, None]})
        assert [str(failure.error) for failure in report.failures] == [
            "ConnectionError: refused a",
            "ConnectionError: refused a",
        ]

    def test_makes_each_attempt_under_a_key_of_its_own(self, job):
        name = f"keys of {job.job.name}"
        ended(job.start_as(name, 2))
        assert [key for key in BEGUN if name in key] == [
            f"{name}:1",
            f"{name}:2",
            f"{name}:3",
        ]

    def test_dies_when_every_attempt_has_failed(self, job):
        report = ended(job.start(9))
        assert (report.status, report.envelope.failed) == ("dead", 3)
        assert "the schedule has ended; last failure: ConnectionError" in report.reason

    def test_waits_as_a_row_with_the_time_when_it_is_due(self):
        job_id = patient.start()
        DBOS.retrieve_workflow(f"{job_id}:1").get_result(polling_interval_sec=0.01)
        report = durable.status(job_id)
        assert (report.status, report.engine_id) == ("waiting", f"{job_id}:2")
        assert report.due.timestamp() - report.envelope.written == pytest.approx(
            3600, abs=5
        )

    def test_waits_no_longer_because_the_clock_is_set_back(self):
        envelope, later = patient.job.envelope("set back"), wall() + 86_400
        envelope = replace(envelope, written=later, due=later + 60)
        key = jobs.enqueue(patient.job, envelope, [], {})
        row = DBOS.retrieve_workflow(key).get_status()
        assert row.status == "DELAYED"
        assert row.delay_until_epoch_ms / 1000 == pytest.approx(wall() + 60, abs=10)

    def test_is_the_function_where_it_is_called(self):
        assert repr(blocking) == "<DurableJob blocking>"
        assert odd("set") == {1, 2}

    def test_may_change_its_colour_in_a_deploy(self):
        before = Job(tried, AT_ONCE, "awaited")
        envelope = before.envelope("recoloured")
        jobs.enqueue(before, envelope, [1, "now awaited"], {})
        assert ended("recoloured").result == "now awaited"

    def test_goes_on_when_its_policy_was_renamed(self):
        before = replace(renamed.job.envelope("renamed"), policy="once")
        jobs.enqueue(renamed.job, before, [], {})
        assert ended("renamed").status == "succeeded"

    @pytest.mark.parametrize("value", ["set", "half"])
    def test_dies_of_a_result_that_json_cannot_hold(self, value):
        report = ended(odd.start(value))
        assert report.status == "dead"
        assert "result must be" in report.reason

    def test_is_refused_with_an_argument_that_json_cannot_hold(self, job):
        with pytest.raises(ConfigError, match=r"args|kwargs"):
            job.start(0, value=object())

    def test_ends_and_not_its_worker_when_it_exits(self):
        for left in (leaves, aleaves, cancels, acancels):
            why = ended(left.start()).reason
            assert why.startswith("the job would have stopped its worker: ")
        assert ended(awaited.start(0, "alive")).result == "alive"

    def test_is_attempted_however_often_it_was_recovered(self, launched):
        job_id = patient.start()
        DBOS.retrieve_workflow(f"{job_id}:1").get_result(polling_interval_sec=0.01)
        changed(launched, "UPDATE workflow_status SET recovery_attempts = 10000 "
                          "WHERE workflow_uuid = ?", f"{job_id}:2")  # fmt: skip
        durable.retry_at(job_id, datetime.now(UTC))
        assert ended(job_id).envelope.failed == 2

    def test_is_kept_as_json_which_runs_no_code_when_it_is_read(self, launched, job):
        job_id = job.start(1, "verified")
        ended(job_id)
        took = "SELECT inputs FROM workflow_input WHERE workflow_uuid LIKE ?"
        gave = "SELECT output FROM workflow_output WHERE workflow_uuid LIKE ?"
        made = "SELECT output FROM operation_outputs WHERE workflow_uuid LIKE ? AND "
        texts = [
            *read(launched, took, f"{job_id}:_"),
            *read(launched, gave, f"{job_id}:_"),
            *read(launched, f"{made} output IS NOT NULL", f"{job_id}:_"),
        ]
        assert [*map(type, map(json.loads, texts))] == [dict] * 6

    def test_is_refused_with_arguments_that_its_function_does_not_take(self, job):
        with pytest.raises(TypeError, match="required"):
            job.start()

    def test_dies_where_nobody_knows_its_name(self):
        unknown = Job(tried, AT_ONCE, "blockin")
        jobs.enqueue(unknown, unknown.envelope("unknown"), [0], {})
        report = ended("unknown")
        assert report.status == "dead"
        assert "the name of a job that this process has imported" in report.reason
        assert "did you mean blocking?" in report.reason


class TestStartingAJob:
    def test_leaves_one_of_the_same_id_as_it_is(self, job):
        name = f"once, {job.job.name}"
        assert job.start_as(name, 0, "first") == name
        ended(name)
        assert job.start_as(name, 0, "second") == name
        assert ended(name).result == "first"

    def test_revives_no_dead_one(self, job):
        name = f"dead, {job.job.name}"
        job.start_as(name, 9)
        before = ended(name)
        job.start_as(name, 0)
        assert ended(name) == before

    def test_revives_none_that_was_killed(self):
        job_id = patient.start()
        durable.kill(job_id)
        patient.start_as(job_id)
        assert durable.status(job_id).status == "dead"

    def test_works_in_a_coroutine(self, job):
        async def main():
            return await job.astart(0, 1), await job.astart_as(name, 0, 2), job.start(0)

        name = f"in a coroutine, {job.job.name}"
        first, second, _ = asyncio.run(main())
        assert second == name
        assert [ended(first).result, ended(second).result] == [1, 2]

    @pytest.mark.parametrize("starter", [starts, astarts], ids=["blocking", "awaited"])
    def test_works_in_an_attempt_of_another_one(self, starter):
        job_id = starter.start()
        child = ended(job_id).result
        assert child == f"{job_id}:1 has started it"
        assert ended(child).result == "child"

    def test_is_done_once_in_a_workflow_that_is_replayed(self):
        handle = DBOS.start_workflow(outer)
        [first, _] = handle.get_result(polling_interval_sec=0.01)
        again = DBOS.fork_workflow(handle.workflow_id, 2)
        assert again.get_result(polling_interval_sec=0.01)[0] == first
        assert ended(first).status == "succeeded"

    def test_works_in_a_workflow_of_coroutines(self):
        handle = DBOS.start_workflow(aouter)
        assert ended(handle.get_result(polling_interval_sec=0.01)).result is None

    def test_takes_no_timeout_and_no_options_of_who_does_it(self):
        with SetWorkflowTimeout(60), SetEnqueueOptions(app_version="9", priority=7):
            job_id = patient.start()
        DBOS.retrieve_workflow(f"{job_id}:1").get_result(polling_interval_sec=0.01)
        for attempt in (1, 2):
            row = DBOS.retrieve_workflow(f"{job_id}:{attempt}").get_status()
            assert row.workflow_timeout_ms is None
            assert row.workflow_deadline_epoch_ms is None
            assert row.priority == 0

    def test_refuses_a_name_that_another_function_has(self):
        with pytest.raises(ConfigError, match="the name of one function only"):
            durable.job(AT_ONCE, name="blocking")(len)

    def test_takes_the_same_function_again_when_its_module_is_read_again(self):
        again = durable.job(AT_ONCE, name="again")
        again(tried)
        assert ended(again(tried).start(0)).status == "succeeded"
