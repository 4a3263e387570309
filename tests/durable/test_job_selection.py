"""Jobs chosen among all jobs of an engine, and counted."""

from datetime import UTC, datetime, timedelta

import pytest

from retrykit import ConfigError, Policy
from retrykit._internal.clocks import wall
from retrykit.durable import Job, JobReport, count_jobs
from retrykit.durable._job_selection import select_jobs, wanted_statuses
from retrykit.testing import virtual_time

HOURLY = Policy(schedule=["1h"], max_attempts=None, name="hourly")


@pytest.fixture
def clock():
    with virtual_time() as clock:
        yield clock


def refuse():
    raise ConnectionRefusedError("refused")


def report_of(job, status="waiting", name="verify", *, failed=False, ended=None):
    """Return the report of a job that is started now."""
    definition = Job(refuse, HOURLY, name)
    envelope = definition.envelope(job)
    if failed:
        envelope = definition.attempt(envelope, (), {}).envelope
    return JobReport(job, status, envelope, None, "", job, name, ended)


def unreadable(status):
    return JobReport("cut", status, None, None, "cut off", "cut", "verify", None)


def chosen(reports, limit=None, **filters):
    return [report.job for report in select_jobs(reports, filters, limit)]


@pytest.mark.usefixtures("clock")
class TestFilters:
    def test_without_a_filter_every_job_is_chosen(self):
        reports = [report_of("a"), report_of("b", "succeeded"), unreadable("dead")]
        assert sorted(chosen(reports)) == ["a", "b", "cut"]

    def test_by_status_and_name(self):
        reports = [
            report_of("a"),
            report_of("b", "dead"),
            report_of("c", "dead", "clean"),
        ]
        assert chosen(reports, status="dead") == ["b", "c"]
        assert chosen(reports, status="dead", name="clean") == ["c"]
        assert chosen(reports, status={"dead"}) == ["b", "c"]
        assert chosen(reports, status=["waiting", "dead"]) == ["a", "b", "c"]

    def test_by_the_type_of_the_last_error_with_or_without_its_module(self):
        reports = [report_of("a"), report_of("b", failed=True)]
        assert chosen(reports, error="ConnectionRefusedError") == ["b"]
        for error in ("RefusedError", "ConnectionError"):
            assert chosen(reports, error=error) == [], error

    def test_by_how_long_they_have_been_due(self, clock):
        reports = [report_of("a"), report_of("b", failed=True), report_of("c", "dead")]
        reports += [report_of("d", "running"), unreadable("waiting")]
        assert chosen(reports, overdue=0) == []
        clock.advance(60)
        assert chosen(reports, overdue="59s") == ["a", "d"]
        assert chosen(reports, overdue="1m") == []
        clock.advance(3600)
        assert chosen(reports, overdue="59s") == ["a", "d", "b"]

    def test_by_their_age(self, clock):
        reports = [report_of("a"), unreadable("waiting")]
        clock.advance(60)
        reports.append(report_of("b", "dead"))
        clock.advance(1)
        assert chosen(reports, older_than="60s") == ["a"]
        assert chosen(reports, older_than=0) == ["a", "b"]

    def test_a_limit_keeps_those_that_have_been_due_for_longest(self, clock):
        reports = []
        for job in "abcd":
            reports.insert(0, report_of(job))
            clock.advance(1)
        assert chosen(reports, limit=2) == ["a", "b"]

    def test_jobs_that_have_ended_come_last_and_the_newest_of_them_first(self, clock):
        reports = [report_of("a", "dead"), report_of("b")]
        clock.advance(1)
        reports += [report_of("c", "succeeded"), report_of("d")]
        assert chosen(reports) == ["b", "d", "c", "a"]

    def test_the_end_of_a_job_may_be_later_than_its_history(self, clock):
        now = datetime.fromtimestamp(wall(), UTC)
        killed = report_of("a", "dead", ended=now + timedelta(minutes=2))
        clock.advance(60)
        reports = [report_of("b", "dead"), killed, unreadable("dead")]
        assert chosen(reports) == ["a", "b", "cut"]

    def test_a_limit_keeps_the_newest_of_those_that_have_ended(self, clock):
        reports = []
        for job in "abcd":
            reports.append(report_of(job, "dead"))
            clock.advance(1)
        assert chosen(reports, limit=2, status="dead") == ["d", "c"]
        assert chosen([*reports, report_of("e")], limit=2) == ["e", "d"]

    @pytest.mark.parametrize("limit", [None, 2])
    def test_an_unreadable_job_counts_as_the_oldest(self, limit):
        for status, jobs in (("waiting", ["cut", "a"]), ("dead", ["a", "cut"])):
            reports = [report_of("a", status), unreadable(status)]
            assert chosen(reports, limit) == jobs, status


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"status": "done"}, "status must be"),
        ({"status": ["dead", "done"]}, "status must be"),
        ({"status": [[]]}, "status must be"),
        ({"status": []}, "status must be"),
        ({"status": 7}, "status must be"),
        ({"status": "dead", "overdue": 1}, "a job that has ended is not overdue"),
        ({"overdue": "soon"}, "overdue must be"),
        ({"older_than": -1}, "older_than must be"),
        ({"name": 7}, "name must be a non-empty string"),
        ({"error": ""}, "error must be a non-empty string"),
        ({"error": KeyError}, "error must be a non-empty string"),
        ({"nmae": "verify"}, "filters must be"),
    ],
    ids=str,
)
def test_rejects_invalid_filters(filters, message):
    with pytest.raises(ConfigError, match=message):
        select_jobs([], filters, None)


@pytest.mark.parametrize("limit", [0, -1, 1.5])
def test_rejects_an_invalid_limit(limit):
    with pytest.raises(ConfigError, match="limit must be an integer"):
        select_jobs([], {}, limit)


def test_an_engine_need_not_look_at_other_statuses():
    assert wanted_statuses({}) == ("waiting", "running", "succeeded", "dead")
    assert wanted_statuses({"overdue": 1}) == ("waiting", "running")
    assert wanted_statuses({"status": "dead"}) == ("dead",)


def test_counts_jobs_and_tells_how_late_they_are(clock):
    reports = [report_of("a"), report_of("b", "running"), report_of("c", "dead")]
    reports += [report_of("d", failed=True), unreadable("waiting")]
    clock.advance(60)
    counts = count_jobs([*reports, report_of("e", "dead", "clean")])
    assert counts.counts == {
        "clean": {"dead": 1},
        "verify": {"waiting": 3, "running": 1, "dead": 1},
    }
    assert (counts.total("dead"), counts.total("waiting", "running")) == (2, 4)
    assert counts.overdue == pytest.approx(60)
    assert counts.next_due.timestamp() == pytest.approx(wall() + 3540)


def test_counts_no_jobs():
    counts = count_jobs([])
    assert (counts.counts, counts.overdue, counts.next_due) == ({}, 0, None)
