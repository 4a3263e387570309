"""Jobs on Celery whose worker, broker or backend goes away: no attempt is lost."""

import pytest
from celery.exceptions import TimeLimitExceeded, WorkerLostError, WorkerTerminate

from retrykit import GiveUp
from retrykit.durable import JobFailed, idempotency_key
from retrykit.integrations.celery import requeue, status
from retrykit.integrations.celery.ledger import LEDGER, replace_message, write_entry
from tests._support import celery_desk
from tests._support.celery_desk import HOURLY, Desk, Verify

clock, desk = celery_desk.clock, celery_desk.desk


class TestAWorkerThatIsKilled:
    def test_during_an_attempt_repeats_it(self, desk):
        def killed(host):
            keys.append(idempotency_key())
            if len(keys) == 1:
                raise WorkerTerminate
            return "verified"

        keys = []
        result = desk.sent(killed)
        desk.wake()
        assert status(desk.app, "job-7").status == "running"
        desk.wake()
        assert (keys, result.result) == (["job-7:1"] * 2, "verified")

    @pytest.mark.parametrize("where", ["sending", "acknowledging"])
    def test_after_an_attempt_leaves_one_chain_of_messages(self, desk, clock, where):
        verify = Verify(fails=2)
        desk.sent(verify)
        desk.wake(killed=where)
        for _ in range(2):
            desk.wake()
            desk.wake()
            desk.due(clock)
        desk.work()
        assert verify.keys == ["job-7:1", "job-7:2", "job-7:3"]

    def test_leaves_one_current_message_of_two(self, desk):
        desk.sent(Verify(fails=1))
        desk.wake(killed="acknowledging")
        first = desk.channel.basic_get("celery")
        desk.wake()
        first.requeue()
        assert len(desk.lying()) == 2
        for _ in range(4):
            desk.wake()
        assert len(desk.lying()) == 1

    @pytest.mark.parametrize("what", ["read", "stored"])
    def test_does_not_disturb_a_message_that_is_being_handled(self, desk, what):
        """Whoever works on it has read the ledger, and writes to it now."""

        def begun():
            write_entry(desk.app, "job-7", sent.replace(status="running"))

        desk.sent(Verify(fails=1))
        desk.wake(killed="acknowledging")
        sent = desk.entry()
        late = desk.channel.basic_get("celery")
        place = {"read": LEDGER, "stored": LEDGER + ".again"}[what]
        setattr(desk.app.backend, what, {place: begun})
        desk.wake()
        late.requeue()
        assert len(desk.lying()) == 1
        assert desk.entry().token == sent.token

    def test_resends_its_message_if_the_ledger_is_gone(self, desk):
        verify = Verify(fails=1)
        desk.sent(verify)
        desk.wake(killed="sending")
        cleared = desk.app.backend.client.cache.clear
        desk.app.backend.stored = {LEDGER + ".again": cleared}
        desk.wake()
        assert (verify.keys, len(desk.lying())) == (["job-7:1"], 1)

    def test_waits_until_the_ledger_is_back(self, desk, clock):
        def leave():
            desk.app.backend.away = True

        verify = Verify(fails=1)
        desk.sent(verify)
        desk.wake(killed="sending")
        desk.app.backend.stored = {LEDGER + ".again": leave}
        desk.wake()
        desk.app.backend.away = False
        desk.wake()
        assert (verify.keys, clock.sleeps) == (["job-7:1"], [5, 1, 5])
        assert len(desk.lying()) == 1

    def test_fails_the_job_if_the_ledger_is_corrupt(self, desk):
        desk.sent(Verify(fails=1))
        desk.wake(killed="sending")
        write_entry(desk.app, "job-7", desk.entry().replace(envelope="?"))
        desk.wake()
        report = status(desk.app, "job-7")
        assert (report.status, desk.buried()) == ("dead", 1)
        assert "envelope must be" in report.reason

    def test_before_the_result_was_stored_does_not_lose_it(self, desk):
        verify = Verify()
        result = desk.sent(verify)
        desk.wake(killed="acknowledging")
        result.forget()
        desk.wake()
        assert (verify.keys, result.result) == (["job-7:1"], "verified")

    def test_before_the_failure_was_stored_does_not_lose_it(self, desk):
        verify = Verify(fails=1, error=ValueError)
        result = desk.sent(verify)
        desk.wake(killed="acknowledging")
        result.forget()
        desk.wake()
        assert isinstance(result.result, JobFailed)
        assert "connection refused" in str(result.result)
        assert (verify.keys, desk.buried()) == (["job-7:1"], 2)


class TestAProcessThatAWorkerHasLost:
    """With its pool of processes, of which one works on a message."""

    @pytest.mark.parametrize("how", [WorkerLostError("killed"), TimeLimitExceeded(9)])
    def test_does_not_lose_the_job(self, desk, how):
        verify = Verify()
        desk.sent(verify)
        desk.lose(how)
        assert desk.work() == 1
        assert verify.keys == ["job-7:1"]

    def test_does_not_lose_it_after_hops_that_count_as_retries(self, clock):
        desk, verify = Desk(task_retry_on_worker_lost=True), Verify()
        desk.sent(verify)
        desk.lose(WorkerLostError("killed"), retries=7)
        assert desk.work() == 1
        assert verify.keys == ["job-7:1"]


