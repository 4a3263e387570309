"""Jobs on Celery from outside: their status, and what can be done with them."""

import json
import logging
from datetime import UTC, datetime

import pytest
from celery import signals
from celery.exceptions import QueueNotFound, WorkerTerminate

from retrykit import ConfigError, GiveUp, Policy
from retrykit._internal.clocks import wall
from retrykit.durable import idempotency_key
from retrykit.integrations.celery import jobs, kill, requeue, retry_at, status
from retrykit.integrations.celery._ledger import (
    LEDGER,
    Entry,
    read_entry,
    write_entry,
)
from retrykit.integrations.celery._messages import DEAD, HEADER
from tests._support import celery_worker

clock, worker = celery_worker.clock, celery_worker.worker

HOURLY = Policy(schedule=["1h"] * 5, max_attempts=None)


@pytest.fixture
def keys():
    return []


@pytest.fixture
def verify(worker, keys):
    """A task whose argument says how it ends."""

    def verify(how):
        keys.append(idempotency_key())
        if how == "dies" and len(keys) < 3:
            raise GiveUp(ConnectionError("refused"))
        if how == "fails":
            raise ConnectionError("refused")
        return how

    return worker.task(verify, HOURLY)


def start(verify, how, job="job-7"):
    return verify.apply_async([how], task_id=job)


def test_a_dead_job_is_one_line_in_the_log(worker, verify, caplog):
    start(verify, "dies")
    worker.handle_next()
    records = [r for r in caplog.records if r.levelno >= logging.INFO]
    [line] = [r.getMessage() for r in records if r.levelno == logging.ERROR]
    assert line.startswith("job-7: dead, gave up after 1 attempt in ")
    assert line.endswith("last failure: ConnectionError: refused")
    assert not any(r.exc_info for r in records)


class TestJobs:
    @pytest.mark.parametrize("filters", [{}, {"status": "waiting"}, {"overdue": 1}])
    def test_cannot_list_others_without_redis(self, worker, filters):
        with pytest.raises(ConfigError, match="no list of other jobs"):
            jobs(worker.app, **filters)


class TestRetryAt:
    def test_moves_the_next_attempt(self, worker, verify, keys, clock):
        start(verify, "fails")
        worker.handle_next()
        retry_at(worker.app, "job-7", datetime.fromtimestamp(wall() + 60, UTC))
        worker.handle_next()
        worker.handle_next()
        assert status(worker.app, "job-7").due.timestamp() == pytest.approx(wall() + 60)
        assert keys == ["job-7:1"]
        clock.advance(61)
        worker.handle_next()
        assert keys == ["job-7:1", "job-7:2"]

    def test_makes_it_at_once_and_only_once(self, worker, verify, keys, clock):
        start(verify, "fails")
        worker.handle_next()
        retry_at(worker.app, "job-7", datetime(2000, 1, 1, tzinfo=UTC))
        worker.handle_next()
        worker.handle_next()
        assert keys == ["job-7:1", "job-7:2"]
        clock.advance(3600)
        worker.handle_next()
        assert keys == ["job-7:1", "job-7:2", "job-7:3"]
        assert len(worker.messages()) == 1

    def test_rejects_a_job_that_does_not_wait(self, worker, verify):
        start(verify, "verified")
        worker.handle_next()
        with pytest.raises(ConfigError, match="it is succeeded"):
            retry_at(worker.app, "job-7", datetime.now(UTC))

    def test_rejects_a_naive_time_and_an_unknown_job(self, worker, verify):
        start(verify, "fails")
        with pytest.raises(ConfigError, match="when must be an aware datetime"):
            retry_at(worker.app, "job-7", datetime(2026, 1, 1))  # noqa: DTZ001
        with pytest.raises(ConfigError, match="a job that was started"):
            retry_at(worker.app, "job-8", datetime.now(UTC))


