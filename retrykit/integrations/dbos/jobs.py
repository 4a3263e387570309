"""Functions whose calls are durable jobs, and the workflows that make attempts.

Every attempt is a workflow, whose id is the idempotency key of the attempt:
``job:1``, ``job:2``. It has two steps: to make the attempt and keep what came of
it, and to enqueue the next one with its delay. While a job waits it is a row in
the database and nothing else, and any process may take it when its time has come.

A process that is killed before the first step is kept has made half an attempt,
which is made again under the same key. One that is killed after it makes none
again: what came of the attempt is read, and only what follows is done, once,
since the next workflow can only be under the one id that it has.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import Context
from typing import Any, Final, ParamSpec, TypeVar, final

from dbos import (
    DBOS,
    EnqueueOptions,
    SetEnqueueOptions,
    SetWorkflowTimeout,
    WorkflowSerializationFormat,
)

from retrykit._internal.clocks import wall
from retrykit._internal.validation import did_you_mean, invalid_setting
from retrykit.durable import Envelope, Job, JobAttempt, JobFailed
from retrykit.durable.durable_function import DurableFunction, job_of
from retrykit.durable.json_payloads import as_json
from retrykit.durable.worker_exit_guard import protect_worker
from retrykit.integrations.dbos.settings import QUEUE, check_launched
from retrykit.policy.policy import Policy

__all__ = ["WORKFLOW", "DurableJob", "check_jobs", "enqueue", "found", "job"]

P = ParamSpec("P")
T = TypeVar("T")

WORKFLOW: Final = "retrykit.job"
"""What the workflow is called that makes an attempt.

What it does step by step must not change under this name: one that was
interrupted is replayed by whatever code there is then."""

_FORM: Final = WorkflowSerializationFormat.PORTABLE

_jobs: dict[str, Job] = {}


@final
class DurableJob(DurableFunction[P, T]):
    """A function that can be started as a job. Called, it is the function.

    Attributes:
        job: What it is under which policy.
    """

    def start_as(self, job_id: str, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Start a job under this id, unless there is one: it then stays as it is.

        Raises:
            ConfigError: An argument is nothing that JSON can hold.
            TypeError: The function takes no such arguments.
        """
        self._check(args, kwargs)
        return _id(enqueue(self.job, self.job.envelope(job_id), args, kwargs))

    async def astart_as(self, job_id: str, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Start a job under this id, as `start_as` does, from a coroutine."""
        self._check(args, kwargs)
        return _id(await _aenqueue(self.job, self.job.envelope(job_id), args, kwargs))


def job(
    policy: Policy, *, name: str | None = None, previous_names: Iterable[str] = ()
) -> Callable[[Callable[P, T]], DurableJob[P, T]]:
    """Make a function, of either colour, one that can be started as a job.

    Args:
        policy: What its jobs are held to.
        name: What it is called in the database; by default its module and its
            name. Give one before you move the function.
        previous_names: The names that the policy had before.

    Raises:
        ConfigError: The function cannot be retried under that policy, or another
            one has its name.
    """

    def decorate(fn: Callable[P, T]) -> DurableJob[P, T]:
        made = job_of(fn, policy, name, previous_names)
        if made.name in _jobs and _jobs[made.name].function != made.function:
            raise invalid_setting("name", "the name of one function only", made.name)
        _jobs[made.name] = made
        return DurableJob(fn, made)

    return decorate


def found(name: str) -> Job:
    """Return the job of a name.

    Raises:
        ConfigError: This process has none.
    """
    if name not in _jobs:
        rule = "the name of a job that this process has imported"
        suggestion = did_you_mean(name, _jobs) or "import its module before listen(...)"
        raise invalid_setting("job", rule, name, suggestion)
    return _jobs[name]


def check_jobs() -> None:
    """Check that this process has jobs of which it could make attempts.

    Raises:
        ConfigError: It has none: all that is due would die.
    """
    if not _jobs:
        rule = "imported before a process listens, or all that are due would die"
        raise invalid_setting("jobs", rule, None, "import the modules that have them")


def enqueue(
    made: Job, envelope: Envelope, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str:
    """Let an attempt be made when it is due, and return its key.

    A job has its policy, and no timeout and no options of whoever starts it.
    """
    check_launched()
    if DBOS.step_status is not None:
        # A step starts no workflow, but a job is free to start another one.
        return Context().run(enqueue, made, envelope, args, kwargs)
    parts = made.name, envelope.to_dict(), args, kwargs
    with SetWorkflowTimeout(None), SetEnqueueOptions():
        handle = DBOS.enqueue_workflow_with_options(_options(envelope), *parts)
    return handle.get_workflow_id()


async def _aenqueue(
    made: Job, envelope: Envelope, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str:
    check_launched()
    if DBOS.step_status is not None:
        inner = _aenqueue(made, envelope, args, kwargs)
        return await asyncio.create_task(inner, context=Context())
    parts = made.name, envelope.to_dict(), args, kwargs
    with SetWorkflowTimeout(None), SetEnqueueOptions():
        enqueued = DBOS.enqueue_workflow_with_options_async(_options(envelope), *parts)
        return (await enqueued).get_workflow_id()


def _options(envelope: Envelope) -> EnqueueOptions:
    # Without a version: a job that waits goes on under the next deploy.
    options: EnqueueOptions = {
        "workflow_name": WORKFLOW,
        "queue_name": QUEUE,
        "workflow_id": envelope.key,
        "serialization_type": _FORM,
    }
    left = envelope.time_left(wall())
    if left > 0:
        options["delay_seconds"] = left
    return options


def _id(key: str) -> str:
    # In a workflow that is replayed it is the id of the job that it has started.
    return key.removesuffix(":1")


@DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None, serialization_type=_FORM)
async def _attempt(
    name: str, kept: object, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    # One for both colours, so that a function may change its colour in a deploy.
    made, envelope = found(name), Envelope.from_dict(kept)

    def step() -> dict[str, Any]:
        with protect_worker():
            return _checkpoint(made.attempt(envelope, args, kwargs))

    async def astep() -> dict[str, Any]:
        with protect_worker():
            return _checkpoint(await made.aattempt(envelope, args, kwargs))

    run: Callable[..., Any] = astep if made.awaited else step
    came = await DBOS.run_step_async({"name": name}, run)
    after = Envelope.from_dict(came["envelope"])
    if after.status != "waiting":
        return _ended(after, came)
    return {"next": await _aenqueue(made, after, args, kwargs)}


def _checkpoint(came: JobAttempt) -> dict[str, Any]:
    as_json("what a job returns", came.result)
    return {"envelope": came.envelope.to_dict(), "result": came.result}


def _ended(after: Envelope, came: dict[str, Any]) -> dict[str, Any]:
    if after.status == "succeeded":
        return came
    raise JobFailed(after.describe())
