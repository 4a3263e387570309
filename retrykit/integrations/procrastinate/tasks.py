"""Tasks of Procrastinate whose jobs are attempted under a policy, until they end."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, ParamSpec, TypeVar, cast, final

from procrastinate import App, JobContext
from procrastinate.exceptions import UniqueViolation
from procrastinate.jobs import JobDeferrer
from procrastinate.tasks import Task

from retrykit._internal.validation import (
    check_choice,
    check_instance,
    did_you_mean,
    invalid_setting,
)
from retrykit.durable import Envelope, Job
from retrykit.durable.durable_function import DurableFunction, job_of
from retrykit.durable.json_payloads import as_json, from_json
from retrykit.integrations.procrastinate.job_run import (
    RescheduleStrategy,
    run_due_attempt,
)
from retrykit.integrations.procrastinate.settings import RESCUE
from retrykit.integrations.procrastinate.store import CARRIED, STARTED, rows_of
from retrykit.integrations.procrastinate.sync_async import DualCall, Step, arun, run
from retrykit.policy.policy import Policy

__all__ = ["DurableTask", "defer", "found", "task"]

P = ParamSpec("P")
T = TypeVar("T")

_OPTIONS: Final = ("aliases", "priority", "queue", "task_middleware")


@final
class DurableTask(DurableFunction[P, T]):
    """A function that can be started as a job. Called, it is the function.

    Attributes:
        job: What it is under which policy.
        task: The task of Procrastinate. What is deferred through that is attempted
            under the policy, too; the id of such a job is ``name@row``.
    """

    def __init__(self, fn: Callable[P, T], job: Job, task: Task[Any, Any, Any]) -> None:
        super().__init__(fn, job)
        self.task = task

    def start_as(self, job_id: str, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Start a job under this id, unless there is one: it then stays as it is.

        Raises:
            ConfigError: An argument is nothing that JSON can hold.
            TypeError: The function takes no such arguments.
        """
        return run(self._started(job_id, args, kwargs))

    async def astart_as(self, job_id: str, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Start a job under this id, as `start_as` does, from a coroutine."""
        return await arun(self._started(job_id, args, kwargs))

    def _started(
        self, job_id: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> DualCall[str]:
        self._check(args, kwargs)
        if CARRIED in kwargs:
            rule = f"without {CARRIED!r}, under which its history is kept"
            raise invalid_setting(
                "kwargs", rule, kwargs, "give the parameter another name"
            )
        envelope = self.job.envelope(job_id)
        # The index holds for runs that are still there; this one may be an old one.
        known = yield from rows_of(cast("App", self.task.blueprint), job_id)
        if not known:
            yield from defer(self.task.configure(), envelope, args, kwargs)
        return job_id


def task(
    app: App,
    policy: Policy,
    *,
    name: str | None = None,
    previous_names: Iterable[str] = (),
    **options: Any,
) -> Callable[[Callable[P, T]], DurableTask[P, T]]:
    """Make a function, of either colour, a task whose jobs follow a policy.

    Args:
        app: The application, after `prepare`.
        policy: What its jobs are held to.
        name: What it is called in the database; by default its module and its
            name. Give one before you move the function.
        previous_names: The names that the policy had before.
        **options: Options of ``app.task``: aliases, priority, queue.

    Raises:
        ConfigError: The function cannot be retried under that policy, or the
            application would lose jobs.
    """
    check_instance("app", app, App)
    if RESCUE not in app.tasks:
        rule = "one that rescues the jobs of workers that were killed"
        raise invalid_setting("app", rule, app, "call prepare(app) before")
    for option in options:
        suggestion = "its policy retries, and a job that waits would hold its locks"
        check_choice("options", option, _OPTIONS, suggestion)

    def decorate(fn: Callable[P, T]) -> DurableTask[P, T]:
        made = job_of(fn, policy, name, previous_names)
        function = _awaited(made) if made.awaited else _blocking(made)
        attempted = functools.wraps(fn)(function)
        settings: Any = {
            "name": made.name,
            "retry": RescheduleStrategy(made),
            **options,
        }
        registered = app.task(**settings, pass_context=True)(attempted)
        return DurableTask(fn, made, registered)

    return decorate


def found(app: App, name: str) -> tuple[Task[Any, Any, Any], Job]:
    """Return a task of ours, and what it is.

    Raises:
        ConfigError: This process has none of that name.
    """
    imports: Any = app
    imports.perform_import_paths()
    registered = app.tasks.get(name)
    if registered is None or not isinstance(
        registered.retry_strategy, RescheduleStrategy
    ):
        rule = "the name of a durable task that this process has imported"
        raise invalid_setting("task", rule, name, did_you_mean(name, app.tasks))
    return registered, registered.retry_strategy.job


def defer(
    deferrer: JobDeferrer,
    envelope: Envelope,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> DualCall[None]:
    """Let Procrastinate have a job, unless it has it: in one statement of its own."""
    told = as_json("what a job takes", {**kwargs, CARRIED: {"args": list(args)}})
    named = from_json("what a job takes", told)
    named[CARRIED]["envelope"] = envelope.to_dict()
    try:
        yield Step(
            lambda: deferrer.defer(**named), lambda: deferrer.defer_async(**named)
        )
    except UniqueViolation as error:
        if error.constraint_name != STARTED:
            raise


def _blocking(made: Job) -> Callable[..., Any]:
    def attempted(context: JobContext, /, **named: Any) -> Any:
        return run(run_due_attempt(made, context.app, _place(context), named))

    return attempted


def _awaited(made: Job) -> Callable[..., Any]:
    async def attempted(context: JobContext, /, **named: Any) -> Any:
        return await arun(run_due_attempt(made, context.app, _place(context), named))

    return attempted


def _place(context: JobContext) -> int:
    return cast("int", context.job.id)
