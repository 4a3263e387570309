"""Base class of functions whose calls can be started as jobs."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar
from uuid import uuid4

from retrykit._core.policy import Policy
from retrykit._core.timeouts import AsArgument
from retrykit._internal.validation import invalid_setting
from retrykit.durable._job import MAX_KILLED, Job
from retrykit.durable._json_payloads import as_json

__all__ = ["DurableFunction", "job_of"]

P = ParamSpec("P")
T = TypeVar("T")


def job_of(
    fn: Callable[..., Any],
    policy: Policy,
    name: str | None,
    previous_names: Iterable[str],
    max_killed: int | None = MAX_KILLED,
) -> Job:
    """Return the job definition of a function.

    Raises:
        ConfigError: Workers could not find the function by its name, it cannot be
            retried under *policy*, or an argument is invalid.
    """
    job = Job(fn, policy, name, previous_names, max_killed)
    if "<" in job.name:
        rule = "a name by which a worker can find the function"
        raise invalid_setting("name", rule, job.name, "write name='verify'")
    return job


class DurableFunction(ABC, Generic[P, T]):
    """A function whose calls can be started as jobs.

    Attributes:
        job: The job: its function, policy and name.
    """

    def __init__(self, fn: Callable[P, T], job: Job) -> None:
        self._fn = fn
        self.job = job

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function directly, without retries."""
        return self._fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.job.name}>"

    def start(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Start a job, and return its id.

        Raises:
            ConfigError: An argument is not JSON-serializable, or the engine refuses
                the job.
            TypeError: The function does not accept these arguments.
        """
        return self.start_as(str(uuid4()), *args, **kwargs)

    async def astart(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Start a job from a coroutine, as `start` does."""
        return await self.astart_as(str(uuid4()), *args, **kwargs)

    @abstractmethod
    def start_as(self, job_id: str, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Start a job under this id; an existing job with this id is left unchanged.

        Raises:
            ConfigError: The id is invalid, an argument is not JSON-serializable, or
                the engine refuses the job.
            TypeError: The function does not accept these arguments.
        """

    @abstractmethod
    async def astart_as(self, job_id: str, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Start a job under this id from a coroutine, as `start_as` does."""

    def _check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raise an error if workers cannot call the function with these arguments.

        Raises:
            ConfigError: An argument is not JSON-serializable.
            TypeError: The function does not accept the arguments. This is not checked
                if `AsArgument` adds one.
        """
        as_json("args", list(args))
        as_json("kwargs", dict(kwargs))
        # AsArgument adds an argument later, which may be a required one.
        if not isinstance(self.job.policy.attempt_timeout, AsArgument):
            inspect.signature(self._fn).bind(*args, **kwargs)
