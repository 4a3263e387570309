"""A Celery worker in this process that handles single messages on request.

Celery's own in-memory broker keeps the messages, and its solo pool runs the tasks. A
message is handled at once, even if it is not due.
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
from retrykit.integrations.celery._ledger import read_entry
from retrykit.integrations.celery._messages import DEAD, HEADER
from retrykit.testing import virtual_time

__all__ = [
    "HOURLY",
    "InMemoryWorker",
    "UnreliableBackend",
    "Verify",
    "clock",
    "die",
    "worker",
]

HOURLY = Policy(schedule=["1h"] * 5, max_attempts=None, on=ConnectionError)


@pytest.fixture
def clock():
    with virtual_time() as clock:
        yield clock


@pytest.fixture
def worker(clock):
    return InMemoryWorker()


class Verify:
    """A function that fails a number of times, and records its idempotency keys."""

    def __init__(self, fails=0, value="verified", error=ConnectionError):
        self.fails, self.value, self.error = fails, value, error
        self.keys = []

    def __call__(self, host="example.com"):
        self.keys.append(idempotency_key())
        if len(self.keys) <= self.fails:
            raise self.error("connection refused")
        return self.value


class UnreliableBackend(CacheBackend):
    """A result backend that may be unavailable, or have concurrent users.

    Attributes:
        unavailable: Whether every access fails.
        after_read: Functions that are called once after a key was read, by the
            ending of the key; they do what another process does then.
        after_write: The same, after a key was written.
    """

    unavailable = False
    after_read = after_write = MappingProxyType({})

    def get(self, key):
        self._check()
        found = super().get(key)
        self._call_once(self.after_read, bytes_to_str(key))
        return found

    def set(self, key, value):
        self._check()
        super().set(key, value)
        self._call_once(self.after_write, bytes_to_str(key))

    def _check(self):
        if self.unavailable:
            raise ConnectionError("the backend is unavailable")

    def _call_once(self, todo, key):
        for name in [name for name in todo if key.endswith(name)]:
            todo.pop(name)()


class InMemoryWorker:
    """A Celery app with one worker.

    Args:
        app: The app, whose broker is in memory; by default a new one.
        settings: Settings of the app.
    """

    def __init__(self, app=None, **settings):
        self.app = app or Celery("worker", broker="memory://")
        self.app.conf.update(
            cache_backend="memory",
            broker_transport_options={"polling_interval": 0},
            **{"result_backend": "tests._support.celery_worker:UnreliableBackend"}
            | settings,
        )
        self.app.backend.client.cache.clear()
        self.connection = self.app.connection_for_read()
        self.channel = self.connection.channel()
        self.channel.queues.clear()
        self.channel.state.clear()
        self.pool = TaskPool(app=self.app)

    def task(self, fn, policy, base=DurableTask, **options):
        """Return a durable task of a function."""

        def verify(*args, **kwargs):
            return fn(*args, **kwargs)

        options = {"name": "verify", "shared": False} | options
        task = self.app.task(base=base, policy=policy, **options)(verify)
        self.app.finalize()
        return task

    def send(self, fn, policy=HOURLY, **options):
        """Send ``job-7``, a job of a function; return its result."""
        task = self.task(fn, policy, **options)
        return task.apply_async(["example.com"], task_id="job-7")

    def advance_to_due(self, clock):
        """Advance the clock to the time at which the only message is due."""
        clock.advance(max(self.envelope()["due"] - wall(), 0))

    def handle_next(self, *, killed=None, queue="celery", **changes):
        """Handle the next message, and return it; None if there is none.

        Args:
            killed: When the worker dies: ``"sending"``, before it sends the next
                message, or ``"acknowledging"``, after that.
            queue: The queue of the message.
            **changes: Changes of its headers.
        """
        message = self.take_message(queue)
        if message is None:
            return None
        message.headers.update(changes)
        request = self.request(message, None if killed is None else die)
        if killed == "sending":
            signals.before_task_publish.connect(die, weak=False)
        try:
            request.execute_using_pool(self.pool)
        except WorkerTerminate:
            message.requeue()
        finally:
            signals.before_task_publish.disconnect(die)
        return message

    def take_first(self, job):
        """Handle the message of a job, before all others."""
        queued = self.channel._queue_for("celery").queue  # noqa: SLF001  to reorder
        ordered = sorted(queued, key=lambda message: message["headers"]["id"] != job)
        queued.clear()
        queued.extend(ordered)
        return self.handle_next()

    def lose_process(self, error, **changes):
        """Handle the next message in a pool process that is lost with this error."""
        message = self.take_message()
        message.headers.update(changes)
        try:
            raise error
        except type(error):
            self.request(message).on_failure(ExceptionInfo())

    def take_message(self, queue="celery"):
        """Return the next message of a queue, or None."""
        message = self.channel.basic_get(queue)
        return message and self.channel.message_to_python(message)

    def request(self, message, on_ack=None):
        """Return the request that a worker makes of a message.

        Args:
            message: The message.
            on_ack: Called to acknowledge it.
        """
        message.accept = prepare_accept_content(self.app.conf.accept_content)
        return Request(
            message, app=self.app, task=self.app.tasks[message.headers["task"]],
            on_ack=on_ack or message.ack_log_error, on_reject=message.reject_log_error,
        )  # fmt: skip

    def handle_all(self):
        """Handle messages until there are none; return their number."""
        count = 0
        while self.handle_next() is not None:
            count += 1
        return count

    def messages(self, queue="celery"):
        """Return the headers of the messages in a queue."""
        queued = self.channel._queue_for(queue).queue  # noqa: SLF001  without taking
        return [message["headers"] for message in queued]

    def count_dead(self):
        """Return the number of messages in the dead-letter queue."""
        return len(self.messages(DEAD.name))

    def envelope(self):
        """Return the envelope of the only message."""
        [headers] = self.messages()
        return json.loads(headers[HEADER])

    def hold_time(self):
        """Return for how many seconds a worker would hold the only message."""
        [headers] = self.messages()
        hold = datetime.fromisoformat(headers["eta"]) - datetime.now(UTC)
        return hold.total_seconds()

    def copy_message(self, queue="celery"):
        """Duplicate the only message, like a worker that dies before acknowledging."""
        queued = self.channel._queue_for(queue)  # noqa: SLF001  as above
        [message] = queued.queue
        message = json.loads(json.dumps(message))
        message["properties"]["delivery_tag"] += "-copy"
        queued.put(message)

    def entry(self, job="job-7"):
        return read_entry(self.app, job)

    def state(self, job="job-7"):
        return self.app.AsyncResult(job).state


def die(*_args, **_kwargs):
    raise WorkerTerminate("killed")
