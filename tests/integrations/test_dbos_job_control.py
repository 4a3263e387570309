"""Status and control of jobs on DBOS."""

import asyncio
import json
import logging
import threading
from datetime import UTC, datetime, timedelta

import pytest
from dbos import DBOS

from retrykit import ConfigError, GiveUp, Policy
from retrykit.integrations import dbos as durable
from retrykit.integrations.dbos._job_control import _all_reports
from retrykit.integrations.dbos._workflow_ids import find_attempts, keep_last_attempts
from tests._support.dbos_jobs import execute, launched, wait_until, wait_until_ended

__all__ = ["launched"]

pytestmark = pytest.mark.usefixtures("launched")

HOURLY = Policy(schedule=["1h"], on=ConnectionError, name="hourly")
TOMORROW = datetime.now(UTC) + timedelta(days=1)
STARTED, MAY_END, OUTCOMES = {}, {}, {}


@durable.job(HOURLY, name="waits")
def fails_hourly(why: str = "refused") -> None:
    raise ConnectionError(why)


@durable.job(HOURLY, name="dies")
def gives_up(*, why: str = "refused") -> None:
    raise GiveUp(ConnectionError(why))


@durable.job(HOURLY, name="works")
def returns(value: object = None) -> object:
    return value


@durable.job(HOURLY, name="runs")
def runs_until_released(name: str) -> str:
    STARTED[name].set()
    MAY_END[name].wait(20)
    return name


@durable.job(HOURLY, name="meets")
def follows_outcomes(name: str) -> None:
    error = next(OUTCOMES[name])
    if error is not None:
        raise error


class Stopped(BaseException):
    """An error that ``except Exception`` must not catch."""


@durable.job(HOURLY, name="stops")
def stops(error: str) -> None:
    raise GeneratorExit if error == "GeneratorExit" else Stopped


@durable.job(HOURLY, name="astops")
async def astops(error: str) -> None:
    stops(error)


@durable.job(HOURLY, name="runs and fails")
def runs_and_fails(name: str) -> None:
    raise ConnectionError(runs_until_released(name))


def start_running(name, job=runs_until_released):
    """Start a job that runs until its `MAY_END` is set."""
    STARTED[name], MAY_END[name] = threading.Event(), threading.Event()
    job.start_as(name, name)
    assert STARTED[name].wait(20)
    return name


def start_waiting(job_id=None, why="refused"):
    """Start a job, and return its id after its first attempt has failed."""
    job_id = (
        fails_hourly.start(why)
        if job_id is None
        else fails_hourly.start_as(job_id, why)
    )
    DBOS.retrieve_workflow(f"{job_id}:1").get_result(polling_interval_sec=0.01)
    return job_id


def list_dead(limit=None):
    """Return the ids of the dead jobs, in their order."""
    return [each.job for each in durable.jobs(status="dead", limit=limit)]


@pytest.fixture
def logged():
    """The records of the logger of DBOS, which hands them to no other logger."""
    logger, records = logging.getLogger("dbos"), []
    handler = logging.Handler()
    handler.emit = records.append
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.ERROR)
    yield records
    logger.setLevel(level)
    logger.removeHandler(handler)


class TestLog:
    def test_a_dead_job_is_one_line(self, logged):
        job_id = gives_up.start(why="no route")
        report = wait_until_ended(job_id)
        # DBOS stores the end of a workflow before it logs it.
        wait_until(lambda: logged)
        [record] = logged
        assert record.getMessage() == f"{job_id}: dead, {report.reason}"
        assert record.exc_info is record.exc_text is None

    def test_so_is_one_whose_history_is_corrupt(self, launched, logged):
        job_id = start_waiting()
        set_inputs(launched, f"{job_id}:2", '{"positionalArgs":["waits","cut",[],{}]}')
        durable.retry_at(job_id, datetime.now(UTC))
        wait_until_ended(job_id)
        wait_until(lambda: logged)
        [line] = [record.getMessage() for record in logged]
        assert line.startswith(f"{job_id}: dead, envelope must be ")

    def test_other_errors_keep_their_tracebacks(self, logged):
        try:
            raise KeyError("host")
        except KeyError:
            logging.getLogger("dbos").exception("in another workflow")
        assert logged[0].exc_info[0] is KeyError


