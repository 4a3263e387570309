"""Messages of jobs: copies to send again, and the dead-letter queue."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, cast, final

from celery import Celery, Task
from celery.canvas import Signature
from kombu import Message, Queue
from kombu.exceptions import EncodeError
from kombu.serialization import dumps, prepare_accept_content
from kombu.transport.native_delayed_delivery import calculate_routing_key

from retrykit._internal.frozen import Frozen
from retrykit.durable import Envelope
from retrykit.integrations.celery._due_index import DueIndex, open_index
from retrykit.integrations.celery._ledger import Entry

__all__ = ["DEAD", "HEADER", "TOKEN_HEADER", "DeadLetter", "build_headers"]
__all__ += ["build_message", "copy_message"]
__all__ += ["dead_letters", "find_queue", "send_stored"]
__all__ += ["send_to_dead_letter"]

HEADER: Final = "retrykit"
"""The header that holds the envelope, as JSON."""

TOKEN_HEADER: Final = "retrykit_token"  # noqa: S105  of a message
"""The header that identifies a message among its duplicates."""

DEAD: Final = Queue(
    "retrykit.dead",
    durable=True,
    # A quorum queue of RabbitMQ 4 would drop messages that were listed 20 times.
    queue_arguments={"x-queue-type": "classic"},
)
"""The dead-letter queue, which no worker consumes."""


def build_headers(envelope: Envelope, token: str) -> dict[str, str]:
    """Return the headers of a message that carries an envelope."""
    # Without escapes, to fit into the 128 kB of headers that RabbitMQ allows.
    text = json.dumps(envelope.to_dict(), ensure_ascii=False)
    return {HEADER: text, TOKEN_HEADER: token}


def copy_message(
    task: Task[..., Any], headers: dict[str, str], **options: Any
) -> Signature[Any]:
    """Return a copy of the message of a running task, with more headers and options."""
    queue = find_queue(task.app, task.request.delivery_info)
    message = task.signature_from_request(queue=queue, **options)
    message.options["headers"] = (message.options["headers"] or {}) | headers
    return message


def build_message(
    task: Task[..., Any], args: Any, kwargs: Any, options: Mapping[str, Any]
) -> Signature[Any]:
    """Return the message of a new job, in the form that is stored for later sends.

    Options that cannot be stored, such as a connection, are left out.
    """
    named = dict(options)
    if isinstance(named.get("queue"), Queue):
        named["queue"] = named["queue"].name
    stored = {name: x for name, x in named.items() if _can_encode("json", x)}
    return task.signature(args, kwargs, **stored)


def send_stored(
    app: Celery, stored: Mapping[str, Any], envelope: Envelope, hop: int, token: str
) -> None:
    """Send a stored message at once, as number *hop* of its run."""
    message = app.signature(stored)
    headers = message.options.get("headers") or {}
    message.options.update(
        headers=headers | build_headers(envelope, token),
        task_id=envelope.job,
        retries=hop,
        countdown=None,
    )
    message.apply_async()


def send_to_dead_letter(
    app: Celery, message: Signature[Any], job: str, entry: Entry
) -> None:
    """Publish the message of a job to the dead-letter queue."""
    body = {"job": job, "entry": entry.to_dict(), "message": dict(message)}
    with app.producer_or_acquire() as producer:
        producer.publish(
            body,
            exchange="",
            routing_key=DEAD.name,
            declare=[DEAD],
            serializer=_find_serializer(app, body),
            delivery_mode=2,
            retry=True,
            retry_policy=app.conf.task_publish_retry_policy,
        )


@final
class DeadLetter(Frozen):
    """A message in the dead-letter queue.

    Attributes:
        job: The id of the job.
        entry: The job's ledger entry.
        message: The job's message, with which the job can be sent again.
        remove: Removes the dead letter from the queue.
    """

    __slots__ = ("entry", "job", "message", "remove")
    job: str
    entry: Entry
    message: dict[str, Any]
    remove: Callable[[], None]

    @classmethod
    def of(cls, payload: Any, remove: Callable[[], None]) -> "DeadLetter":
        """Return the dead letter with this content."""
        entry = cast("Entry", Entry.from_dict(payload["entry"]))
        return cls(payload["job"], entry, payload["message"], remove)


@contextmanager
def dead_letters(app: Celery) -> Iterator[list[DeadLetter]]:
    """Read the messages in the dead-letter queue for a block, the oldest first.

    On Redis, the messages stay there. From other brokers they can only be taken: those
    that are not removed are put back when the block ends, or if this process is killed.
    """
    with open_index(app) as index:
        found = None if index is None else index.messages_in(DEAD.name)
    if found is None:
        with _taken_letters(app) as messages:
            yield [DeadLetter.of(each.payload, each.ack) for each in messages]
        return
    letters = []
    for message, raw in found:
        message.accept = prepare_accept_content(app.conf.accept_content)
        letters.append(
            DeadLetter.of(message.payload, partial(_remove_letter, app, raw))
        )
    yield letters


def _remove_letter(app: Celery, raw: bytes) -> None:
    with open_index(app) as index:
        cast("DueIndex", index).remove_message(DEAD.name, raw)


@contextmanager
def _taken_letters(app: Celery) -> Iterator[list[Message]]:
    with app.connection_for_read() as connection, connection.channel() as channel:
        queue = DEAD(channel)
        queue.declare()
        messages: list[Message] = []
        try:
            while message := queue.get(accept=app.conf.accept_content):
                messages.append(message)
            yield messages
        finally:
            for message in reversed(messages):
                if not message.acknowledged:
                    message.requeue()


def _find_serializer(app: Celery, body: object) -> str:
    """Return the first serializer of an app that can encode a message, or its default.

    The sender of the job may have used a serializer other than this app's default.
    """
    names = app.conf.task_serializer, *app.conf.accept_content
    return str(next((name for name in names if _can_encode(name, body)), names[0]))


def _can_encode(serializer: str, body: object) -> bool:
    try:
        dumps(body, serializer)
    except EncodeError:
        return False
    return True


def find_queue(app: Celery, delivery_info: Mapping[str, Any] | None) -> str | None:
    """Return the name of the queue through which a message came; None if unknown.

    RabbitMQ delivers a delayed message from a special exchange, with a routing key that
    begins with the delay.
    """
    info = delivery_info or {}
    key = info.get("routing_key")
    if not key or not info.get("exchange"):
        return key or None
    delayed = calculate_routing_key(1, key)
    for queue in app.amqp.queues.values():
        if queue.routing_key and calculate_routing_key(1, queue.routing_key) == delayed:
            return str(queue.name)
    return None
