"""No job is lost and no attempt repeated, on every engine, with real kills.

An attempt may be repeated only if it was killed in its middle; every test counts how
often each attempt was started.
"""

import json
import time

import pytest

from tests.engines.job import POLICIES

pytestmark = pytest.mark.engines


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_runs_a_job_until_it_succeeds(engine, kind):
    if kind in engine.unsupported:
        pytest.skip(f"{engine.name}: {engine.unsupported[kind]}")
    engine.start_worker()
    engine.submit("host", fails=2, value={"verified": True}, kind=kind)
    report = engine.wait_until_ended("host")
    assert engine.count_attempts("host") == {1: 1, 2: 1, 3: 1}
    assert (report["status"], report["result"]) == ("succeeded", {"verified": True})
    assert report["errors"] == [
        "ConnectionError: attempt 1: connection refused",
        "ConnectionError: attempt 2: connection refused",
    ]


def test_runs_each_attempt_once_if_its_worker_is_killed_between_attempts(engine):
    engine.policy = "slow"
    worker = engine.start_worker()
    engine.submit("host", fails=3)
    for attempt in (1, 2):
        engine.wait_for_failures(attempt, "host")
        worker.kill()
        worker = engine.start_worker()
    engine.wait_until_ended("host")
    assert engine.count_attempts("host") == {1: 1, 2: 1, 3: 1, 4: 1}


def test_repeats_an_attempt_during_which_its_worker_was_killed(engine):
    worker = engine.start_worker()
    engine.submit("host", fails=3, slow={"2": 2})
    engine.wait_for_start(2, "host")
    worker.kill()
    engine.start_worker()
    report = engine.wait_until_ended("host")
    assert engine.count_attempts("host") == {1: 1, 2: 2, 3: 1, 4: 1}
    assert report["failed"] == 3, "a killed attempt is no failure"


def test_runs_each_attempt_once_with_two_workers(engine):
    workers = {engine.start_worker(name).process.pid for name in ("one", "two")}
    jobs = []

    def both_have_worked():
        jobs.append(f"host-{len(jobs)}")
        engine.submit(jobs[-1], fails=2)
        time.sleep(0.3)
        return {run.worker for run in engine.started_attempts()} == workers

    engine.wait_until(both_have_worked, "attempts of both workers")
    for job in jobs:
        engine.wait_until_ended(job)
        assert engine.count_attempts(job) == {1: 1, 2: 1, 3: 1}


def test_loses_no_job_if_its_server_is_restarted(engine):
    engine.policy = "longer"
    engine.start_worker()
    engine.submit("host", fails=3)
    engine.wait_for_failures(2, "host")
    engine.restart()
    engine.wait_until_ended("host")
    assert engine.count_attempts("host") == {1: 1, 2: 1, 3: 1, 4: 1}


def test_delays_a_job_for_longer_than_its_broker_can_hold_it(engine):
    """In hops, where the broker delivers a job twice if it is held for long."""
    engine.policy = "longer"
    engine.start_worker("one")
    engine.start_worker("two")
    engine.submit("host", fails=3)
    engine.wait_until_ended("host")
    assert engine.count_attempts("host") == {1: 1, 2: 1, 3: 1, 4: 1}
    gaps = engine.gaps("host")
    assert 9 <= gaps[1] <= 9 + engine.granularity


def test_runs_all_76_attempts_of_the_hostname_verification_on_time(engine):
    """Its schedule of seven days, 100,000 times faster."""
    engine.policy = "hostnames"
    engine.start_worker()
    engine.submit("host", fails=76)
    report = engine.wait_until_ended("host", timeout=75 * engine.granularity + 60)
    assert engine.count_attempts("host") == dict.fromkeys(range(1, 77), 1)
    assert (report["status"], report["failed"]) == ("dead", 76)
    delays = [POLICIES["hostnames"].schedule.delay(n, None, None) for n in range(1, 76)]
    for gap, delay in zip(engine.gaps("host"), delays, strict=True):
        assert delay - 0.01 <= gap <= delay + engine.granularity