class TestJobs:
    def test_lists_the_last_attempts_of_jobs(self):
        waiting = [start_waiting(f"listed-{each}", why="listed") for each in "ab"]
        running = start_running("listed-c")
        dead = gives_up.start(why="listed")
        done = returns.start()
        for job_id in (dead, done):
            wait_until_ended(job_id)

        def listed(**filters):
            return [each.job for each in durable.jobs(limit=None, **filters)]

        assert [each for each in listed(status="waiting") if each in waiting] == waiting
        assert set(waiting) <= {*listed(name="waits", error="ConnectionError")}
        assert running in listed(status="running", name="runs", overdue=0)
        assert dead in listed(status="dead", name="dies")
        assert done in listed(status="succeeded", name="works")
        assert {*waiting, running, dead, done} <= {*listed()}
        assert len(listed()) == len({*listed()})
        MAY_END["listed-c"].set()
        assert wait_until_ended("listed-c").name == "runs"

    def test_lists_a_job_once_that_dies_meanwhile(self):
        job_id = start_waiting("lists-once")
        listing = _all_reports(("waiting", "running", "succeeded", "dead"))
        listed = [next(listing)]
        durable.kill(job_id)
        listed += listing
        assert [each.job for each in listed].count(job_id) == 1

    def test_lists_a_job_that_goes_on_meanwhile(self):
        job_id = start_running("goes-on", runs_and_fails)
        rows = find_attempts(job_id)
        MAY_END[job_id].set()
        wait_until(lambda: durable.status(job_id).status == "waiting")
        [last] = keep_last_attempts(rows)
        assert last.workflow_id == f"{job_id}:2"

    def test_lists_a_job_that_is_requeued_meanwhile(self):
        job_id = start_waiting()
        durable.kill(job_id)
        rows = find_attempts(job_id)
        durable.requeue(job_id)
        wait_until(lambda: durable.status(job_id).envelope.failed_attempts == 1)
        [last] = keep_last_attempts(rows)
        assert last.workflow_id == durable.status(job_id).engine_id

    def test_a_killed_job_is_dead(self):
        job_id = start_waiting()
        durable.kill(job_id)
        assert job_id in list_dead()
        assert job_id not in {
            each.job for each in durable.jobs(status="succeeded", limit=None)
        }