class TestStatus:
    def test_shows_a_job_that_no_worker_has_seen(self, worker, verify):
        start(verify, "verified")
        report = status(worker.app, "job-7")
        assert (report.status, report.envelope.failed_attempts) == ("waiting", 0)

    def test_shows_failures_and_the_next_due_time(self, worker, verify):
        start(verify, "fails")
        worker.handle_next()
        report = status(worker.app, "job-7")
        assert (report.status, report.engine_id) == ("waiting", "job-7")
        assert report.due.timestamp() == pytest.approx(wall() + 3600)
        assert report.describe().startswith("job-7: waiting, 1 failed attempt, next")

    def test_shows_the_result(self, worker, verify):
        start(verify, "verified")
        worker.handle_next()
        report = status(worker.app, "job-7")
        assert (report.status, report.result) == ("succeeded", "verified")

    def test_shows_what_is_readable_of_a_corrupt_entry(self, worker, verify):
        start(verify, "fails")
        write_entry(
            worker.app, "job-7", worker.entry().replace(envelope="?", reason="odd")
        )
        assert status(worker.app, "job-7").describe() == "job-7: waiting: odd"

    def test_says_why_an_envelope_of_a_waiting_job_is_unreadable(self, worker, verify):
        start(verify, "fails")
        entry = worker.entry()
        newer = entry.envelope | {"version": 2}
        write_entry(worker.app, "job-7", entry.replace(envelope=newer))
        text = status(worker.app, "job-7").describe()
        assert text.startswith("job-7: waiting: envelope must be of version 1, got")

    def test_rejects_an_unknown_id(self, worker, verify):
        with pytest.raises(ConfigError, match="the id of a job that was started"):
            status(worker.app, "job-8")

    def test_ignores_foreign_data(self, worker, verify):
        worker.app.backend.store_result("job-7.retrykit", {"run": 1}, "SUCCESS")
        with pytest.raises(ConfigError):
            status(worker.app, "job-7")


class TestDeadJobs:
    def test_are_listed_and_left_in_place(self, worker, verify):
        for job in ("job-1", "job-2", "job-3"):
            start(verify, "dies", job)
        worker.handle_all()
        for _ in range(2):
            assert {each.job for each in jobs(worker.app, status="dead")} == {
                "job-1",
                "job-2",
            }
        assert len(jobs(worker.app, status="dead", limit=1)) == 1

    def test_are_listed_with_the_newest_first(self, worker, verify, clock):
        for job in ("job-1", "job-2"):
            start(verify, "dies", job)
            worker.handle_next()
            clock.advance(1)
        listed = jobs(worker.app, status="dead")
        assert [each.job for each in listed] == ["job-2", "job-1"]
        assert jobs(worker.app, status="dead", limit=1) == listed[:1]

    def test_survive_a_restart_of_the_broker(self, worker, verify):
        start(verify, "dies")
        worker.handle_all()
        message = worker.channel.basic_get(DEAD.name)
        assert (message.properties["delivery_mode"], DEAD.durable) == (2, True)

    def test_are_listed_with_their_names_and_reasons(self, worker, verify):
        start(verify, "dies")
        worker.handle_all()
        [report] = jobs(worker.app, status="dead")
        assert (report.status, report.name) == ("dead", "verify")
        assert report.reason.endswith("last failure: ConnectionError: refused")
        assert report.envelope.counts == {"ConnectionError": 1}
        assert jobs(worker.app, status="dead", error="KeyError") == []

    def test_are_an_empty_list_if_there_are_none(self, worker):
        assert jobs(worker.app, status="dead") == []

    def test_are_listed_until_they_are_requeued(self, worker, verify):
        start(verify, "dies")
        worker.handle_next(killed="acknowledging")
        worker.handle_next()
        assert worker.count_dead() == 2
        requeue(worker.app, "job-7")
        assert (jobs(worker.app, status="dead"), worker.count_dead()) == ([], 0)


