"""Jobs on Celery whose messages Redis has lost, with a real Redis."""

import logging

import pytest
from celery import Celery
from celery.concurrency.solo import TaskPool
from celery.exceptions import WorkerTerminate
from kombu import Queue
from kombu.asynchronous.timer import Timer

from retrykit import ConfigError
from retrykit._internal.clocks import wall
from retrykit.durable import count_jobs, idempotency_key
from retrykit.integrations.celery import jobs, kill, requeue, status, sweep
from retrykit.integrations.celery._job_locks import exclusively
from retrykit.integrations.celery._ledger import LEDGER, write_entry
from retrykit.integrations.celery._lost_jobs import Sweep
from retrykit.integrations.celery._messages import DEAD, HEADER, dead_letters
from tests._support import celery_worker, redis_server
from tests._support.celery_worker import HOURLY, InMemoryWorker, Verify

clock = celery_worker.clock
server, served = redis_server.server, redis_server.served

# In seconds: the default visibility timeout, and the time that messages of killed
# workers need beyond it.
PATIENCE = 3700


class RedisWorker(InMemoryWorker):
    """A Celery app with Redis as its broker, and one worker."""

    def __init__(self, port, **options):
        self.app = Celery("worker", broker=f"redis://127.0.0.1:{port}/0")
        self.app.conf.update(
            cache_backend="memory",
            result_backend="tests._support.celery_worker:UnreliableBackend",
            broker_transport_options=options,
        )
        self.app.backend.client.cache.clear()
        self.connection = self.app.connection_for_read()
        self.channel = self.connection.channel()
        self.pool = TaskPool(app=self.app)

    def lose_message(self, queue="celery"):
        """Take the next message as Redis hands it out, and forget it."""
        assert self.channel.client.rpop(queue)

    def count_messages(self, queue="celery"):
        return self.channel.client.llen(queue)

    def due_times(self):
        """Return the due times in the index, by job."""
        found = self.channel.client.zrange("retrykit.due", 0, -1, withscores=True)
        return {job.decode(): due for job, due in found}

    def close(self):
        self.channel.close()
        self.connection.release()
        self.app.close()


@pytest.fixture(params=[{}, {"global_keyprefix": "own:"}], ids=["plain", "prefix"])
def worker(request, clock, server):
    worker = RedisWorker(server.port, **request.param)
    yield worker
    worker.close()


class TestJobs:
    def test_lists_all_jobs_that_have_not_succeeded(self, worker, clock):
        worker.send(Verify(fails=2))
        worker.handle_next()
        [waiting] = jobs(worker.app, name="verify", error="ConnectionError")
        assert (waiting.job, waiting.status, waiting.name) == (
            "job-7",
            "waiting",
            "verify",
        )
        assert jobs(worker.app, overdue="1m") == []
        worker.lose_message()
        clock.advance(3700)
        assert [each.job for each in jobs(worker.app, overdue="1m")] == ["job-7"]
        kill(worker.app, "job-7")
        assert [x.reason for x in jobs(worker.app, status="dead")] == ["killed by hand"]
        assert jobs(worker.app, status="waiting") == []

    def test_lists_a_dead_job_that_is_still_in_the_index(self, worker):
        """Its worker was killed before it removed the job."""
        worker.send(Verify(fails=1, error=KeyError))
        worker.handle_next()
        worker.channel.client.zadd("retrykit.due", {"job-7": 1})
        assert [each.job for each in jobs(worker.app, status="dead")] == ["job-7"]

    def test_leaves_out_a_job_whose_ledger_has_expired(self, worker):
        worker.channel.client.zadd("retrykit.due", {"expired": 1})
        assert jobs(worker.app) == []

    def test_lists_a_dead_job_once_and_no_job_that_has_succeeded(self, worker):
        verify = Verify(fails=1, error=KeyError)
        worker.send(verify)
        worker.handle_next()
        assert [each.job for each in jobs(worker.app)] == ["job-7"]
        requeue(worker.app, "job-7")
        assert [each.status for each in jobs(worker.app)] == ["waiting"]
        worker.handle_next()
        assert jobs(worker.app) == []


