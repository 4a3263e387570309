"""Jobs on Celery from outside: how they stand, the dead, and what can be done."""

import pytest
from celery import signals
from celery.exceptions import QueueNotFound, WorkerTerminate

from retrykit import ConfigError, GiveUp, Policy
from retrykit._internal.clocks import wall
from retrykit.durable import idempotency_key
from retrykit.integrations.celery import dead, kill, requeue, status
from retrykit.integrations.celery.ledger import write_entry
from retrykit.integrations.celery.messages import DEAD, HEADER
from tests._support import celery_desk

clock, desk = celery_desk.clock, celery_desk.desk

HOURLY = Policy(schedule=["1h"] * 5, max_attempts=None, max_elapsed=None)


@pytest.fixture
def keys():
    return []


@pytest.fixture
def verify(desk, keys):
    """A task that fails as it is told to by its argument."""

    def verify(how):
        keys.append(idempotency_key())
        if how == "dies" and len(keys) < 3:
            raise GiveUp(ConnectionError("refused"))
        if how == "fails":
            raise ConnectionError("refused")
        return how

    return desk.task(verify, HOURLY)


def start(verify, how, job="job-7"):
    return verify.apply_async([how], task_id=job)


class TestStatus:
    def test_tells_of_a_job_that_no_worker_has_seen(self, desk, verify):
        start(verify, "verified")
        report = status(desk.app, "job-7")
        assert (report.status, report.envelope.failed) == ("waiting", 0)

    def test_tells_what_failed_and_when_it_goes_on(self, desk, verify):
        start(verify, "fails")
        desk.wake()
        report = status(desk.app, "job-7")
        assert (report.status, report.place) == ("waiting", "job-7")
        assert report.due.timestamp() == pytest.approx(wall() + 3600)
        assert report.describe().startswith("job-7: waiting, 1 failed attempt, next")

    def test_tells_what_came_of_it(self, desk, verify):
        start(verify, "verified")
        desk.wake()
        report = status(desk.app, "job-7")
        assert (report.status, report.result) == ("succeeded", "verified")

    def test_tells_what_it_can_of_an_entry_that_was_spoilt(self, desk, verify):
        start(verify, "fails")
        write_entry(desk.app, "job-7", desk.entry().replace(envelope="?", why="odd"))
        assert status(desk.app, "job-7").describe() == "job-7: waiting: odd"

    def test_knows_nothing_of_what_was_never_started(self, desk, verify):
        with pytest.raises(ConfigError, match="the id of a job that was started"):
            status(desk.app, "job-8")

    def test_knows_nothing_of_what_something_else_wrote(self, desk, verify):
        desk.app.backend.store_result("job-7.retrykit", {"run": 1}, "SUCCESS")
        with pytest.raises(ConfigError):
            status(desk.app, "job-7")


class TestDead:
    def test_lists_what_died_and_leaves_it_where_it_is(self, desk, verify):
        for job in ("job-1", "job-2", "job-3"):
            start(verify, "dies", job)
        desk.work()
        for _ in range(2):
            assert {each.job for each in dead(desk.app)} == {"job-1", "job-2"}
        assert len(dead(desk.app, limit=1)) == 1

    def test_is_kept_by_a_broker_that_is_started_again(self, desk, verify):
        start(verify, "dies")
        desk.work()
        message = desk.channel.basic_get(DEAD.name)
        assert (message.properties["delivery_mode"], DEAD.durable) == (2, True)

    def test_tells_why(self, desk, verify):
        start(verify, "dies")
        desk.work()
        [report] = dead(desk.app)
        assert report.status == "dead"
        assert report.why.endswith("last failure: ConnectionError: refused")
        assert report.envelope.counts == {"ConnectionError": 1}

    def test_is_empty_where_nothing_died(self, desk, verify):
        assert dead(desk.app) == []

    def test_leaves_out_what_was_begun_anew(self, desk, verify):
        start(verify, "dies")
        desk.wake(killed="acknowledging")
        desk.wake()
        assert desk.buried() == 2
        requeue(desk.app, "job-7")
        assert (dead(desk.app), desk.buried()) == ([], 0)


