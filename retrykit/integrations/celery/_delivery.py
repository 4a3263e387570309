"""Handling of one delivery of a job's message to a worker.

The message carries the envelope, and is acknowledged last: first the ledger is written,
then the next message is sent. A message whose worker is killed is redelivered:

- Killed before or during the attempt: the attempt is repeated under the same
  idempotency key. The ledger counts how often the attempt began without ending: one
  that kills workers too often (``max_killed``) makes the job dead.
- Killed after the ledger was written: the ledger shows that the attempt was made. The
  next message is sent again under a new token, and an earlier copy of it is dropped
  when it arrives. If a worker already handles that copy, nothing is sent again.
- Killed before Celery stored the result or the error of an ended job: the outcome in
  the ledger is stored.

An attempt during which a worker was killed is repeated only while no other such attempt
runs in the same worker; until then, its message is sent again with a delay.

Nothing loops without a pause: a message that cannot be handled goes to the dead-letter
queue, and one whose successor cannot be sent is requeued after a second.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from traceback import walk_tb
from typing import Any, Final, NoReturn

from celery import Task
from celery.exceptions import Ignore, Reject, WorkerShutdown, WorkerTerminate
from celery.utils import uuid
from kombu.exceptions import EncodeError

from retrykit._internal.clocks import sync_clock, wall
from retrykit._internal.error_texts import safe_str
from retrykit.durable import Capabilities, Envelope, Job, JobFailed
from retrykit.durable._dead_job_logs import describe_dead_job
from retrykit.durable._envelope import read_own_envelope
from retrykit.durable._job_attempt import stopping_failure
from retrykit.durable._json_payloads import as_json
from retrykit.durable._turns import draw_turn_delay, take_turn
from retrykit.errors import ConfigError
from retrykit.integrations.celery._ledger import (
    Entry,
    classify_message,
    killed_run,
    read_entry,
    replace_message,
    write_entry,
    write_message,
)
from retrykit.integrations.celery._messages import (
    HEADER,
    TOKEN_HEADER,
    build_headers,
    copy_message,
    send_to_dead_letter,
)

__all__ = ["Delivery"]

_log: Final = logging.getLogger("retrykit.durable")

# Seconds before a message is requeued after an error of the broker.
_REQUEUE_DELAY: Final = 1.0

# The packages of pools, whose processes and greenlets are ended by an error.
_ENDS_ATTEMPTS: Final = {"billiard", "celery", "eventlet", "gevent", "greenlet"}

# Seconds, longer than another worker takes between reading and writing the ledger.
_LEDGER_DELAY: Final = 5.0


class Delivery:
    """The message that a task is handling."""

    def __init__(
        self,
        task: Task[..., Any],
        job: Job,
        get_capabilities: Callable[[], Capabilities],
    ) -> None:
        self._task, self._job, self._get_capabilities = task, job, get_capabilities
        self._id = str(task.request.id)
        # The number of the message in its run, not of the attempt.
        self._hop = task.request.retries
        self._headers = task.request.headers or {}

    def handle(self) -> Any:
        """Make the attempt if it is due, and return the result of the job.

        Raises:
            Ignore: The job continues with another message, or this one is stale.
            Reject: The message is to be requeued.
            JobFailed: The job has failed. Celery gets no other error of a job, since
                some errors would end the worker.
        """
        with self._requeue_on_error():
            # With unsafe settings the message is requeued, so that no job is lost.
            self._get_capabilities()
            entry = read_entry(self._task.app, self._id)
            killed = killed_run(self._task.app, self._id)
        envelope = self._read_envelope(entry)
        run = entry.run if entry else 1
        if isinstance(envelope, Envelope):
            run = envelope.run
        token = self._headers.get(TOKEN_HEADER)
        verdict = classify_message(entry, run, self._hop, token)
        if verdict == "stale":
            self._drop()
        if verdict == "unsent" and entry is not None:
            return self._repeat_outcome(entry)
        if isinstance(envelope, ConfigError):
            self._fail(envelope, run, entry and entry.envelope)
        if killed >= run:
            self._fail(JobFailed("killed by hand"), run, envelope)
        killed_workers = self._count_killed_workers(entry, envelope)
        if envelope.time_left(wall()) > 0:
            self._send(envelope.rescheduled(wall()), killed=killed_workers)
        if not killed_workers:
            return self._attempt(envelope, 0)
        with take_turn(f"{self._task.app.main} {self._task.request.hostname}") as taken:
            if not taken:
                self._put_off(envelope, killed_workers)
            return self._attempt(envelope, killed_workers)

    def _count_killed_workers(self, entry: Entry | None, envelope: Envelope) -> int:
        """Return how often this attempt began without ending.

        Raises:
            JobFailed: Workers were killed too often during the attempt.
        """
        if entry is None or (entry.run, entry.hop) != (envelope.run, self._hop):
            return 0
        killed = entry.killed + (entry.status == "running")
        if not killed:
            return 0
        try:
            self._job.check_killed(envelope, killed)
        except JobFailed as error:
            self._fail(error, envelope.run, envelope)
        return killed

    def _read_envelope(self, entry: Entry | None) -> Envelope | ConfigError:
        """Return the envelope of the message, or an error if it is invalid.

        A job's first message may have no envelope: it gets the one in the ledger, if
        the attempt began before, or a new one.
        """
        data = self._headers.get(HEADER)
        try:
            if data is not None:
                return read_own_envelope(data, self._id)
            if entry is not None and (entry.run, entry.hop) == (1, 0):
                return read_own_envelope(entry.envelope, self._id, entry.run)
            return self._job.envelope(self._id)
        except ConfigError as error:
            return error

    def _repeat_outcome(self, entry: Entry) -> Any:
        """Repeat the steps that follow an attempt, since the attempt was already made.

        Returns:
            The result, if the attempt succeeded.
        """
        if entry.status == "succeeded":
            return entry.result
        if entry.status == "waiting":
            self._resend(entry)
        self._dead_letter(entry)
        raise JobFailed(entry.reason, self._id)

    def _attempt(self, envelope: Envelope, killed: int) -> Any:
        """Make the attempt, and return its result if it succeeds.

        *killed* is how often workers were killed during this attempt before.
        """
        token = self._headers.get(TOKEN_HEADER, "")
        begun = Entry.of(envelope, self._hop, token, begun=True)
        self._write(begun.replace(killed=killed))
        request = self._task.request
        args, kwargs = request.args or (), request.kwargs or {}
        try:
            attempt = self._job.attempt(envelope, args, kwargs)
            as_json("result", attempt.result)
        except Exception as error:  # noqa: BLE001  any error fails the job
            self._fail(error, envelope.run, envelope)
        except BaseException as error:
            if _is_from_worker(error):
                raise
            self._fail(stopping_failure(error), envelope.run, envelope)
        after = attempt.envelope
        if self._is_overtaken(after.run):
            self._drop()
        if after.status == "waiting":
            self._send(after)
        if after.status == "dead":
            reason = after.describe()
            self._fail(attempt.error, after.run, after, reason)
        self._write(Entry.of(after, self._hop + 1, result=attempt.result))
        return attempt.result

    def _is_overtaken(self, run: int) -> bool:
        """Return whether a duplicate of the message has advanced the job."""
        try:
            entry = read_entry(self._task.app, self._id)
        except Exception:  # noqa: BLE001  the outcome of the attempt must not be lost
            return False
        return entry is not None and (entry.run, entry.hop) > (run, self._hop)

    def _resend(self, entry: Entry) -> NoReturn:
        """Send the next message again, unless its first copy has been delivered."""
        try:
            envelope = read_own_envelope(entry.envelope, self._id, entry.run)
        except ConfigError as error:
            self._fail(error, entry.run, entry.envelope)
        token = uuid()
        with self._requeue_on_error():
            replace_message(self._task.app, self._id, entry, token)
            sync_clock.sleep(_LEDGER_DELAY)
            latest = read_entry(self._task.app, self._id)
        if latest is not None and latest.token != token:
            self._drop()
        self._send(envelope, token, killed=entry.killed)

    def _put_off(self, envelope: Envelope, killed: int) -> NoReturn:
        """Send a message, with a delay, for an attempt that has to wait for its turn.

        Meanwhile, this process can handle other messages.
        """
        self._send(envelope, killed=killed, wait=draw_turn_delay())

    def _send(
        self,
        envelope: Envelope,
        token: str | None = None,
        *,
        killed: int = 0,
        wait: float = 0.0,
    ) -> NoReturn:
        """Send the next message, and let this one be acknowledged.

        Args:
            envelope: The envelope of the next message.
            token: The token of the next message; by default a new one.
            killed: How often the next attempt has begun without ending.
            wait: The minimum delay of the next message, in seconds.

        Raises:
            Ignore: The next message was sent.
            JobFailed: The next message cannot be encoded.
            Reject: The next message cannot be sent; this one is requeued.
        """
        token, hop = token or uuid(), self._hop + 1
        self._write(Entry.of(envelope, hop, token).replace(killed=killed))
        left = max(envelope.time_left(wall()), wait)
        countdown = self._get_capabilities().next_hold(left) if left > 0 else None
        headers = build_headers(envelope, token)
        try:
            with self._requeue_on_error():
                message = copy_message(
                    self._task, headers, retries=hop, countdown=countdown
                )
                # Again, so that it does not expire before the ledger.
                self._store(write_message, message)
                message.apply_async()
        except EncodeError as error:
            self._fail(error, envelope.run, envelope)
        raise Ignore(envelope.key)

    def _fail(
        self, error: Exception | None, run: int, envelope: object, reason: str = ""
    ) -> NoReturn:
        reason = reason or safe_str(error) or type(error).__name__
        if isinstance(envelope, Envelope):
            # It shows when the job ended.
            envelope = replace(envelope, written=wall()).to_dict()
        entry = Entry.dead(run, self._hop + 1, envelope, reason)
        self._write(entry)
        self._dead_letter(entry)
        _log.error(describe_dead_job(self._id, reason))
        raise JobFailed(reason, self._id) from error

    def _dead_letter(self, entry: Entry) -> None:
        with self._requeue_on_error():
            message = copy_message(self._task, {}, retries=0)
            send_to_dead_letter(self._task.app, message, self._id, entry)

    def _write(self, entry: Entry) -> None:
        self._store(write_entry, entry)

    def _store(self, write: Callable[..., None], value: object) -> None:
        try:
            write(self._task.app, self._id, value)
        except Exception:  # noqa: BLE001  the outcome of the attempt must not be lost
            # The message carries the job; until the next write duplicates go unnoticed.
            _log.exception("%s: cannot write the ledger of the job", self._id)

    def _drop(self) -> NoReturn:
        msg = f"{self._id}: dropped message {self._hop}, a stale duplicate"
        _log.warning(msg)
        raise Ignore(msg)

    @contextmanager
    def _requeue_on_error(self) -> Iterator[None]:
        """Requeue the message after a pause, unless the error is an EncodeError."""
        try:
            yield
        except EncodeError:
            raise
        except Exception as error:
            _log.exception("%s: requeued the message", self._id)
            sync_clock.sleep(_REQUEUE_DELAY)
            raise Reject(str(error), requeue=True) from error


def _is_from_worker(error: BaseException) -> bool:
    """Return whether an error in an attempt comes from its worker, which is ending."""
    if isinstance(error, WorkerShutdown | WorkerTerminate):
        return True
    *_, (frame, _) = walk_tb(error.__traceback__)
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package in _ENDS_ATTEMPTS
