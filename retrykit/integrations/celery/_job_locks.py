"""Locks on jobs, held in the broker: result backends have no compare-and-set."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

from celery import Celery
from kombu import Connection, Queue

from retrykit._internal.clocks import sync_clock
from retrykit._internal.validation import invalid_setting

__all__ = ["exclusively"]

# In seconds. On Redis, the lock of a process that is killed lasts this long.
_LEASE: Final = 10.0
_POLLING: Final = 0.1


@contextmanager
def exclusively(app: Celery, job: str) -> Iterator[None]:
    """Lock a job for a block: other processes that would change it wait.

    Raises:
        ConfigError: Another process has held the lock for 10 s.
    """
    digest = hashlib.sha256(job.encode()).hexdigest()[:32]
    name = f"retrykit.lock.{digest}"
    with app.connection_for_write() as connection:
        kind = connection.transport.driver_type
        lock = _lock_redis if kind == "redis" else _declare_exclusive
        with _acquired(job, partial(lock, connection, name)):
            yield


@contextmanager
def _acquired(job: str, lock: Callable[[], Any]) -> Iterator[None]:
    tries = int(_LEASE / _POLLING)
    while (release := lock()) is None:
        tries -= 1
        if not tries:
            rule = "the id of a job that no other process is changing"
            raise invalid_setting("job_id", rule, job, "try again", code="wrong-state")
        sync_clock.sleep(_POLLING)
    try:
        yield
    finally:
        release()


def _lock_redis(connection: Connection, name: str) -> Callable[[], None] | None:
    """Lock a Redis key; return a function that releases it; None if it is locked."""
    channel: Any = connection.default_channel
    lock = channel.client.lock(name, timeout=_LEASE)

    def release() -> None:
        # It may have expired.
        with suppress(Exception):
            lock.release()

    return release if lock.acquire(blocking=False) else None


def _declare_exclusive(connection: Connection, name: str) -> Callable[[], Any] | None:
    """Declare a queue that RabbitMQ reserves for this connection.

    Returns:
        A function that deletes the queue; None if another connection has reserved it.
    """
    # It ends with its connection. A new channel, since an error closes it.
    queue = Queue(
        name, exclusive=True, durable=False,
        queue_arguments={"x-queue-type": "classic"},
    )(connection.channel())  # fmt: skip
    try:
        queue.queue_declare()
    except connection.channel_errors:
        return None
    return queue.delete
