"""Job: its names, its policy, and changes of the policy by a deploy."""

import asyncio
import functools
import logging
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given

from retrykit import ConfigError, Policy, hints, presets, schedules as s
from retrykit._core.limits import override
from retrykit._core.rules import Rule
from retrykit._core.timeouts import AsArgument
from retrykit.budgets import TokenBucket
from retrykit.budgets._base import Budget
from retrykit.durable import Job, JobAttempt, JobFailed
from retrykit.durable._job import fingerprint
from retrykit.testing.strategies import policies
from tests._support.durable_jobs import (
    PATIENT,
    fail_to_connect,
    failed_envelope,
    through_json,
)

HOSTS = PATIENT.replace(name="hosts")


class TestNames:
    def test_default_to_those_of_the_function(self):
        job = Job(fail_to_connect, PATIENT)
        assert job.name == job.function == "tests._support.durable_jobs.fail_to_connect"
        assert job.policy.name == "tests._support.durable_jobs.fail_to_connect"

    def test_can_be_given(self):
        job = Job(fail_to_connect, HOSTS, "verify")
        assert (job.name, job.policy.name) == ("verify", "hosts")
        assert job.function == "tests._support.durable_jobs.fail_to_connect"
        assert repr(job).startswith("<Job verify under Policy(")

    def test_awaited_is_true_for_a_coroutine_function(self):
        async def verify():
            return None

        assert (
            Job(fail_to_connect, PATIENT).awaited,
            Job(verify, PATIENT).awaited,
        ) == (
            False,
            True,
        )


@pytest.mark.parametrize(
    ("setting", "value"),
    [("fallback", None), ("stop_event", threading.Event()), ("sleep", time.sleep)],
    ids=["fallback", "stop_event", "sleep"],
)
def test_a_setting_that_a_job_cannot_follow_is_an_error(setting, value):
    with pytest.raises(ConfigError, match=f"{setting} must be left out") as caught:
        Job(fail_to_connect, PATIENT.replace(**{setting: value}))
    assert "job" in caught.value.message


class TestEnvelope:
    def test_has_a_random_seed(self):
        job = Job(fail_to_connect, PATIENT)
        assert job.envelope("a").state.seed != job.envelope("b").state.seed

    def test_has_the_seed_of_its_policy(self):
        assert (
            Job(fail_to_connect, PATIENT.replace(seed=7)).envelope("a").state.seed == 7
        )

    def test_limits_the_failures_of_the_policy(self):
        assert Job(fail_to_connect, PATIENT).envelope("a").state.max_failures == 20
        few = PATIENT.replace(max_failures=2)
        assert Job(fail_to_connect, few).envelope("a").state.max_failures == 2

    @pytest.mark.parametrize(
        "job", ["host:1", "a b", "ü\u20ac", "x" * 500, "-1", "../..", "%s {}"]
    )
    def test_accepts_any_printable_id(self, job):
        envelope = through_json(Job(fail_to_connect, PATIENT).envelope(job))
        assert (envelope.job, envelope.key) == (job, f"{job}:1")


class TestAnAttempt:
    def test_accepts_arguments_of_any_name(self):
        def verify(policy, /, *, fn, envelope, args, kw, self):
            return [policy, fn, envelope, args, kw, self]

        job = Job(verify, PATIENT)
        kw = {"fn": 2, "envelope": 3, "args": 4, "kw": 5, "self": 6}
        attempt = job.attempt(job.envelope("a"), [1], kw)
        assert attempt == JobAttempt(attempt.envelope, [1, 2, 3, 4, 5, 6], None)
        assert attempt.envelope.status == "succeeded"

    def test_of_a_coroutine_function_accepts_them_too(self):
        async def verify(policy, envelope):
            return policy + envelope

        job = Job(verify, PATIENT)
        kw = {"policy": 1, "envelope": 2}
        assert asyncio.run(job.aattempt(job.envelope("a"), [], kw)).result == 3

    @pytest.mark.parametrize("status", ["succeeded", "dead"])
    def test_is_rejected_for_an_ended_job(self, status):
        fn = fail_to_connect if status == "dead" else int
        envelope = failed_envelope(1, PATIENT.replace(max_attempts=1), fn)
        assert envelope.status == status
        with pytest.raises(ConfigError, match="must be one of a waiting job, got"):
            Job(int, PATIENT, "verify").attempt(envelope, [], {})


