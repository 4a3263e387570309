"""A worker of Celery that does as it is told: one message after the other.

The messages lie in this process, and they are worked on in Celery's own way, by
the pool that runs everything in place. When one is due is not waited for.
"""

import json
from datetime import UTC, datetime
from types import MappingProxyType

import pytest
from billiard.einfo import ExceptionInfo
from celery import Celery, signals
from celery.backends.cache import CacheBackend
from celery.concurrency.solo import TaskPool
from celery.exceptions import WorkerTerminate
from celery.worker.request import Request
from kombu.serialization import prepare_accept_content
from kombu.utils.encoding import bytes_to_str

from retrykit import Policy
from retrykit._internal.clocks import wall
from retrykit.durable import idempotency_key
from retrykit.integrations.celery import DurableTask
from retrykit.integrations.celery.ledger import read_entry
from retrykit.integrations.celery.messages import DEAD, HEADER
from retrykit.testing import virtual_time

__all__ = ["HOURLY", "Desk", "Moody", "Verify", "clock", "desk", "dying"]

HOURLY = Policy(
    schedule=["1h"] * 5, max_attempts=None, max_elapsed=None, on=ConnectionError
)


@pytest.fixture
def clock():
    with virtual_time() as clock:
        yield clock


@pytest.fixture
def desk(clock):
    return Desk()


class Verify:
    """A function that fails so often, and notes its keys."""

    def __init__(self, fails=0, value="verified", error=ConnectionError):
        self.fails, self.value, self.error = fails, value, error
        self.keys = []

    def __call__(self, host="example.com"):
        self.keys.append(idempotency_key())
        if len(self.keys) <= self.fails:
            raise self.error("connection refused")
        return self.value


class Moody(CacheBackend):
    """A result backend that may be away, or have other users.

    Attributes:
        away: Whether it is.
        read: What another one does, once, when something was just read, by how
            the name of that ends.
        stored: The same, when something was just stored.
    """

    away = False
    read = stored = MappingProxyType({})

    def get(self, key):
        self._check()
        found = super().get(key)
        self._others(self.read, bytes_to_str(key))
        return found

    def set(self, key, value):
        self._check()
        super().set(key, value)
        self._others(self.stored, bytes_to_str(key))

    def _check(self):
        if self.away:
            raise ConnectionError("the backend is away")

    def _others(self, todo, key):
        for name in [name for name in todo if key.endswith(name)]:
            todo.pop(name)()


class Desk:
    """An app with one worker.

    Args:
        settings: Settings of the app.
    """

    def __init__(self, **settings):
        self.app = Celery("desk", broker="memory://")
        self.app.conf.update(
            cache_backend="memory",
            broker_transport_options={"polling_interval": 0},
            **{"result_backend": "tests._support.celery_desk:Moody"} | settings,
        )
        self.app.backend.client.cache.clear()
        self.connection = self.app.connection_for_read()
        self.channel = self.connection.channel()
        self.channel.queues.clear()
        self.channel.state.clear()
        self.pool = TaskPool(app=self.app)

    def task(self, fn, policy, base=DurableTask, **options):
        """Make a task of a function, under its own name."""

        def verify(*args, **kwargs):
            return fn(*args, **kwargs)

        options = {"name": "verify", "shared": False} | options
        task = self.app.task(base=base, policy=policy, **options)(verify)
        self.app.finalize()
        return task

    def sent(self, fn, policy=HOURLY, **options):
        """Send a job of a function, ``job-7``; return what can be asked of it."""
        task = self.task(fn, policy, **options)
        return task.apply_async(["example.com"], task_id="job-7")

    def due(self, clock):
        """Let it be the time when the one message that lies there is due."""
        clock.advance(max(self.envelope()["due"] - wall(), 0))

    def wake(self, *, killed=None, queue="celery", **changes):
        """Work on the next message; return what it was, or None.

        Args:
            killed: Where the worker dies: ``"sending"``, before the next message
                is sent, or ``"acknowledging"``, after it was.
            queue: Where it lies.
            **changes: What is to be changed in its headers.
        """
        message = self.take(queue)
        if message is None:
            return None
        message.headers.update(changes)
        request = self.request(message, None if killed is None else dying)
        if killed == "sending":
            signals.before_task_publish.connect(dying, weak=False)
        try:
            request.execute_using_pool(self.pool)
        except WorkerTerminate:
            message.requeue()
        finally:
            signals.before_task_publish.disconnect(dying)
        return message

    def lose(self, error, **changes):
        """Let a worker lose the process that it had given the next message to."""
        message = self.take()
        message.headers.update(changes)
        try:
            raise error
        except type(error):
            self.request(message).on_failure(ExceptionInfo())

    def take(self, queue="celery"):
        """Return the next message of a queue; None if there is none."""
        message = self.channel.basic_get(queue)
        return message and self.channel.message_to_python(message)

    def request(self, message, on_ack=None):
        """Return what a worker makes of a message.

        Args:
            message: The message.
            on_ack: Acknowledges it.
        """
        message.accept = prepare_accept_content(self.app.conf.accept_content)
        return Request(
            message, app=self.app, task=self.app.tasks[message.headers["task"]],
            on_ack=on_ack or message.ack_log_error, on_reject=message.reject_log_error,
        )  # fmt: skip

    def work(self):
        """Work until there is nothing left to do; return how many messages."""
        count = 0
        while self.wake() is not None:
            count += 1
        return count

    def lying(self, queue="celery"):
        """Return the headers of the messages that lie in a queue."""
        kept = self.channel._queue_for(queue).queue  # noqa: SLF001  to look, not take
        return [message["headers"] for message in kept]

    def buried(self):
        """Return how many messages the dead have."""
        return len(self.lying(DEAD.name))

    def envelope(self):
        """Return the envelope of the one message that lies there."""
        [headers] = self.lying()
        return json.loads(headers[HEADER])

    def held(self):
        """Return for how many seconds a worker would hold that message."""
        [headers] = self.lying()
        held = datetime.fromisoformat(headers["eta"]) - datetime.now(UTC)
        return held.total_seconds()

    def copy(self, queue="celery"):
        """Leave a copy of the one message, as a worker does that dies late."""
        kept = self.channel._queue_for(queue)  # noqa: SLF001  as above
        [message] = kept.queue
        message = json.loads(json.dumps(message))
        message["properties"]["delivery_tag"] += "-copy"
        kept.put(message)

    def entry(self, job="job-7"):
        return read_entry(self.app, job)

    def state(self, job="job-7"):
        return self.app.AsyncResult(job).state


def dying(*_args, **_kwargs):
    raise WorkerTerminate("killed")
