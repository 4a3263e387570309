"""Durable jobs on Procrastinate, in this process; tests/engines has a server."""

import asyncio
import copy
import json
import logging
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from procrastinate.exceptions import (
    AlreadyEnqueued,
    ConnectorException,
    UniqueViolation,
)

from retrykit import ConfigError, GiveUp
from retrykit._internal.clocks import wall
from retrykit.durable import Job, JobFailed, idempotency_key
from retrykit.integrations import procrastinate as durable
from retrykit.integrations.procrastinate import _job_run as job_run, _store as store
from retrykit.integrations.procrastinate._job_run import (
    JobPostponed,
    RescheduleStrategy,
)
from retrykit.integrations.procrastinate._sync_async import arun
from tests._support import procrastinate_jobs
from tests._support.procrastinate_jobs import (
    AT_ONCE,
    EMPTY,
    HOURLY,
    HostsJob,
    prepared_app,
)

kind, make_job = procrastinate_jobs.kind, procrastinate_jobs.make_job
waiting_job = procrastinate_jobs.waiting_job


class TestAJob:
    def test_runs_until_it_succeeds(self, make_job):
        job = make_job()
        assert job.task.start_as("host", "example.com", port=80) == "host"
        assert job.status().status == "waiting"
        job.work()
        report = job.status()
        assert job.keys == ["host:1", "host:2", "host:3"]
        assert (report.status, report.result) == ("succeeded", {"verified": True})
        assert report.failures[1].describe() == (
            "ConnectionError: ('example.com',):80 refused"
        )
        assert (job.row()["status"], report.engine_id) == ("succeeded", "1")

    def test_waits_in_the_table_until_it_is_due(self, waiting_job):
        row, envelope = waiting_job.row(), waiting_job.envelope()
        assert (row["status"], waiting_job.keys) == ("todo", ["host:1"])
        assert abs(row["scheduled_at"].timestamp() - envelope.due) < 1
        assert waiting_job.status().due == datetime.fromtimestamp(envelope.due, UTC)

    def test_waits_on_if_it_is_woken_early(self, waiting_job):
        due = waiting_job.envelope().due
        waiting_job.wake()
        assert waiting_job.keys == ["host:1"]
        assert waiting_job.envelope().due == due, "no delay is drawn again"
        assert abs(waiting_job.row()["scheduled_at"].timestamp() - due) < 1

    def test_waits_no_longer_if_the_clock_is_set_back(self, waiting_job):
        data = waiting_job.envelope().to_dict()
        data |= {"written": data["written"] + 9e5, "due": data["due"] + 9e5}
        waiting_job.connector.stored[1]["envelope"] = json.dumps(data)
        waiting_job.wake()
        delay = data["due"] - data["written"]
        assert abs(waiting_job.envelope().due - wall() - delay) < 1

    def test_fails_with_a_reason_when_it_gives_up(self, make_job):
        job = make_job(fails=9)
        job.task.start_as("host")
        job.work()
        report = job.status()
        assert (job.row()["status"], report.status) == ("failed", "dead")
        assert report.reason.endswith("last failure: ConnectionError: ():443 refused")
        assert "in verify" in report.failures[-1].error.traceback

    def test_is_dead_if_its_function_gives_up(self, make_job):
        job = make_job(error=GiveUp(KeyError("host")))
        job.task.start_as("host")
        job.work()
        assert job.keys == ["host:1"]
        assert "KeyError" in job.status().reason

    def test_is_dead_if_its_function_raises_cancelled_error(self, make_job):
        job = make_job(error=asyncio.CancelledError())
        job.task.start_as("host")
        job.work()
        assert job.status().status == "dead"
        assert "would have stopped its worker" in job.status().reason

    def test_is_dead_if_its_result_is_not_json(self, make_job):
        job = make_job(fails=0)
        job.value = {1, 2}
        job.task.start_as("host")
        job.work()
        assert "result must be" in job.status().reason
        job.wake()
        assert job.keys == ["host:1"], "it is not attempted again"

    def test_stores_error_messages_that_jsonb_cannot_hold(self, make_job, caplog):
        # pytest-xdist cannot report text that UTF-8 cannot encode.
        caplog.set_level(logging.CRITICAL, "procrastinate")
        job = make_job(HOURLY, error=OSError("\x00 \ud800"))
        job.task.start_as("host")
        job.work()
        assert job.connector.stored[1]["envelope"].isascii()
        assert job.status().failures[0].describe() == r"OSError: \x00 \ud800"

    def test_calls_its_function_directly(self):
        job = HostsJob(AT_ONCE, "sync")
        job.keys = [0, 1, 2]
        with pytest.raises(LookupError):
            job.task("example.com")
        assert repr(job.task) == "<DurableTask verify>"


