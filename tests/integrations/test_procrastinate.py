"""Durable jobs on Procrastinate, in process; with a server: tests/engines."""

import asyncio
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
from retrykit.durable import JobFailed
from retrykit.integrations import procrastinate as durable
from retrykit.integrations.procrastinate import store
from retrykit.integrations.procrastinate.job_run import JobPostponed, RescheduleStrategy
from tests._support import procrastinate_hosts
from tests._support.procrastinate_hosts import AT_ONCE, HOURLY, Hosts, prepared

colour, hosts = procrastinate_hosts.colour, procrastinate_hosts.hosts
started = procrastinate_hosts.started


class TestAJob:
    def test_is_attempted_until_it_succeeds(self, hosts):
        hosts = hosts()
        assert hosts.task.start_as("host", "example.com", port=80) == "host"
        assert hosts.status().status == "waiting"
        hosts.work()
        report = hosts.status()
        assert hosts.keys == ["host:1", "host:2", "host:3"]
        assert (report.status, report.result) == ("succeeded", {"verified": True})
        assert report.failures[1].describe() == (
            "ConnectionError: ('example.com',):80 refused"
        )
        assert (hosts.row()["status"], report.engine_id) == ("succeeded", "1")

    def test_waits_in_the_table_until_it_is_due(self, started):
        row, envelope = started.row(), started.envelope()
        assert (row["status"], started.keys) == ("todo", ["host:1"])
        assert abs(row["scheduled_at"].timestamp() - envelope.due) < 1
        assert started.status().due == datetime.fromtimestamp(envelope.due, UTC)

    def test_that_is_woken_early_waits_on_without_an_attempt(self, started):
        due = started.envelope().due
        started.wake()
        assert started.keys == ["host:1"]
        assert started.envelope().due == due, "nothing is drawn again"
        assert abs(started.row()["scheduled_at"].timestamp() - due) < 1

    def test_waits_no_longer_when_the_clock_was_set_back(self, started):
        data = started.envelope().to_dict()
        data |= {"written": data["written"] + 9e5, "due": data["due"] + 9e5}
        started.connector.kept[1]["envelope"] = json.dumps(data)
        started.wake()
        left = data["due"] - data["written"]
        assert abs(started.envelope().due - wall() - left) < 1

    def test_fails_when_it_is_dead_and_says_why(self, hosts, caplog):
        hosts = hosts(fails=9)
        hosts.task.start_as("host")
        hosts.work()
        report = hosts.status()
        assert (hosts.row()["status"], report.status) == ("failed", "dead")
        assert report.reason.endswith("last failure: ConnectionError: ():443 refused")
        assert "JobFailed" in caplog.text
        assert "in verify" in caplog.text, "the traceback of the last error"

    def test_is_given_up_by_its_function(self, hosts):
        hosts = hosts(error=GiveUp(KeyError("host")))
        hosts.task.start_as("host")
        hosts.work()
        assert hosts.keys == ["host:1"]
        assert "KeyError" in hosts.status().reason

    def test_dies_of_a_cancellation_of_its_own(self, hosts):
        hosts = hosts(error=asyncio.CancelledError())
        hosts.task.start_as("host")
        hosts.work()
        assert hosts.status().status == "dead"
        assert "would have stopped its worker" in hosts.status().reason

    def test_is_dead_if_what_it_returns_cannot_be_kept(self, hosts):
        hosts = hosts(fails=0)
        hosts.value = {1, 2}
        hosts.task.start_as("host")
        hosts.work()
        assert "result must be" in hosts.status().reason
        hosts.wake()
        assert hosts.keys == ["host:1"], "and is not attempted again"

    def test_keeps_errors_that_jsonb_could_not_hold(self, hosts, caplog):
        # What is no UTF-8 cannot be reported to who runs the tests side by side.
        caplog.set_level(logging.CRITICAL, "procrastinate")
        hosts = hosts(HOURLY, error=OSError("\x00 \ud800"))
        hosts.task.start_as("host")
        hosts.work()
        assert hosts.connector.kept[1]["envelope"].isascii()
        assert hosts.status().failures[0].describe() == r"OSError: \x00 \ud800"

    def test_is_its_function_when_it_is_called(self):
        hosts = Hosts(AT_ONCE, "sync")
        hosts.keys = [0, 1, 2]
        with pytest.raises(LookupError):
            hosts.task("example.com")
        assert repr(hosts.task) == "<DurableTask verify>"


