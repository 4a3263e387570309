"""Functions that can be started as jobs, and their arguments."""

import pytest

from retrykit import AsArgument, ConfigError, Policy
from retrykit.durable._durable_function import DurableFunction, job_of


class NotingFunction(DurableFunction):
    """A durable function on an engine that only returns the job id."""

    def start_as(self, job_id, /, *args, **kwargs):
        self._check(args, kwargs)
        return job_id

    async def astart_as(self, job_id, /, *args, **kwargs):
        return self.start_as(job_id, *args, **kwargs)


def fetch(url, timeout):
    return url, timeout


def start(policy, *args, **kwargs):
    return NotingFunction(fetch, job_of(fetch, policy, "fetch", ())).start(
        *args, **kwargs
    )


def test_rejects_arguments_that_the_function_does_not_accept():
    with pytest.raises(TypeError, match="timeout"):
        start(Policy(), "/")
    assert start(Policy(), "/", timeout=5)


def test_starts_without_the_argument_that_its_policy_adds():
    assert start(Policy(attempt_timeout=AsArgument("5s")), "/")


def test_rejects_arguments_that_are_not_json():
    with pytest.raises(ConfigError, match=r"args\[0\] must be JSON-serializable"):
        start(Policy(), {1, 2}, 5)
    with pytest.raises(ConfigError, match=r"kwargs\['timeout'\] must be a finite"):
        start(Policy(), "/", timeout=float("inf"))