class TestALostJob:
    def test_is_sent_again_when_it_is_overdue(self, worker, clock, caplog):
        verify = Verify(fails=1)
        worker.send(verify)
        worker.lose_message()
        clock.advance(PATIENCE - 1)
        assert sweep(worker.app) == []
        clock.advance(2)
        assert sweep(worker.app) == ["job-7"]
        warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
        assert [r.getMessage() for r in warnings] == [
            "job-7: sent again, its message was lost"
        ]
        assert worker.handle_next() is not None
        assert (verify.keys, worker.count_messages()) == (["job-7:1"], 1)

    def test_continues_where_it_was(self, worker, clock):
        verify = Verify(fails=2)
        worker.send(verify)
        worker.handle_next()
        worker.lose_message()
        clock.advance(3600 + PATIENCE + 1)
        assert sweep(worker.app) == ["job-7"]
        worker.handle_next()
        assert verify.keys == ["job-7:1", "job-7:2"]
        assert status(worker.app, "job-7").envelope.counts == {"ConnectionError": 2}

    def test_is_not_sent_again_by_the_next_sweep(self, worker, clock):
        worker.send(Verify())
        worker.lose_message()
        clock.advance(PATIENCE + 1)
        assert sweep(worker.app) == ["job-7"]
        worker.lose_message()
        clock.advance(60)
        assert sweep(worker.app) == []
        clock.advance(PATIENCE)
        assert sweep(worker.app) == ["job-7"]

    def test_keeps_its_queue_and_its_headers(self, worker, clock):
        task = worker.task(Verify(), HOURLY)
        task.apply_async(
            ["example.com"], None, "job-7", None, queue=Queue("feeds"),
            headers={"trace": "abc"},
        )  # fmt: skip
        worker.lose_message("feeds")
        clock.advance(PATIENCE + 1)
        sweep(worker.app)
        message = worker.take_message("feeds")
        assert message.headers["trace"] == "abc"
        assert message.headers[HEADER]

    def test_may_come_from_a_sender_without_the_task(self, worker, clock):
        verify = Verify(fails=1)
        worker.task(verify, HOURLY)
        worker.app.send_task("verify", ["example.com"], task_id="job-7")
        worker.handle_next()
        worker.lose_message()
        clock.advance(3600 + PATIENCE + 1)
        assert sweep(worker.app) == ["job-7"]
        worker.handle_next()
        assert verify.keys == ["job-7:1", "job-7:2"]

    def test_is_found_if_it_was_taken_twice(self, worker, clock):
        """Its worker was killed in its attempt, and the next one took its message."""

        def verify(host):
            keys.append(idempotency_key())
            if len(keys) == 1:
                raise WorkerTerminate
            return "verified"

        keys = []
        worker.send(verify)
        worker.handle_next()
        worker.lose_message()
        clock.advance(PATIENCE + 1)
        assert sweep(worker.app) == ["job-7"]
        worker.handle_next()
        assert (keys, status(worker.app, "job-7").status) == (
            ["job-7:1"] * 2,
            "succeeded",
        )

    def test_of_which_the_message_is_unknown_is_reported_once(
        self, worker, clock, caplog
    ):
        worker.send(Verify())
        worker.lose_message()
        worker.app.backend.delete(
            worker.app.backend.get_key_for_task(f"job-7{LEDGER}.message")
        )
        for _ in range(2):
            clock.advance(PATIENCE + 1)
            assert sweep(worker.app) == []
        assert caplog.text.count("its message is unknown") == 1

    def test_does_not_hide_others_if_its_ledger_is_unreadable(
        self, worker, clock, caplog
    ):
        worker.task(Verify(), HOURLY)
        task = worker.app.tasks["verify"]
        for job in ("job-1", "job-2"):
            task.apply_async(["example.com"], task_id=job)
            worker.lose_message()
        write_entry(
            worker.app, "job-1", worker.entry("job-1").replace(envelope={"due": 1})
        )
        clock.advance(PATIENCE + 1)
        assert sweep(worker.app) == ["job-2"]
        assert "cannot sweep: job-1" in caplog.text

    def test_is_not_sent_under_the_id_of_another(self, worker, clock, caplog):
        worker.send(Verify())
        worker.lose_message()
        entry = worker.entry()
        envelope = entry.envelope | {"job": "job-8"}
        write_entry(worker.app, "job-7", entry.replace(envelope=envelope))
        clock.advance(PATIENCE + 1)
        assert (sweep(worker.app), worker.count_messages()) == ([], 0)
        assert "envelope.job must be 'job-7'" in caplog.text
        assert "envelope.job must be" in status(worker.app, "job-7").reason


