"""Procrastinate tasks whose jobs are retried under a policy."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, ParamSpec, TypeVar, cast, final

from procrastinate import App, JobContext
from procrastinate.exceptions import UniqueViolation
from procrastinate.jobs import JobDeferrer
from procrastinate.tasks import Task

from retrykit._core.policy import Policy
from retrykit._internal.validation import (
    check_choice,
    did_you_mean,
    invalid_setting,
)
from retrykit.durable import Envelope, Job
from retrykit.durable._durable_function import DurableFunction, job_of
from retrykit.durable._job import MAX_KILLED
from retrykit.durable._json_payloads import as_json, from_json
from retrykit.integrations.procrastinate._job_run import (
    RescheduleStrategy,
    run_due_attempt,
)
from retrykit.integrations.procrastinate._settings import check_prepared
from retrykit.integrations.procrastinate._store import METADATA, STARTED, find_rows
from retrykit.integrations.procrastinate._sync_async import DualCall, Step, arun, run

__all__ = ["DurableTask", "defer", "find_task", "task"]

P = ParamSpec("P")
T = TypeVar("T")

_OPTIONS: Final = ("aliases", "priority", "queue", "task_middleware")


@final
class DurableTask(DurableFunction[P, T]):
    """A function whose calls can be started as jobs; a direct call is not retried.

    Attributes:
        job: The job: its function, policy and name.
        task: The Procrastinate task. A job that is deferred with it is also retried
            under the policy, and has the id ``name@row``.
    """

    def __init__(self, fn: Callable[P, T], job: Job, task: Task[Any, Any, Any]) -> None:
        super().__init__(fn, job)
        self.task = task

    def start_as(self, job_id: str, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Start a job under this id; an existing job with this id is left unchanged.

        Raises:
            ConfigError: The id is invalid, or an argument is not JSON-serializable, or
                is named ``retrykit``.
            TypeError: The function does not accept these arguments.
        """
        return run(self._start(job_id, args, kwargs))

    async def astart_as(self, job_id: str, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Start a job under this id from a coroutine, as `start_as` does."""
        return await arun(self._start(job_id, args, kwargs))

    def _start(
        self, job_id: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> DualCall[str]:
        self._check(args, kwargs)
        if METADATA in kwargs:
            rule = f"without {METADATA!r}, which stores the history of the job"
            raise invalid_setting(
                "kwargs", rule, kwargs, "give the parameter another name"
            )
        envelope = self.job.envelope(job_id)
        # The index is not enough: the row of an earlier run may have been removed.
        rows = yield from find_rows(cast("App", self.task.blueprint), job_id)
        if not rows:
            yield from defer(self.task.configure(), envelope, args, kwargs)
        return job_id


def task(
    app: App,
    policy: Policy,
    *,
    name: str | None = None,
    previous_names: Iterable[str] = (),
    max_killed: int | None = MAX_KILLED,
    **options: Any,
) -> Callable[[Callable[P, T]], DurableTask[P, T]]:
    """Decorate a function, sync or async, as a task whose jobs are retried.

    Args:
        app: The Procrastinate application, after `prepare`.
        policy: The policy of the jobs.
        name: The name of the task in the database; by default the function's module and
            name. Set one before you move the function.
        previous_names: Former names of the policy.
        max_killed: The number of kills of a worker during the same attempt after which
            the job is dead. Count, >= 1; None means no limit.
        **options: Options of ``app.task``: aliases, priority, queue, task_middleware.

    Raises:
        ConfigError: An argument is invalid, the function cannot be retried under this
            policy, or the application was not prepared.
    """
    check_prepared(app)
    for option in options:
        suggestion = "its policy retries, and a waiting job would hold its locks"
        check_choice("options", option, _OPTIONS, suggestion)

    def decorate(fn: Callable[P, T]) -> DurableTask[P, T]:
        job = job_of(fn, policy, name, previous_names, max_killed)
        function = _async_task(job) if job.awaited else _sync_task(job)
        settings: Any = {"name": job.name, "retry": RescheduleStrategy(job), **options}
        task = app.task(**settings, pass_context=True)(functools.wraps(fn)(function))
        return DurableTask(fn, job, task)

    return decorate


def find_task(app: App, name: str) -> tuple[Task[Any, Any, Any], Job]:
    """Return a durable task and its job.

    Raises:
        ConfigError: This process has not imported a durable task of this name.
    """
    imports: Any = app
    imports.perform_import_paths()
    task = app.tasks.get(name)
    if task is None or not isinstance(task.retry_strategy, RescheduleStrategy):
        rule = "the name of a durable task that this process has imported"
        raise invalid_setting(
            "task", rule, name, did_you_mean(name, app.tasks), code="unknown-name"
        )
    return task, task.retry_strategy.job


def defer(
    deferrer: JobDeferrer,
    envelope: Envelope,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> DualCall[None]:
    """Defer a job to Procrastinate, unless it was deferred before."""
    text = as_json("arguments", {**kwargs, METADATA: {"args": list(args)}})
    task_args = from_json("arguments", text)
    task_args[METADATA]["envelope"] = envelope.to_dict()
    try:
        yield Step(
            lambda: deferrer.defer(**task_args),
            lambda: deferrer.defer_async(**task_args),
        )
    except UniqueViolation as error:
        if error.constraint_name != STARTED:
            raise


def _sync_task(job: Job) -> Callable[..., Any]:
    def task(context: JobContext, /, **kwargs: Any) -> Any:
        return run(run_due_attempt(job, context.app, _row_id(context), kwargs))

    return task


def _async_task(job: Job) -> Callable[..., Any]:
    async def task(context: JobContext, /, **kwargs: Any) -> Any:
        return await arun(run_due_attempt(job, context.app, _row_id(context), kwargs))

    return task


def _row_id(context: JobContext) -> int:
    return cast("int", context.job.id)
