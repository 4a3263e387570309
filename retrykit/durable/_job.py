"""Job definitions: a function, its policy and its name; fingerprints of policies."""

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, final

from retrykit._core.drivers import check_no_hedge, prepare_attempt
from retrykit._core.final_error import check_no_fallback
from retrykit._core.policy import Policy
from retrykit._core.retry_state import RetryState
from retrykit._core.serialization import policy_to_dict
from retrykit._core.settings import SETTINGS
from retrykit._internal.clocks import sync_clock, wall
from retrykit._internal.introspection import is_coroutine_function, qualified_name
from retrykit._internal.loop_clock import async_clock
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    check_text,
    invalid_setting,
    user_facing,
)
from retrykit.durable._envelope import MAX_FAILURES, Envelope
from retrykit.durable._job_attempt import JobAttempt, JobFailed, RunningAttempt
from retrykit.errors import ConfigError
from retrykit.schedules._randomness import new_seed

__all__ = ["MAX_KILLED", "Job", "check_job_policy", "fingerprint"]

MAX_KILLED: Final = 3
"""The default of `Job.max_killed`."""

_log: Final = logging.getLogger("retrykit.durable")


@final
class Job:
    """A function whose calls run as jobs of an engine.

    >>> hourly = Policy(schedule=["1h"], on=ValueError)
    >>> job = Job(int, hourly, "parse")
    >>> envelope = job.envelope("parse-7")
    >>> after = job.attempt(envelope, ["seven"], {}).envelope
    >>> after.status, after.key, round(after.due - after.written)
    ('waiting', 'parse-7:2', 3600)

    Args:
        fn: The function, sync or async.
        policy: The policy of its jobs.
        name: The name of the job in the engine; by default the function's name, with
            its module unless that is ``__main__``.
        previous_names: Former names of the policy, which waiting jobs may still carry.
        max_killed: The number of kills of a worker during the same attempt after which
            the job is dead. Count, >= 1; None means no limit.

    Attributes:
        name: The name of the job in the engine.
        function: The function's name, with its module unless that is ``__main__``.
        awaited: Whether the function is a coroutine function.
        policy: The policy of its jobs, with a name, and `max_failures` at most 20.
        fingerprint: The fingerprint of that policy.
        max_killed: The number of kills of a worker during the same attempt after which
            the job is dead; None means no limit.

    Raises:
        ConfigError: An argument is invalid, or *fn* cannot be retried under *policy*.
    """

    @user_facing
    def __init__(
        self,
        fn: Callable[..., Any],
        policy: Policy,
        name: str | None = None,
        previous_names: Iterable[str] = (),
        max_killed: int | None = MAX_KILLED,
    ) -> None:
        if max_killed is not None:
            check_integer("max_killed", max_killed, at_least=1)
        check_instance("policy", policy, Policy, "write policy=Policy(...)")
        given: object = previous_names
        if isinstance(given, str) or not isinstance(given, Iterable):
            suggestion = "put it in brackets" if isinstance(given, str) else ""
            rule = "a list of names"
            raise invalid_setting("previous_names", rule, given, suggestion)
        check_job_policy(policy)
        self.max_killed = max_killed
        self.function: str = qualified_name(fn)
        self.name: str = check_text("name", self.function if name is None else name)
        self.awaited: bool = is_coroutine_function(fn)
        self.fingerprint: str = fingerprint(policy)
        policy_name = check_text("policy.name", policy.name or self.name)
        self.policy: Policy = policy.replace(
            max_failures=min(policy.max_failures, MAX_FAILURES), name=policy_name
        )
        self._fn = prepare_attempt(self.policy, fn, awaited=self.awaited)
        self._policy_names = {policy_name}
        self._policy_names |= {
            check_text(f"previous_names[{index}]", each)
            for index, each in enumerate(previous_names)
        }

    def __repr__(self) -> str:
        return f"<Job {self.name} under {self.policy!r}>"

    @user_facing
    def envelope(self, job: str, run: int = 1) -> Envelope:
        """Return the envelope of a new job, due now.

        Args:
            job: The id of the job.
            run: The number of this run. Count, >= 1; 2 or more for a requeued job.

        Raises:
            ConfigError: *job* is not a valid id, or *run* is below 1.
        """
        if "#" in check_text("job_id", job):
            suggestion = "'#' marks requeued jobs"
            raise invalid_setting("job_id", "a string without '#'", job, suggestion)
        check_integer("run", run, at_least=1)
        policy, now = self.policy, wall()
        seed = new_seed() if policy.seed is None else policy.seed
        state = RetryState(job, seed, now, policy.max_elapsed, policy.max_failures)
        name = str(policy.name)
        return Envelope(job, name, self.fingerprint, state, now, now, {}, run)

    @user_facing
    def attempt(
        self, envelope: Envelope, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> JobAttempt:
        """Make one attempt, and return its outcome.

        Args:
            envelope: The history so far. Its due time is not checked.
            args: The positional arguments of the function.
            kwargs: Its keyword arguments.

        Raises:
            ConfigError: The job has ended, or the envelope names another policy. No
                attempt was made.
            BaseException: An error that is not an Exception interrupted the attempt,
                which has to be repeated with the same envelope.
        """
        envelope = self._adopt(envelope)
        with RunningAttempt(self.policy, envelope, sync_clock) as running:
            try:
                result = self._fn(*args, **kwargs)
            except Exception as error:  # noqa: BLE001  the policy decides
                running.fail(error)
            else:
                if running.call.succeed(result):
                    running.end(result, None)
                else:
                    running.fail(None, result)
        return running.take_outcome()

    async def aattempt(
        self, envelope: Envelope, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> JobAttempt:
        """Make one attempt of a coroutine function, as `attempt` does."""
        envelope = self._adopt(envelope)
        with RunningAttempt(self.policy, envelope, async_clock) as running:
            try:
                result = await self._fn(*args, **kwargs)
            except Exception as error:  # noqa: BLE001  the policy decides
                await running.afail(error)
            else:
                if await running.call.asucceed(result):
                    running.end(result, None)
                else:
                    await running.afail(None, result)
        return running.take_outcome()

    def check_killed(self, envelope: Envelope, killed: int) -> None:
        """Raise a JobFailed if too many workers were killed during the same attempt.

        >>> job = Job(int, Policy(schedule=["1h"]), "parse")
        >>> job.check_killed(job.envelope("parse-7"), 2)
        >>> try:
        ...     job.check_killed(job.envelope("parse-7"), 3)
        ... except JobFailed as error:
        ...     print(error)
        its worker was killed 3 times in attempt 1

        Args:
            envelope: The history so far.
            killed: How often a worker was killed during the attempt that is due.

        Raises:
            JobFailed: Workers were killed too often. The job must be stored as dead, or
                it would stop its workers forever.
        """
        if self.max_killed is not None and killed >= self.max_killed:
            times = "once" if killed == 1 else f"{killed} times"
            msg = f"its worker was killed {times} in attempt {envelope.attempt}"
            raise JobFailed(msg)

    def _adopt(self, envelope: Envelope) -> Envelope:
        """Return the envelope with the current name and fingerprint of the policy.

        Raises:
            ConfigError: The job does not wait, or the envelope names another policy.
        """
        if envelope.status != "waiting":
            rule, suggestion = "one of a waiting job", "Job.envelope creates a new one"
            raise invalid_setting(
                "envelope", rule, envelope.status, suggestion, code="wrong-state"
            )
        if envelope.policy not in self._policy_names:
            rule = f"{self.policy.name!r}, the policy of {self.name}"
            suggestion = "if it was renamed, add its old name to previous_names=[...]"
            raise invalid_setting(
                "policy", rule, envelope.policy, suggestion, code="wrong-state"
            )
        if envelope.fingerprint != self.fingerprint:
            change = envelope.policy, envelope.fingerprint, self.fingerprint
            _log.warning("%s: policy %s changed from %s to %s", envelope.job, *change)
        name = str(self.policy.name)
        return replace(envelope, policy=name, fingerprint=self.fingerprint)


def check_job_policy(policy: Policy) -> None:
    """Raise a ConfigError if a policy has settings that jobs do not support.

    These are `fallback`, `hedge`, `admission`, `stop_event` and `sleep`.
    """
    check_no_fallback(policy)
    check_no_hedge(policy)
    if policy.admission:
        rule = "empty in a job, whose attempts others begin"
        suggestion = "write with limit.guard(): in the function"
        raise invalid_setting(
            "admission", rule, [*policy.admission], suggestion, code="not-here"
        )
    for name in ("stop_event", "sleep"):
        value = getattr(policy, name)
        if value is not None:
            # A set event would not stop the worker, but end each of its jobs for good.
            rule = "left out in a job, whose delays pass in its engine"
            raise invalid_setting(name, rule, value, code="not-here")


def fingerprint(policy: Policy) -> str:
    """Return a hash of a policy's settings: 16 hexadecimal digits.

    It is the same in every process. The name, the observers, and the settings for
    keeping and redacting failures are left out, since they do not affect retries; so
    are `hint_jitter`, `admission`, `on_refused` and `hedge` if they have their
    defaults. Predicates are included by name.

    >>> fingerprint(Policy(name="a")) == fingerprint(Policy(name="b"))
    True
    >>> fingerprint(Policy()) == fingerprint(Policy(max_attempts=6))
    False
    """
    bare = policy.replace(
        name=None, observers=(), max_failures=2, redact=True, keep_tracebacks=False
    )
    # All of them, since limits may be the defaults or written.
    settings = {name: getattr(bare, name) for name in SETTINGS}
    for name in ("hint_jitter", "admission", "on_refused", "hedge"):
        if settings[name] == getattr(Policy, name):
            # It came later: a waiting job would be logged as one of another policy.
            del settings[name]
    try:
        text = json.dumps(policy_to_dict(settings), sort_keys=True)
    except ConfigError:
        # Memory addresses differ between processes.
        text = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(settings))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