def test_a_resumed_job_has_the_delays_of_an_uninterrupted_one(engine):
    """Same seed, same delays."""
    engine.policy = "jittered"
    worker = engine.start_worker()
    engine.submit("whole", fails=4)
    engine.wait_until_ended("whole")
    engine.submit("cut", fails=4, slow={"2": 2})
    engine.wait_for_start(2, "cut")
    worker.kill()
    worker = engine.start_worker()
    engine.wait_for_failures(3, "cut")
    worker.kill()
    engine.start_worker()
    cut, whole = engine.wait_until_ended("cut"), engine.request("status", "whole")
    assert engine.count_attempts("cut") == {1: 1, 2: 2, 3: 1, 4: 1, 5: 1}
    assert cut["delays"] == whole["delays"]
    assert len({*cut["delays"]}) == 4


def test_continues_under_a_policy_changed_by_a_deploy(engine):
    engine.policy = "slow"
    worker = engine.start_worker()
    engine.submit("host", fails=2)
    engine.wait_for_failures(1, "host")
    worker.kill()
    engine.policy = "changed"
    engine.start_worker()
    report = engine.wait_until_ended("host")
    assert engine.count_attempts("host") == {1: 1, 2: 1, 3: 1}
    assert report["delays"] == [4, 2]
    assert "policy hosts changed from" in engine.describe()


def newer_version(envelope):
    return envelope | {"version": 99}


def truncated(envelope):
    return json.dumps(envelope)[:100]


def invalid_due(envelope):
    return envelope | {"due": "tomorrow"}


def unknown_policy(envelope):
    return envelope | {"policy": "unheard-of"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (newer_version, "upgrade retrykit"),
        (truncated, "envelope must be"),
        (invalid_due, "envelope.due must be"),
        (unknown_policy, "unheard-of"),
    ],
)
def test_a_job_with_an_unusable_envelope_is_dead(engine, change, why):
    engine.policy = "longer"
    engine.start_worker()
    engine.submit("host", fails=5)
    engine.wait_for_failures(2, "host")
    engine.change_envelope("host", change)
    report = engine.wait_until_ended("host")
    assert report["status"] == "dead"
    assert why in report["reason"]
    assert engine.count_attempts("host") == {1: 1, 2: 1}, "no attempt follows"
    # Celery writes the ledger before it moves the message.
    engine.wait_until(
        lambda: engine.request("dead") == ["host"], "dead job that is listed"
    )


def test_lists_and_requeues_a_dead_job(engine):
    engine.start_worker()
    engine.submit("host", fails=1, raises={"1": "kill"})
    report = engine.wait_until_ended("host")
    assert (report["status"], report["failed"]) == ("dead", 1)
    # Celery writes the ledger before it moves the message.
    engine.wait_until(
        lambda: engine.request("dead") == ["host"], "dead job that is listed"
    )
    engine.request("requeue", "host")
    engine.wait_for_start(1, "host#2")
    assert engine.wait_until_ended("host")["status"] == "dead"
    assert engine.count_attempts("host#2") == {1: 1}


def test_obeys_a_delay_or_an_end_that_the_error_requests(engine):
    """Retry at a given time, or never, as in the policy of Zizq."""
    engine.start_worker()
    engine.submit("host", fails=2, raises={"1": 3, "2": "kill"})
    report = engine.wait_until_ended("host")
    assert engine.count_attempts("host") == {1: 1, 2: 1}
    assert 3 <= engine.gaps("host")[0] <= 3 + engine.granularity
    assert report["delays"] == [3, None]


def test_runs_no_attempt_of_a_killed_job(engine):
    engine.policy = "longer"
    engine.start_worker()
    engine.submit("host", fails=5)
    engine.wait_for_failures(2, "host")
    engine.request("kill", "host")
    assert engine.wait_until_ended("host")["status"] == "dead"
    assert engine.count_attempts("host") == {1: 1, 2: 1}
