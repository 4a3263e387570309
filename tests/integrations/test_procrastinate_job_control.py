"""What can be told of jobs on Procrastinate, and done about them, from outside."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from retrykit import ConfigError, GiveUp
from retrykit.integrations import procrastinate as durable
from retrykit.integrations.procrastinate import store
from tests._support import procrastinate_hosts

colour, hosts = procrastinate_hosts.colour, procrastinate_hosts.hosts
started = procrastinate_hosts.started


class Sync:
    """What can be asked from outside, blocking."""

    def __getattr__(self, name):
        return getattr(durable, name)


class Async:
    """The same, awaited."""

    def __getattr__(self, name):
        function = getattr(durable, f"a{name}")
        return lambda *args, **kw: asyncio.run(function(*args, **kw))


@pytest.mark.parametrize("ask", [Sync(), Async()], ids=["blocking", "awaited"])
class TestFromOutside:
    def test_a_dead_job_is_listed_and_begun_anew(self, hosts, ask):
        hosts = hosts(error=GiveUp(KeyError("host")))
        for job in ("one", "two"):
            hosts.task.start_as(job, "example.com", port=80)
        hosts.work()
        hosts.fails = 9
        assert [each.job for each in ask.dead(hosts.app)] == ["two", "one"]
        assert [each.job for each in ask.dead(hosts.app, limit=1)] == ["two"]
        ask.requeue(hosts.app, "one")
        assert [each.job for each in ask.dead(hosts.app)] == ["two"]
        assert ask.status(hosts.app, "one").status == "waiting"
        hosts.work()
        assert hosts.keys == ["one:1", "two:1", "one#2:1"]
        assert ask.status(hosts.app, "one").envelope.run == 2
        ask.requeue(hosts.app, "one")
        assert ask.status(hosts.app, "one").envelope.run == 3
        assert hosts.row(4)["args"]["retrykit"]["args"] == ["example.com"]

    def test_a_job_that_lives_is_not_begun_anew(self, started, ask):
        with pytest.raises(ConfigError, match="it is waiting"):
            ask.requeue(started.app, "host")

    def test_a_killed_job_makes_no_attempt(self, started, ask):
        ask.kill(started.app, "host")
        report = ask.status(started.app, "host")
        assert (report.status, report.reason) == ("dead", "cancelled")
        assert [each.job for each in ask.dead(started.app)] == ["host"]

    def test_a_job_that_waits_goes_on_when_it_is_told_to(self, started, ask):
        ask.retry_at(started.app, "host", datetime(1960, 1, 1, tzinfo=UTC))
        started.work()
        assert started.keys == ["host:1", "host:2"]
        later = datetime.now(UTC) + timedelta(days=9)
        ask.retry_at(started.app, "host", later)
        assert ask.status(started.app, "host").due == later
        assert started.row()["scheduled_at"] == later
        started.wake()
        assert started.keys == ["host:1", "host:2"]

    def test_a_job_that_was_never_attempted_is_put_off(self, hosts, ask):
        hosts, later = hosts(), datetime.now(UTC) + timedelta(days=9)
        hosts.task.start_as("host", "example.com")
        ask.retry_at(hosts.app, "host", later)
        hosts.wake()
        assert (ask.status(hosts.app, "host").due, hosts.keys) == (later, [])

    def test_a_job_that_is_killed_in_mid_attempt_makes_no_other(self, started, ask):
        """Its worker is told so, which cancels it or lets it end."""
        started.stall()
        ask.kill(started.app, "host")
        assert started.row()["abort_requested"]

    def test_a_job_that_a_worker_has_taken_is_not_moved(self, started, ask):
        now = datetime.now(UTC)
        started.connector.meanwhile[store.MOVE] = started.stall
        with pytest.raises(ConfigError, match="it is running"):
            ask.retry_at(started.app, "host", now)
        with pytest.raises(ConfigError, match="it is running"):
            ask.retry_at(started.app, "host", now)

    def test_nothing_is_known_of_what_was_not_started(self, started, ask):
        for job in ("another", "verify@1", "verify@" + "9" * 30, "@", "verify@²"):
            with pytest.raises(ConfigError, match="a job that was started"):
                ask.status(started.app, job)

    def test_the_table_is_made(self, hosts, ask):
        hosts = hosts()
        ask.apply_schema(hosts.app)
        [schema] = hosts.connector.schemas
        assert "CREATE TABLE IF NOT EXISTS retrykit_jobs" in schema
        assert "%" not in schema


def test_a_process_without_the_task_begins_nothing_anew(started):
    durable.kill(started.app, "host")
    del started.app.tasks["verify"]
    with pytest.raises(ConfigError, match="that this process has imported"):
        durable.requeue(started.app, "host")


def test_a_process_imports_what_it_begins_anew(hosts):
    hosts = hosts()
    hosts.task.start_as("host")
    durable.kill(hosts.app, "host")
    hosts.app.import_paths = ["tests.nowhere"]
    with pytest.raises(ModuleNotFoundError):
        durable.requeue(hosts.app, "host")


def test_a_job_of_another_task_is_not_begun_anew(started):
    @started.app.task(name="mail")
    def mail():
        raise NotImplementedError

    place = mail.defer()
    started.row(place)["status"] = "failed"
    with pytest.raises(ConfigError, match="the name of a durable task"):
        durable.requeue(started.app, f"mail@{place}")


def test_a_job_that_was_never_attempted_is_told_with_its_task(started):
    started.task.start_as("another")
    started.row(2)["status"] = "failed"
    why = "it was killed, or its worker does not import the task 'verify'"
    assert started.status("another").reason == why


def test_it_holds_a_job_for_as_long_as_it_likes_and_polls_for_those_due():
    capabilities = durable.CAPABILITIES
    assert capabilities.next_hold(1e7) == 1e7
    assert (capabilities.granularity, capabilities.at_least_once) == (5.0, True)


@pytest.mark.parametrize(
    "carried",
    ["cut", {"envelope": "cut"}, {"envelope": {}}],
    ids=["no dict", "no envelope", "no id"],
)
def test_the_dead_are_told_with_one_that_was_changed_by_hand(hosts, carried):
    hosts = hosts(error=GiveUp(OSError("host")))
    for job in ("one", "two"):
        hosts.task.start_as(job, "example.com")
    hosts.work()
    hosts.row(2)["args"]["retrykit"] = carried
    hosts.connector.named = lambda row: row["id"]
    hosts.connector.started = lambda row: (row["id"], 1)
    assert [each.job for each in durable.dead(hosts.app)] == ["verify@2", "one"]