class TestAStart:
    def test_makes_an_id(self, hosts):
        hosts = hosts()
        first, second = hosts.task.start(), hosts.task.start()
        assert first != second
        assert hosts.status(first).status == "waiting"

    def test_of_an_id_that_exists_starts_nothing(self, started):
        started.task.start_as("host")
        assert list(started.connector.jobs) == [1]

    def test_of_an_id_that_was_begun_anew_starts_nothing(self, started):
        """Though the first that it was begun as has been removed by now."""
        durable.kill(started.app, "host")
        durable.requeue(started.app, "host")
        del started.connector.jobs[1]
        started.task.start_as("host")
        assert list(started.connector.jobs) == [2]

    def test_of_an_id_is_one_of_many_at_the_same_time(self, started):
        def find(**_asked):
            return []

        started.connector.find = find
        started.task.start_as("host")
        assert list(started.connector.jobs) == [1]

    def test_says_that_something_else_exists(self, started):
        async def defer(**_jobs):
            raise UniqueViolation(constraint_name="another", queueing_lock=None)

        started.connector.defer_jobs_all = defer
        with pytest.raises(UniqueViolation):
            started.task.start_as("another")

    @pytest.mark.parametrize("part", [float("nan"), {1: 2}, object()], ids=type)
    def test_is_refused_with_what_json_cannot_hold(self, hosts, part):
        hosts = hosts()
        for args, named in (([part], {}), ([], {"port": part})):
            with pytest.raises(ConfigError, match=r"args|kwargs"):
                hosts.task.start(*args, **named)
        assert not hosts.connector.jobs

    def test_can_be_awaited(self, hosts):
        hosts = hosts()
        assert asyncio.run(hosts.task.astart_as("host", "example.com")) == "host"
        asyncio.run(hosts.task.astart("example.com"))
        assert len(hosts.connector.jobs) == 2

    def test_can_be_made_through_procrastinate(self, hosts):
        hosts = hosts()
        hosts.task.task.configure(priority=7).defer(port=80)
        assert hosts.status("verify@1").envelope is None
        hosts.work()
        assert hosts.keys == ["verify@1:1", "verify@1:2", "verify@1:3"]
        assert hosts.status("verify@1").status == "succeeded"

    def test_through_procrastinate_can_be_begun_anew(self, hosts):
        hosts = hosts(error=GiveUp(KeyError("host")))
        hosts.task.task.configure(queue="slow", priority=7).defer(port=80)
        hosts.work()
        assert [each.job for each in durable.dead(hosts.app)] == ["verify@1"]
        durable.requeue(hosts.app, "verify@1")
        hosts.work()
        assert hosts.keys[1:] == ["verify@1#2:1"]
        assert hosts.row(2)["args"]["port"] == 80
        assert (hosts.row(2)["queue_name"], hosts.row(2)["priority"]) == ("slow", 7)

    def test_through_procrastinate_can_be_put_off(self, hosts):
        hosts = hosts()
        hosts.task.task.defer()
        durable.retry_at(hosts.app, "verify@1", datetime.now(UTC) + timedelta(hours=1))
        hosts.wake()
        assert hosts.keys == []


def spoilt(change):
    def spoil(hosts):
        data = change(hosts.envelope().to_dict())
        hosts.connector.kept[1]["envelope"] = json.dumps(data)

    return spoil


def by_hand(hosts):
    hosts.connector.kept.clear()
    hosts.row()["args"]["retrykit"] = {"envelope": {"job": "host", "run": 1}}


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (spoilt(lambda data: data | {"version": 99}), "upgrade retrykit"),
        (spoilt(lambda data: json.dumps(data)[:80]), "envelope must be"),
        (spoilt(lambda data: data | {"due": "tomorrow"}), "envelope must be"),
        (spoilt(lambda data: data | {"policy": "unheard"}), "unheard"),
        (by_hand, "envelope must be"),
    ],
    ids=["newer", "cut off", "by hand", "unknown policy", "in the arguments"],
)
def test_a_job_is_dead_whose_envelope_cannot_be_followed(started, spoil, why):
    started.connector.kept[1]["envelope"] = json.dumps(
        started.envelope().to_dict() | {"due": wall() - 1, "written": wall() - 2}
    )
    spoil(started)
    kept = dict(started.connector.kept.get(1, {}))
    started.wake()
    started.wake()
    [report] = durable.dead(started.app)
    assert why in report.reason
    assert started.keys == ["host:1"]
    assert started.connector.kept[1]["envelope"] == kept.get("envelope"), "as it was"


def test_what_stands_in_an_envelope_is_told_before_the_job_is_dead(started):
    spoilt(lambda data: data | {"version": 99})(started)
    report = started.status()
    assert (report.status, report.envelope) == ("waiting", None)
    assert "upgrade retrykit" in report.reason


def test_a_job_goes_on_whose_policy_was_renamed(started):
    now = {"written": wall() - 2, "due": wall() - 1}
    spoilt(lambda data: data | now | {"policy": "once"})(started)
    started.wake()
    assert started.keys == ["host:1", "host:2"]