@pytest.mark.usefixtures("quiet")
class TestAChangedPolicy:
    def test_is_adopted_and_logged_once(self, caplog):
        changed = Job(
            fail_to_connect, HOSTS.replace(schedule=s.constant("4h")), "verify"
        )
        envelope = failed_envelope(1, HOSTS)
        was = envelope.fingerprint
        for _ in range(3):
            envelope = through_json(changed.attempt(envelope, [], {}).envelope)
        assert envelope.state.next_delay == 4 * 3600
        assert envelope.fingerprint == changed.fingerprint != was
        assert [record.getMessage() for record in caplog.records] == [
            f"job-7: policy hosts changed from {was} to {changed.fingerprint}"
        ]
        assert caplog.records[0].levelno == logging.WARNING

    def test_that_is_the_same_is_not_logged(self, caplog):
        Job(fail_to_connect, HOSTS, "verify").attempt(failed_envelope(1, HOSTS), [], {})
        assert caplog.records == []

    def test_may_have_been_renamed(self, caplog):
        renamed = Job(
            fail_to_connect, HOSTS.replace(name="others"), "verify", ["old", "hosts"]
        )
        after = renamed.attempt(failed_envelope(1, HOSTS), [], {}).envelope
        assert after.policy == "others", "so that the former name can go one day"
        assert after.fingerprint == Job(fail_to_connect, HOSTS, "verify").fingerprint
        assert caplog.records == []

    def test_of_another_name_is_rejected(self):
        renamed = Job(fail_to_connect, HOSTS.replace(name="others"), "verify")
        with pytest.raises(ConfigError) as caught:
            renamed.attempt(failed_envelope(1, HOSTS), [], {})
        assert caught.value.message == (
            "policy must be 'others', the policy of verify, got 'hosts'; "
            "if it was renamed, add its old name to previous_names=[...]"
        )

    def test_of_another_name_is_rejected_for_a_coroutine_too(self):
        async def verify():
            return None

        renamed = Job(verify, HOSTS.replace(name="others"), "verify")
        with pytest.raises(ConfigError, match="old name to previous_names"):
            asyncio.run(renamed.aattempt(failed_envelope(1, HOSTS), [], {}))

    def test_with_fewer_attempts_still_makes_the_scheduled_one(self):
        fewer = Job(fail_to_connect, HOSTS.replace(max_attempts=2), "verify")
        after = fewer.attempt(failed_envelope(5, HOSTS), [], {}).envelope
        assert (after.status, after.failed_attempts) == ("dead", 6)

    def test_may_have_other_rules(self):
        two = [Rule(on=ConnectionError, schedule=[1, 2, 3]), Rule(OSError, [9])]
        before = failed_envelope(3, HOSTS.replace(rules=two))
        one = Job(fail_to_connect, HOSTS.replace(rules=two[1:]), "verify")
        assert one.attempt(before, [], {}).envelope.status in {"waiting", "dead"}
        none = Job(fail_to_connect, HOSTS, "verify")
        assert none.attempt(before, [], {}).envelope.state.next_delay == 3600


def is_late(error):
    return "late" in str(error)


def is_busy(result):
    return result == "busy"


def delays():
    yield 1.0
    yield 2.0


class FreeBudget(Budget):
    """A custom budget."""

    balance = 1.0

    def withdraw(self, _error):
        return 0.0

    def deposit(self, cost):
        """Do nothing."""


