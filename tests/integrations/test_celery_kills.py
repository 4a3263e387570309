"""Jobs on Celery whose worker, broker or backend goes away: no attempt is lost."""

from datetime import UTC, datetime

import pytest
from celery.exceptions import TimeLimitExceeded, WorkerLostError, WorkerTerminate
from celery.utils.nodenames import gethostname

from retrykit import GiveUp
from retrykit._internal.clocks import wall
from retrykit.durable import JobFailed, idempotency_key
from retrykit.durable._turns import take_turn
from retrykit.integrations.celery import jobs, requeue, retry_at, status
from retrykit.integrations.celery._ledger import LEDGER, replace_message, write_entry
from tests._support import celery_worker
from tests._support.celery_worker import HOURLY, InMemoryWorker, Verify

clock, worker = celery_worker.clock, celery_worker.worker


class TestAWorkerThatIsKilled:
    def test_during_an_attempt_repeats_it(self, worker):
        def killed(host):
            keys.append(idempotency_key())
            if len(keys) == 1:
                raise WorkerTerminate
            return "verified"

        keys = []
        result = worker.send(killed)
        worker.handle_next()
        assert status(worker.app, "job-7").status == "running"
        worker.handle_next()
        assert (keys, result.result) == (["job-7:1"] * 2, "verified")

    @pytest.mark.parametrize("where", ["sending", "acknowledging"])
    def test_after_an_attempt_leaves_one_chain_of_messages(self, worker, clock, where):
        verify = Verify(fails=2)
        worker.send(verify)
        worker.handle_next(killed=where)
        for _ in range(2):
            worker.handle_next()
            worker.handle_next()
            worker.advance_to_due(clock)
        worker.handle_all()
        assert verify.keys == ["job-7:1", "job-7:2", "job-7:3"]

    def test_leaves_one_current_message_of_two(self, worker):
        worker.send(Verify(fails=1))
        worker.handle_next(killed="acknowledging")
        first = worker.channel.basic_get("celery")
        worker.handle_next()
        first.requeue()
        assert len(worker.messages()) == 2
        for _ in range(4):
            worker.handle_next()
        assert len(worker.messages()) == 1

    @pytest.mark.parametrize("moment", ["after_read", "after_write"])
    def test_does_not_disturb_a_message_that_is_being_handled(self, worker, moment):
        """Its worker has read the ledger, and writes to it now."""

        def begun():
            write_entry(worker.app, "job-7", sent.replace(status="running"))

        worker.send(Verify(fails=1))
        worker.handle_next(killed="acknowledging")
        sent = worker.entry()
        late = worker.channel.basic_get("celery")
        key = {"after_read": LEDGER, "after_write": LEDGER + ".again"}[moment]
        setattr(worker.app.backend, moment, {key: begun})
        worker.handle_next()
        late.requeue()
        assert len(worker.messages()) == 1
        assert worker.entry().token == sent.token

    def test_resends_its_message_if_the_ledger_is_gone(self, worker):
        verify = Verify(fails=1)
        worker.send(verify)
        worker.handle_next(killed="sending")
        cleared = worker.app.backend.client.cache.clear
        worker.app.backend.after_write = {LEDGER + ".again": cleared}
        worker.handle_next()
        assert (verify.keys, len(worker.messages())) == (["job-7:1"], 1)

    def test_waits_until_the_ledger_is_back(self, worker, clock):
        def leave():
            worker.app.backend.unavailable = True

        verify = Verify(fails=1)
        worker.send(verify)
        worker.handle_next(killed="sending")
        worker.app.backend.after_write = {LEDGER + ".again": leave}
        worker.handle_next()
        worker.app.backend.unavailable = False
        worker.handle_next()
        assert (verify.keys, clock.sleeps) == (["job-7:1"], [5, 1, 5])
        assert len(worker.messages()) == 1

    def test_fails_the_job_if_the_ledger_is_corrupt(self, worker):
        worker.send(Verify(fails=1))
        worker.handle_next(killed="sending")
        write_entry(worker.app, "job-7", worker.entry().replace(envelope="?"))
        worker.handle_next()
        report = status(worker.app, "job-7")
        assert (report.status, worker.count_dead()) == ("dead", 1)
        assert "envelope must be" in report.reason

    @pytest.mark.parametrize("change", [{"job": "job-8"}, {"run": 2}], ids=str)
    def test_fails_the_job_if_the_ledger_has_the_envelope_of_another(
        self, worker, change
    ):
        worker.send(Verify(fails=1))
        worker.handle_next(killed="sending")
        entry = worker.entry()
        entry = entry.replace(envelope=entry.envelope | change)
        write_entry(worker.app, "job-7", entry)
        worker.handle_next()
        assert (worker.messages(), worker.count_dead()) == ([], 1)
        assert "with which it is stored" in status(worker.app, "job-7").reason

    def test_before_the_result_was_stored_does_not_lose_it(self, worker):
        verify = Verify()
        result = worker.send(verify)
        worker.handle_next(killed="acknowledging")
        result.forget()
        worker.handle_next()
        assert (verify.keys, result.result) == (["job-7:1"], "verified")

    def test_before_the_failure_was_stored_does_not_lose_it(self, worker):
        verify = Verify(fails=1, error=ValueError)
        result = worker.send(verify)
        worker.handle_next(killed="acknowledging")
        result.forget()
        worker.handle_next()
        assert isinstance(result.result, JobFailed)
        assert "connection refused" in str(result.result)
        assert (verify.keys, worker.count_dead()) == (["job-7:1"], 2)


