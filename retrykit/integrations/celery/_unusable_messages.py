"""Dead letters for jobs whose messages a worker cannot use.

Celery drops a message whose task the worker does not have, as happens when a rolling
deploy adds or renames a task, and a message whose body cannot be decoded. Here, the job
of such a message is made dead first: `requeue` finds the job in the dead-letter queue,
or by its stored message.
"""

import logging
from typing import Any, Final

from celery import Celery, bootsteps
from celery.canvas import Signature
from kombu import Message

from retrykit._internal.validation import truncate
from retrykit.durable._dead_job_logs import describe_dead_job
from retrykit.durable._envelope import read_own_envelope
from retrykit.errors import ConfigError
from retrykit.integrations.celery._ledger import (
    Entry,
    classify_message,
    read_entry,
    read_message,
    write_entry,
)
from retrykit.integrations.celery._messages import (
    HEADER,
    TOKEN_HEADER,
    find_queue,
    send_to_dead_letter,
)

__all__ = ["UnusableMessageHandler"]

_log: Final = logging.getLogger("retrykit.durable")

# Characters of an error in a reason.
_LONGEST: Final = 200


class UnusableMessageHandler(bootsteps.Step):
    """Bootstep by which a worker fails durable jobs whose messages it cannot use."""

    name = "retrykit unusable messages"

    def __init__(self, parent: Any, **settings: Any) -> None:
        super().__init__(parent, **settings)
        drop_unknown, drop_damaged = parent.on_unknown_task, parent.on_decode_error

        # An error in these ends the worker, and the message is redelivered.
        def on_unknown_task(body: Any, message: Message, error: Exception) -> None:
            if HEADER in message.headers:
                _fail_unknown(parent.app, message)
            drop_unknown(body, message, error)

        def on_decode_error(message: Message, error: Exception) -> None:
            if HEADER in message.headers:
                _fail_damaged(parent.app, message, error)
            drop_damaged(message, error)

        parent.on_unknown_task = on_unknown_task
        parent.on_decode_error = on_decode_error


def _fail_unknown(app: Celery, message: Message) -> None:
    """Fail a job whose task this worker does not have, and send a dead letter."""
    headers: Any = message.headers
    failed = _fail(app, message, f"its worker has no task {headers['task']!r}")
    if failed is None:
        return
    args, kwargs, embedded = message.payload
    own_headers = HEADER, TOKEN_HEADER
    copy = app.signature(
        headers["task"],
        args=args,
        kwargs=kwargs,
        task_id=str(headers["id"]),
        headers={name: headers[name] for name in own_headers if name in headers},
        queue=find_queue(app, message.delivery_info),
        link=embedded.get("callbacks"),
        link_error=embedded.get("errbacks"),
        chain=embedded.get("chain"),
        chord=embedded.get("chord"),
    )
    send_to_dead_letter(app, copy, str(headers["id"]), failed)


def _fail_damaged(app: Celery, message: Message, error: Exception) -> None:
    """Make the job of an undecodable message dead.

    There is a dead letter only if a message of the job is still stored: the arguments
    in this message are unknown.
    """
    headers: Any = message.headers
    job = str(headers["id"])
    text = truncate(str(error), _LONGEST)
    failed = _fail(app, message, f"its message cannot be decoded: {text}")
    stored = read_message(app, job)
    if failed is not None and stored is not None:
        copy: Signature[Any] = app.signature(stored)
        send_to_dead_letter(app, copy, job, failed)


def _fail(app: Celery, message: Message, reason: str) -> Entry | None:
    """Make a job dead, and return its entry; None if its message is stale."""
    headers: Any = message.headers
    job = str(headers["id"])
    entry, hop = read_entry(app, job), headers.get("retries") or 0
    run, data = entry.run if entry else 1, entry and entry.envelope
    try:
        envelope = read_own_envelope(headers[HEADER], job)
        run, data = envelope.run, envelope.to_dict()
    except ConfigError:
        pass
    if classify_message(entry, run, hop, headers.get(TOKEN_HEADER)) == "stale":
        return None
    failed = Entry.dead(run, hop + 1, data, reason)
    write_entry(app, job, failed)
    _log.error(describe_dead_job(job, reason))
    return failed
