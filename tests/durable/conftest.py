import pytest

from tests._support.durable_jobs import HOURLY, JobHarness


@pytest.fixture(params=["sync", "async"])
def make_job(request):
    """Return a function that makes a job of a sync or an async function."""

    def make(fn, policy=HOURLY):
        return JobHarness(request.param, fn, policy)

    return make
