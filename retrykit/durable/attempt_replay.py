"""Jobs of which an engine keeps the number of the attempt, and nothing else.

What can be known of such a job is worked out again from its name and that
number: the same in every process.
"""

import hashlib

from retrykit._internal.clocks import wall
from retrykit._internal.validation import invalid_setting
from retrykit.durable.envelope import Envelope
from retrykit.durable.job import Job
from retrykit.policy.policy import Policy
from retrykit.schedules.randomness import call_random
from retrykit.state.records import ErrorRecord
from retrykit.state.retry_state import Failure, RetryState

__all__ = ["check_replayable", "envelope_for_attempt", "replay_state"]

# What stands for the errors of earlier attempts.
_UNKNOWN = ErrorRecord("unknown", "only its number was kept", "")


def check_replayable(policy: Policy) -> None:
    """Check that a policy can be held to where only a number is kept.

    Raises:
        ConfigError: It has rules, which count the errors of each kind.
    """
    if policy.rules:
        rule = "left out where the engine keeps no errors to be counted"
        suggestion = "name what is retried in on, and its delays in schedule"
        raise invalid_setting("rules", rule, policy.rules, suggestion)


def replay_state(
    policy: Policy, name: str, attempt: int, epoch: float = 0.0
) -> RetryState:
    """Return the state of a job before an attempt of which the number is known.

    The seed is made of the name, so that every process draws the same delays.
    The delay before is worked out again, from the first one on: some 3
    microseconds for each attempt. What was asked for by errors, in place of the
    schedule's delays, is not known.

    >>> from retrykit import Policy, schedules as s
    >>> policy = Policy(schedule=s.decorrelated(1), seed=7)
    >>> replay_state(policy, "job-7", 1).failures
    ()
    >>> state = replay_state(policy, "job-7", 3)
    >>> state.attempt, state.dropped_failures, round(state.failures[-1].delay, 3)
    (2, 1, 3.981)

    Args:
        policy: What the job is held to.
        name: What tells the job from all others.
        attempt: The number of the attempt that is made next, from 1.
        epoch: When the job began, by the wall clock, in seconds since 1970.
    """
    digest = hashlib.sha256(name.encode()).digest()
    # As large as those that are drawn: 53 bits.
    drawn = int.from_bytes(digest[:8]) >> 11
    seed = drawn if policy.seed is None else policy.seed
    state = RetryState(name, seed, epoch, policy.max_elapsed, policy.max_failures)
    if attempt == 1:
        return state
    previous = None
    for retry in range(1, attempt):
        previous = policy.schedule.delay(
            retry, previous, call_random(seed=seed, retry=retry)
        )
    state.attempt, state.dropped_failures = attempt - 1, attempt - 2
    state.failures = (Failure(attempt - 1, _UNKNOWN, None, 0.0, 0.0, previous),)
    return state


def envelope_for_attempt(job: Job, name: str, attempt: int, epoch: float) -> Envelope:
    """Return the envelope of a job before an attempt that is due.

    Args:
        job: Its function and its policy.
        name: What tells the job from all others: its id.
        attempt: The number of that attempt, from 1.
        epoch: When the job began, by the wall clock, in seconds since 1970.
    """
    state, now = replay_state(job.policy, name, attempt, epoch), wall()
    counts = {_UNKNOWN.type: attempt - 1} if attempt > 1 else {}
    return Envelope(
        name, str(job.policy.name), job.fingerprint, state, now, now, counts
    )