class TestRequeue:
    def test_runs_a_dead_job_again_with_new_keys(self, worker, verify, keys):
        result = start(verify, "dies")
        worker.handle_all()
        for run in (2, 3):
            requeue(worker.app, "job-7")
            assert (worker.state(), status(worker.app, "job-7").status) == (
                "PENDING",
                "waiting",
            )
            worker.handle_all()
            assert keys[-1] == f"job-7#{run}:1"
        assert result.result == "dies"
        assert worker.count_dead() == 0

    def test_is_not_undone_by_a_start_under_the_same_id(self, worker, verify, keys):
        """No worker has seen the new run yet."""
        start(verify, "dies")
        worker.handle_all()
        requeue(worker.app, "job-7")
        start(verify, "dies")
        assert (worker.entry().run, len(worker.messages())) == (2, 1)
        worker.handle_all()
        assert keys == ["job-7:1", "job-7#2:1"]

    def test_leaves_other_jobs_in_place(self, worker, verify):
        for job in ("job-1", "job-2"):
            start(verify, "dies", job)
        worker.handle_all()
        requeue(worker.app, "job-2")
        assert [each.job for each in jobs(worker.app, status="dead")] == ["job-1"]

    def test_requeues_no_job_twice(self, worker, verify, keys):
        """Its message was sent, and whoever sent it was killed then."""
        start(verify, "dies")
        worker.handle_all()
        worker.copy_message(DEAD.name)
        dead_message = worker.channel.basic_get(DEAD.name)
        requeue(worker.app, "job-7")
        dead_message.requeue()
        requeue(worker.app, "job-7")
        assert (len(worker.messages()), worker.count_dead()) == (2, 0)
        worker.handle_all()
        assert keys == ["job-7:1", "job-7#2:1"]

    def test_rejects_a_job_that_was_attempted_since(self, worker, verify):
        start(verify, "dies")
        worker.handle_all()
        worker.copy_message(DEAD.name)
        dead_message = worker.channel.basic_get(DEAD.name)
        requeue(worker.app, "job-7")
        worker.handle_all()
        requeue(worker.app, "job-7")
        worker.handle_all()
        dead_message.requeue()
        with pytest.raises(ConfigError, match=r"in the queue retrykit\.dead"):
            requeue(worker.app, "job-7")
        assert jobs(worker.app, status="dead") == []

    def test_loses_no_job_if_its_process_is_killed(self, worker, verify, keys):
        start(verify, "dies")
        worker.handle_all()
        signals.before_task_publish.connect(celery_worker.die)
        with pytest.raises(WorkerTerminate):
            requeue(worker.app, "job-7")
        signals.before_task_publish.disconnect(celery_worker.die)
        assert [each.job for each in jobs(worker.app, status="dead")] == ["job-7"]
        requeue(worker.app, "job-7")
        worker.handle_all()
        assert keys == ["job-7:1", "job-7#2:1"]

    def test_makes_messages_of_the_earlier_run_stale(self, worker, verify, keys):
        """A copy of a message of the run that has ended comes after all."""
        start(verify, "fails")
        worker.handle_next()
        worker.copy_message()
        late = worker.channel.basic_get("celery")
        kill(worker.app, "job-7")
        worker.handle_all()
        requeue(worker.app, "job-7")
        assert worker.messages()[0]["retries"] == 0
        worker.channel.basic_get("celery")
        late.requeue()
        assert worker.handle_next()
        assert (keys, worker.messages(), worker.count_dead()) == (["job-7:1"], [], 0)

    def test_ignores_the_ledger_of_the_earlier_run(self, worker, verify):
        start(verify, "fails")
        worker.copy_message()
        late = worker.channel.basic_get("celery")
        worker.handle_next()
        kill(worker.app, "job-7")
        worker.handle_all()
        requeue(worker.app, "job-7")
        worker.handle_next()
        worker.channel.basic_get("celery")
        before = worker.entry()
        late.requeue()
        worker.handle_next()
        assert (worker.entry(), worker.messages()) == (before, [])

    def test_makes_messages_without_envelope_stale(self, worker, verify, keys):
        worker.app.send_task("verify", ["dies"], task_id="job-7")
        worker.copy_message()
        late = worker.channel.basic_get("celery")
        worker.handle_all()
        requeue(worker.app, "job-7")
        worker.channel.basic_get("celery")
        late.requeue()
        assert worker.handle_next()
        assert (keys, worker.messages(), worker.count_dead()) == (["job-7:1"], [], 0)

    @pytest.mark.parametrize("field", ["", ".message", ".kill", ".again"])
    @pytest.mark.parametrize("stored", ["{", "[1, 2]", '{"status": "RETRYKIT"}'])
    def test_a_job_goes_on_if_its_ledger_was_damaged(
        self, worker, verify, keys, field, stored, caplog
    ):
        start(verify, "fails")
        worker.handle_next()
        backend = worker.app.backend
        backend.set(backend.get_key_for_task(f"job-7{LEDGER}{field}"), stored)
        if not field:
            with pytest.raises(ConfigError, match="a job that was started"):
                status(worker.app, "job-7")
            assert f"job-7{LEDGER}: damaged in the result backend: " in caplog.text
            # A reader with another serializer must not delete it.
            assert backend.get(backend.get_key_for_task(f"job-7{LEDGER}")) == stored
        [headers] = worker.messages()
        envelope = json.loads(headers[HEADER]) | {"due": wall(), "written": wall()}
        worker.handle_next(**{HEADER: json.dumps(envelope)})
        assert keys == ["job-7:1", "job-7:2"]
        assert status(worker.app, "job-7").envelope.failed_attempts == 2

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("run", "1"), ("hop", None), ("killed", True), ("hop", -1),
            ("status", "lost"), ("status", []), ("token", 7), ("reason", None),
        ],
        ids=str,
    )  # fmt: skip
    def test_a_field_of_another_type_damages_the_ledger(
        self, worker, verify, name, value
    ):
        start(verify, "fails")
        worker.handle_next()
        data = read_entry(worker.app, "job-7").to_dict()
        assert Entry.from_dict(data) is not None
        assert Entry.from_dict(data | {name: value}) is None

    def test_works_without_a_ledger(self, worker, verify, keys):
        start(verify, "dies")
        worker.handle_all()
        worker.app.backend.client.cache.clear()
        assert [each.job for each in jobs(worker.app, status="dead")] == ["job-7"]
        requeue(worker.app, "job-7")
        worker.handle_all()
        assert keys == ["job-7:1", "job-7#2:1"]

    def test_uses_new_keys_if_the_envelope_is_corrupt(self, worker, verify, keys):
        start(verify, "dies")
        worker.handle_all()
        requeue(worker.app, "job-7")
        worker.handle_next(**{HEADER: "{"})
        requeue(worker.app, "job-7")
        worker.handle_all()
        assert keys == ["job-7:1", "job-7#3:1"]

    def test_keeps_a_dead_letter_that_cannot_be_sent(self, worker, verify):
        start(verify, "dies")
        worker.handle_all()
        worker.app.amqp.queues.pop("celery")
        worker.app.amqp.queues.create_missing = False
        with pytest.raises(QueueNotFound):
            requeue(worker.app, "job-7")
        assert worker.count_dead() == 1

    def test_rejects_a_job_that_is_not_dead(self, worker, verify):
        start(verify, "fails")
        with pytest.raises(ConfigError, match=r"in the queue retrykit\.dead"):
            requeue(worker.app, "job-7")


