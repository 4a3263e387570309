"""Tasks of Airflow under a policy: what a worker asks, and no scheduler.

Airflow is too large for the environment of the other tests: nox has one for these.
"""

import copy
import json
from datetime import timedelta

import pytest

from retrykit import ConfigError, Policy
from retrykit.integrations.airflow import AirflowPolicy

PATIENT = Policy(schedule=["1m", "1h"], max_attempts=3, on=ConnectionError)
REFUSED = ConnectionError("refused")


def test_a_failed_try_is_retried_under_the_policy():
    from airflow.sdk import RetryDecision, RetryPolicy

    policy = AirflowPolicy(PATIENT)
    assert isinstance(policy, RetryPolicy)
    assert [policy.evaluate(REFUSED, number, 2) for number in (1, 2, 3)] == [
        RetryDecision.retry(timedelta(minutes=1), "attempt 1: another one in 1m"),
        RetryDecision.retry(timedelta(hours=1), "attempt 2: another one in 1h"),
        RetryDecision.fail("attempt 3: max attempts reached"),
    ]


def test_retries_is_one_less_than_max_attempts():
    assert AirflowPolicy(PATIENT).retries == 2


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt()])
def test_errors_that_are_not_exceptions_are_left_to_airflow(error):
    from airflow.sdk import RetryDecision

    assert AirflowPolicy(PATIENT).evaluate(error, 1, 2) == RetryDecision.default()


def test_it_is_serializable():
    policy = AirflowPolicy(PATIENT)
    data = json.loads(json.dumps(policy.serialize()))
    assert AirflowPolicy.deserialize(data) == policy


def test_it_is_a_value():
    policy = AirflowPolicy(PATIENT)
    assert copy.deepcopy(policy) == policy
    assert repr(policy) == f"AirflowPolicy(policy={PATIENT!r})"


def test_unsupported_settings_are_rejected():
    with pytest.raises(ConfigError, match="max_elapsed must be None in Airflow"):
        AirflowPolicy(Policy())