class TestAStart:
    def test_makes_an_id(self, make_job):
        job = make_job()
        first, second = job.task.start(), job.task.start()
        assert first != second
        assert job.status(first).status == "waiting"

    def test_of_an_existing_id_starts_nothing(self, waiting_job):
        waiting_job.task.start_as("host")
        assert list(waiting_job.connector.jobs) == [1]

    def test_of_a_requeued_id_starts_nothing(self, waiting_job):
        """Even if the row of its first run has been removed."""
        durable.kill(waiting_job.app, "host")
        durable.requeue(waiting_job.app, "host")
        del waiting_job.connector.jobs[1]
        waiting_job.task.start_as("host")
        assert list(waiting_job.connector.jobs) == [2]

    def test_concurrent_with_another_of_the_same_id_starts_nothing(self, waiting_job):
        def find(**_filters):
            return []

        waiting_job.connector.find = find
        waiting_job.task.start_as("host")
        assert list(waiting_job.connector.jobs) == [1]

    def test_raises_a_violation_of_another_constraint(self, waiting_job):
        async def defer(**_jobs):
            raise UniqueViolation(constraint_name="another", queueing_lock=None)

        waiting_job.connector.defer_jobs_all = defer
        with pytest.raises(UniqueViolation):
            waiting_job.task.start_as("another")

    @pytest.mark.parametrize("part", [float("nan"), {1: 2}, object()], ids=type)
    def test_rejects_arguments_that_are_not_json(self, make_job, part):
        job = make_job()
        for args, named in (([part], {}), ([], {"port": part})):
            with pytest.raises(ConfigError, match=r"args|kwargs"):
                job.task.start(*args, **named)
        assert not job.connector.jobs

    def test_can_be_awaited(self, make_job):
        job = make_job()
        assert asyncio.run(job.task.astart_as("host", "example.com")) == "host"
        asyncio.run(job.task.astart("example.com"))
        assert len(job.connector.jobs) == 2

    def test_through_procrastinate_works(self, make_job):
        job = make_job()
        job.task.task.configure(priority=7).defer(port=80)
        assert job.status("verify@1").envelope is None
        job.work()
        assert job.keys == ["verify@1:1", "verify@1:2", "verify@1:3"]
        assert job.status("verify@1").status == "succeeded"

    def test_through_procrastinate_can_be_requeued(self, make_job):
        job = make_job(error=GiveUp(KeyError("host")))
        job.task.task.configure(queue="slow", priority=7).defer(port=80)
        job.work()
        [report] = durable.jobs(job.app, status="dead")
        assert report.job == "verify@1"
        durable.requeue(job.app, "verify@1")
        job.work()
        assert job.keys[1:] == ["verify@1#2:1"]
        assert job.row(2)["args"]["port"] == 80
        assert (job.row(2)["queue_name"], job.row(2)["priority"]) == ("slow", 7)

    def test_through_procrastinate_can_be_rescheduled(self, make_job):
        job = make_job()
        job.task.task.defer()
        durable.retry_at(job.app, "verify@1", datetime.now(UTC) + timedelta(hours=1))
        job.wake()
        assert job.keys == []


def changed(change):
    def corrupt(job):
        data = change(job.envelope().to_dict())
        job.connector.stored[1]["envelope"] = json.dumps(data)

    return corrupt


def without_a_row(job):
    job.connector.stored.clear()
    job.row()["args"]["retrykit"] = {"envelope": {"job": "host", "run": 1}}


@pytest.mark.parametrize(
    ("corrupt", "why"),
    [
        (changed(lambda data: data | {"version": 99}), "upgrade retrykit"),
        (changed(lambda data: json.dumps(data)[:80]), "envelope must be"),
        (changed(lambda data: data | {"due": "tomorrow"}), "envelope.due must be"),
        (changed(lambda data: data | {"policy": "unheard"}), "unheard"),
        (changed(lambda data: data | {"job": "other"}), "envelope.job must be 'host'"),
        (changed(lambda data: data | {"run": 2}), "envelope.run must be 1, the run"),
        (without_a_row, "envelope.version must be"),
    ],
    ids=[
        "newer",
        "cut off",
        "by hand",
        "unknown policy",
        "of another job",
        "of another run",
        "in the arguments",
    ],
)
def test_a_job_with_an_unusable_envelope_is_dead(waiting_job, corrupt, why):
    waiting_job.connector.stored[1]["envelope"] = json.dumps(
        waiting_job.envelope().to_dict() | {"due": wall() - 1, "written": wall() - 2}
    )
    corrupt(waiting_job)
    stored = dict(waiting_job.connector.stored.get(1, {}))
    waiting_job.wake()
    waiting_job.wake()
    [report] = durable.jobs(waiting_job.app, status="dead")
    assert why in report.reason
    assert waiting_job.keys == ["host:1"]
    assert waiting_job.connector.stored[1]["envelope"] == stored.get("envelope"), (
        "unchanged"
    )


