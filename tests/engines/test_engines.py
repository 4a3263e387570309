"""Nothing lost, nothing doubled: one table, on every engine, with real kills.

An attempt may run again only if it was killed in the middle; every test counts
how often each attempt was begun.
"""

import json
import time

import pytest

from tests.engines.job import POLICIES

pytestmark = pytest.mark.engines


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_attempts_a_job_until_it_succeeds(engine, colour):
    if colour in engine.cannot:
        pytest.skip(f"{engine.name}: {engine.cannot[colour]}")
    engine.work()
    engine.submit("host", fails=2, value={"verified": True}, colour=colour)
    report = engine.settled("host")
    assert engine.counted("host") == {1: 1, 2: 1, 3: 1}
    assert (report["status"], report["result"]) == ("succeeded", {"verified": True})
    assert report["errors"] == [
        "ConnectionError: attempt 1: connection refused",
        "ConnectionError: attempt 2: connection refused",
    ]


def test_makes_each_attempt_once_though_its_worker_is_killed_while_it_waits(engine):
    engine.policy = "slow"
    worker = engine.work()
    engine.submit("host", fails=3)
    for attempt in (1, 2):
        engine.until_waiting(attempt, "host")
        worker.kill()
        worker = engine.work()
    engine.settled("host")
    assert engine.counted("host") == {1: 1, 2: 1, 3: 1, 4: 1}


def test_makes_the_attempt_again_in_whose_middle_its_worker_was_killed(engine):
    worker = engine.work()
    engine.submit("host", fails=3, slow={"2": 2})
    engine.until_run(2, "host")
    worker.kill()
    engine.work()
    report = engine.settled("host")
    assert engine.counted("host") == {1: 1, 2: 2, 3: 1, 4: 1}
    assert report["failed"] == 3, "what was killed is no failure of the job's"


def test_makes_each_attempt_once_though_two_workers_could(engine):
    workers = {engine.work(name).process.pid for name in ("one", "two")}
    jobs = []

    def both_are_at_work():
        jobs.append(f"host-{len(jobs)}")
        engine.submit(jobs[-1], fails=2)
        time.sleep(0.3)
        return {run.worker for run in engine.runs()} == workers

    engine.until(both_are_at_work, "attempts of both workers")
    for job in jobs:
        engine.settled(job)
        assert engine.counted(job) == {1: 1, 2: 1, 3: 1}


def test_loses_nothing_when_its_server_is_restarted_while_jobs_wait(engine):
    engine.policy = "longer"
    engine.work()
    engine.submit("host", fails=3)
    engine.until_waiting(2, "host")
    engine.restart()
    engine.settled("host")
    assert engine.counted("host") == {1: 1, 2: 1, 3: 1, 4: 1}


def test_holds_a_delay_that_is_far_above_what_it_can_hold_at_once(engine):
    """Hops, where the engine would deliver a job twice that it holds for long."""
    engine.policy = "longer"
    engine.work("one")
    engine.work("two")
    engine.submit("host", fails=3)
    engine.settled("host")
    assert engine.counted("host") == {1: 1, 2: 1, 3: 1, 4: 1}
    gaps = engine.gaps("host")
    assert 9 <= gaps[1] <= 9 + engine.granularity


def test_makes_all_76_attempts_of_the_hostname_verification_when_they_are_due(engine):
    """The schedule of seven days, a hundred thousand times faster."""
    engine.policy = "hostnames"
    engine.work()
    engine.submit("host", fails=76)
    report = engine.settled("host", timeout=75 * engine.granularity + 60)
    assert engine.counted("host") == dict.fromkeys(range(1, 77), 1)
    assert (report["status"], report["failed"]) == ("dead", 76)
    asked = [POLICIES["hostnames"].schedule.delay(n, None, None) for n in range(1, 76)]
    for gap, delay in zip(engine.gaps("host"), asked, strict=True):
        assert delay - 0.01 <= gap <= delay + engine.granularity


def test_waits_as_long_when_it_is_resumed_as_when_it_is_not(engine):
    """Jitter is drawn once: the same seed, the same delays."""
    engine.policy = "jittered"
    worker = engine.work()
    engine.submit("whole", fails=4)
    engine.settled("whole")
    engine.submit("cut", fails=4, slow={"2": 2})
    engine.until_run(2, "cut")
    worker.kill()
    worker = engine.work()
    engine.until_waiting(3, "cut")
    worker.kill()
    engine.work()
    cut, whole = engine.settled("cut"), engine.ask("status", "whole")
    assert engine.counted("cut") == {1: 1, 2: 2, 3: 1, 4: 1, 5: 1}
    assert cut["delays"] == whole["delays"]
    assert len({*cut["delays"]}) == 4


def test_goes_on_under_the_policy_that_a_deploy_has_changed(engine):
    engine.policy = "slow"
    worker = engine.work()
    engine.submit("host", fails=2)
    engine.until_waiting(1, "host")
    worker.kill()
    engine.policy = "changed"
    engine.work()
    report = engine.settled("host")
    assert engine.counted("host") == {1: 1, 2: 1, 3: 1}
    assert report["delays"] == [4, 2]
    assert "policy hosts changed from" in engine.told()


def newer(envelope):
    return envelope | {"version": 99}


def cut_off(envelope):
    return json.dumps(envelope)[:100]


def by_hand(envelope):
    return envelope | {"due": "tomorrow"}


def unknown(envelope):
    return envelope | {"policy": "unheard-of"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (newer, "upgrade retrykit"),
        (cut_off, "envelope must be"),
        (by_hand, "envelope must be"),
        (unknown, "unheard-of"),
    ],
)
def test_moves_a_job_to_the_dead_whose_envelope_cannot_be_followed(engine, change, why):
    engine.policy = "longer"
    engine.work()
    engine.submit("host", fails=5)
    engine.until_waiting(2, "host")
    engine.spoil("host", change)
    report = engine.settled("host")
    assert report["status"] == "dead"
    assert why in report["why"]
    assert engine.counted("host") == {1: 1, 2: 1}, "and it is attempted no more"
    # Celery writes the ledger before it moves the message.
    engine.until(lambda: engine.ask("dead") == ["host"], "dead job that is listed")


def test_lists_a_dead_job_and_begins_it_anew(engine):
    engine.work()
    engine.submit("host", fails=1, raises={"1": "kill"})
    report = engine.settled("host")
    assert (report["status"], report["failed"]) == ("dead", 1)
    # Celery writes the ledger before it moves the message.
    engine.until(lambda: engine.ask("dead") == ["host"], "dead job that is listed")
    engine.ask("requeue", "host")
    engine.until_run(1, "host#2")
    assert engine.settled("host")["status"] == "dead"
    assert engine.counted("host#2") == {1: 1}


def test_follows_what_a_failure_asks_for(engine):
    """Retry at a given time, or never: as in the Zizq policy."""
    engine.work()
    engine.submit("host", fails=2, raises={"1": 3, "2": "kill"})
    report = engine.settled("host")
    assert engine.counted("host") == {1: 1, 2: 1}
    assert 3 <= engine.gaps("host")[0] <= 3 + engine.granularity
    assert report["delays"] == [3, None]


def test_makes_no_attempt_of_a_job_that_was_killed(engine):
    engine.policy = "longer"
    engine.work()
    engine.submit("host", fails=5)
    engine.until_waiting(2, "host")
    engine.ask("kill", "host")
    assert engine.settled("host")["status"] == "dead"
    assert engine.counted("host") == {1: 1, 2: 1}
