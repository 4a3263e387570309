"""Functions whose calls can be started as jobs. How one is started is the engine's."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar
from uuid import uuid4

from retrykit._internal.validation import invalid_setting
from retrykit.durable.job import Job
from retrykit.durable.json_payloads import as_json
from retrykit.policy.policy import Policy
from retrykit.policy.timeouts import AsArgument

__all__ = ["DurableFunction", "job_of"]

P = ParamSpec("P")
T = TypeVar("T")


def job_of(
    fn: Callable[..., Any],
    policy: Policy,
    name: str | None,
    previous_names: Iterable[str],
) -> Job:
    """Return a function as a job, of which other processes are to make attempts.

    Raises:
        ConfigError: *fn* cannot be retried, or not under that policy, or not found
            by its name.
    """
    job = Job(fn, policy, name, previous_names)
    if "<" in job.name:
        rule = "a name by which a worker finds the function"
        raise invalid_setting("name", rule, job.name, "write name='verify'")
    limit, first = policy.max_elapsed, policy.schedule.bounds(1)
    early = limit is not None and first is not None and first[0] > limit
    if early and policy.deadline == "stop" and policy.max_attempts != 1:
        rule = "None, or more than the first delay"
        suggestion = "the default, a minute, is for calls"
        raise invalid_setting("max_elapsed", rule, limit, suggestion)
    return job


class DurableFunction(ABC, Generic[P, T]):
    """A function that can be started as a job. Called, it is the function.

    Attributes:
        job: What it is under which policy.
    """

    def __init__(self, fn: Callable[P, T], job: Job) -> None:
        self._fn = fn
        self.job = job

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function: once, here and now, under no policy."""
        return self._fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.job.name}>"

    def start(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Start a job, and return its id.

        Raises:
            ConfigError: An argument is nothing that JSON can hold.
            TypeError: The function takes no such arguments.
        """
        return self.start_as(str(uuid4()), *args, **kwargs)

    async def astart(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Start a job, as `start` does, from a coroutine."""
        return await self.astart_as(str(uuid4()), *args, **kwargs)

    @abstractmethod
    def start_as(self, job_id: str, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Start a job under this id, unless there is one: it then stays as it is.

        Raises:
            ConfigError: An argument is nothing that JSON can hold.
            TypeError: The function takes no such arguments.
        """

    @abstractmethod
    async def astart_as(self, job_id: str, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Start a job under this id, as `start_as` does, from a coroutine."""

    def _check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Check that a job can be attempted with these arguments, by whatever worker.

        Raises:
            ConfigError: An argument is nothing that JSON can hold.
            TypeError: The function takes no such arguments.
        """
        as_json("args", list(args))
        as_json("kwargs", dict(kwargs))
        if not isinstance(self.job.policy.attempt_timeout, AsArgument):
            # That one fills an argument in, which may be a required one.
            inspect.signature(self._fn).bind(*args, **kwargs)
