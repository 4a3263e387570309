"""A function that is a job: under which policy, and how an attempt is made."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, final

from retrykit._internal.clocks import wall
from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.validation import check_instance, check_integer, invalid_setting
from retrykit.durable.compaction import MOST_FAILURES
from retrykit.durable.envelope import Envelope
from retrykit.durable.fingerprint import fingerprint
from retrykit.durable.job_attempt import JobAttempt, aattempt, attempt
from retrykit.execution.callables import qualified_name
from retrykit.execution.drivers import prepare_attempt
from retrykit.policy.policy import Policy
from retrykit.schedules.randomness import new_seed
from retrykit.state.retry_state import RetryState

__all__ = ["Job"]

_log: Final = logging.getLogger("retrykit.durable")


@final
class Job:
    """A function whose calls are jobs of an engine, each attempted until it ends.

    >>> hourly = Policy(schedule=["1h"], max_elapsed=None, on=ValueError)
    >>> job = Job(int, hourly, "parse")
    >>> envelope = job.envelope("parse-7")
    >>> after = job.attempt(envelope, ["seven"], {}).envelope
    >>> after.status, after.key, round(after.due - after.written)
    ('waiting', 'parse-7:2', 3600)

    Args:
        fn: The function, of either colour.
        policy: What its jobs are held to.
        name: What it is called in the engine; by default its module and name.
        previous_names: The names that its policy had before, under which jobs may
            still wait.

    Attributes:
        name: What it is called.
        function: The module and the name of the function.
        awaited: Whether it is a coroutine function.
        policy: What its jobs are held to.
        fingerprint: What that policy is now.

    Raises:
        ConfigError: *fn* cannot be retried, or not under that policy.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        policy: Policy,
        name: str | None = None,
        previous_names: Iterable[str] = (),
    ) -> None:
        check_instance("policy", policy, Policy, "write policy=Policy(...)")
        if isinstance(previous_names, str) or not isinstance(previous_names, Iterable):
            raise invalid_setting(
                "previous_names",
                "a list of names",
                previous_names,
                "put it in brackets",
            )
        self.function = qualified_name(fn)
        self.name = _text("name", self.function if name is None else name)
        self.awaited = is_coroutine_function(fn)
        self.fingerprint = fingerprint(policy)
        most = min(policy.max_failures, MOST_FAILURES)
        named = _text("policy.name", policy.name or self.name)
        self.policy = policy.replace(max_failures=most, name=named)
        self._fn = prepare_attempt(self.policy, fn, awaited=self.awaited)
        self._known = {
            named,
            *(_text("previous_names", former) for former in previous_names),
        }

    def __repr__(self) -> str:
        return f"<Job {self.name} under {self.policy!r}>"

    def envelope(self, job: str, run: int = 1) -> Envelope:
        """Return the envelope of a job that is due now.

        Args:
            job: Its id.
            run: How often it was begun, this time included. Count, >= 1.

        Raises:
            ConfigError: *job* is no text that can be an id, or *run* no such count.
        """
        if "#" in _text("job_id", job):
            suggestion = "it is the sign of a job that was queued again"
            raise invalid_setting("job_id", "a text without a '#'", job, suggestion)
        check_integer("run", run, at_least=1)
        policy, now = self.policy, wall()
        seed = new_seed() if policy.seed is None else policy.seed
        state = RetryState(job, seed, now, policy.max_elapsed, policy.max_failures)
        name = str(policy.name)
        return Envelope(job, name, self.fingerprint, state, now, now, {}, run)

    def attempt(
        self, envelope: Envelope, args: Sequence[Any], kw: Mapping[str, Any]
    ) -> JobAttempt:
        """Make the attempt that is due, and return what came of it.

        Args:
            envelope: The history until now. Whether it is due is not asked.
            args: What the function is called with.
            kw: What it is called with by name.

        Raises:
            ConfigError: The job has ended, or the policy that the envelope names
                is not known here: no attempt was made.
            BaseException: What is no Exception: the attempt was not made to its
                end, and is to be made again with the same envelope.
        """
        followed = self._followed(envelope)
        return attempt(self.policy, self._fn, followed, *args, **kw)

    async def aattempt(
        self, envelope: Envelope, args: Sequence[Any], kw: Mapping[str, Any]
    ) -> JobAttempt:
        """Make the attempt that is due, and await it, as `attempt` does."""
        followed = self._followed(envelope)
        return await aattempt(self.policy, self._fn, followed, *args, **kw)

    def _followed(self, envelope: Envelope) -> Envelope:
        """Return the envelope of a job that follows this policy from now on."""
        if envelope.status != "waiting":
            suggestion = "Job.envelope makes one with which it begins anew"
            raise invalid_setting(
                "envelope", "of a job that waits", envelope.status, suggestion
            )
        if envelope.policy not in self._known:
            rule = f"the name of the policy of {self.name}"
            suggestion = (
                f"it is {self.policy.name!r} now: name it in previous_names=[...]"
            )
            raise invalid_setting("policy", rule, envelope.policy, suggestion)
        if envelope.fingerprint != self.fingerprint:
            told = envelope.job, envelope.policy, envelope.fingerprint, self.fingerprint
            _log.warning("%s: policy %s was %s and is %s from now on", *told)
        name = str(self.policy.name)
        return replace(envelope, policy=name, fingerprint=self.fingerprint)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise invalid_setting(name, "a non-empty string", value)
    if not value.isprintable():
        raise invalid_setting(name, "a text that can be printed", value)
    return value
