"""Jobs on Celery whose worker does not know their task."""

import json

import pytest
from kombu.exceptions import DecodeError
from kombu.serialization import prepare_accept_content

from retrykit import ConfigError, Policy
from retrykit.integrations.celery import DurableTask, jobs, requeue, status
from retrykit.integrations.celery._ledger import LEDGER
from retrykit.integrations.celery._messages import HEADER
from retrykit.integrations.celery._unusable_messages import UnusableMessageHandler
from tests._support import celery_worker
from tests._support.celery_worker import HOURLY, Verify

clock, worker = celery_worker.clock, celery_worker.worker


class Consumer:
    """The part of a worker's consumer that drops messages of unknown tasks."""

    def __init__(self, app):
        self.app = app
        self.steps = [UnusableMessageHandler(self)]

    def on_unknown_task(self, _body, message, _error):
        message.reject()

    def on_decode_error(self, message, _error):
        message.ack()


@pytest.fixture
def drop(worker):
    """Deliver the next message to a worker that does not know its task."""
    consumer = Consumer(worker.app)

    def drop(**changes):
        message = worker.channel.message_to_python(worker.channel.basic_get("celery"))
        message.accept = prepare_accept_content(worker.app.conf.accept_content)
        message.headers.update(changes)
        consumer.on_unknown_task(None, message, KeyError("verify"))

    return drop


@pytest.fixture
def damage(worker):
    """Deliver the next message with a body that is cut off."""
    consumer = Consumer(worker.app)

    def damage(without=(), **changes):
        message = worker.take_message()
        message.accept = prepare_accept_content(worker.app.conf.accept_content)
        message.headers.update(changes)
        for name in without:
            del message.headers[name]
        message.body = message.body[: len(message.body) // 2]
        with pytest.raises(DecodeError) as caught:
            message.decode()
        consumer.on_decode_error(message, caught.value)

    return damage


class TestABodyThatCannotBeDecoded:
    def test_makes_its_job_dead_which_can_be_requeued(self, worker, damage, caplog):
        verify = Verify()
        worker.send(verify)
        damage()
        report = status(worker.app, "job-7")
        assert (report.status, worker.messages()) == ("dead", [])
        assert report.reason.startswith("its message cannot be decoded: ")
        assert f"job-7: dead, {report.reason}" in caplog.text
        assert [each.job for each in jobs(worker.app, status="dead")] == ["job-7"]
        requeue(worker.app, "job-7")
        worker.handle_all()
        assert verify.keys == ["job-7#2:1"]

    def test_of_a_stale_message_is_dropped(self, worker, damage):
        worker.send(Verify(fails=1))
        worker.handle_next()
        damage(retrykit_token="another")  # noqa: S106  of a message
        assert status(worker.app, "job-7").status == "waiting"
        assert worker.count_dead() == 0

    def test_makes_its_job_dead_if_its_arguments_are_unknown(self, worker, damage):
        worker.send(Verify())
        worker.app.backend.forget(f"job-7{LEDGER}.message")
        damage()
        assert status(worker.app, "job-7").status == "dead"
        with pytest.raises(ConfigError, match="whose message is still stored"):
            requeue(worker.app, "job-7")

    def test_of_another_task_is_left_to_celery(self, worker, damage):
        worker.send(Verify())
        damage(without=[HEADER])
        assert (worker.messages(), worker.count_dead()) == ([], 0)
        assert status(worker.app, "job-7").status == "waiting"


def test_every_worker_of_an_app_with_durable_tasks_has_the_handler(worker):
    worker.task(Verify(), HOURLY)
    assert UnusableMessageHandler in worker.app.steps["consumer"]


def test_a_job_of_an_unknown_task_is_dead_and_can_be_requeued(worker, drop):
    verify = Verify()
    worker.send(verify)
    drop()
    report = status(worker.app, "job-7")
    assert (report.status, worker.messages()) == ("dead", [])
    assert report.reason == "its worker has no task 'verify'"
    assert [each.job for each in jobs(worker.app, status="dead")] == ["job-7"]
    requeue(worker.app, "job-7")
    worker.handle_all()
    assert verify.keys == ["job-7#2:1"]


def test_a_dead_job_keeps_its_history(worker, drop, clock):
    worker.send(Verify(fails=2))
    worker.handle_next()
    worker.advance_to_due(clock)
    drop()
    [report] = jobs(worker.app, status="dead")
    assert (report.status, report.envelope.failed_attempts) == ("dead", 1)


def test_a_job_with_a_corrupt_envelope_is_kept(worker, drop):
    worker.send(Verify())
    worker.app.backend.client.cache.clear()
    drop(**{HEADER: "cut"})
    [report] = jobs(worker.app, status="dead")
    assert (report.job, report.envelope) == ("job-7", None)


def test_a_job_with_the_envelope_of_another_is_kept_with_its_own_history(worker, drop):
    worker.send(Verify())
    stranger = json.dumps(worker.envelope() | {"job": "job-8"})
    drop(**{HEADER: stranger})
    [report] = jobs(worker.app, status="dead")
    assert (report.job, report.envelope.job) == ("job-7", "job-7")


def test_a_stale_message_is_dropped(worker, drop):
    worker.send(Verify(fails=1))
    worker.handle_next()
    drop(retrykit_token="another")  # noqa: S106  of a message
    assert jobs(worker.app, status="dead") == []
    assert status(worker.app, "job-7").status == "waiting"


def test_messages_of_other_tasks_are_dropped(worker, drop):
    worker.app.send_task("unheard-of")
    drop()
    assert (worker.messages(), jobs(worker.app, status="dead")) == ([], [])


def test_a_task_that_expires_is_rejected(worker):
    task = worker.task(Verify(), Policy(), DurableTask, expires=60)
    with pytest.raises(ConfigError, match="expires must be None for a job, got 60"):
        task.apply_async()
