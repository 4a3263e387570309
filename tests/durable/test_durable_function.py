"""Functions that can be started as jobs, and what they are started with."""

import pytest

from retrykit import AsArgument, ConfigError, Policy
from retrykit.durable.durable_function import DurableFunction, job_of


class Noted(DurableFunction):
    """One that is started by an engine that notes it, and does nothing."""

    def start_as(self, job_id, /, *args, **kwargs):
        self._check(args, kwargs)
        return job_id

    async def astart_as(self, job_id, /, *args, **kwargs):
        return self.start_as(job_id, *args, **kwargs)


def fetch(url, timeout):
    return url, timeout


def started(policy, *args, **kwargs):
    return Noted(fetch, job_of(fetch, policy, "fetch", ())).start(*args, **kwargs)


def test_rejects_arguments_that_the_function_does_not_accept():
    with pytest.raises(TypeError, match="timeout"):
        started(Policy(), "/")
    assert started(Policy(), "/", timeout=5)


def test_starts_without_the_argument_that_its_policy_adds():
    assert started(Policy(attempt_timeout=AsArgument("5s")), "/")


def test_rejects_arguments_that_are_not_json():
    with pytest.raises(ConfigError, match=r"args\[0\] must be JSON-serializable"):
        started(Policy(), {1, 2}, 5)
    with pytest.raises(ConfigError, match=r"kwargs\['timeout'\] must be a finite"):
        started(Policy(), "/", timeout=float("inf"))


@pytest.mark.parametrize(
    "settings",
    [{"max_elapsed": None}, {"max_attempts": 1}, {"deadline": "clip"},
     {"max_elapsed": "1h"}],
    ids=str,
)  # fmt: skip
def test_accepts_a_policy_whose_first_delay_fits(settings):
    assert job_of(fetch, Policy(schedule=["1h"], **settings), "fetch", ())
    assert job_of(fetch, Policy(schedule=[]), "fetch", ())
