"""The state of a job, reconstructed from its policy, name and attempt number.

This is for engines that do not keep the state. The result is the same in every process.
"""

import hashlib

from retrykit._core.failures import ErrorRecord
from retrykit._core.policy import Policy
from retrykit._core.retry_state import Failure, RetryState
from retrykit._internal.clocks import wall
from retrykit._internal.validation import invalid_setting
from retrykit.durable._envelope import Envelope
from retrykit.durable._job import Job
from retrykit.schedules._randomness import call_random

__all__ = ["check_replayable", "envelope_for_attempt", "replay_state"]

# Placeholder for the errors of earlier attempts.
_UNKNOWN = ErrorRecord("unknown", "not kept by the engine", "")


def check_replayable(policy: Policy) -> None:
    """Raise a ConfigError if a policy needs the errors of earlier attempts."""
    if policy.rules:
        rule = "empty on an engine that keeps no errors to count"
        suggestion = "list the retried errors in on, and their delays in schedule"
        raise invalid_setting("rules", rule, policy.rules, suggestion, code="not-here")


def replay_state(
    policy: Policy, name: str, attempt: int, epoch: float = 0.0
) -> RetryState:
    """Return the state of a job before one of its attempts.

    The seed is the policy's, or is derived from *name*, so that every process draws the
    same delays. All earlier delays are computed again, in about 3 microseconds each.
    Delays that errors requested are lost.

    >>> from retrykit import Policy, schedules as s
    >>> policy = Policy(schedule=s.decorrelated(1), seed=7)
    >>> replay_state(policy, "job-7", 1).failures
    ()
    >>> state = replay_state(policy, "job-7", 3)
    >>> state.attempt, state.dropped_failures, round(state.failures[-1].delay, 3)
    (2, 1, 3.981)
    """
    seed = policy.seed
    if seed is None:
        # 53 bits, like the seeds of other calls.
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) >> 11
    state = RetryState(name, seed, epoch, policy.max_elapsed, policy.max_failures)
    if attempt == 1:
        return state
    previous = None
    for retry in range(1, attempt):
        random = call_random(seed=seed, retry=retry)
        previous = policy.schedule.delay(retry, previous, random)
    last = Failure(attempt - 1, _UNKNOWN, None, 0.0, 0.0, previous)
    return state._replace(
        attempt=attempt - 1, dropped_failures=attempt - 2, failures=(last,)
    )


def envelope_for_attempt(job: Job, name: str, attempt: int, epoch: float) -> Envelope:
    """Return the envelope of a job before one of its attempts; see `replay_state`."""
    state, now = replay_state(job.policy, name, attempt, epoch), wall()
    counts = {_UNKNOWN.type: attempt - 1} if attempt > 1 else {}
    policy_name = str(job.policy.name)
    return Envelope(name, policy_name, job.fingerprint, state, now, now, counts)