class TestAMessage:
    def test_in_a_queue_is_not_lost(self, worker, clock):
        worker.send(Verify())
        clock.advance(PATIENCE + 1)
        assert (sweep(worker.app), worker.count_messages()) == ([], 1)

    def test_in_the_hands_of_a_worker_is_not_lost(self, worker, clock):
        verify = Verify()
        worker.send(verify)
        message = worker.take_message()
        clock.advance(PATIENCE + 1)
        assert sweep(worker.app) == []
        message.requeue()
        worker.handle_next()
        assert verify.keys == ["job-7:1"]

    def test_of_another_token_does_not_count(self, worker, clock):
        worker.send(Verify())
        worker.lose_message()
        task = worker.app.tasks["verify"]
        task.apply_async(task_id="job-7", headers={HEADER: "{}"})
        clock.advance(PATIENCE + 1)
        assert sweep(worker.app) == ["job-7"]

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_that_was_only_late_makes_no_second_attempt(self, worker, clock, when):
        """A worker had it in a socket."""
        verify = Verify()
        worker.send(verify)
        late = worker.channel.client.rpop("celery")
        clock.advance(PATIENCE + 1)

        def arrive():
            worker.channel.client.rpush("celery", late)
            worker.handle_next()

        if when == "before":
            worker.app.backend.after_write = {LEDGER + ".again": arrive}
        sweep(worker.app)
        if when == "after":
            arrive()
        worker.handle_all()
        assert verify.keys == ["job-7:1"]

    def test_that_begins_its_attempt_meanwhile_is_the_only_one(self, worker, clock):
        def begin():
            write_entry(worker.app, "job-7", sent.replace(status="running"))

        worker.send(Verify())
        sent = worker.entry()
        worker.lose_message()
        clock.advance(PATIENCE + 1)
        worker.app.backend.after_write = {LEDGER + ".again": begin}
        assert (sweep(worker.app), worker.count_messages()) == ([], 0)

    def test_that_repeats_its_attempt_meanwhile_is_the_only_one(self, worker, clock):
        def begin_again():
            write_entry(worker.app, "job-7", begun.replace(killed=1))

        worker.send(Verify())
        begun = worker.entry().replace(status="running")
        write_entry(worker.app, "job-7", begun)
        worker.lose_message()
        clock.advance(PATIENCE + 1)
        worker.app.backend.after_write = {LEDGER + ".again": begin_again}
        assert (sweep(worker.app), worker.count_messages()) == ([], 0)


def test_two_sweeps_at_the_same_moment_make_one_attempt(worker, clock):
    def sweep_too():
        again.append(sweep(worker.app))

    again, verify = [], Verify()
    worker.send(verify)
    worker.lose_message()
    clock.advance(PATIENCE + 1)
    due = worker.due_times()
    worker.app.backend.after_read = {
        LEDGER: lambda: worker.channel.client.zadd("retrykit.due", due)
    }
    worker.app.backend.after_write = {LEDGER + ".again": sweep_too}
    assert (sweep(worker.app), again) == ([], [["job-7"]])
    worker.handle_all()
    assert verify.keys == ["job-7:1"]


def test_finds_one_lost_job_among_many_messages(worker, clock):
    """Messages of a long queue are read in parts."""
    task, client = worker.task(Verify(), HOURLY), worker.channel.client
    task.apply_async(["example.com"], task_id="lost")
    worker.lose_message()
    for job in ("other", "held"):
        task.apply_async(["example.com"], task_id=job)
    # The other job is the next one to be taken, behind all messages of a third one.
    other, held = client.rpop("celery"), client.rpop("celery")
    third = held.replace(b"held", b"full")
    client.rpush("celery", held)
    assert worker.take_message().headers["id"] == "held"
    client.rpush("celery", *[third] * 700, other)
    clock.advance(PATIENCE + 1)
    assert sweep(worker.app) == ["lost"]


