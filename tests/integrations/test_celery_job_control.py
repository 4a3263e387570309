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
    def test_shows_a_job_that_no_worker_has_seen(self, desk, verify):
        start(verify, "verified")
        report = status(desk.app, "job-7")
        assert (report.status, report.envelope.failed) == ("waiting", 0)

    def test_shows_failures_and_the_next_due_time(self, desk, verify):
        start(verify, "fails")
        desk.wake()
        report = status(desk.app, "job-7")
        assert (report.status, report.engine_id) == ("waiting", "job-7")
        assert report.due.timestamp() == pytest.approx(wall() + 3600)
        assert report.describe().startswith("job-7: waiting, 1 failed attempt, next")

    def test_shows_the_result(self, desk, verify):
        start(verify, "verified")
        desk.wake()
        report = status(desk.app, "job-7")
        assert (report.status, report.result) == ("succeeded", "verified")

    def test_shows_what_is_readable_of_a_corrupt_entry(self, desk, verify):
        start(verify, "fails")
        write_entry(desk.app, "job-7", desk.entry().replace(envelope="?", why="odd"))
        assert status(desk.app, "job-7").describe() == "job-7: waiting: odd"

    def test_says_why_an_envelope_of_a_waiting_job_is_unreadable(self, desk, verify):
        start(verify, "fails")
        entry = desk.entry()
        newer = entry.envelope | {"version": 2}
        write_entry(desk.app, "job-7", entry.replace(envelope=newer))
        text = status(desk.app, "job-7").describe()
        assert text.startswith("job-7: waiting: envelope must be of version 1, got")

    def test_rejects_an_unknown_id(self, desk, verify):
        with pytest.raises(ConfigError, match="the id of a job that was started"):
            status(desk.app, "job-8")

    def test_ignores_foreign_data(self, desk, verify):
        desk.app.backend.store_result("job-7.retrykit", {"run": 1}, "SUCCESS")
        with pytest.raises(ConfigError):
            status(desk.app, "job-7")


class TestDead:
    def test_lists_dead_jobs_and_leaves_them_in_place(self, desk, verify):
        for job in ("job-1", "job-2", "job-3"):
            start(verify, "dies", job)
        desk.work()
        for _ in range(2):
            assert {each.job for each in dead(desk.app)} == {"job-1", "job-2"}
        assert len(dead(desk.app, limit=1)) == 1

    def test_survives_a_restart_of_the_broker(self, desk, verify):
        start(verify, "dies")
        desk.work()
        message = desk.channel.basic_get(DEAD.name)
        assert (message.properties["delivery_mode"], DEAD.durable) == (2, True)

    def test_shows_the_reason(self, desk, verify):
        start(verify, "dies")
        desk.work()
        [report] = dead(desk.app)
        assert report.status == "dead"
        assert report.reason.endswith("last failure: ConnectionError: refused")
        assert report.envelope.counts == {"ConnectionError": 1}

    def test_is_empty_if_no_job_is_dead(self, desk, verify):
        assert dead(desk.app) == []

    def test_leaves_out_requeued_jobs(self, desk, verify):
        start(verify, "dies")
        desk.wake(killed="acknowledging")
        desk.wake()
        assert desk.buried() == 2
        requeue(desk.app, "job-7")
        assert (dead(desk.app), desk.buried()) == ([], 0)


class TestRequeue:
    def test_runs_a_dead_job_again_with_new_keys(self, desk, verify, keys):
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

    def test_leaves_other_jobs_in_place(self, desk, verify):
        for job in ("job-1", "job-2"):
            start(verify, "dies", job)
        desk.work()
        requeue(desk.app, "job-2")
        assert [each.job for each in dead(desk.app)] == ["job-1"]

    def test_requeues_no_job_twice(self, desk, verify, keys):
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

    def test_rejects_a_job_that_was_attempted_since(self, desk, verify):
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

    def test_loses_no_job_if_its_process_is_killed(self, desk, verify, keys):
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

    def test_makes_messages_of_the_earlier_run_stale(self, desk, verify, keys):
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

    def test_ignores_the_ledger_of_the_earlier_run(self, desk, verify):
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

    def test_makes_messages_without_envelope_stale(self, desk, verify, keys):
        desk.app.send_task("verify", ["dies"], task_id="job-7")
        desk.copy()
        late = desk.channel.basic_get("celery")
        desk.work()
        requeue(desk.app, "job-7")
        desk.channel.basic_get("celery")
        late.requeue()
        assert desk.wake()
        assert (keys, desk.lying(), desk.buried()) == (["job-7:1"], [], 0)

    def test_works_without_a_ledger(self, desk, verify, keys):
        start(verify, "dies")
        desk.work()
        desk.app.backend.client.cache.clear()
        assert [each.job for each in dead(desk.app)] == ["job-7"]
        requeue(desk.app, "job-7")
        desk.work()
        assert keys == ["job-7:1", "job-7#2:1"]

    def test_uses_new_keys_if_the_envelope_is_corrupt(self, desk, verify, keys):
        start(verify, "dies")
        desk.work()
        requeue(desk.app, "job-7")
        desk.wake(**{HEADER: "{"})
        requeue(desk.app, "job-7")
        desk.work()
        assert keys == ["job-7:1", "job-7#3:1"]

    def test_keeps_a_dead_letter_that_cannot_be_sent(self, desk, verify):
        start(verify, "dies")
        desk.work()
        desk.app.amqp.queues.pop("celery")
        desk.app.amqp.queues.create_missing = False
        with pytest.raises(QueueNotFound):
            requeue(desk.app, "job-7")
        assert desk.buried() == 1

    def test_rejects_a_job_that_is_not_dead(self, desk, verify):
        start(verify, "fails")
        with pytest.raises(ConfigError, match=r"in the queue retrykit\.dead"):
            requeue(desk.app, "job-7")


class TestKill:
    def test_stops_a_job_before_its_next_attempt(self, desk, verify, keys):
        start(verify, "fails")
        desk.wake()
        kill(desk.app, "job-7")
        assert status(desk.app, "job-7").status == "dead"
        desk.work()
        assert keys == ["job-7:1"]
        [report] = dead(desk.app)
        assert (report.reason, report.envelope.failed) == ("killed by hand", 1)

    def test_does_not_apply_to_a_later_run(self, desk, verify, keys):
        start(verify, "fails")
        kill(desk.app, "job-7")
        desk.work()
        requeue(desk.app, "job-7")
        assert status(desk.app, "job-7").status == "waiting"
        desk.wake()
        assert keys == ["job-7#2:1"]

    def test_applies_to_a_requeued_job(self, desk, verify, keys):
        start(verify, "dies")
        desk.work()
        requeue(desk.app, "job-7")
        kill(desk.app, "job-7")
        desk.work()
        assert keys == ["job-7:1"]

    def test_lets_a_running_attempt_succeed(self, desk):
        desk.sent(lambda host: kill(desk.app, "job-7"))
        desk.wake()
        assert status(desk.app, "job-7").status == "succeeded"

    def test_rejects_an_ended_job(self, desk, verify):
        start(verify, "verified")
        desk.work()
        with pytest.raises(ConfigError, match="it is succeeded"):
            kill(desk.app, "job-7")
        start(verify, "dies", "job-8")
        desk.work()
        with pytest.raises(ConfigError, match="it is dead"):
            kill(desk.app, "job-8")