class TestStatus:
    def test_shows_the_errors_of_a_waiting_job(self):
        report = durable.status(start_waiting(why="no route"))
        assert (report.status, report.reason, report.result) == ("waiting", "", None)
        assert [each.describe() for each in report.failures] == [
            "ConnectionError: no route"
        ]
        assert timedelta(minutes=50) < report.due - datetime.now(UTC)

    def test_shows_a_running_job(self):
        report = durable.status(start_running("now"))
        assert (report.status, report.engine_id) == ("running", "now:1")
        MAY_END["now"].set()
        assert wait_until_ended("now").result == "now"

    def test_shows_the_errors_of_a_dead_job_and_its_reason(self):
        report = wait_until_ended(gives_up.start(why="no route"))
        assert (report.status, report.envelope.failed_attempts, report.due) == (
            "dead",
            1,
            None,
        )
        assert report.reason.endswith("last failure: ConnectionError: no route")
        assert "1 x ConnectionError" in report.describe()

    def test_shows_a_dead_job_with_a_corrupt_history(self, launched):
        job_id = start_waiting()
        set_inputs(launched, f"{job_id}:2", '{"positionalArgs":["waits","cut"]}')
        durable.retry_at(job_id, datetime.now(UTC))
        report = wait_until_ended(job_id)
        assert (report.status, report.envelope) == ("dead", None)
        assert report.reason

    @pytest.mark.parametrize(
        ("changes", "why"),
        [({"job": "stranger"}, "stranger:2"), ({"run": 7}, "#7:2")],
        ids=["job", "run"],
    )
    def test_makes_no_attempt_with_the_history_of_another(self, launched, changes, why):
        job_id = start_waiting()
        envelope = durable.status(job_id).envelope.to_dict() | changes
        inputs = {"positionalArgs": ["waits", envelope, [], {}], "namedArgs": {}}
        set_inputs(launched, f"{job_id}:2", json.dumps(inputs))
        durable.retry_at(job_id, datetime.now(UTC))
        report = wait_until_ended(job_id)
        assert (report.status, report.engine_id) == ("dead", f"{job_id}:2")
        rule = f"envelope must be that of the attempt {job_id}:2, with which it is"
        assert report.reason.startswith(rule)
        assert why in report.reason
        assert job_id in list_dead()
        durable.requeue(job_id)

    @pytest.mark.parametrize("due", [False, True])
    def test_shows_a_job_whose_arguments_were_deleted(self, launched, due):
        job_id = start_waiting()
        deleted = "DELETE FROM workflow_input WHERE workflow_uuid = ?"
        execute(launched, deleted, f"{job_id}:2")
        if due:
            durable.retry_at(job_id, datetime.now(UTC))
        report = durable.status(job_id)
        assert report.status == "dead"
        assert report.reason == "its arguments were deleted from the database"
        assert job_id in list_dead()
        with pytest.raises(ConfigError, match="whose arguments can be read"):
            durable.requeue(job_id)
        durable.kill(job_id)
        assert durable.status(job_id).status == "dead"

    @pytest.mark.parametrize(
        "stored",
        [
            '{"positionalArgs":["waits",{"jo',
            "null",
            "",
            "[]",
            '"x"',
            '{"namedArgs":{}}',
        ],
    )
    def test_says_that_the_arguments_of_a_dead_job_are_damaged(self, launched, stored):
        job_id = start_waiting()
        set_inputs(launched, f"{job_id}:2", stored)
        durable.retry_at(job_id, datetime.now(UTC))
        report = wait_until_ended(job_id)
        why = "its stored arguments are damaged, so it cannot be attempted"
        assert (report.status, report.reason) == ("dead", why)

    def test_says_why_a_job_died_whose_arguments_were_damaged_later(self, launched):
        job_id = wait_until_ended(gives_up.start()).job
        why = durable.status(job_id).reason
        set_inputs(launched, f"{job_id}:1", "null")
        assert durable.status(job_id).reason == why

    @pytest.mark.parametrize("job", [stops, astops], ids=["sync", "async"])
    @pytest.mark.parametrize("error", ["GeneratorExit", "Stopped"])
    def test_a_job_is_dead_that_raises_no_ordinary_error(self, job, error):
        report = wait_until_ended(job.start(error))
        assert report.status == "dead"
        expected = f"the job would have stopped its worker: {error}()"
        assert report.reason == expected

    def test_shows_a_waiting_job_with_a_corrupt_history(self, launched):
        job_id = start_waiting()
        set_inputs(launched, f"{job_id}:2", "no JSON")
        report = durable.status(job_id)
        assert (report.status, report.envelope) == ("waiting", None)
        assert "envelope must be" in report.reason

    def test_shows_a_job_that_dbos_has_given_up(self, launched):
        job_id = start_waiting()
        set_status(launched, f"{job_id}:2", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")
        report = durable.status(job_id)
        assert report.status == "dead"
        assert report.reason == "max_recovery_attempts_exceeded"
        assert report.envelope.failed_attempts == 1

    def test_shows_the_success_of_a_job_cancelled_before_its_workflow_ended(
        self, launched
    ):
        wait_until_ended(returns.start_as("nearly", 7))
        set_status(launched, "nearly:1", "CANCELLED")
        report = durable.status("nearly")
        assert (report.status, report.result, report.reason) == ("succeeded", 7, "")
        assert "nearly" not in list_dead()

    def test_shows_that_the_next_attempt_was_deleted(self):
        job_id = start_waiting()
        durable.kill(job_id)
        DBOS.delete_workflow(f"{job_id}:2")
        report = durable.status(job_id)
        assert report.status == "dead"
        assert report.reason == f"{job_id}:2, its next attempt, was deleted"
        assert job_id in list_dead()
        durable.requeue(job_id)
        assert durable.status(job_id).envelope.run == 2

    @pytest.mark.parametrize(
        "job_id",
        ["a:1", "a/b", "100%", "a_b", "ångström 🌊", "A:1", "a"],
        ids=["colon", "slash", "percent", "underscore", "unicode", "upper", "short"],
    )
    def test_finds_a_job_by_its_exact_id(self, job_id):
        for other in ("a:1:2", "a/c", "100 percent", "acb", "ångström", "aa"):
            returns.start_as(other, "another's")
        returns.start_as(job_id, job_id)
        assert wait_until_ended(job_id).result == job_id

    @pytest.mark.parametrize("job_id", ["50_", "%", "nobody", "x:"])
    def test_rejects_an_unknown_id(self, job_id):
        returns.start_as("50%")
        returns.start_as("x:x")
        with pytest.raises(ConfigError, match="a job that was started"):
            durable.status(job_id)

    def test_can_be_read_in_a_thread(self):
        wait_until_ended(returns.start_as("threaded", 1))
        report = asyncio.run(asyncio.to_thread(durable.status, "threaded"))
        assert report.result == 1


class TestDeadJobs:
    def test_are_listed_with_the_newest_first(self):
        ids = [wait_until_ended(gives_up.start()).job for _ in range(3)]
        assert list_dead(limit=2) == [ids[2], ids[1]]

    def test_are_listed_with_their_latest_runs(self):
        first, second = gives_up.start(), gives_up.start()
        for job_id in (first, second):
            wait_until_ended(job_id)
        durable.requeue(second)
        wait_until_ended(second)
        listed = durable.jobs(status="dead", limit=2)
        assert [each.engine_id for each in listed] == [f"{second}#2:1", f"{first}:1"]
        durable.requeue(second)
        assert wait_until_ended(second).engine_id == f"{second}#3:1"
        assert first in list_dead(limit=2)

    def test_are_listed_without_jobs_that_have_a_later_attempt(self, launched):
        job_id = start_waiting()
        set_status(launched, f"{job_id}:1", "CANCELLED")
        assert job_id not in list_dead()

    def test_are_listed_without_forked_workflows(self):
        job_id = gives_up.start()
        wait_until_ended(job_id)
        forked = DBOS.fork_workflow(f"{job_id}:1", 1)
        with pytest.raises(Exception, match="GiveUp was raised"):
            forked.get_result(polling_interval_sec=0.01)
        assert forked.workflow_id not in list_dead()

    def test_restart_at_their_first_attempts_if_requeued(self):
        job_id = start_waiting(why="again")
        durable.kill(job_id)
        assert job_id in list_dead()
        durable.requeue(job_id)
        DBOS.retrieve_workflow(f"{job_id}#2:1").get_result(polling_interval_sec=0.01)
        report = durable.status(job_id)
        assert (report.status, report.engine_id) == ("waiting", f"{job_id}#2:2")
        assert (report.envelope.run, report.envelope.failed_attempts) == (2, 1)
        assert "again" in report.describe()
        assert job_id not in list_dead()

    def test_are_an_empty_list_if_there_are_none(self, launched):
        rename = "UPDATE workflow_status SET name = ? WHERE name = ?"
        execute(launched, rename, "another's", "retrykit.job")
        dead = durable.jobs(status="dead")
        execute(launched, rename, "retrykit.job", "another's")
        assert dead == []


class TestActions:
    def test_kills_a_waiting_job(self):
        job_id = start_waiting()
        durable.kill(job_id)
        report = durable.status(job_id)
        assert (report.status, report.reason) == ("dead", "cancelled")
        assert (report.envelope.failed_attempts, report.due) == (1, None)

    def test_kills_a_running_job(self):
        durable.kill(start_running("killed"))
        MAY_END["killed"].set()
        assert wait_until_ended("killed").reason == "cancelled"
        assert durable.status("killed").result is None

    def test_does_not_kill_an_ended_job(self):
        wait_until_ended(returns.start_as("ended"))
        with pytest.raises(ConfigError, match="unfinished job, got 'ended'; it is suc"):
            durable.kill("ended")
        assert durable.status("ended").status == "succeeded"
        with pytest.raises(ConfigError, match="a job that was started"):
            durable.kill("never started")

    def test_does_not_kill_a_dead_job(self):
        job_id = start_waiting()
        durable.kill(job_id)
        with pytest.raises(ConfigError, match="it is dead"):
            durable.kill(job_id)

    def test_retry_at_changes_the_due_time(self):
        job_id, when = start_waiting(), datetime(2100, 1, 1, tzinfo=UTC)
        durable.retry_at(job_id, when)
        assert durable.status(job_id).due == when
        durable.retry_at(job_id, datetime(1960, 1, 1, tzinfo=UTC))
        assert wait_until_ended(job_id).envelope.failed_attempts == 2

    def test_delete_finished_deletes_succeeded_jobs_but_no_dead_ones(self):
        wait_until_ended(returns.start_as("over"))
        wait_until_ended(gives_up.start_as("died"))
        start_waiting("goes-on")
        assert durable.delete_finished(datetime(2026, 1, 1, tzinfo=UTC)) == 0
        assert durable.delete_finished(TOMORROW) >= 1
        assert durable.delete_finished(TOMORROW) == 0
        with pytest.raises(ConfigError, match="of a job that was started"):
            durable.status("over")
        assert durable.status("died").status == "dead"
        assert durable.status("goes-on").envelope.failed_attempts == 1

    def test_delete_finished_keeps_the_record_that_prevents_a_second_start(self):
        start_waiting("goes-on-once")
        durable.retry_at("goes-on-once", datetime.now(UTC))
        wait_until_ended("goes-on-once")
        durable.delete_finished(TOMORROW)
        fails_hourly.start_as("goes-on-once")
        report = durable.status("goes-on-once")
        assert (report.status, report.engine_id) == ("dead", "goes-on-once:2")

    def test_delete_finished_deletes_all_runs_of_a_requeued_job(self):
        OUTCOMES["revived"] = iter([GiveUp(), ConnectionError(), None])
        follows_outcomes.start_as("revived", "revived")
        wait_until_ended("revived")
        durable.requeue("revived")
        DBOS.retrieve_workflow("revived#2:1").get_result(polling_interval_sec=0.01)
        durable.delete_finished(TOMORROW)
        assert "revived" not in list_dead()
        durable.retry_at("revived", datetime.now(UTC))
        assert wait_until_ended("revived").status == "succeeded"
        durable.delete_finished(TOMORROW)
        assert "revived" not in list_dead()
        with pytest.raises(ConfigError, match="of a job that was started"):
            durable.requeue("revived")

    def test_delete_finished_deletes_all_attempts_of_a_job(self):
        OUTCOMES["healed"] = iter([ConnectionError(), None])
        follows_outcomes.start_as("healed", "healed")
        DBOS.retrieve_workflow("healed:1").get_result(polling_interval_sec=0.01)
        durable.retry_at("healed", datetime.now(UTC))
        assert wait_until_ended("healed").status == "succeeded"
        durable.delete_finished(TOMORROW)
        with pytest.raises(ConfigError, match="of a job that was started"):
            durable.status("healed")

    def test_take_over_repeats_an_interrupted_attempt(self):
        start_running("left behind")
        STARTED["left behind"].clear()
        assert durable.take_over("unheard-of") == []
        assert durable.take_over("single") == ["left behind"]
        assert STARTED["left behind"].wait(20), "it is repeated"
        row = DBOS.retrieve_workflow("left behind:1").get_status()
        assert row.queue_name == "retrykit", "any listening process may take it"
        MAY_END["left behind"].set()
        assert wait_until_ended("left behind").result == "left behind"


def set_inputs(database, place, inputs):
    execute(
        database,
        "UPDATE workflow_input SET inputs = ? WHERE workflow_uuid = ?",
        inputs,
        place,
    )


def set_status(database, place, status):
    execute(
        database,
        "UPDATE workflow_status SET status = ? WHERE workflow_uuid = ?",
        status,
        place,
    )