class TestAnAttemptThatKillsItsWorker:
    def test_is_repeated_until_the_job_is_dead(self, worker):
        keys = kill_each_worker(worker)
        handle_some(worker)
        report = status(worker.app, "job-7")
        assert (keys, report.status) == (["job-7:1"] * 3, "dead")
        assert report.reason == "its worker was killed 3 times in attempt 1"
        assert report.ended.timestamp() == pytest.approx(wall(), abs=1)
        assert [each.job for each in jobs(worker.app, status="dead")] == ["job-7"]
        assert isinstance(worker.app.AsyncResult("job-7").result, JobFailed)
        requeue(worker.app, "job-7")
        handle_some(worker)
        assert keys[3:] == ["job-7#2:1"] * 3

    def test_is_repeated_as_often_as_its_task_says(self, worker):
        keys = kill_each_worker(worker, max_killed=1)
        handle_some(worker)
        assert keys == ["job-7:1"]
        assert "was killed once in attempt 1" in status(worker.app, "job-7").reason

    def test_is_repeated_forever_if_its_task_says_so(self, worker):
        keys = kill_each_worker(worker, max_killed=None)
        handle_some(worker)
        assert (keys, len(worker.messages())) == (["job-7:1"] * 9, 1)

    def test_is_counted_by_itself(self, worker, clock):
        """Two killed workers in each of three attempts are not too many."""

        def verify(host):
            keys.append(idempotency_key())
            if len(keys) % 3:
                raise WorkerTerminate
            raise ConnectionError

        keys = []
        worker.send(verify)
        for _ in range(3):
            for _ in range(3):
                worker.handle_next()
            clock.advance(3600)
        assert keys == [f"job-7:{attempt}" for attempt in (1, 1, 1, 2, 2, 2, 3, 3, 3)]
        assert status(worker.app, "job-7").status == "waiting"

    def test_is_not_counted_if_the_ledger_was_away_at_its_end(self, worker, clock):
        """The ledger shows an attempt that runs, but its message is an earlier one."""

        def verify(host):
            keys.append(idempotency_key())
            worker.app.backend.unavailable = len(keys) == 1
            raise ConnectionError

        keys = []
        worker.send(verify, max_killed=1)
        worker.handle_next()
        worker.app.backend.unavailable = False
        assert worker.entry().status == "running"
        worker.advance_to_due(clock)
        worker.handle_next()
        assert (keys, worker.entry().killed) == (["job-7:1", "job-7:2"], 0)

    def test_is_counted_from_an_entry_of_an_older_worker(self, worker):
        """It counts no killed workers, and cannot read an entry that does."""
        kill_each_worker(worker)
        worker.handle_next()
        stored = worker.app.backend.get_task_meta(f"job-7{LEDGER}", cache=False)
        assert "killed" not in stored["result"]
        worker.handle_next()
        assert worker.entry().killed == 1


def begin_and_die(worker):
    """Send a job whose worker is killed in its first attempt; return its function."""

    def verify(host):
        verify.keys.append(idempotency_key())
        if len(verify.keys) == 1:
            raise WorkerTerminate
        return "verified"

    verify.keys = []
    worker.send(verify)
    worker.handle_next()
    return verify