CHANGES = [
    {"schedule": [1, 2]},
    {"schedule": delays},
    {"schedule": s.exponential(1).jitter(0.5)},
    {"max_attempts": 7},
    {"max_elapsed": None},
    {"deadline": "clip"},
    {"on": OSError},
    {"on": (OSError, ValueError)},
    {"on": is_late},
    {"give_up_on": TimeoutError},
    {"on_result": is_busy},
    {"rules": [Rule(on=OSError, schedule=[5])]},
    {"rules": [Rule(on=is_late, max_attempts=5)]},
    {"hint": hints.retry_after()},
    {"hint": functools.partial(int, base=16)},
    {"hint_cap": 5},
    {"on_long_hint": "honor"},
    {"hint_jitter": 0},
    {"budget": TokenBucket(7)},
    {"budget": FreeBudget()},
    {"attempt_timeout": 5},
    {"attempt_timeout": AsArgument(5)},
    {"nested": "retry"},
    {"raises": "group"},
    {"seed": 7},
]
ALL = [Policy(), *(Policy(**change) for change in CHANGES)]
FIRST = ["ba1a2a9f0faadef2", "8b7a9a184261a11d"]
PRINTED = "\n".join(map(fingerprint, ALL))


class TestAFingerprint:
    def test_changes_with_each_setting_that_affects_retries(self):
        assert len({*map(fingerprint, ALL)}) == len(ALL)

    def test_ignores_settings_that_do_not_affect_retries(self):
        for policy in ALL:
            other = policy.replace(name="other", observers=[print], max_failures=7)
            assert fingerprint(other) == fingerprint(policy)
            other = policy.replace(redact=False, keep_tracebacks=True)
            assert fingerprint(other) == fingerprint(policy)

    @pytest.mark.thorough
    @pytest.mark.needs("processes")
    def test_is_the_same_in_every_process(self):
        code = "from tests.durable.test_job import PRINTED; print(PRINTED)"
        for seed in ("1", "2"):
            args = [sys.executable, "-c", code]
            result = subprocess.run(  # noqa: S603  a fixed command
                args,
                env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
                capture_output=True,
                text=True,
                check=True,
            )
            assert result.stdout.split() == PRINTED.split()

    def test_is_the_same_in_every_version(self):
        """Otherwise a new version would log a changed policy for each waiting job."""
        hosts = presets.hostname_verification()
        assert [fingerprint(each) for each in (Policy(), hosts)] == FIRST

    @given(policies(), policies())
    def test_is_equal_for_equal_policies(self, one, other):
        ignored = {"name": None, "max_failures": 2, "keep_tracebacks": False}
        ignored["redact"] = True
        alike = override(one, **ignored) == override(other, **ignored)
        assert (fingerprint(one) == fingerprint(other)) is alike
        assert fingerprint(Policy.from_dict(one.to_dict())) == fingerprint(one)


@pytest.mark.parametrize("max_killed", [0, -1, True, 2.0, "3"])
def test_max_killed_is_a_count(max_killed):
    with pytest.raises(ConfigError, match="max_killed must be an integer >= 1"):
        Job(int, PATIENT, "parse", max_killed=max_killed)


@pytest.mark.parametrize(
    ("max_killed", "killed", "reason"),
    [
        (3, 2, None),
        (3, 3, "its worker was killed 3 times in attempt 1"),
        (1, 1, "its worker was killed once in attempt 1"),
        (None, 1000, None),
    ],
)
def test_an_attempt_that_kills_its_workers_is_not_repeated_forever(
    max_killed, killed, reason
):
    job = Job(int, PATIENT, "parse", max_killed=max_killed)
    envelope = job.envelope("parse-7")
    if reason is None:
        job.check_killed(envelope, killed)
        return
    with pytest.raises(JobFailed, match=f"^{reason}$"):
        job.check_killed(envelope, killed)
