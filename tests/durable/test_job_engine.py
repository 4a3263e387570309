"""The one face of the jobs of every engine."""

from retrykit.durable import JobEngine, JobReport
from retrykit.durable._job_selection import select_jobs


def engine_with(statuses):
    reports = [
        JobReport(f"verify-{number}", status, None, None, "", "", "verify", None)
        for number, status in enumerate(statuses)
    ]

    def jobs(*, limit=100, **filters):
        return select_jobs(reports, filters, limit)

    return JobEngine(jobs=jobs, kill=None, requeue=None, retry_at=None, status=None)


def test_every_job_is_counted_but_those_that_have_succeeded():
    engine = engine_with(["waiting"] * 150 + ["running", "dead", "succeeded"])
    found = engine.counts()
    assert found.counts == {"verify": {"waiting": 150, "running": 1, "dead": 1}}
    assert engine.counts(["succeeded"]).total("succeeded") == 1
