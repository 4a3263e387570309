"""Policies of job queues in Python."""

from typing import Annotated, cast

from retrykit._core.policy import Policy
from retrykit.presets._form import (
    Attempts,
    Flag,
    Growth,
    Retries,
    Wait,
    Waits,
    add_random,
    between,
    job_policy,
    preset,
)
from retrykit.schedules import constant, exponential, linear, sequence

__all__ = ["dbos_step", "huey", "procrastinate", "rq", "taskiq"]


@preset
def dbos_step(
    *, interval_seconds: Wait = 1, max_attempts: Attempts = 3, backoff_rate: Growth = 2
) -> Policy:
    """Return the retries of a DBOS step that has ``retries_allowed``.

    The delay of retry n is ``interval_seconds * backoff_rate ** (n - 1)``, at most 1 h.

    >>> dbos_step().schedule
    exponential(1.0, factor=2.0).cap(3600.0)

    Args:
        interval_seconds: Delay before the first retry. A duration, >= 0.
        max_attempts: Maximum number of attempts, including the first. Count, >= 1.
        backoff_rate: Growth of the delay. Dimensionless, >= 1.

    Source:
        `DBOS.step`, code of dbos 3.4.
    """
    delays = exponential(interval_seconds, factor=backoff_rate).cap("1h")
    return job_policy(max_attempts - 1, delays)


@preset
def huey(
    *, retries: Retries = 0, retry_delay: Wait = 0, retry_backoff: Growth = 1
) -> Policy:
    """Return the retries of a Huey task.

    The delay of retry n is ``retry_delay * retry_backoff ** (n - 1)``.

    >>> [*huey(retries=3, retry_delay=10, retry_backoff=2).schedule.take(3).draw()]
    [10.0, 20.0, 40.0]

    Args:
        retries: Maximum number of retries. Count, >= 0.
        retry_delay: Delay before the first retry. A duration, >= 0.
        retry_backoff: Growth of the delay. Dimensionless, >= 1; 1, like Huey's own
            default of 0, means no growth.

    Source:
        `Huey.task`, code of Huey 3.5.
    """
    return job_policy(retries, exponential(retry_delay, factor=retry_backoff))


@preset
def procrastinate(
    *,
    max_attempts: Retries = 0,
    wait: Retries = 0,
    linear_wait: Retries = 0,
    exponential_wait: Retries = 0,
) -> Policy:
    """Return the retries of Procrastinate's `RetryStrategy`.

    The delay of retry n is ``wait + linear_wait * (n - 1) + exponential_wait ** n``
    seconds: by default retries are immediate and endless. Despite its name,
    *max_attempts* is a number of retries.

    >>> policy = procrastinate(max_attempts=3, wait=1, linear_wait=10)
    >>> [policy.schedule.bounds(retry) for retry in (1, 2, 3)], policy.max_attempts
    ([(1.0, 1.0), (11.0, 11.0), (21.0, 21.0)], 4)

    Args:
        max_attempts: Maximum number of retries. Count; 0 is unlimited.
        wait: Constant part of the delay. Whole seconds, >= 0.
        linear_wait: What each retry adds to the delay. Whole seconds, >= 0.
        exponential_wait: Base of the power, in seconds. Count, >= 0.

    Source:
        `RetryStrategy`, Procrastinate 3.10.
    """
    delays = constant(wait)
    if linear_wait:
        delays += sequence([0]).then(linear(linear_wait))
    if exponential_wait:
        delays += exponential(exponential_wait, factor=exponential_wait)
    return job_policy(max_attempts or None, delays)


@preset
def rq(
    *,
    max: Annotated[int, between(1)] = 3,  # noqa: A002  its name there
    interval: Waits = 0,
) -> Policy:
    """Return the retries of an RQ job, ``Retry(max, interval)``.

    With fewer intervals than retries the first interval is repeated, and with more of
    them the first ones are left out: the last retry always has the last interval.

    >>> [*rq(max=4, interval=[1, 5]).schedule.draw()]
    [1.0, 1.0, 1.0, 5.0]
    >>> [*rq(max=2, interval=[1, 2, 3]).schedule.draw()]
    [2.0, 3.0]
    >>> rq(interval=30).schedule
    constant(30.0)

    Args:
        max: Maximum number of retries. Count, >= 1; the original has no default.
        interval: Delay of every retry, or a list of delays. Durations, >= 0.

    Source:
        `Retry` and `Job.get_retry_interval`, code of RQ 3.
    """
    waits = cast("list[float]", interval)[-max:]
    early, delays = max - len(waits), constant(waits[0])
    if len(waits) > 1:
        listed = sequence(waits)
        delays = delays.take(early).then(listed) if early else listed
    return job_policy(max, delays)


@preset
def taskiq(
    *,
    default_retry_count: Attempts = 3,
    default_delay: Wait = 5,
    use_jitter: Flag = False,
    use_delay_exponent: Flag = False,
    max_delay_exponent: Wait = 60,
) -> Policy:
    """Return the retries of taskiq's `SmartRetryMiddleware` with a schedule source.

    Every delay is *default_delay*; with *use_delay_exponent* the delay of retry n is
    ``default_delay * n``, capped at *max_delay_exponent*. *use_jitter* adds a random
    time of up to 1 s. In taskiq without a schedule source, each delay is computed from
    the previous one, including its jitter; in this policy it is not.

    >>> taskiq(use_delay_exponent=True).schedule
    linear(5.0).cap(60.0)

    Args:
        default_retry_count: Maximum number of attempts, including the first. Count,
            >= 1.
        default_delay: Delay, or the part that each retry adds. A duration, >= 0.
        use_jitter: Whether to add jitter.
        use_delay_exponent: Whether the delay grows.
        max_delay_exponent: Longest growing delay. A duration, >= 0.

    Source:
        `SmartRetryMiddleware`, code of taskiq 0.13.
    """
    growing = linear(default_delay).cap(max_delay_exponent)
    delays = growing if use_delay_exponent else constant(default_delay)
    delays = add_random(delays, 1 if use_jitter else 0)
    return job_policy(default_retry_count - 1, delays)
