"""Base class of Celery tasks whose jobs are retried under a policy."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, Final, NoReturn, cast

from celery import Celery, Task
from celery.result import AsyncResult
from celery.utils import uuid

from retrykit._core.policy import Policy
from retrykit._internal.clocks import wall
from retrykit._internal.durations import Duration
from retrykit._internal.validation import check_number, invalid_setting
from retrykit.durable import Capabilities, Envelope, Job
from retrykit.durable._durable_function import job_of
from retrykit.durable._job import MAX_KILLED
from retrykit.durable._json_payloads import as_json
from retrykit.integrations.celery._config_checks import (
    Check,
    capabilities,
    check_route,
    check_time_limit,
    driver,
)
from retrykit.integrations.celery._delivery import Delivery
from retrykit.integrations.celery._job_locks import exclusively
from retrykit.integrations.celery._ledger import (
    LEDGER,
    Entry,
    read_entry,
    write_entry,
    write_message,
)
from retrykit.integrations.celery._lost_jobs import Sweep
from retrykit.integrations.celery._messages import HEADER, build_headers, build_message
from retrykit.integrations.celery._unusable_messages import UnusableMessageHandler

__all__ = ["DurableTask"]

# Attribute of a request that is being handled.
_HANDLED: Final = "retrykit_handled"
# Options that may be positional, after the id.
_MORE: Final = "producer", "link", "link_error", "shadow"
# In bytes; a limit of RabbitMQ.
_MAX_ID: Final = 255


class DurableTask(Task[..., Any]):
    """Base class of a task whose jobs are retried under a policy.

    ::

        @app.task(base=DurableTask, policy=Policy(schedule=["1h"] * 75, ...))
        def verify(hostname): ...

        verify.apply_async(["example.com"], task_id="verify-7")

    A job that a worker has seen is left unchanged if it is sent again under its id.
    ``countdown`` and ``eta`` have no upper limit. Calling the task calls the function
    once. In eager mode, a job is retried in this process, which waits.

    Attributes:
        policy: The policy of its jobs.
        previous_names: Former names of the policy.
        max_killed: The number of kills of a worker during the same attempt after which
            the job is dead. Count, >= 1; None means no limit.
        max_hold: The longest time for which a worker holds a waiting job; by default a
            time that is safe with the broker. A duration, > 0.
    """

    abstract = True
    # Celery logs such errors without a traceback, and the job a line of its own.
    throws: Any = (Exception,)
    acks_late = True
    acks_on_timeout = False
    reject_on_worker_lost: Any = True
    max_retries: Any = None
    policy: ClassVar[Policy | None] = None
    previous_names: ClassVar[Sequence[str]] = ()
    max_killed: ClassVar[int | None] = MAX_KILLED
    max_hold: ClassVar[Duration | None] = None

    @classmethod
    def on_bound(cls, app: Celery) -> None:
        """Check the function and the policy, and add the steps that workers run."""
        cls._job_of(cls.run)
        app.steps["worker"].add(Check)
        app.steps["consumer"].update((UnusableMessageHandler, Sweep))

    @cached_property
    def job(self) -> Job:
        """The job definition: function and policy."""
        return self._job_of(self.run)

    @cached_property
    def capabilities(self) -> Capabilities:
        """The capabilities of the task's app.

        Raises:
            ConfigError: Jobs would be lost or attempted twice.
        """
        return capabilities(self.app, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; in a worker, handle the message of a job.

        In eager mode, a job is a call of the function under the policy.
        """
        request = self.request
        if request.called_directly or hasattr(request, _HANDLED):
            return super().__call__(*args, **kwargs)
        setattr(request, _HANDLED, True)
        if request.is_eager:
            return self.job.policy.call(self.run, *args, **kwargs)
        return Delivery(self, self.job, lambda: self.capabilities).handle()

    def apply_async(
        self,
        args: Any = None,
        kwargs: Any = None,
        task_id: str | None = None,
        *more: Any,
        **options: Any,
    ) -> AsyncResult[Any]:
        """Start a job, unless a worker has already seen one with this id.

        In eager mode, the job runs in this process.

        Raises:
            ConfigError: The app would lose jobs, an argument is not JSON-serializable,
                jobs do not support the id or an option, or another process has been
                starting this job for 10 s.
            TypeError: The function does not accept these arguments.
        """
        send = super().apply_async
        headers = options.pop("headers", None) or {}
        if HEADER in headers or self.app.conf.task_always_eager:
            return send(args, kwargs, task_id, *more, headers=headers, **options)
        self._check(args, kwargs, options)
        envelope = self._build_envelope(task_id or uuid(), options)
        token = uuid()
        named = dict(zip(_MORE, more, strict=False)) | options | {"headers": headers}
        message = build_message(self, args, kwargs, named)
        left = envelope.time_left(wall())
        if left > 0:
            options["countdown"] = self.capabilities.next_hold(left)
        options["headers"] = headers | build_headers(envelope, token)
        with self._lock_id(task_id):
            if task_id is not None and self._exists(task_id):
                return self.AsyncResult(task_id)
            # At once, since a worker may begin it if it was started before.
            write_entry(self.app, envelope.job, Entry.of(envelope, 0, token))
            write_message(self.app, envelope.job, message)
            return send(args, kwargs, envelope.job, *more, **options)

    def retry(self, *_: Any, **__: Any) -> NoReturn:
        """Raise a ConfigError: Celery's own retry would duplicate the job."""
        rule = f"left to the policy of {self.name}"
        suggestion = "raise RetryAfter(delay), or the error itself"
        raise invalid_setting("retry", rule, "retry()", suggestion, code="not-here")

    @classmethod
    def _job_of(cls, run: Any) -> Job:
        policy, former = cast("Policy", cls.policy), cls.previous_names
        job = job_of(run, policy, cls.name, former, cls.max_killed)
        if job.awaited:
            suggestion = "call asyncio.run(...) in it, or use DBOS"
            raise invalid_setting(
                "fn",
                "a sync function on Celery",
                run,
                suggestion,
                code="async-mismatch",
            )
        return job

    def _check(self, args: Any, kwargs: Any, options: dict[str, Any]) -> None:
        as_json("args", list(args or ()))
        as_json("kwargs", dict(kwargs or {}))
        # As Celery does, but before anything of the job is stored; a task that is
        # written as a class has no signature to check.
        check = getattr(self, "__header__", None)
        if self.typing and check is not None:
            check(*(args or ()), **(kwargs or {}))
        expires = options.get("expires", self.expires)
        check_time_limit(self.app, options.get("time_limit", self.time_limit))
        if expires is not None:
            suggestion = "set max_elapsed in its policy, so that it ends as dead"
            raise invalid_setting(
                "expires", "None for a job", expires, suggestion, code="not-here"
            )
        if self.capabilities.min_delay:
            check_route(self.app, options, self.name)

    def _build_envelope(self, job_id: str, options: dict[str, Any]) -> Envelope:
        if len(job_id.encode()) > _MAX_ID or LEDGER in job_id:
            rule = f"at most {_MAX_ID} bytes long, and without {LEDGER!r}"
            raise invalid_setting("task_id", rule, job_id, code="out-of-range")
        envelope = self.job.envelope(job_id)
        countdown, eta = options.pop("countdown", None), options.pop("eta", None)
        if isinstance(eta, datetime) and eta.tzinfo is not None:
            return replace(envelope, due=eta.timestamp())
        if eta is not None:
            rule, suggestion = "an aware datetime", "write datetime.now(UTC)"
            raise invalid_setting("eta", rule, eta, suggestion)
        if countdown is not None:
            due = envelope.written + check_number("countdown", countdown)
            return replace(envelope, due=due)
        return envelope

    def _lock_id(self, task_id: str | None) -> AbstractContextManager[None]:
        """Return a context manager that locks an id against other starts, if needed.

        The lock is not needed without an id, or on Redis, where the time between the
        check of an id and its first write is short.
        """
        if task_id is None or driver(self.app) == "redis":
            return nullcontext()
        return exclusively(self.app, task_id)

    def _exists(self, job_id: str) -> bool:
        """Return whether a job with this id was requeued, or seen by a worker.

        A message that no worker has seen may never have been sent.
        """
        entry = read_entry(self.app, job_id)
        unseen = 1, 0, "waiting"
        return entry is not None and (entry.run, entry.hop, entry.status) != unseen
