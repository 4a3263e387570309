"""Functions that run as durable jobs, and the workflow that makes each attempt.

Each attempt is a workflow whose id is the idempotency key of the attempt: ``job:1``,
``job:2``. It makes the attempt and records its outcome in a step, and enqueues the next
attempt with its delay. A waiting job is only a row in the database, and any process may
take it when it is due.

If a process is killed before the step is recorded, the attempt is repeated under the
same key. If it is killed afterwards, the recorded outcome is used. The next attempt is
enqueued only once, since its workflow id is fixed.
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

from retrykit._core.policy import Policy
from retrykit._internal.clocks import wall
from retrykit._internal.validation import did_you_mean, invalid_setting
from retrykit.durable import Envelope, Job, JobAttempt, JobFailed
from retrykit.durable._durable_function import DurableFunction, job_of
from retrykit.durable._envelope import read_own_envelope
from retrykit.durable._job import MAX_KILLED
from retrykit.durable._job_attempt import protect_worker
from retrykit.durable._json_payloads import as_json
from retrykit.errors import ConfigError
from retrykit.integrations.dbos._killed_attempts import (
    arepeat_alone,
    repeat_alone,
    until_recorded,
)
from retrykit.integrations.dbos._settings import QUEUE, check_launched

__all__ = ["WORKFLOW", "DurableJob", "check_jobs", "check_own", "enqueue", "find_job"]
__all__ += ["job"]

P = ParamSpec("P")
T = TypeVar("T")

WORKFLOW: Final = "retrykit.job"
"""The name of the workflow that makes an attempt.

