"""Status and control of jobs on Procrastinate."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from retrykit import ConfigError, GiveUp
from retrykit.integrations import procrastinate as durable
from retrykit.integrations.procrastinate import _store as store
from tests._support import procrastinate_jobs
from tests._support.procrastinate_jobs import HOURLY

kind, make_job = procrastinate_jobs.kind, procrastinate_jobs.make_job
waiting_job = procrastinate_jobs.waiting_job


class Sync:
    """The sync functions."""

    def __getattr__(self, name):
        return getattr(durable, name)


class Async:
    """The async functions, each run by asyncio."""

    def __getattr__(self, name):
        function = getattr(durable, f"a{name}")
        return lambda *args, **kw: asyncio.run(function(*args, **kw))


def list_dead(control, job, limit=None):
    """Return the ids of the dead jobs, in their order."""
    return [each.job for each in control.jobs(job.app, status="dead", limit=limit)]


@pytest.mark.parametrize("control", [Sync(), Async()], ids=["sync", "async"])
class TestJobControl:
    def test_lists_and_requeues_dead_jobs(self, make_job, control):
        job = make_job(error=GiveUp(KeyError("host")))
        for job_id in ("one", "two"):
            job.task.start_as(job_id, "example.com", port=80)
        job.work()
        job.fails = 9
        assert list_dead(control, job) == ["two", "one"]
        assert list_dead(control, job, limit=1) == ["two"]
        control.requeue(job.app, "one")
        assert list_dead(control, job) == ["two"]
        assert control.status(job.app, "one").status == "waiting"
        job.work()
        assert job.keys == ["one:1", "two:1", "one#2:1"]
        assert control.status(job.app, "one").envelope.run == 2
        control.requeue(job.app, "one")
        assert control.status(job.app, "one").envelope.run == 3
        assert job.row(4)["args"]["retrykit"]["args"] == ["example.com"]

    def test_a_dead_job_is_one_line_in_the_log(self, make_job, control, caplog):
        job = make_job(fails=9)
        job.task.start_as("host", "example.com")
        job.task.start_as("cut", "example.com")
        job.row(2)["args"]["retrykit"]["envelope"]["version"] = 99
        job.work()
        errors = {r.getMessage(): r for r in caplog.records if r.levelname == "ERROR"}
        first, second = sorted(errors)
        assert first.startswith("host: dead, gave up after 3 attempts in ")
        assert second.startswith("verify@2: dead, envelope must be of version 1")
        assert not any(r.exc_info or r.exc_text for r in errors.values())
        assert control.status(job.app, "host").reason in first

    def test_lists_jobs(self, make_job, control):
        job = make_job(HOURLY, fails=1)
        for job_id in ("one", "two", "three"):
            job.task.start_as(job_id, "example.com")
        job.work()
        job.task.start_as("four", "example.com")

        def listed(**filters):
            return [each.job for each in control.jobs(job.app, **filters)]

        assert listed(status="succeeded") == ["three", "two"]
        assert listed(status="waiting", name="verify") == ["four", "one"]
        assert listed(limit=1, overdue=0) == ["four"]
        assert len(listed(limit=None)) == 4
        assert [each.name for each in control.jobs(job.app, limit=1)] == ["verify"]
        with pytest.raises(ConfigError, match="status must be"):
            listed(status="done")

    @pytest.mark.parametrize("invalid", [{"limit": 0}, {"nmae": "verify"}], ids=str)
    def test_rejects_invalid_filters_even_if_there_are_no_jobs(
        self, make_job, control, invalid
    ):
        app = make_job().app
        assert control.jobs(app) == []
        with pytest.raises(ConfigError):
            control.jobs(app, **invalid)

    @pytest.mark.parametrize(
        "change", [{"version": 99}, {"run": "first"}, {"state": None}], ids=str
    )
    def test_requeues_a_job_whose_first_envelope_was_damaged(
        self, make_job, control, change
    ):
        job = make_job(fails=0)
        job.task.start_as("host", "example.com", port=80)
        job.row()["args"]["retrykit"]["envelope"] |= change
        job.work()
        assert (job.keys, control.status(job.app, "host").status) == ([], "dead")
        control.requeue(job.app, "host")
        assert job.row(2)["args"]["retrykit"]["args"] == ["example.com"]
        job.work()
        assert job.keys == ["host#2:1"]
        assert control.status(job.app, "host").status == "succeeded"

    def test_counts_the_runs_of_a_job_whose_envelopes_were_damaged(
        self, make_job, control
    ):
        job = make_job(error=GiveUp(KeyError("host")))
        job.fails = 9
        job.task.start_as("host")
        for run in (1, 2, 3):
            job.work()
            assert control.status(job.app, "host").status == "dead"
            job.row(run)["args"]["retrykit"]["envelope"]["version"] = 99
            control.requeue(job.app, "host")
        job.work()
        assert job.keys == ["host:1", "host#2:1", "host#3:1", "host#4:1"]

    def test_does_not_requeue_a_waiting_job(self, waiting_job, control):
        with pytest.raises(ConfigError, match="it is waiting"):
            control.requeue(waiting_job.app, "host")

    def test_a_killed_job_is_dead(self, waiting_job, control):
        control.kill(waiting_job.app, "host")
        report = control.status(waiting_job.app, "host")
        assert (report.status, report.reason) == ("dead", "cancelled")
        assert list_dead(control, waiting_job) == ["host"]

    def test_does_not_kill_a_job_that_has_ended(self, waiting_job, control):
        control.kill(waiting_job.app, "host")
        with pytest.raises(ConfigError, match="unfinished job, got 'host'; it is dead"):
            control.kill(waiting_job.app, "host")
        waiting_job.row().update(status="succeeded")
        with pytest.raises(ConfigError, match="it is succeeded"):
            control.kill(waiting_job.app, "host")

    def test_retry_at_changes_the_due_time(self, waiting_job, control):
        control.retry_at(waiting_job.app, "host", datetime(1960, 1, 1, tzinfo=UTC))
        waiting_job.work()
        assert waiting_job.keys == ["host:1", "host:2"]
        later = datetime.now(UTC) + timedelta(days=9)
        control.retry_at(waiting_job.app, "host", later)
        assert control.status(waiting_job.app, "host").due == later
        assert waiting_job.row()["scheduled_at"] == later
        waiting_job.wake()
        assert waiting_job.keys == ["host:1", "host:2"]

    def test_retry_at_postpones_a_new_job(self, make_job, control):
        job, later = make_job(), datetime.now(UTC) + timedelta(days=9)
        job.task.start_as("host", "example.com")
        control.retry_at(job.app, "host", later)
        job.wake()
        assert (control.status(job.app, "host").due, job.keys) == (later, [])

    def test_kill_requests_the_abortion_of_a_running_job(self, waiting_job, control):
        """Its worker is notified, and cancels it or lets it finish."""
        waiting_job.stall()
        control.kill(waiting_job.app, "host")
        assert waiting_job.row()["abort_requested"]

    def test_retry_at_rejects_a_running_job(self, waiting_job, control):
        now = datetime.now(UTC)
        waiting_job.connector.before[store.RESCHEDULE] = waiting_job.stall
        with pytest.raises(ConfigError, match="it is running"):
            control.retry_at(waiting_job.app, "host", now)
        with pytest.raises(ConfigError, match="it is running"):
            control.retry_at(waiting_job.app, "host", now)

    def test_status_rejects_an_unknown_id(self, waiting_job, control):
        for job in ("another", "verify@1", "verify@" + "9" * 30, "@", "verify@²"):
            with pytest.raises(ConfigError, match="a job that was started"):
                control.status(waiting_job.app, job)

    def test_apply_schema_creates_the_table(self, make_job, control):
        job = make_job()
        control.apply_schema(job.app)
        [schema] = job.connector.schemas
        assert "CREATE TABLE IF NOT EXISTS retrykit_jobs" in schema
        assert "%" not in schema


def test_requeue_rejects_a_job_whose_task_is_not_imported(waiting_job):
    durable.kill(waiting_job.app, "host")
    del waiting_job.app.tasks["verify"]
    with pytest.raises(ConfigError, match="that this process has imported"):
        durable.requeue(waiting_job.app, "host")


def test_requeue_imports_the_tasks_of_the_app(make_job):
    job = make_job()
    job.task.start_as("host")
    durable.kill(job.app, "host")
    job.app.import_paths = ["tests.nowhere"]
    with pytest.raises(ModuleNotFoundError):
        durable.requeue(job.app, "host")


def test_requeue_rejects_a_job_of_a_task_that_is_not_durable(waiting_job):
    @waiting_job.app.task(name="mail")
    def mail():
        raise NotImplementedError

    row_id = mail.defer()
    waiting_job.row(row_id)["status"] = "failed"
    with pytest.raises(ConfigError, match="the name of a durable task"):
        durable.requeue(waiting_job.app, f"mail@{row_id}")


def test_the_status_of_a_failed_new_job_names_its_task(waiting_job):
    waiting_job.task.start_as("another")
    waiting_job.row(2)["status"] = "failed"
    why = "it was killed, or its worker does not import the task 'verify'"
    assert waiting_job.status("another").reason == why


def test_can_hold_a_job_for_any_time():
    capabilities = durable.CAPABILITIES
    assert capabilities.next_hold(1e7) == 1e7
    assert (capabilities.granularity, capabilities.at_least_once) == (5.0, True)


@pytest.mark.parametrize(
    "arguments",
    ["cut", {"envelope": "cut"}, {"envelope": {}}],
    ids=["no dict", "no envelope", "no id"],
)
def test_lists_dead_jobs_whose_arguments_were_changed_by_hand(make_job, arguments):
    job = make_job(error=GiveUp(OSError("host")))
    for job_id in ("one", "two"):
        job.task.start_as(job_id, "example.com")
    job.work()
    job.row(2)["args"]["retrykit"] = arguments
    job.connector.named = lambda row: row["id"]
    job.connector.started = lambda row: (row["id"], 1)
    assert list_dead(durable, job) == ["verify@2", "one"]
