"""Jobs on DBOS from outside: how they stand, and what can be done about them."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest
from dbos import DBOS

from retrykit import ConfigError, GiveUp, Policy
from retrykit.integrations import dbos as durable
from tests._support.dbos_jobs import changed, ended, launched

__all__ = ["launched"]

pytestmark = pytest.mark.usefixtures("launched")

HOURLY = Policy(schedule=["1h"], max_elapsed=None, on=ConnectionError, name="hourly")
TOMORROW = datetime.now(UTC) + timedelta(days=1)
BEGUN, LEFT, OUTCOMES = {}, {}, {}


@durable.job(HOURLY, name="waits")
def waits(why: str = "refused") -> None:
    raise ConnectionError(why)


@durable.job(HOURLY, name="dies")
def dies(*, why: str = "refused") -> None:
    raise GiveUp(ConnectionError(why))


@durable.job(HOURLY, name="works")
def works(value: object = None) -> object:
    return value


@durable.job(HOURLY, name="runs")
def runs(name: str) -> str:
    BEGUN[name].set()
    LEFT[name].wait(20)
    return name


@durable.job(HOURLY, name="meets")
def meets(name: str) -> None:
    error = next(OUTCOMES[name])
    if error is not None:
        raise error


def running(name):
    """Start a job that runs until it is left."""
    BEGUN[name], LEFT[name] = threading.Event(), threading.Event()
    runs.start_as(name, name)
    assert BEGUN[name].wait(20)
    return name


def waiting(job_id=None, why="refused"):
    """Start a job, and return its id when its first attempt has failed."""
    job_id = waits.start(why) if job_id is None else waits.start_as(job_id, why)
    DBOS.retrieve_workflow(f"{job_id}:1").get_result(polling_interval_sec=0.01)
    return job_id


class TestAStatus:
    def test_tells_a_job_that_waits_with_its_errors(self):
        report = durable.status(waiting(why="no route"))
        assert (report.status, report.reason, report.result) == ("waiting", "", None)
        assert [each.describe() for each in report.failures] == [
            "ConnectionError: no route"
        ]
        assert timedelta(minutes=50) < report.due - datetime.now(UTC)

    def test_tells_a_job_that_runs(self):
        report = durable.status(running("now"))
        assert (report.status, report.engine_id) == ("running", "now:1")
        LEFT["now"].set()
        assert ended("now").result == "now"

    def test_tells_a_dead_job_with_its_errors_and_why(self):
        report = ended(dies.start(why="no route"))
        assert (report.status, report.envelope.failed, report.due) == ("dead", 1, None)
        assert report.reason.endswith("last failure: ConnectionError: no route")
        assert "1 x ConnectionError" in report.describe()

    def test_tells_a_dead_job_whose_history_is_spoilt(self, launched):
        job_id = waiting()
        spoil(launched, f"{job_id}:2", '{"positionalArgs":["waits","cut"]}')
        durable.retry_at(job_id, datetime.now(UTC))
        report = ended(job_id)
        assert (report.status, report.envelope) == ("dead", None)
        assert report.reason

    def test_tells_a_job_that_waits_with_a_spoilt_history(self, launched):
        job_id = waiting()
        spoil(launched, f"{job_id}:2", "no JSON")
        report = durable.status(job_id)
        assert (report.status, report.envelope) == ("waiting", None)
        assert "envelope must be" in report.reason

    def test_tells_a_job_that_dbos_has_given_up(self, launched):
        job_id = waiting()
        stand(launched, f"{job_id}:2", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")
        report = durable.status(job_id)
        assert report.status == "dead"
        assert report.reason == "max_recovery_attempts_exceeded"
        assert report.envelope.failed == 1

    def test_tells_a_job_that_was_cancelled_between_its_success_and_its_end(
        self, launched
    ):
        ended(works.start_as("nearly", 7))
        stand(launched, "nearly:1", "CANCELLED")
        report = durable.status("nearly")
        assert (report.status, report.result, report.reason) == ("succeeded", 7, "")
        assert "nearly" not in [each.job for each in durable.dead(limit=1000)]

    def test_tells_a_job_whose_next_attempt_was_deleted(self):
        job_id = waiting()
        durable.kill(job_id)
        DBOS.delete_workflow(f"{job_id}:2")
        report = durable.status(job_id)
        assert report.status == "dead"
        assert report.reason == f"{job_id}:2, its next attempt, was deleted"
        durable.requeue(job_id)
        assert durable.status(job_id).envelope.run == 2

    @pytest.mark.parametrize(
        "job_id",
        ["a:1", "a/b", "100%", "a_b", "ångström 🌊", "A:1", "a"],
        ids=["colon", "slash", "percent", "underscore", "unicode", "upper", "short"],
    )
    def test_knows_a_job_by_its_id_and_no_other(self, job_id):
        for other in ("a:1:2", "a/c", "100 percent", "acb", "ångström", "aa"):
            works.start_as(other, "another's")
        works.start_as(job_id, job_id)
        assert ended(job_id).result == job_id

    @pytest.mark.parametrize("job_id", ["100_", "%", "nobody", "x:"])
    def test_knows_no_job_that_was_not_started(self, job_id):
        works.start_as("100%")
        works.start_as("x:x")
        with pytest.raises(ConfigError, match="a job that was started"):
            durable.status(job_id)

    def test_is_asked_for_in_a_thread_by_a_coroutine(self):
        ended(works.start_as("threaded", 1))
        report = asyncio.run(asyncio.to_thread(durable.status, "threaded"))
        assert report.result == 1


class TestTheDead:
    def test_are_listed_newest_first(self):
        ids = [dies.start() for _ in range(3)]
        for job_id in ids:
            ended(job_id)
        assert [each.job for each in durable.dead(limit=2)] == [ids[2], ids[1]]

    def test_are_no_longer_listed_when_they_are_queued_again(self):
        first, second = dies.start(), dies.start()
        for job_id in (first, second):
            ended(job_id)
        durable.requeue(second)
        ended(second)
        listed = [each for each in durable.dead(limit=2) if each.job != first]
        assert [(each.job, each.engine_id) for each in listed] == [
            (second, f"{second}#2:1")
        ]
        durable.requeue(second)
        assert ended(second).engine_id == f"{second}#3:1"
        assert first in [each.job for each in durable.dead(limit=2)]

    def test_are_not_those_that_go_on_with_another_attempt(self, launched):
        job_id = waiting()
        stand(launched, f"{job_id}:1", "CANCELLED")
        assert job_id not in [each.job for each in durable.dead(limit=1000)]

    def test_are_not_what_was_forked_by_hand(self):
        job_id = dies.start()
        ended(job_id)
        forked = DBOS.fork_workflow(f"{job_id}:1", 1)
        with pytest.raises(Exception, match="ended by give_up_on"):
            forked.get_result(polling_interval_sec=0.01)
        assert forked.workflow_id not in [each.job for each in durable.dead(limit=1000)]

    def test_go_on_from_their_first_attempt_when_they_are_queued_again(self):
        job_id = waiting(why="again")
        durable.kill(job_id)
        durable.requeue(job_id)
        DBOS.retrieve_workflow(f"{job_id}#2:1").get_result(polling_interval_sec=0.01)
        report = durable.status(job_id)
        assert (report.status, report.engine_id) == ("waiting", f"{job_id}#2:2")
        assert (report.envelope.run, report.envelope.failed) == (2, 1)
        assert "again" in report.describe()

    def test_are_nobody_where_nobody_died(self, launched):
        changed(launched, "UPDATE workflow_status SET name = 'x' WHERE name <> 'x'")
        assert durable.dead() == []


class TestWhatIsDone:
    def test_kills_a_job_that_waits(self):
        job_id = waiting()
        durable.kill(job_id)
        report = durable.status(job_id)
        assert (report.status, report.reason) == ("dead", "cancelled")
        assert (report.envelope.failed, report.due) == (1, None)

    def test_kills_a_job_that_runs(self):
        durable.kill(running("killed"))
        LEFT["killed"].set()
        assert ended("killed").reason == "cancelled"
        assert durable.status("killed").result is None

    def test_kills_nothing_that_has_ended(self):
        ended(works.start_as("ended"))
        durable.kill("ended")
        assert durable.status("ended").status == "succeeded"

    def test_attempts_a_job_at_another_time(self):
        job_id, when = waiting(), datetime(2100, 1, 1, tzinfo=UTC)
        durable.retry_at(job_id, when)
        assert durable.status(job_id).due == when
        durable.retry_at(job_id, datetime(1960, 1, 1, tzinfo=UTC))
        assert ended(job_id).envelope.failed == 2

    def test_forgets_what_is_over_and_no_dead_job(self):
        ended(works.start_as("over"))
        ended(dies.start_as("died"))
        waiting("goes-on")
        assert durable.delete_finished(datetime(2026, 1, 1, tzinfo=UTC)) == 0
        assert durable.delete_finished(TOMORROW) >= 1
        assert durable.delete_finished(TOMORROW) == 0
        with pytest.raises(ConfigError, match="of a job that was started"):
            durable.status("over")
        assert durable.status("died").status == "dead"
        assert durable.status("goes-on").envelope.failed == 1

    def test_forgets_nothing_that_keeps_a_job_from_being_begun_twice(self):
        waiting("goes-on-once")
        durable.retry_at("goes-on-once", datetime.now(UTC))
        ended("goes-on-once")
        durable.delete_finished(TOMORROW)
        waits.start_as("goes-on-once")
        report = durable.status("goes-on-once")
        assert (report.status, report.engine_id) == ("dead", "goes-on-once:2")

    def test_forgets_a_job_that_was_queued_again_as_a_whole(self):
        OUTCOMES["revived"] = iter([GiveUp(), ConnectionError(), None])
        meets.start_as("revived", "revived")
        ended("revived")
        durable.requeue("revived")
        DBOS.retrieve_workflow("revived#2:1").get_result(polling_interval_sec=0.01)
        durable.delete_finished(TOMORROW)
        assert "revived" not in [each.job for each in durable.dead(limit=1000)]
        durable.retry_at("revived", datetime.now(UTC))
        assert ended("revived").status == "succeeded"
        durable.delete_finished(TOMORROW)
        assert "revived" not in [each.job for each in durable.dead(limit=1000)]
        with pytest.raises(ConfigError, match="of a job that was started"):
            durable.requeue("revived")

    def test_forgets_all_attempts_of_a_job_that_has_succeeded(self):
        OUTCOMES["healed"] = iter([ConnectionError(), None])
        meets.start_as("healed", "healed")
        DBOS.retrieve_workflow("healed:1").get_result(polling_interval_sec=0.01)
        durable.retry_at("healed", datetime.now(UTC))
        assert ended("healed").status == "succeeded"
        durable.delete_finished(TOMORROW)
        with pytest.raises(ConfigError, match="of a job that was started"):
            durable.status("healed")

    def test_hands_half_an_attempt_over(self):
        running("left behind")
        BEGUN["left behind"].clear()
        assert durable.take_over("unheard-of") == []
        assert durable.take_over("single") == ["left behind"]
        assert BEGUN["left behind"].wait(20), "it is made again"
        row = DBOS.retrieve_workflow("left behind:1").get_status()
        assert row.queue_name == "retrykit", "and by whoever listens"
        LEFT["left behind"].set()
        assert ended("left behind").result == "left behind"


def spoil(database, place, inputs):
    changed(
        database,
        "UPDATE workflow_input SET inputs = ? WHERE workflow_uuid = ?",
        inputs,
        place,
    )


def stand(database, place, status):
    changed(
        database,
        "UPDATE workflow_status SET status = ? WHERE workflow_uuid = ?",
        status,
        place,
    )
