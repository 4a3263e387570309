"""The messages of a job: the next one, and the one in the queue of the dead.

It knows how they are made, and not when they are sent.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from celery import Celery, Task
from celery.canvas import Signature
from kombu import Message, Queue
from kombu.exceptions import EncodeError
from kombu.serialization import dumps
from kombu.transport.native_delayed_delivery import calculate_routing_key

from retrykit.durable import Envelope

__all__ = [
    "DEAD",
    "HEADER",
    "TOKEN_HEADER",
    "again",
    "dead_letters",
    "headers",
    "send_to_dead_letter",
]
__all__ += ["queue_of"]

HEADER: Final = "retrykit"
"""The header that the envelope travels in, as JSON."""

TOKEN_HEADER: Final = "retrykit_token"  # noqa: S105  of a message
"""The header that tells a message from any other."""

DEAD: Final = Queue(
    "retrykit.dead",
    durable=True,
    # A quorum queue of RabbitMQ 4 drops what was looked at 20 times.
    queue_arguments={"x-queue-type": "classic"},
)
"""The queue of the dead jobs, which no worker consumes."""


def headers(envelope: Envelope, token: str) -> dict[str, str]:
    """Return the headers of a message that carries an envelope."""
    # RabbitMQ takes 128 kB of headers: what is not ASCII is written as it is.
    text = json.dumps(envelope.to_dict(), ensure_ascii=False)
    return {HEADER: text, TOKEN_HEADER: token}


def again(task: Task[..., Any], new: dict[str, str], **options: Any) -> Signature[Any]:
    """Return the message that a task works on as one that can be sent again.

    Args:
        task: The task.
        new: Headers that it has beside those that it has now.
        **options: What else is new in it.
    """
    made = task.signature_from_request(
        queue=queue_of(task.app, task.request.delivery_info), **options
    )
    made.options["headers"] = (made.options["headers"] or {}) | new
    return made


def send_to_dead_letter(app: Celery, message: Signature[Any], **told: Any) -> None:
    """Publish a message to the queue of the dead.

    Args:
        app: The app.
        message: The message, as it can be sent again.
        **told: What is told of the job.
    """
    body = told | {"message": dict(message)}
    with app.producer_or_acquire() as producer:
        producer.publish(
            body,
            exchange="",
            routing_key=DEAD.name,
            declare=[DEAD],
            serializer=_serializer(app, body),
            delivery_mode=2,
            retry=True,
            retry_policy=app.conf.task_publish_retry_policy,
        )


@contextmanager
def dead_letters(app: Celery, limit: int | None = None) -> Iterator[list[Message]]:
    """Take messages out of the queue of the dead, and put them back.

    Args:
        app: The app.
        limit: How many at most; None is all of them.

    Yields:
        The messages, those first that have been there for longest. What is not
        acknowledged meanwhile goes back to its place.
    """
    with app.connection_for_read() as connection, connection.channel() as channel:
        queue = DEAD(channel)
        queue.declare()
        taken: list[Message] = []
        try:
            while len(taken) != limit:
                message = queue.get(accept=app.conf.accept_content)
                if message is None:
                    break
                taken.append(message)
            yield taken
        finally:
            for message in reversed(taken):
                if not message.acknowledged:
                    message.requeue()


def _serializer(app: Celery, body: object) -> str:
    """Return the first serializer of an app that can write a message.

    Whoever has sent the job may have used another one than this app does.
    """
    known = app.conf.task_serializer, *app.conf.accept_content
    return str(next((name for name in known if _writes(name, body)), known[0]))


def _writes(serializer: str, body: object) -> bool:
    try:
        dumps(body, serializer)
    except EncodeError:
        return False
    return True


def queue_of(app: Celery, came: Mapping[str, Any] | None) -> str | None:
    """Return the queue that a message came through, if that can be told.

    One that RabbitMQ has delayed comes from an exchange of its own, under a key
    that begins with how long it was delayed for.

    Args:
        app: The app.
        came: What is known of how it was delivered.
    """
    came = came or {}
    key = came.get("routing_key")
    if not key or not came.get("exchange"):
        return key or None
    delayed = calculate_routing_key(1, key)
    for queue in app.amqp.queues.values():
        if queue.routing_key and calculate_routing_key(1, queue.routing_key) == delayed:
            return str(queue.name)
    return None