def test_the_status_says_why_an_envelope_is_unusable_before_the_job_is_dead(
    waiting_job,
):
    changed(lambda data: data | {"version": 99})(waiting_job)
    report = waiting_job.status()
    assert (report.status, report.envelope) == ("waiting", None)
    assert "upgrade retrykit" in report.reason


def test_a_job_continues_under_a_renamed_policy(waiting_job):
    now = {"written": wall() - 2, "due": wall() - 1}
    changed(lambda data: data | now | {"policy": "once"})(waiting_job)
    waiting_job.wake()
    assert waiting_job.keys == ["host:1", "host:2"]


class TestAKilledWorker:
    def test_has_its_attempt_repeated_under_the_same_key(self, make_job):
        job = make_job(fails=0)
        job.task.start_as("host")
        job.stall()
        assert job.status().status == "running"
        assert asyncio.run(durable.rescue(job.app)) == [1]
        job.work()
        assert job.keys == ["host:1"]
        assert job.row()["status"] == "succeeded"

    def test_too_often_in_the_same_attempt_makes_the_job_dead(self, make_job):
        job = make_job(fails=0)
        job.task.start_as("host")
        for _ in range(3):
            job.stall()
            asyncio.run(durable.rescue(job.app))
        job.work()
        assert (job.keys, job.row()["status"]) == ([], "failed")
        [report] = durable.jobs(job.app, status="dead")
        assert report.reason == "its worker was killed 3 times in attempt 1"
        durable.requeue(job.app, "host")
        job.work()
        assert job.keys == ["host#2:1"]
        assert job.status().status == "succeeded"

    @pytest.mark.parametrize("times", [1, None])
    def test_is_allowed_as_often_as_the_task_says(self, make_job, times):
        job = make_job(fails=0, max_killed=times)
        job.task.start_as("host")
        for _ in range(times or 20):
            job.stall()
            asyncio.run(durable.rescue(job.app))
        job.work()
        dead = "its worker was killed once in attempt 1"
        assert job.status().reason == ("" if times is None else dead)

    def test_is_counted_anew_in_each_attempt(self, make_job):
        """Only a job that kills its worker again and again is poison."""
        job = make_job(HOURLY)
        job.task.start_as("host")
        for attempt in (1, 2, 3):
            for _ in range(2):
                job.stall()
                asyncio.run(durable.rescue(job.app))
            job.work()
            assert len(job.keys) == attempt
            if attempt < 3:
                durable.retry_at(job.app, "host", datetime.now(UTC))
        assert job.status().status == "succeeded"

    def test_is_not_counted_while_the_job_waited(self, waiting_job):
        for _ in range(4):
            waiting_job.stall()
            asyncio.run(durable.rescue(waiting_job.app))
            waiting_job.work()
        assert waiting_job.status().status == "waiting"
        assert waiting_job.connector.stored[1]["killed"] == 0

    def test_that_had_stored_its_envelope_leaves_the_job_waiting(self, waiting_job):
        due = waiting_job.envelope().due
        waiting_job.stall()
        asyncio.run(durable.rescue(waiting_job.app))
        waiting_job.work()
        assert waiting_job.keys == ["host:1"]
        assert abs(waiting_job.row()["scheduled_at"].timestamp() - due) < 1

    @pytest.mark.parametrize(("fails", "ends"), [(0, "succeeded"), (9, "failed")])
    def test_that_had_stored_the_end_leaves_the_job_ended(self, make_job, fails, ends):
        job = make_job(fails=fails)
        job.task.start_as("host")
        job.work()
        stored, keys = dict(job.connector.stored[1]), [*job.keys]
        job.wake()
        assert job.row()["status"] == ends
        assert (job.connector.stored[1], job.keys) == (stored, keys)

    def test_has_its_jobs_rescued_by_a_periodic_task(self, waiting_job):
        waiting_job.stall()
        waiting_job.app.tasks[durable.RESCUE].defer(timestamp=0)
        waiting_job.work()
        waiting_job.work()
        assert waiting_job.row()["status"] == "todo"
        [periodic] = waiting_job.app.periodic_registry.periodic_tasks.values()
        assert (periodic.task.name, periodic.task.queue) == ("retrykit.rescue",
                                                             "default")  # fmt: skip

    def test_is_looked_for_by_one_queued_task_at_a_time(self, waiting_job):
        periodic = prepared_app(queue="rescues").tasks[durable.RESCUE]
        periodic.defer(timestamp=0)
        with pytest.raises(AlreadyEnqueued):
            periodic.defer(timestamp=60)
        assert periodic.queue == "rescues"

    def test_is_one_without_a_heartbeat_for_the_configured_timeout(self, waiting_job):
        waiting_job.stall(worker=77)
        waiting_job.app.worker_defaults["stalled_worker_timeout"] = 600.0
        for minutes, rescued in ((9, []), (11, [1])):
            silent = datetime.now(UTC) - timedelta(minutes=minutes)
            waiting_job.connector.workers[77] = silent
            assert asyncio.run(durable.rescue(waiting_job.app)) == rescued

    def test_has_its_job_rescued_once(self, waiting_job):
        """Another rescuer was faster, and a live worker runs the job now."""
        waiting_job.stall()
        waiting_job.connector.before[store.RELEASE] = lambda: waiting_job.stall(
            worker=78
        )
        assert asyncio.run(durable.rescue(waiting_job.app)) == []
        assert waiting_job.row()["status"] == "doing"

    def test_has_only_its_durable_jobs_rescued(self, waiting_job):
        @waiting_job.app.task(name="mail")
        def mail():
            raise NotImplementedError

        mail.defer()
        waiting_job.app.configure_task("elsewhere").defer()
        waiting_job.stall(2)
        waiting_job.stall(3)
        assert asyncio.run(durable.rescue(waiting_job.app)) == []

    def test_leaves_a_killed_job_dead(self, waiting_job):
        waiting_job.stall()
        durable.kill(waiting_job.app, "host")
        asyncio.run(durable.rescue(waiting_job.app))
        assert waiting_job.status().status == "dead"