def another_turn():
    """Take the turn, as another process of the worker does."""
    return take_turn(f"worker {gethostname()}")


def wait_for_turn(worker):
    """Send such a job, which has to wait then; return its function."""
    verify = begin_and_die(worker)
    with another_turn():
        worker.handle_next()
    return verify


def handle_some(worker):
    for _ in range(9):
        worker.handle_next()


def kill_each_worker(worker, **options):
    """Send a job that kills its worker; return the keys of its attempts."""

    def verify(host):
        keys.append(idempotency_key())
        raise WorkerTerminate

    keys = []
    worker.send(verify, **options)
    return keys


class TestAProcessThatAWorkerHasLost:
    """A process of its pool, which handled a message."""

    @pytest.mark.parametrize("how", [WorkerLostError("killed"), TimeLimitExceeded(9)])
    def test_does_not_lose_the_job(self, worker, how):
        verify = Verify()
        worker.send(verify)
        worker.lose_process(how)
        assert worker.handle_all() == 1
        assert verify.keys == ["job-7:1"]

    def test_does_not_lose_it_after_hops_that_count_as_retries(self, clock):
        worker, verify = InMemoryWorker(task_retry_on_worker_lost=True), Verify()
        worker.send(verify)
        worker.lose_process(WorkerLostError("killed"), retries=7)
        assert worker.handle_all() == 1
        assert verify.keys == ["job-7:1"]


class TestACopy:
    def test_of_an_old_message_is_dropped(self, worker, clock, caplog):
        verify = Verify(fails=3)
        worker.send(verify)
        worker.copy_message()
        late = worker.channel.basic_get("celery")
        worker.handle_next()
        worker.advance_to_due(clock)
        worker.handle_next()
        late.requeue()
        worker.handle_next()
        worker.handle_next()
        assert verify.keys == ["job-7:1", "job-7:2"]
        assert len(worker.messages()) == 1
        assert "a stale duplicate" in caplog.text

    def test_that_is_delivered_during_the_next_attempt_is_dropped(self, worker, clock):
        def verify(host):
            keys.append(idempotency_key())
            if len(keys) == 2:
                late.requeue()
                worker.handle_next()
                assert (worker.messages(), worker.count_dead()) == ([], 0)
            raise ConnectionError

        keys = []
        worker.send(verify)
        worker.copy_message()
        late = worker.channel.basic_get("celery")
        worker.handle_next()
        worker.advance_to_due(clock)
        worker.handle_next()
        assert keys == ["job-7:1", "job-7:2"]
        assert worker.envelope()["counts"] == {"ConnectionError": 2}

    def test_is_dropped_if_the_job_advances_meanwhile(self, worker, clock):
        def gone_on():
            further = waiting.replace(hop=2, token="further")  # noqa: S106  of a message
            write_entry(worker.app, "job-7", further)
            replace_message(worker.app, "job-7", further, "another")

        verify = Verify(fails=3)
        worker.send(verify)
        worker.handle_next()
        worker.advance_to_due(clock)
        waiting = worker.entry()
        replace_message(worker.app, "job-7", waiting, "counts")
        worker.app.backend.after_read = {LEDGER + ".again": gone_on}
        worker.handle_next()
        assert verify.keys == ["job-7:1"]

    def test_that_was_current_in_an_earlier_run_is_stale(self, worker):
        worker.send(Verify())
        first = worker.entry()
        write_entry(worker.app, "job-7", first.replace(run=2))
        replace_message(worker.app, "job-7", first, "another")
        assert worker.entry().token == first.token

    def test_that_was_faster_continues_alone(self, worker):
        """As on Redis, when an attempt takes longer than a message is hidden."""

        def slow(host):
            keys.append(idempotency_key())
            if len(keys) == 1:
                worker.handle_next()
            raise ConnectionError

        keys = []
        worker.send(slow)
        worker.copy_message()
        worker.handle_next()
        assert len(worker.messages()) == 1

    def test_that_failed_and_was_requeued_continues_alone(self, worker):
        def slow(host):
            calls.append(host)
            if len(calls) == 1:
                worker.handle_next()
                requeue(worker.app, "job-7")
                raise ConnectionError
            raise GiveUp

        calls = []
        worker.send(slow)
        worker.copy_message()
        worker.handle_next()
        assert (len(worker.messages()), worker.entry().run) == (1, 2)


