"""Jobs of Celery that meet a worker which does not know their task."""

import pytest
from kombu.serialization import prepare_accept_content

from retrykit import ConfigError, Policy
from retrykit.integrations.celery import DurableTask, dead, requeue, status
from retrykit.integrations.celery.messages import HEADER
from retrykit.integrations.celery.unknown_tasks import UnknownTaskHandler
from tests._support import celery_desk
from tests._support.celery_desk import HOURLY, Verify

clock, desk = celery_desk.clock, celery_desk.desk


class Consumer:
    """The consumer of a worker, of which that is left that drops messages."""

    def __init__(self, app):
        self.app = app
        self.steps = [UnknownTaskHandler(self)]

    def on_unknown_task(self, _body, message, _error):
        message.reject()


@pytest.fixture
def drop(desk):
    """Let a worker have the next message that does not know its task."""
    consumer = Consumer(desk.app)

    def drop(**changes):
        message = desk.channel.message_to_python(desk.channel.basic_get("celery"))
        message.accept = prepare_accept_content(desk.app.conf.accept_content)
        message.headers.update(changes)
        consumer.on_unknown_task(None, message, KeyError("verify"))

    return drop


def test_every_worker_of_an_app_with_durable_tasks_has_the_handler(desk):
    desk.task(Verify(), HOURLY)
    assert UnknownTaskHandler in desk.app.steps["consumer"]


def test_a_job_of_an_unknown_task_is_dead_and_can_be_requeued(desk, drop):
    verify = Verify()
    desk.sent(verify)
    drop()
    report = status(desk.app, "job-7")
    assert (report.status, desk.lying()) == ("dead", [])
    assert report.reason == "its worker has no task 'verify'"
    assert [each.job for each in dead(desk.app)] == ["job-7"]
    requeue(desk.app, "job-7")
    desk.work()
    assert verify.keys == ["job-7#2:1"]


def test_a_dead_job_keeps_its_history(desk, drop, clock):
    desk.sent(Verify(fails=2))
    desk.wake()
    desk.due(clock)
    drop()
    [report] = dead(desk.app)
    assert (report.status, report.envelope.failed) == ("dead", 1)


def test_a_job_with_a_corrupt_envelope_is_kept(desk, drop):
    desk.sent(Verify())
    desk.app.backend.client.cache.clear()
    drop(**{HEADER: "cut"})
    [report] = dead(desk.app)
    assert (report.job, report.envelope) == ("job-7", None)


def test_a_stale_message_is_dropped(desk, drop):
    desk.sent(Verify(fails=1))
    desk.wake()
    drop(retrykit_token="another")  # noqa: S106  of a message
    assert (dead(desk.app), status(desk.app, "job-7").status) == ([], "waiting")


def test_messages_of_other_tasks_are_dropped(desk, drop):
    desk.app.send_task("unheard-of")
    drop()
    assert (desk.lying(), dead(desk.app)) == ([], [])


def test_a_task_that_expires_is_rejected(desk):
    task = desk.task(Verify(), Policy(), DurableTask, expires=60)
    with pytest.raises(ConfigError, match="expires must be None for a job, got 60"):
        task.apply_async()