class TestTheIndex:
    def test_has_the_due_times_of_unfinished_jobs(self, worker, clock):
        worker.send(Verify(fails=1))
        assert worker.due_times() == {"job-7": pytest.approx(wall(), abs=1)}
        worker.handle_next()
        assert worker.due_times() == {"job-7": pytest.approx(wall() + 3600, abs=1)}
        clock.advance(3600)
        worker.handle_next()
        assert worker.due_times() == {}

    def test_has_no_dead_jobs(self, worker):
        worker.send(Verify(fails=1, error=ValueError))
        worker.handle_next()
        assert worker.due_times() == {}
        assert len(jobs(worker.app, status="dead")) == 1

    def test_is_corrected_by_a_sweep(self, worker, clock):
        worker.send(Verify(fails=1))
        worker.handle_next()
        worker.app.tasks["verify"].apply_async(task_id="job-8")
        worker.handle_next()
        worker.handle_next()
        assert status(worker.app, "job-8").status == "succeeded"
        wrong = dict.fromkeys(["job-7", "job-8", "job-9"], 1)
        worker.channel.client.zadd("retrykit.due", wrong)
        assert sweep(worker.app) == []
        assert worker.due_times() == {"job-7": pytest.approx(wall() + 3600, abs=1)}


class TestRequeue:
    def test_begins_a_lost_job_anew(self, worker, clock):
        verify = Verify()
        worker.send(verify)
        worker.lose_message()
        with pytest.raises(ConfigError, match="it is waiting"):
            requeue(worker.app, "job-7")
        clock.advance(PATIENCE + 1)
        requeue(worker.app, "job-7")
        worker.handle_all()
        assert verify.keys == ["job-7#2:1"]

    def test_begins_a_killed_job_anew(self, worker):
        verify = Verify(fails=1)
        worker.send(verify)
        worker.handle_next()
        kill(worker.app, "job-7")
        requeue(worker.app, "job-7")
        worker.handle_all()
        assert verify.keys == ["job-7:1", "job-7#2:1"]
        assert status(worker.app, "job-7").status == "succeeded"

    def test_begins_a_running_job_anew_if_it_is_killed_and_overdue(self, worker, clock):
        verify = Verify()
        worker.send(verify)
        write_entry(worker.app, "job-7", worker.entry().replace(status="running"))
        kill(worker.app, "job-7")
        with pytest.raises(ConfigError, match="it is running"):
            requeue(worker.app, "job-7")
        clock.advance(PATIENCE + 1)
        requeue(worker.app, "job-7")
        worker.handle_all()
        assert verify.keys == ["job-7#2:1"]

    def test_needs_the_message(self, worker):
        worker.send(Verify())
        kill(worker.app, "job-7")
        worker.app.backend.delete(
            worker.app.backend.get_key_for_task(f"job-7{LEDGER}.message")
        )
        with pytest.raises(ConfigError, match="whose message is still stored"):
            requeue(worker.app, "job-7")

    def test_of_one_job_twice_at_the_same_moment_makes_one_run(self, worker):
        """The other process begins before this one has changed anything."""

        def requeue_too():
            with pytest.raises(ConfigError, match="no other process is changing"):
                requeue(worker.app, "job-7")

        verify = Verify(fails=1, error=KeyError)
        worker.send(verify)
        worker.handle_next()
        worker.app.backend.after_write = {LEDGER + ".message": requeue_too}
        requeue(worker.app, "job-7")
        assert worker.app.backend.after_write == {}
        assert worker.count_messages() == 1
        with pytest.raises(ConfigError, match="it is waiting"):
            requeue(worker.app, "job-7")
        worker.handle_all()
        assert verify.keys == ["job-7:1", "job-7#2:1"]

    def test_takes_a_message_that_another_process_had_taken(self, worker):
        """A process of another version was killed while it listed dead jobs."""
        worker.send(Verify(fails=1, error=KeyError))
        worker.handle_next()
        assert worker.channel.basic_get(DEAD.name)
        assert [each.job for each in jobs(worker.app, status="dead")] == ["job-7"]
        requeue(worker.app, "job-7")
        worker.handle_all()
        assert worker.channel.client.hlen("unacked") == 0
        assert status(worker.app, "job-7").status == "succeeded"

    def test_lasts_no_longer_than_its_lock_if_its_process_is_killed(self, worker):
        client = worker.channel.client
        with exclusively(worker.app, "job-7"):
            [key] = client.keys("*retrykit.lock.*")
            assert 0 < client.pttl(key) <= 10_000
            # It expires before its block ends.
            client.flushdb()
        with exclusively(worker.app, "job-7"), exclusively(worker.app, "job-8"):
            assert len(client.keys("*retrykit.lock.*")) == 2
        assert client.keys("*retrykit.lock.*") == []


