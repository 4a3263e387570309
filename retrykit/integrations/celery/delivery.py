"""One wake-up of a job: what a worker does with a message.

The message carries the envelope, and it is acknowledged last of all: first the
ledger is written, then the next message is sent. So if the worker is killed

- before the attempt, or in the middle of it: the message comes again, and the
  attempt is made again, under the same key;
- after the ledger was written: the message comes again, and the ledger tells that
  its attempt was made. The next message is sent once more, and that one counts
  from now on; the one that perhaps was sent before is dropped when it comes. If
  that is being worked on at the same time, it goes on alone;
- before Celery has stored the result, or the error, of a job that has ended: the
  message comes again, and what the ledger kept of the end is stored.

Nothing goes round in a hurry: a message that cannot be followed goes to the queue
of the dead, and one whose successor cannot be sent comes again after a second.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn, final

from celery import Task
from celery.exceptions import Ignore, Reject
from celery.utils import uuid
from kombu.exceptions import EncodeError

from retrykit._internal.clocks import sync_clock, wall
from retrykit._internal.frozen import fields_of
from retrykit.durable import Capabilities, Envelope, Job, JobFailed
from retrykit.durable.json_payloads import as_json
from retrykit.errors import ConfigError
from retrykit.integrations.celery.ledger import (
    Entry,
    Verdict,
    classify_message,
    killed,
    name_another,
    newest,
    write_entry,
)
from retrykit.integrations.celery.messages import (
    HEADER,
    TOKEN_HEADER,
    again,
    headers,
    send_to_dead_letter,
)

__all__ = ["Delivery"]

_log: Final = logging.getLogger("retrykit.durable")

# As long as a broker may take to come back to its senses.
_PAUSE: Final = 1.0

# Longer than it takes from reading what is in the ledger to writing to it.
_UNTIL_WRITTEN: Final = 5.0


@final
class Delivery:
    """The message that a task works on.

    Args:
        task: The task.
        job: What its jobs are.
        able: Returns what the app can do for them.
    """

    def __init__(
        self, task: Task[..., Any], job: Job, able: Callable[[], Capabilities]
    ) -> None:
        self._task, self._job, self._able = task, job, able
        self._id = str(task.request.id)
        # It counts the messages of a run, and never its attempts.
        self._hop = task.request.retries
        self._headers = task.request.headers or {}

    def answer(self) -> Any:
        """Make the attempt that is due, and return what the job returned.

        Raises:
            Ignore: The job goes on with another message.
            Reject: The message is to come again.
            Exception: The job is dead.
        """
        with self._or_put_back():
            # A worker that would lose jobs does not start, and does not lose these.
            self._able()
            entry = newest(self._task.app, self._id)
            up_to = killed(self._task.app, self._id)
        opened = self._opened(entry)
        verdict = self._judged(entry, opened)
        if verdict == "stale":
            self._drop()
        if verdict == "unsent" and entry is not None:
            return self._once_more(entry)
        if isinstance(opened, ConfigError):
            kept = None if entry is None else entry.envelope
            self._die(opened, entry.run if entry else 1, kept)
        if up_to >= opened.run:
            self._die(JobFailed("killed by hand"), opened.run, opened.to_dict())
        if opened.time_left(wall()) > 0:
            self._send(opened.rescheduled(wall()))
        return self._attempt(opened)

    def _opened(self, entry: Entry | None) -> Envelope | ConfigError:
        """Return the envelope of the message, or why it cannot be read."""
        kept = self._headers.get(HEADER)
        try:
            if kept is not None:
                return Envelope.from_dict(kept)
            if entry is not None and (entry.run, entry.hop) == (1, 0):
                return Envelope.from_dict(entry.envelope)
            return self._job.envelope(self._id)
        except ConfigError as error:
            return error

    def _judged(self, entry: Entry | None, opened: Envelope | ConfigError) -> Verdict:
        run = entry.run if entry else 1
        if isinstance(opened, Envelope):
            run = opened.run
        return classify_message(entry, run, self._hop, self._headers.get(TOKEN_HEADER))

    def _once_more(self, entry: Entry) -> Any:
        """Do again what came of the attempt, as the ledger knows it."""
        if entry.status == "succeeded":
            return entry.result
        if entry.status == "waiting":
            self._send_again(entry)
        self._bury(entry)
        raise JobFailed(entry.why)

    def _attempt(self, envelope: Envelope) -> Any:
        token = self._headers.get(TOKEN_HEADER, "")
        self._note(Entry.of(envelope, self._hop, token, begun=True))
        request = self._task.request
        try:
            made = self._job.attempt(envelope, request.args or (), request.kwargs or {})
            as_json("what a job returns", made.result)
        except Exception as error:  # noqa: BLE001  the job is kept, whatever it is
            self._die(error, envelope.run, envelope.to_dict())
        after = made.envelope
        if self._overtaken(after.run):
            self._drop()
        if after.status == "waiting":
            self._send(after)
        if after.status == "dead":
            why = after.describe()
            self._die(made.error or JobFailed(why), after.run, after.to_dict(), why)
        self._note(Entry.of(after, self._hop + 1, result=made.result))
        return made.result

    def _overtaken(self, run: int) -> bool:
        """Return whether a copy of the message was faster."""
        try:
            entry = newest(self._task.app, self._id)
        except Exception:  # noqa: BLE001  the attempt was made, and is not lost
            return False
        return entry is not None and (entry.run, entry.hop) > (run, self._hop)

    def _send_again(self, entry: Entry) -> NoReturn:
        """Send the next message once more, unless the first one has come."""
        try:
            envelope = Envelope.from_dict(entry.envelope)
        except ConfigError as error:
            self._die(error, entry.run, entry.envelope)
        token = uuid()
        with self._or_put_back():
            name_another(self._task.app, self._id, entry, token)
            sync_clock.sleep(_UNTIL_WRITTEN)
            latest = newest(self._task.app, self._id)
        if latest is not None and latest.token != token:
            self._drop()
        self._send(envelope, token)

    def _send(self, envelope: Envelope, token: str | None = None) -> NoReturn:
        """Send the next message, and let this one be acknowledged."""
        token, hop = token or uuid(), self._hop + 1
        self._note(Entry.of(envelope, hop, token))
        left = envelope.time_left(wall())
        countdown = self._able().next_hold(left) if left > 0 else None
        try:
            with self._or_put_back():
                new = headers(envelope, token)
                sent = again(self._task, new, retries=hop, countdown=countdown)
                sent.apply_async()
        except EncodeError as error:
            self._die(error, envelope.run, envelope.to_dict())
        raise Ignore(envelope.key)

    def _die(
        self, error: Exception, run: int, envelope: object, why: str = ""
    ) -> NoReturn:
        entry = Entry(
            run=run,
            hop=self._hop + 1,
            status="dead",
            token="",
            envelope=envelope,
            result=None,
            why=why or str(error) or repr(error),
        )
        self._note(entry)
        self._bury(entry)
        raise error

    def _bury(self, entry: Entry) -> None:
        with self._or_put_back():
            message = again(self._task, {}, retries=0)
            send_to_dead_letter(
                self._task.app, message, job=self._id, entry=fields_of(entry)
            )

    def _note(self, entry: Entry) -> None:
        try:
            write_entry(self._task.app, self._id, entry)
        except Exception:  # noqa: BLE001  the attempt was made, and is not lost
            # The message carries the job; what it lacks is a guard for a moment.
            _log.exception("%s: the ledger of the job cannot be written", self._id)

    def _drop(self) -> NoReturn:
        msg = f"{self._id}: message {self._hop} is a copy that is left over: dropped"
        _log.warning(msg)
        raise Ignore(msg)

    @contextmanager
    def _or_put_back(self) -> Iterator[None]:
        """Let the message come again, in a while, if this fails."""
        try:
            yield
        except EncodeError:
            raise
        except Exception as error:
            _log.exception("%s: the message comes again", self._id)
            sync_clock.sleep(_PAUSE)
            raise Reject(str(error), requeue=True) from error