class TestAKilledWorker:
    def test_has_its_attempt_made_again_under_the_same_key(self, hosts):
        hosts = hosts(fails=0)
        hosts.task.start_as("host")
        hosts.stall()
        assert hosts.status().status == "running"
        assert asyncio.run(durable.rescue(hosts.app)) == [1]
        hosts.work()
        assert hosts.keys == ["host:1"]
        assert hosts.row()["status"] == "succeeded"

    def test_that_had_kept_its_envelope_has_the_job_wait_on(self, started):
        due = started.envelope().due
        started.stall()
        asyncio.run(durable.rescue(started.app))
        started.work()
        assert started.keys == ["host:1"]
        assert abs(started.row()["scheduled_at"].timestamp() - due) < 1

    @pytest.mark.parametrize(("fails", "ends"), [(0, "succeeded"), (9, "failed")])
    def test_that_had_kept_the_end_has_the_job_end(self, hosts, fails, ends):
        hosts = hosts(fails=fails)
        hosts.task.start_as("host")
        hosts.work()
        kept, keys = dict(hosts.connector.kept[1]), [*hosts.keys]
        hosts.wake()
        assert hosts.row()["status"] == ends
        assert (hosts.connector.kept[1], hosts.keys) == (kept, keys)

    def test_is_rescued_by_a_periodic_task(self, started):
        started.stall()
        started.app.tasks[durable.RESCUE].defer(timestamp=0)
        started.work()
        started.work()
        assert started.row()["status"] == "todo"
        [periodic] = started.app.periodic_registry.periodic_tasks.values()
        assert (periodic.task.name, periodic.task.queue) == ("retrykit.rescue",
                                                             "default")  # fmt: skip

    def test_is_looked_for_once_however_long_no_worker_was_there(self, started):
        periodic = prepared(queue="rescues").tasks[durable.RESCUE]
        periodic.defer(timestamp=0)
        with pytest.raises(AlreadyEnqueued):
            periodic.defer(timestamp=60)
        assert periodic.queue == "rescues"

    def test_is_one_that_was_silent_for_as_long_as_its_settings_say(self, started):
        started.stall(worker=77)
        started.app.worker_defaults["stalled_worker_timeout"] = 600.0
        for minutes, rescued in ((9, []), (11, [1])):
            silent = datetime.now(UTC) - timedelta(minutes=minutes)
            started.connector.workers[77] = silent
            assert asyncio.run(durable.rescue(started.app)) == rescued

    def test_is_rescued_once(self, started):
        """Another rescuer was faster, and a worker that lives has the job now."""
        started.stall()
        started.connector.meanwhile[store.WAKE] = lambda: started.stall(worker=78)
        assert asyncio.run(durable.rescue(started.app)) == []
        assert started.row()["status"] == "doing"

    def test_had_other_jobs_too_which_are_left_alone(self, started):
        @started.app.task(name="mail")
        def mail():
            raise NotImplementedError

        mail.defer()
        started.app.configure_task("elsewhere").defer()
        started.stall(2)
        started.stall(3)
        assert asyncio.run(durable.rescue(started.app)) == []

    def test_leaves_a_killed_job_dead(self, started):
        started.stall()
        durable.kill(started.app, "host")
        asyncio.run(durable.rescue(started.app))
        assert started.status().status == "dead"


class TestAWorkerThatWasTakenForDead:
    """It goes on with an attempt that another one has made meanwhile."""

    @pytest.mark.parametrize("fails", [0, 1], ids=["succeeds", "fails"])
    def test_changes_nothing(self, started, fails):
        other = {"envelope": json.dumps(started.envelope().to_dict()), "why": None}
        other |= {"result": None}
        later = json.loads(other["envelope"])
        later["due"] = later["written"]
        started.connector.kept[1]["envelope"] = json.dumps(later)
        started.fails = 1 + fails

        def overtaken():
            started.connector.kept[1] = other

        started.connector.meanwhile[store.WRITE] = overtaken
        started.wake()
        assert started.keys == ["host:1", "host:2"]
        assert started.connector.kept[1] == other
        left = started.row()["scheduled_at"] - datetime.now(UTC)
        assert 5 < left.total_seconds() <= 10
        assert started.row()["status"] == "todo"


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
def test_a_job_goes_on_soon_where_nobody_knows_what_came_of_it(error, seconds):
    wakes = RescheduleStrategy(SimpleNamespace())
    decision = wakes.get_retry_decision(exception=error, job=None)
    if seconds is None:
        assert decision is None
    else:
        left = decision.retry_at - datetime.now(UTC)
        assert seconds - 1 < left.total_seconds() <= seconds


def test_a_job_that_waits_tells_when_it_goes_on_and_why(started):
    at = datetime(2026, 11, 23, tzinfo=UTC)
    waits = JobPostponed(started.envelope(), at)
    assert str(waits) == (
        "host:2 is due at 2026-11-23 00:00:00+00:00; last failure: ConnectionError: "
        "('example.com',):443 refused"
    )
    strategy = started.app.tasks["verify"].retry_strategy
    assert strategy.get_retry_decision(exception=waits, job=None).retry_at == at