class TestACopy:
    def test_of_an_old_message_is_dropped(self, desk, clock, caplog):
        verify = Verify(fails=3)
        desk.sent(verify)
        desk.copy()
        late = desk.channel.basic_get("celery")
        desk.wake()
        desk.due(clock)
        desk.wake()
        late.requeue()
        desk.wake()
        desk.wake()
        assert verify.keys == ["job-7:1", "job-7:2"]
        assert len(desk.lying()) == 1
        assert "a stale duplicate" in caplog.text

    def test_that_is_delivered_during_the_next_attempt_is_dropped(self, desk, clock):
        def verify(host):
            keys.append(idempotency_key())
            if len(keys) == 2:
                late.requeue()
                desk.wake()
                assert (desk.lying(), desk.buried()) == ([], 0)
            raise ConnectionError

        keys = []
        desk.sent(verify)
        desk.copy()
        late = desk.channel.basic_get("celery")
        desk.wake()
        desk.due(clock)
        desk.wake()
        assert keys == ["job-7:1", "job-7:2"]
        assert desk.envelope()["counts"] == {"ConnectionError": 2}

    def test_is_dropped_if_the_job_advances_meanwhile(self, desk, clock):
        def gone_on():
            further = waiting.replace(hop=2, token="further")  # noqa: S106  of a message
            write_entry(desk.app, "job-7", further)
            replace_message(desk.app, "job-7", further, "another")

        verify = Verify(fails=3)
        desk.sent(verify)
        desk.wake()
        desk.due(clock)
        waiting = desk.entry()
        replace_message(desk.app, "job-7", waiting, "counts")
        desk.app.backend.read = {LEDGER + ".again": gone_on}
        desk.wake()
        assert verify.keys == ["job-7:1"]

    def test_that_was_current_in_an_earlier_run_is_stale(self, desk):
        desk.sent(Verify())
        first = desk.entry()
        write_entry(desk.app, "job-7", first.replace(run=2))
        replace_message(desk.app, "job-7", first, "another")
        assert desk.entry().token == first.token

    def test_that_was_faster_continues_alone(self, desk):
        """As on Redis, when an attempt takes longer than a message is hidden."""

        def slow(host):
            keys.append(idempotency_key())
            if len(keys) == 1:
                desk.wake()
            raise ConnectionError

        keys = []
        desk.sent(slow)
        desk.copy()
        desk.wake()
        assert len(desk.lying()) == 1

    def test_that_failed_and_was_requeued_continues_alone(self, desk):
        def slow(host):
            calls.append(host)
            if len(calls) == 1:
                desk.wake()
                requeue(desk.app, "job-7")
                raise ConnectionError
            raise GiveUp

        calls = []
        desk.sent(slow)
        desk.copy()
        desk.wake()
        assert (len(desk.lying()), desk.entry().run) == (1, 2)


class TestABackendThatIsAway:
    def test_delays_a_job_by_a_second_at_a_time(self, desk, clock):
        verify = Verify()
        desk.sent(verify)
        desk.app.backend.away = True
        for _ in range(3):
            desk.wake()
        assert (verify.keys, clock.sleeps) == ([], [1, 1, 1])
        desk.app.backend.away = False
        desk.wake()
        assert verify.keys == ["job-7:1"]

    def test_loses_no_attempt(self, desk, clock, caplog):
        def verify(host):
            desk.app.backend.away = True
            raise ConnectionError

        desk.sent(verify)
        desk.wake()
        assert desk.envelope()["counts"] == {"ConnectionError": 1}
        assert "cannot write the ledger of the job" in caplog.text


def test_a_failed_send_redelivers_the_message_without_another_attempt(desk, clock):
    verify = Verify(fails=1)
    task = desk.task(verify, HOURLY)
    task.apply_async(task_id="job-7", queue="feeds")
    desk.app.amqp.queues.pop("feeds")
    desk.app.amqp.queues.create_missing = False
    for _ in range(3):
        desk.wake(queue="feeds")
    assert (verify.keys, clock.sleeps) == (["job-7:1"], [1, 5, 1, 5, 1])
    desk.app.amqp.queues.create_missing = True
    desk.wake(queue="feeds")
    assert len(desk.lying("feeds")) == 1


def test_a_failed_dead_letter_redelivers_the_message_without_another_attempt(
    desk, clock
):
    verify = Verify(fails=1, error=ValueError)
    desk.sent(verify)
    desk.app.conf.task_publish_retry_policy = {"odd": 1}
    desk.wake()
    assert (desk.buried(), clock.sleeps) == (0, [1])
    desk.app.conf.task_publish_retry_policy = {}
    desk.wake()
    assert (verify.keys, desk.buried()) == (["job-7:1"], 1)