A workflow with other steps needs another name: new code replays interrupted workflows.
"""

_FORMAT: Final = WorkflowSerializationFormat.PORTABLE

_jobs: dict[str, Job] = {}


@final
class DurableJob(DurableFunction[P, T]):
    """A function whose calls can be started as jobs; a direct call is not retried."""

    def start_as(self, job_id: str, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Start a job under this id, and return the id.

        If a job with this id exists, it is left unchanged.

        Raises:
            ConfigError: The id is invalid, an argument is not JSON-serializable, or
                DBOS is not launched.
            TypeError: The function does not accept these arguments.
        """
        self._check(args, kwargs)
        return _job_id(enqueue(self.job, self.job.envelope(job_id), args, kwargs))

    async def astart_as(self, job_id: str, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Start a job under this id from a coroutine, as `start_as` does."""
        self._check(args, kwargs)
        return _job_id(
            await _aenqueue(self.job, self.job.envelope(job_id), args, kwargs)
        )


def job(
    policy: Policy,
    *,
    name: str | None = None,
    previous_names: Iterable[str] = (),
    max_killed: int | None = MAX_KILLED,
) -> Callable[[Callable[P, T]], DurableJob[P, T]]:
    """Decorate a function, sync or async, so that its calls can be started as jobs.

    Args:
        policy: The policy of the jobs.
        name: The name of the jobs in the database; by default the function's module and
            name. Set one before you move the function.
        previous_names: Former names of the policy.
        max_killed: The number of kills of a worker during the same attempt after which
            the job is dead. Count, >= 1; None means no limit.

    Raises:
        ConfigError: An argument is invalid, the function cannot be retried under this
            policy, or another function has the same name.
    """

    def decorate(fn: Callable[P, T]) -> DurableJob[P, T]:
        job = job_of(fn, policy, name, previous_names, max_killed)
        if job.name in _jobs and _jobs[job.name].function != job.function:
            raise invalid_setting(
                "name", "the name of one function only", job.name, code="contradiction"
            )
        _jobs[job.name] = job
        return DurableJob(fn, job)

    return decorate


def find_job(name: str) -> Job:
    """Return the job with a name.

    Raises:
        ConfigError: This process has not imported such a job.
    """
    if name not in _jobs:
        rule = "the name of a job that this process has imported"
        suggestion = did_you_mean(name, _jobs) or "import its module before listen(...)"
        raise invalid_setting("job", rule, name, suggestion, code="unknown-name")
    return _jobs[name]


def check_jobs() -> None:
    """Raise an error if this process has imported no jobs."""
    if not _jobs:
        rule = "imported before listen(...), or due jobs would be marked as dead"
        raise invalid_setting(
            "jobs",
            rule,
            None,
            "import the modules that define them",
            code="wrong-state",
        )


def enqueue(
    job: Job, envelope: Envelope, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str:
    """Enqueue an attempt, and return its key.

    The attempt inherits neither the timeout nor the enqueue options of the workflow in
    which this is called.
    """
    check_launched()
    if DBOS.step_status is not None:
        # A step must not start workflows, but a job may start another one.
        return Context().run(enqueue, job, envelope, args, kwargs)
    parts = job.name, envelope.to_dict(), args, kwargs
    with SetWorkflowTimeout(None), SetEnqueueOptions():
        handle = DBOS.enqueue_workflow_with_options(_options(envelope), *parts)
    return handle.get_workflow_id()


async def _aenqueue(
    job: Job, envelope: Envelope, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str:
    check_launched()
    if DBOS.step_status is not None:
        inner = _aenqueue(job, envelope, args, kwargs)
        return await asyncio.create_task(inner, context=Context())
    parts = job.name, envelope.to_dict(), args, kwargs
    with SetWorkflowTimeout(None), SetEnqueueOptions():
        enqueued = DBOS.enqueue_workflow_with_options_async(_options(envelope), *parts)
        return (await enqueued).get_workflow_id()


def _options(envelope: Envelope) -> EnqueueOptions:
    # No application version, so that waiting jobs continue after a deploy.
    options: EnqueueOptions = {
        "workflow_name": WORKFLOW,
        "queue_name": QUEUE,
        "workflow_id": envelope.key,
        "serialization_type": _FORMAT,
    }
    left = envelope.time_left(wall())
    if left > 0:
        options["delay_seconds"] = left
    return options


def _job_id(key: str) -> str:
    # A replayed workflow gets the key of the job that it started before.
    return key.removesuffix(":1")


@DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None, serialization_type=_FORMAT)
async def _attempt(
    name: str, stored: object, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    workflow_id = str(DBOS.workflow_id)
    try:
        return await _run_attempt(workflow_id, name, stored, args, kwargs)
    except (ConfigError, JobFailed) as error:
        job_id = workflow_id.rpartition(":")[0].partition("#")[0]
        raise JobFailed(str(error), job_id) from error


async def _run_attempt(
    workflow_id: str,
    name: str,
    stored: object,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> dict[str, Any]:
    # One workflow for both kinds of functions: a deploy may make one async.
    job, envelope = find_job(name), Envelope.from_dict(stored)
    check_own(envelope, workflow_id)
    place = workflow_id, job, envelope

    def step() -> dict[str, Any]:
        with repeat_alone(*place), protect_worker():
            return _checkpoint(job.attempt(envelope, args, kwargs))

    async def astep() -> dict[str, Any]:
        async with arepeat_alone(*place):
            with protect_worker():
                return _checkpoint(await job.aattempt(envelope, args, kwargs))

    run: Callable[..., Any] = astep if job.awaited else step
    with until_recorded(workflow_id):
        outcome: dict[str, Any] = await DBOS.run_step_async({"name": name}, run)
    after = read_own_envelope(outcome["envelope"], envelope.job, envelope.run)
    if after.status == "waiting":
        return {"next": await _aenqueue(job, after, args, kwargs)}
    if after.status == "succeeded":
        return outcome
    raise JobFailed(after.describe())


def check_own(envelope: Envelope, workflow_id: str) -> None:
    """Raise an error if an envelope does not belong to the attempt of a workflow.

    A workflow that was forked by hand passes: its id does not show the attempt.
    """
    # A workflow that was forked by hand has an id from DBOS.
    if workflow_id.rpartition(":")[2].isdecimal() and envelope.key != workflow_id:
        rule = f"that of the attempt {workflow_id}, with which it is stored"
        raise invalid_setting("envelope", rule, envelope.key, code="damaged-data")


def _checkpoint(attempt: JobAttempt) -> dict[str, Any]:
    as_json("result", attempt.result)
    return {"envelope": attempt.envelope.to_dict(), "result": attempt.result}
