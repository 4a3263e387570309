"""Moves jobs of unknown tasks to the dead-letter queue.

Celery drops a message whose task the worker does not have, as happens when a rolling
deploy adds or renames a task. `requeue` finds it in the dead-letter queue.
"""

from typing import Any

from celery import bootsteps
from kombu import Message

from retrykit.durable import Envelope
from retrykit.errors import ConfigError
from retrykit.integrations.celery.ledger import (
    Entry,
    classify_message,
    read_entry,
    write_entry,
)
from retrykit.integrations.celery.messages import (
    HEADER,
    TOKEN_HEADER,
    find_queue,
    send_to_dead_letter,
)

__all__ = ["UnknownTaskHandler"]


class UnknownTaskHandler(bootsteps.Step):
    """Bootstep that makes a consumer keep durable jobs of unknown tasks."""

    name = "retrykit unknown tasks"

    def __init__(self, parent: Any, **settings: Any) -> None:
        super().__init__(parent, **settings)
        drop = parent.on_unknown_task

        def on_unknown_task(body: Any, message: Message, error: Exception) -> None:
            # An error in this ends the worker, and the message is redelivered.
            if HEADER in message.headers:
                _dead_letter(parent.app, message)
            drop(body, message, error)

        parent.on_unknown_task = on_unknown_task


def _dead_letter(app: Any, message: Message) -> None:
    """Move a message to the dead-letter queue, unless it is stale."""
    headers: Any = message.headers
    job, task = str(headers["id"]), headers["task"]
    entry, hop = read_entry(app, job), headers.get("retries") or 0
    run, data = entry.run if entry else 1, entry and entry.envelope
    try:
        envelope = Envelope.from_dict(headers[HEADER])
        run, data = envelope.run, envelope.to_dict()
    except ConfigError:
        pass
    if classify_message(entry, run, hop, headers.get(TOKEN_HEADER)) == "stale":
        return
    reason = f"its worker has no task {task!r}"
    failed = Entry.dead(run, hop + 1, data, reason)
    write_entry(app, job, failed)
    args, kwargs, embedded = message.payload
    own_headers = HEADER, TOKEN_HEADER
    copy = app.signature(
        task,
        args=args,
        kwargs=kwargs,
        task_id=job,
        headers={name: headers[name] for name in own_headers if name in headers},
        queue=find_queue(app, message.delivery_info),
        link=embedded.get("callbacks"),
        link_error=embedded.get("errbacks"),
        chain=embedded.get("chain"),
        chord=embedded.get("chord"),
    )
    send_to_dead_letter(app, copy, job, failed)
