"""Jobs whose task a worker does not know: dead, and not lost.

Celery drops such a message. There are some in every deploy that adds a task or
renames one, while a worker of the version before is still at work. Here it goes to
the queue of the dead, where `requeue` finds it.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, final

from celery import bootsteps
from kombu import Message

from retrykit._internal.frozen import fields_of
from retrykit.durable import Envelope
from retrykit.errors import ConfigError
from retrykit.integrations.celery.ledger import (
    Entry,
    classify_message,
    newest,
    write_entry,
)
from retrykit.integrations.celery.messages import (
    HEADER,
    TOKEN_HEADER,
    queue_of,
    send_to_dead_letter,
)

__all__ = ["UnknownTaskHandler"]

Unknown: TypeAlias = Callable[[Any, Message, Exception], None]


@final
class UnknownTaskHandler(bootsteps.Step):
    """What keeps the jobs that a worker would drop; for its consumer."""

    name = "retrykit strangers"

    def __init__(self, parent: Any, **settings: Any) -> None:
        super().__init__(parent, **settings)
        dropped: Unknown = parent.on_unknown_task

        def kept(body: Any, message: Message, error: Exception) -> None:
            # What fails here ends the worker, and the message comes again.
            if HEADER in message.headers:
                _keep(parent.app, message)
            dropped(body, message, error)

        parent.on_unknown_task = kept


def _keep(app: Any, message: Message) -> None:
    """Let a job be dead, unless its message is a copy that is left over."""
    told: Any = message.headers
    job = str(told["id"])
    entry, hop = newest(app, job), told.get("retries") or 0
    run, envelope = entry.run if entry else 1, entry and entry.envelope
    try:
        opened = Envelope.from_dict(told[HEADER])
        run, envelope = opened.run, opened.to_dict()
    except ConfigError:
        pass
    if classify_message(entry, run, hop, told.get(TOKEN_HEADER)) == "stale":
        return
    why = f"its worker knew no task {told['task']!r}"
    died = Entry(run, hop + 1, "dead", "", envelope, None, why)
    write_entry(app, job, died)
    args, kwargs, around = message.payload
    again = app.signature(
        told["task"],
        args=args,
        kwargs=kwargs,
        task_id=job,
        headers={name: told[name] for name in (HEADER, TOKEN_HEADER) if name in told},
        queue=queue_of(app, message.delivery_info),
        link=around.get("callbacks"),
        link_error=around.get("errbacks"),
        chain=around.get("chain"),
        chord=around.get("chord"),
    )
    send_to_dead_letter(app, again, job=job, entry=fields_of(died))