class TestRequeue:
    def test_begins_a_dead_job_anew_under_new_keys(self, desk, verify, keys):
        result = start(verify, "dies")
        desk.work()
        for run in (2, 3):
            requeue(desk.app, "job-7")
            assert (desk.state(), status(desk.app, "job-7").status) == (
                "PENDING",
                "waiting",
            )
            desk.work()
            assert keys[-1] == f"job-7#{run}:1"
        assert result.result == "dies"
        assert desk.buried() == 0

    def test_leaves_the_others_where_they_are(self, desk, verify):
        for job in ("job-1", "job-2"):
            start(verify, "dies", job)
        desk.work()
        requeue(desk.app, "job-2")
        assert [each.job for each in dead(desk.app)] == ["job-1"]

    def test_begins_no_job_twice(self, desk, verify, keys):
        """Its message was sent, and whoever sent it was killed then."""
        start(verify, "dies")
        desk.work()
        desk.copy(DEAD.name)
        buried = desk.channel.basic_get(DEAD.name)
        requeue(desk.app, "job-7")
        buried.requeue()
        requeue(desk.app, "job-7")
        assert (len(desk.lying()), desk.buried()) == (2, 0)
        desk.work()
        assert keys == ["job-7:1", "job-7#2:1"]

    def test_begins_none_anew_that_has_been_attempted_since(self, desk, verify):
        start(verify, "dies")
        desk.work()
        desk.copy(DEAD.name)
        buried = desk.channel.basic_get(DEAD.name)
        requeue(desk.app, "job-7")
        desk.work()
        requeue(desk.app, "job-7")
        desk.work()
        buried.requeue()
        with pytest.raises(ConfigError, match=r"in the queue retrykit\.dead"):
            requeue(desk.app, "job-7")
        assert dead(desk.app) == []

    def test_loses_none_if_its_process_is_killed_meanwhile(self, desk, verify, keys):
        start(verify, "dies")
        desk.work()
        signals.before_task_publish.connect(celery_desk.dying)
        with pytest.raises(WorkerTerminate):
            requeue(desk.app, "job-7")
        signals.before_task_publish.disconnect(celery_desk.dying)
        assert [each.job for each in dead(desk.app)] == ["job-7"]
        requeue(desk.app, "job-7")
        desk.work()
        assert keys == ["job-7:1", "job-7#2:1"]

    def test_leaves_what_came_before_behind(self, desk, verify, keys):
        """A copy of a message of the run that has ended comes after all."""
        start(verify, "fails")
        desk.wake()
        desk.copy()
        late = desk.channel.basic_get("celery")
        kill(desk.app, "job-7")
        desk.work()
        requeue(desk.app, "job-7")
        assert desk.lying()[0]["retries"] == 0
        desk.channel.basic_get("celery")
        late.requeue()
        assert desk.wake()
        assert (keys, desk.lying(), desk.buried()) == (["job-7:1"], [], 0)

    def test_is_not_led_on_by_what_came_before(self, desk, verify):
        start(verify, "fails")
        desk.copy()
        late = desk.channel.basic_get("celery")
        desk.wake()
        kill(desk.app, "job-7")
        desk.work()
        requeue(desk.app, "job-7")
        desk.wake()
        desk.channel.basic_get("celery")
        before = desk.entry()
        late.requeue()
        desk.wake()
        assert (desk.entry(), desk.lying()) == (before, [])

    def test_leaves_what_came_without_an_envelope_behind(self, desk, verify, keys):
        desk.app.send_task("verify", ["dies"], task_id="job-7")
        desk.copy()
        late = desk.channel.basic_get("celery")
        desk.work()
        requeue(desk.app, "job-7")
        desk.channel.basic_get("celery")
        late.requeue()
        assert desk.wake()
        assert (keys, desk.lying(), desk.buried()) == (["job-7:1"], [], 0)

    def test_needs_no_ledger(self, desk, verify, keys):
        start(verify, "dies")
        desk.work()
        desk.app.backend.client.cache.clear()
        assert [each.job for each in dead(desk.app)] == ["job-7"]
        requeue(desk.app, "job-7")
        desk.work()
        assert keys == ["job-7:1", "job-7#2:1"]

    def test_gives_new_keys_where_an_envelope_was_spoilt(self, desk, verify, keys):
        start(verify, "dies")
        desk.work()
        requeue(desk.app, "job-7")
        desk.wake(**{HEADER: "{"})
        requeue(desk.app, "job-7")
        desk.work()
        assert keys == ["job-7:1", "job-7#3:1"]

    def test_keeps_a_dead_job_whose_message_cannot_be_sent(self, desk, verify):
        start(verify, "dies")
        desk.work()
        desk.app.amqp.queues.pop("celery")
        desk.app.amqp.queues.create_missing = False
        with pytest.raises(QueueNotFound):
            requeue(desk.app, "job-7")
        assert desk.buried() == 1

    def test_knows_no_job_that_is_not_dead(self, desk, verify):
        start(verify, "fails")
        with pytest.raises(ConfigError, match=r"in the queue retrykit\.dead"):
            requeue(desk.app, "job-7")


class TestKill:
    def test_lets_a_job_make_no_further_attempt(self, desk, verify, keys):
        start(verify, "fails")
        desk.wake()
        kill(desk.app, "job-7")
        assert status(desk.app, "job-7").status == "dead"
        desk.work()
        assert keys == ["job-7:1"]
        [report] = dead(desk.app)
        assert (report.why, report.envelope.failed) == ("killed by hand", 1)

    def test_does_not_hold_for_a_job_that_is_begun_anew(self, desk, verify, keys):
        start(verify, "fails")
        kill(desk.app, "job-7")
        desk.work()
        requeue(desk.app, "job-7")
        assert status(desk.app, "job-7").status == "waiting"
        desk.wake()
        assert keys == ["job-7#2:1"]

    def test_holds_for_one_that_was_begun_anew(self, desk, verify, keys):
        start(verify, "dies")
        desk.work()
        requeue(desk.app, "job-7")
        kill(desk.app, "job-7")
        desk.work()
        assert keys == ["job-7:1"]

    def test_lets_a_job_succeed_whose_attempt_is_being_made(self, desk):
        desk.sent(lambda host: kill(desk.app, "job-7"))
        desk.wake()
        assert status(desk.app, "job-7").status == "succeeded"

    def test_is_too_late_for_what_has_ended(self, desk, verify):
        start(verify, "verified")
        desk.work()
        with pytest.raises(ConfigError, match="it is succeeded"):
            kill(desk.app, "job-7")
        start(verify, "dies", "job-8")
        desk.work()
        with pytest.raises(ConfigError, match="it is dead"):
            kill(desk.app, "job-8")