class TestKill:
    def test_stops_a_job_before_its_next_attempt(self, worker, verify, keys):
        start(verify, "fails")
        worker.handle_next()
        kill(worker.app, "job-7")
        report = status(worker.app, "job-7")
        assert (report.status, report.ended) == ("dead", None)
        worker.handle_all()
        assert keys == ["job-7:1"]
        [report] = jobs(worker.app, status="dead")
        assert (report.reason, report.envelope.failed_attempts) == ("killed by hand", 1)
        assert report.ended.timestamp() == pytest.approx(wall(), abs=1)

    def test_does_not_apply_to_a_later_run(self, worker, verify, keys):
        start(verify, "fails")
        kill(worker.app, "job-7")
        worker.handle_all()
        requeue(worker.app, "job-7")
        assert status(worker.app, "job-7").status == "waiting"
        worker.handle_next()
        assert keys == ["job-7#2:1"]

    def test_applies_to_a_requeued_job(self, worker, verify, keys):
        start(verify, "dies")
        worker.handle_all()
        requeue(worker.app, "job-7")
        kill(worker.app, "job-7")
        worker.handle_all()
        assert keys == ["job-7:1"]

    def test_lets_a_running_attempt_succeed(self, worker):
        worker.send(lambda host: kill(worker.app, "job-7"))
        worker.handle_next()
        assert status(worker.app, "job-7").status == "succeeded"

    def test_rejects_an_ended_job(self, worker, verify):
        start(verify, "verified")
        worker.handle_all()
        with pytest.raises(ConfigError, match="it is succeeded"):
            kill(worker.app, "job-7")
        start(verify, "dies", "job-8")
        worker.handle_all()
        with pytest.raises(ConfigError, match="it is dead"):
            kill(worker.app, "job-8")

    def test_rejects_a_job_that_was_killed_before(self, worker, verify):
        start(verify, "fails")
        worker.handle_next()
        kill(worker.app, "job-7")
        with pytest.raises(ConfigError, match="it is dead"):
            kill(worker.app, "job-7")