class TestDeadJobs:
    """They are listed by monitors, which may be killed at any moment."""

    def test_stay_where_they_are_while_they_are_listed(self, worker):
        task = worker.task(Verify(fails=3, error=KeyError), HOURLY)
        for number in range(3):
            task.apply_async(["example.com"], task_id=f"job-{number}")
            worker.handle_next()
        task.apply_async(["example.com"], task_id="held")
        held = worker.take_message()
        with dead_letters(worker.app) as letters:
            # In its middle.
            assert [each.job for each in letters] == ["job-0", "job-1", "job-2"]
            assert len(jobs(worker.app, status="dead")) == 3
            assert worker.count_messages(DEAD.name) == 3
            assert worker.channel.client.hlen("unacked") == 1
        held.ack()
        assert count_jobs(jobs(worker.app, limit=None)).total("dead") == 3

    def test_stay_there_while_another_one_is_requeued(self, worker):
        task = worker.task(Verify(fails=2, error=KeyError), HOURLY)
        for number in range(2):
            task.apply_async(["example.com"], task_id=f"job-{number}")
            worker.handle_next()
        seen = []
        worker.app.backend.after_write = {
            LEDGER: lambda: seen.extend(jobs(worker.app, status="dead"))
        }
        requeue(worker.app, "job-1")
        assert {each.job for each in seen} == {"job-0", "job-1"}
        assert [each.job for each in jobs(worker.app, status="dead")] == ["job-0"]


class Consumer:
    """The part of a worker's consumer that sweeps."""

    def __init__(self, app):
        self.app, self.timer, self.hub = app, Timer(), None
        self.steps = []


class TestAWorker:
    def test_sweeps_by_itself(self, worker, clock):
        consumer = Consumer(worker.app)
        step = Sweep(consumer)
        worker.send(Verify())
        worker.lose_message()
        assert step.include_if(consumer)
        step.start(consumer)
        [entry] = consumer.timer.queue
        step.begin(consumer)
        assert len(consumer.timer.queue) == 1
        clock.advance(PATIENCE + 1)
        step.begin(consumer)
        [later] = [e for e in consumer.timer.queue if e is not entry]
        later.entry.fun(*later.entry.args)
        assert worker.count_messages() == 1
        step.stop(consumer)
        assert entry.entry.cancelled

    def test_survives_errors_of_a_sweep(self, worker, clock, caplog):
        consumer = Consumer(worker.app)
        step = Sweep(consumer)
        step.stop(consumer)
        worker.send(Verify())
        clock.advance(PATIENCE + 1)
        worker.channel.client.delete("retrykit.due")
        worker.channel.client.set("retrykit.due", "odd")
        step.begin(consumer)
        assert "cannot sweep: find lost jobs" in caplog.text
        assert len(consumer.timer.queue) == 0

    def test_has_the_step_on_redis_only(self, clock):
        worker = InMemoryWorker()
        worker.task(Verify(), HOURLY)
        assert Sweep in worker.app.steps["consumer"]
        assert not Sweep(Consumer(worker.app)).include_if(Consumer(worker.app))
        assert sweep(worker.app) == []