class TestABackendThatIsAway:
    def test_delays_a_job_by_a_second_at_a_time(self, worker, clock):
        verify = Verify()
        worker.send(verify)
        worker.app.backend.unavailable = True
        for _ in range(3):
            worker.handle_next()
        assert (verify.keys, clock.sleeps) == ([], [1, 1, 1])
        worker.app.backend.unavailable = False
        worker.handle_next()
        assert verify.keys == ["job-7:1"]

    def test_loses_no_attempt(self, worker, clock, caplog):
        def verify(host):
            worker.app.backend.unavailable = True
            raise ConnectionError

        worker.send(verify)
        worker.handle_next()
        assert worker.envelope()["counts"] == {"ConnectionError": 1}
        assert "cannot write the ledger of the job" in caplog.text


def test_a_failed_send_redelivers_the_message_without_another_attempt(worker, clock):
    verify = Verify(fails=1)
    task = worker.task(verify, HOURLY)
    task.apply_async(task_id="job-7", queue="feeds")
    worker.app.amqp.queues.pop("feeds")
    worker.app.amqp.queues.create_missing = False
    for _ in range(3):
        worker.handle_next(queue="feeds")
    assert (verify.keys, clock.sleeps) == (["job-7:1"], [1, 5, 1, 5, 1])
    worker.app.amqp.queues.create_missing = True
    worker.handle_next(queue="feeds")
    assert len(worker.messages("feeds")) == 1


def test_a_failed_dead_letter_redelivers_the_message_without_another_attempt(
    worker, clock
):
    verify = Verify(fails=1, error=ValueError)
    worker.send(verify)
    worker.app.conf.task_publish_retry_policy = {"odd": 1}
    worker.handle_next()
    assert (worker.count_dead(), clock.sleeps) == (0, [1])
    worker.app.conf.task_publish_retry_policy = {}
    worker.handle_next()
    assert (verify.keys, worker.count_dead()) == (["job-7:1"], 1)


class TestNeighboursOfAJobThatKillsItsWorker:
    """Its whole worker is killed, with all attempts that run in it."""

    @pytest.mark.parametrize("max_killed", [2, 3, 5])
    def test_do_not_die_with_it(self, worker, max_killed):
        def verify(host):
            keys.append(idempotency_key())
            if host == "poison":
                # The other processes of its pool.
                running.append(host)
                for _ in range(3):
                    worker.handle_next()
                running.pop()
                raise WorkerTerminate
            if running:
                raise WorkerTerminate
            return "verified"

        keys, running = [], []
        task = worker.task(verify, HOURLY, max_killed=max_killed)
        names = ["poison", "good-1", "good-2", "good-3"]
        for name in names:
            task.apply_async([name], task_id=name)
        # It is the first one whenever the worker restarts.
        while status(worker.app, "poison").status != "dead":
            worker.take_first("poison")
        assert [keys.count(f"{name}:1") for name in names] == [max_killed, 1, 1, 1]
        worker.handle_all()
        assert {status(worker.app, name).status for name in names[1:]} == {"succeeded"}
        assert [keys.count(f"{name}:1") for name in names] == [max_killed, 2, 2, 2]

    def test_wait_for_some_seconds_before_they_try_again(self, worker):
        wait_for_turn(worker)
        assert 4 < worker.hold_time() <= 15
        assert worker.entry().status == "waiting"

    def test_are_not_counted_while_they_wait(self, worker):
        task = wait_for_turn(worker)
        for _ in range(5):
            assert worker.entry().killed == 1
            with another_turn():
                worker.handle_next()
        worker.handle_next()
        assert (task.keys, worker.entry().status) == (["job-7:1"] * 2, "succeeded")

    def test_keep_their_count_if_their_worker_is_killed_while_it_puts_them_off(
        self, worker
    ):
        begin_and_die(worker)
        with another_turn():
            worker.handle_next(killed="sending")
        worker.handle_next()
        assert (worker.entry().killed, len(worker.messages())) == (1, 1)

    def test_keep_their_count_if_they_are_rescheduled(self, worker, clock):
        task = wait_for_turn(worker)
        retry_at(worker.app, "job-7", datetime.fromtimestamp(wall() + 60, UTC))
        worker.handle_next()
        worker.handle_next()
        assert (worker.entry().killed, len(task.keys)) == (1, 1)
        # A datetime is rounded to microseconds.
        clock.advance(61)
        worker.handle_next()
        assert task.keys == ["job-7:1"] * 2