class Poisoned:
    """A worker with a job that kills it, and jobs that take longer beside it."""

    def __init__(self, max_killed=3):
        self.app = prepared_app()
        self.connector = self.app.connector
        self.keys, self.lives = [], True
        options = {"name": "verify", "max_killed": max_killed}
        self.task = durable.task(self.app, AT_ONCE, **options)(self.verify)

    async def verify(self, host):
        self.keys.append(idempotency_key())
        while (  # noqa: ASYNC110  an event belongs to one loop
            host == "good" and "poison:1" in self.keys and self.lives
        ):
            await asyncio.sleep(0)
        if host == "poison":
            for _ in range(500):
                await asyncio.sleep(0)
            # What the database has when the worker is killed.
            self.lives = False
            tables = self.connector.jobs, self.connector.stored, self.keys
            self.left = copy.deepcopy(tables)

    def work(self):
        """Run a worker; return the keys of the attempts that it has begun."""
        self.lives, self.keys, self.left = True, [], None
        for row in self.connector.jobs.values():
            row["scheduled_at"] = None
        self.app.run_worker(
            wait=False, concurrency=9, install_signal_handlers=False,
            listen_notify=False,
        )  # fmt: skip
        if self.left is not None:
            self.connector.jobs, self.connector.stored, self.keys = self.left
            for row in self.connector.jobs.values():
                row["worker_id"] = 77
            asyncio.run(durable.rescue(self.app))
        return self.keys

    def status(self, job):
        return durable.status(self.app, job)


