"""Tasks of Celery whose runs are attempts under a policy."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, Final, NoReturn, cast

from celery import Celery, Task
from celery.result import AsyncResult
from celery.utils import uuid

from retrykit._internal.clocks import wall
from retrykit._internal.durations import Duration
from retrykit._internal.validation import check_number, invalid_setting
from retrykit.durable import Capabilities, Envelope, Job
from retrykit.durable.durable_function import job_of
from retrykit.durable.json_payloads import as_json
from retrykit.integrations.celery.config_checks import (
    Check,
    capabilities,
    check_route,
    check_time_limit,
)
from retrykit.integrations.celery.delivery import Delivery
from retrykit.integrations.celery.ledger import LEDGER, Entry, newest, write_entry
from retrykit.integrations.celery.messages import HEADER, headers
from retrykit.integrations.celery.unknown_tasks import UnknownTaskHandler
from retrykit.policy.policy import Policy

__all__ = ["DurableTask"]

# What a request is marked with whose attempt has begun.
_BEGUN: Final = "retrykit_begun"
# RabbitMQ takes no longer ones.
_LONGEST_ID: Final = 255


class DurableTask(Task[..., Any]):
    """The base of a task whose jobs are attempted until they end.

    ::

        @app.task(base=DurableTask, policy=Policy(schedule=["1h"] * 75, ...))
        def verify(hostname): ...

        verify.apply_async(["example.com"], task_id="verify-7")

    A job that is sent again under an id that has been taken stays as it is. A
    ``countdown`` and an ``eta`` may be as far away as they like. Called, it is the
    function; in eager mode it is retried in this process, which waits.

    Attributes:
        policy: What its jobs are held to.
        previous_names: The names that the policy had before.
        max_hop: The longest time that a worker holds a job which waits; by
            default what is safe on the broker. A duration, > 0.
    """

    abstract = True
    acks_late = True
    acks_on_timeout = False
    reject_on_worker_lost = True
    max_retries = None
    policy: ClassVar[Policy | None] = None
    previous_names: ClassVar[Sequence[str]] = ()
    max_hop: ClassVar[Duration | None] = None

    @classmethod
    def on_bound(cls, app: Celery) -> None:
        """Check it where it is written, and again when a worker starts."""
        cls._job_of(cls.run)
        app.steps["worker"].add(Check)
        app.steps["consumer"].add(UnknownTaskHandler)

    @cached_property
    def job(self) -> Job:
        """What it is under which policy."""
        return self._job_of(self.run)

    @cached_property
    def capabilities(self) -> Capabilities:
        """What its app can do for its jobs.

        Raises:
            ConfigError: Its jobs would be lost or attempted twice.
        """
        return capabilities(self.app, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; in a worker, make the attempt that is due."""
        request = self.request
        if request.called_directly or hasattr(request, _BEGUN):
            return super().__call__(*args, **kwargs)
        setattr(request, _BEGUN, True)
        if request.is_eager:
            return self.job.policy.call(self.run, *args, **kwargs)
        return Delivery(self, self.job, lambda: self.capabilities).answer()

    def apply_async(
        self,
        args: Any = None,
        kwargs: Any = None,
        task_id: str | None = None,
        *more: Any,
        **options: Any,
    ) -> AsyncResult[Any]:
        """Start a job, as every task is started.

        Raises:
            ConfigError: The app would lose jobs, an argument is nothing that
                JSON can hold, or an option is not for jobs.
        """
        sent = super().apply_async
        given = options.pop("headers", None) or {}
        if HEADER in given or self.app.conf.task_always_eager:
            return sent(args, kwargs, task_id, *more, headers=given, **options)
        self._check(args, kwargs, options)
        envelope = self._envelope(task_id or uuid(), options)
        if task_id is not None and self._taken(task_id):
            return self.AsyncResult(task_id)
        token = uuid()
        write_entry(self.app, envelope.job, Entry.of(envelope, 0, token))
        left = envelope.time_left(wall())
        if left > 0:
            options["countdown"] = self.capabilities.next_hold(left)
        options["headers"] = given | headers(envelope, token)
        return sent(args, kwargs, envelope.job, *more, **options)

    def retry(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse what would make two jobs of one."""
        suggestion = "raise RetryAfter(delay), or the error itself"
        raise invalid_setting(
            "retry", f"left to the policy of {self.name}", "retry()", suggestion
        )

    @classmethod
    def _job_of(cls, run: Any) -> Job:
        job = job_of(run, cast("Policy", cls.policy), cls.name, cls.previous_names)
        if job.awaited:
            suggestion = "write asyncio.run(...) in it, or take DBOS, which awaits"
            raise invalid_setting(
                "fn", "a function that is not async, on Celery", run, suggestion
            )
        return job

    def _check(self, args: Any, kwargs: Any, options: dict[str, Any]) -> None:
        as_json("args", list(args or ()))
        as_json("kwargs", dict(kwargs or {}))
        expires = options.get("expires", self.expires)
        check_time_limit(self.app, options.get("time_limit", self.time_limit))
        if expires is not None:
            suggestion = "give its policy max_elapsed=..., whose end is told"
            raise invalid_setting("expires", "None for a job", expires, suggestion)
        if self.capabilities.min_delay:
            check_route(self.app, options, self.name)

    def _envelope(self, job_id: str, options: dict[str, Any]) -> Envelope:
        if len(job_id.encode()) > _LONGEST_ID or LEDGER in job_id:
            rule = f"of {_LONGEST_ID} bytes at most, and without {LEDGER!r}"
            raise invalid_setting("task_id", rule, job_id)
        envelope = self.job.envelope(job_id)
        countdown, eta = options.pop("countdown", None), options.pop("eta", None)
        if isinstance(eta, datetime) and eta.tzinfo is not None:
            return replace(envelope, due=eta.timestamp())
        if eta is not None:
            raise invalid_setting(
                "eta", "a time with a zone", eta, "write datetime.now(UTC)"
            )
        if countdown is not None:
            due = envelope.written + check_number("countdown", countdown)
            return replace(envelope, due=due)
        return envelope

    def _taken(self, job_id: str) -> bool:
        """Return whether a job of that id is on its way.

        One that no worker has seen may not have been sent to its end.
        """
        entry = newest(self.app, job_id)
        return entry is not None and (entry.hop, entry.status) != (0, "waiting")