class TestNeighboursOfAJobThatKillsItsWorker:
    """Its whole worker is killed, with all attempts that run in it."""

    @pytest.mark.parametrize("max_killed", [2, 3, 5])
    def test_do_not_die_with_it(self, max_killed):
        jobs, names = Poisoned(max_killed), ["good-1", "good-2", "good-3"]
        jobs.task.start_as("poison", "poison")
        for name in names:
            jobs.task.start_as(name, "good")
        assert sorted(jobs.work()) == ["good-1:1", "good-2:1", "good-3:1", "poison:1"]
        for _ in range(max_killed - 1):
            assert jobs.work() == ["poison:1"]
        while {jobs.status(name).status for name in names} != {"succeeded"}:
            assert jobs.work()
        assert jobs.status("poison").reason.startswith("its worker was killed")

    def test_let_other_jobs_go_on(self):
        jobs = Poisoned()
        jobs.task.start_as("poison", "poison")
        jobs.work()
        for name in ("fresh-1", "fresh-2"):
            jobs.task.start_as(name, "good")
        assert sorted(jobs.work()) == ["fresh-1:1", "fresh-2:1", "poison:1"]

    def test_try_again_after_some_seconds(self, make_job):
        job = make_job(fails=0)
        job.task.start_as("host")
        job.stall()
        asyncio.run(durable.rescue(job.app))
        with job_run._turn:  # noqa: SLF001  another attempt has it
            job.work()
        assert (job.keys, job.row()["status"]) == ([], "todo")
        delay = job.row()["scheduled_at"] - datetime.now(UTC)
        assert 2 < delay.total_seconds() <= 15
        job.wake()
        assert job.keys == ["host:1"]

    def test_are_not_counted_while_they_wait(self, make_job):
        job = make_job(fails=0)
        job.task.start_as("host")
        for _ in range(5):
            job.stall(begun=False)
            asyncio.run(durable.rescue(job.app))
        assert job.connector.stored[1]["killed"] == 1

    def test_are_not_counted_if_they_wait_after_a_repetition(self, make_job):
        """A worker that stopped has cancelled it, so it is still recorded as begun."""
        job = make_job(fails=0)
        job.task.start_as("host")
        job.connector.stored[1] = EMPTY | {"killed": 1, "begun": True}
        with job_run._turn:  # noqa: SLF001  another attempt has it
            job.work()
        assert job.connector.stored[1] == EMPTY | {"killed": 1}

    def test_have_their_turn_after_an_attempt_that_was_cancelled(self):
        async def cancelled(*_):
            task = asyncio.current_task()
            asyncio.get_running_loop().call_soon(task.cancel)
            await asyncio.sleep(9)

        job = HostsJob(AT_ONCE, "async", fails=0)
        job.task.start_as("host")
        job.connector.stored[1] = EMPTY | {"killed": 1}
        call = job_run.run_due_attempt(Job(cancelled, AT_ONCE), job.app, 1, {})

        async def main():
            with pytest.raises(asyncio.CancelledError) as caught:
                await arun(call)
            assert not job_run._turn.locked()  # noqa: SLF001  although
            assert caught.value.__traceback__, "its frames are alive"

        asyncio.run(main())

    def test_say_why_they_wait(self, waiting_job):
        postponed = JobPostponed(waiting_job.envelope(), None, 7.9)
        assert "host:2 waits for its turn" in str(postponed)
        strategy = waiting_job.app.tasks["verify"].retry_strategy
        decision = strategy.get_retry_decision(exception=postponed, job=None)
        delay = decision.retry_at - datetime.now(UTC)
        assert 6 < delay.total_seconds() <= 7


class TestAWorkerMistakenForDead:
    """It continues an attempt that another worker has repeated meanwhile."""

    @pytest.mark.parametrize("fails", [0, 1], ids=["succeeds", "fails"])
    def test_changes_nothing(self, waiting_job, fails):
        other = {"envelope": json.dumps(waiting_job.envelope().to_dict())}
        other |= {"result": None, "reason": None, "killed": 0, "begun": False}
        later = json.loads(other["envelope"])
        later["due"] = later["written"]
        waiting_job.connector.stored[1]["envelope"] = json.dumps(later)
        waiting_job.fails = 1 + fails

        def overtaken():
            waiting_job.connector.stored[1] = other

        waiting_job.connector.before[store.WRITE] = overtaken
        waiting_job.wake()
        assert waiting_job.keys == ["host:1", "host:2"]
        assert waiting_job.connector.stored[1] == other
        delay = waiting_job.row()["scheduled_at"] - datetime.now(UTC)
        assert 5 < delay.total_seconds() <= 10
        assert waiting_job.row()["status"] == "todo"


class Exits(BaseException):
    pass


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (ConnectorException(), 10),
        (asyncio.CancelledError(), 10),
        (Exits(), 10),
        (SystemExit(), None),
        (JobFailed("because"), None),
        (ValueError(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_job_is_woken_soon_after_an_unknown_outcome(error, seconds):
    strategy = RescheduleStrategy(SimpleNamespace())
    decision = strategy.get_retry_decision(exception=error, job=None)
    if seconds is None:
        assert decision is None
    else:
        delay = decision.retry_at - datetime.now(UTC)
        assert seconds - 1 < delay.total_seconds() <= seconds


def test_a_postponed_job_says_until_when_and_why(waiting_job):
    at = datetime(2026, 11, 23, tzinfo=UTC)
    postponed = JobPostponed(waiting_job.envelope(), at)
    assert str(postponed) == (
        "host:2 is due at 2026-11-23 00:00:00+00:00; last failure: ConnectionError: "
        "('example.com',):443 refused"
    )
    strategy = waiting_job.app.tasks["verify"].retry_strategy
    assert strategy.get_retry_decision(exception=postponed, job=None).retry_at == at
