"""Policies of job queues and workflow engines, which may delay a retry for days."""

from typing import Annotated, Literal

from retrykit._core.policy import Policy
from retrykit._internal.durations import Duration
from retrykit.presets._form import (
    Growth,
    Number,
    Retries,
    Wait,
    check_order,
    drawn_seconds,
    job_policy,
    lasting,
    preset,
    seconds,
)
from retrykit.schedules import constant, exponential, linear, polynomial, sequence

__all__ = ["celery", "dramatiq", "sidekiq", "temporal", "zizq"]


@preset
def celery(
    *,
    max_retries: Retries = 3,
    retry_backoff: Retries = 1,
    retry_backoff_max: Retries = 600,
    retry_jitter: Literal["full", "none"] = "full",
    default_retry_delay: Wait = "180s",
) -> Policy:
    """Return the retries of a Celery task that has ``autoretry_for``.

    The delay of retry n is a whole number of seconds, uniform from 0 to
    ``retry_backoff * 2 ** (n - 1)``, with this bound capped at *retry_backoff_max*.
    Celery itself backs off only if *retry_backoff* is set; with 0, as without it, every
    delay is *default_retry_delay*.

    >>> [celery().schedule.bounds(retry) for retry in (1, 2, 3)]
    [(0.0, 1.0), (0.0, 2.0), (0.0, 4.0)]
    >>> celery(retry_backoff=0).schedule, celery().max_attempts
    (constant(180.0), 4)

    Args:
        max_retries: Maximum number of retries. Count, >= 0.
        retry_backoff: Longest first delay. Whole seconds, >= 0.
        retry_backoff_max: Longest growing delay. Whole seconds, >= 0.
        retry_jitter: ``"full"``, or ``"none"`` for the longest delay.
        default_retry_delay: Delay where *retry_backoff* is 0. A duration, >= 0.

    Source:
        "Automatic retry for known exceptions" and `Task`, documentation of Celery 5.
    """
    longest = exponential(retry_backoff).cap(retry_backoff_max)
    delays = drawn_seconds(longest) if retry_jitter == "full" else longest
    return job_policy(max_retries, delays if retry_backoff else default_retry_delay)


@preset
def dramatiq(
    *,
    max_retries: Retries = 20,
    min_backoff: Annotated[Duration, lasting(0.001)] = "15s",
    max_backoff: Annotated[Duration, lasting(0.001)] = "7d",
) -> Policy:
    """Return the retries of Dramatiq's `Retries` middleware.

    The delay of retry n is ``min_backoff * 2 ** (n - 1)``, times a random factor of 1
    to 2. If that may exceed *max_backoff*, the delay is drawn from half of
    *max_backoff* to all of it. Delays are whole milliseconds, and equal the original's
    for equal random numbers, except in the one retry, if any, where *max_backoff* lies
    between the shortest and the longest delay: there the original draws twice, which
    favors longer delays.

    >>> [dramatiq().schedule.bounds(retry) for retry in (1, 2, 20)]
    [(15.0, 30.0), (30.0, 60.0), (302400.0, 604800.0)]

    Args:
        max_retries: Maximum number of retries. Count, >= 0.
        min_backoff: Shortest first delay. A duration, >= 1 ms.
        max_backoff: Longest delay, capped at 7 days. A duration, >= 1 ms.

    Source:
        Middleware `Retries`, documentation and code of Dramatiq 2.
    """
    most = exponential(seconds(min_backoff) * 2).cap(min(seconds(max_backoff), 604_800))
    return job_policy(max_retries, most.equal_jitter().round_down("1ms"))


@preset
def sidekiq(*, retry: Retries = 25) -> Policy:
    """Return the retries of a Sidekiq job, over about three weeks.

    The delay is ``count ** 4 + 15 + rand(10 * (count + 1))`` whole seconds, where
    count is 0 before the first retry. This has been the formula since the end of 2024.
    Before, the random part was ``rand(10) * (count + 1)`` from version 6.2.2 on, and
    ``rand(30) * (count + 1)`` up to 6.2.1, as in `zizq`. After *retry* retries the job
    is dead.

    >>> [sidekiq().schedule.bounds(retry) for retry in (1, 2, 25)]
    [(15.0, 25.0), (16.0, 36.0), (331791.0, 332041.0)]

    Args:
        retry: Maximum number of retries. Count, >= 0.

    Source:
        "Error Handling", wiki of Sidekiq; `JobRetry`, code of Sidekiq 8.
    """
    # Its count is one less than ours.
    growing = sequence([0]).then(polynomial(4))
    random = linear(10).full_jitter().round_down(1)
    return job_policy(retry, constant(15) + growing + random)


@preset
def temporal(
    *,
    initial_interval: Wait = "1s",
    backoff_coefficient: Growth = 2.0,
    maximum_interval: Wait | None = None,
    maximum_attempts: Retries = 0,
) -> Policy:
    """Return the default retry policy of Temporal activities.

    The delay of retry n is ``initial_interval * backoff_coefficient ** (n - 1)``, up to
    *maximum_interval*, without jitter and without end. Temporal limits the retries by
    the schedule-to-close timeout: here ``.replace(max_elapsed=...)``.

    >>> temporal().schedule
    exponential(1.0, factor=2.0).cap(100.0)

    Args:
        initial_interval: Delay before the first retry. A duration, >= 0.
        backoff_coefficient: Growth of the delay. Dimensionless, >= 1.
        maximum_interval: Longest delay, a duration >= *initial_interval*; None
            is 100 times that.
        maximum_attempts: Maximum number of attempts, including the first. Count; 0 is
            unlimited.

    Source:
        "Retry Policies", documentation of Temporal, and its validation in the SDKs.
    """
    first = seconds(initial_interval)
    longest = first * 100 if maximum_interval is None else seconds(maximum_interval)
    check_order(initial_interval=first, maximum_interval=longest)
    return Policy(
        schedule=exponential(first, factor=backoff_coefficient).cap(longest),
        max_attempts=maximum_attempts or None,
        on=Exception,
    )


@preset
def zizq(
    *,
    retry_limit: Retries = 25,
    base: Wait = "15s",
    exponent: Number = 4,
    jitter: Wait = "30s",
) -> Policy:
    """Return the backoff policy of the Zizq job queue.

    The delay is ``t = B + a ** E + a * rand(0 to J)`` seconds after the a-th attempt,
    where B is *base*, E *exponent* and J *jitter*. The documentation promises roughly 3
    weeks with the defaults; the formula gives 24.9 to 25.0 days. After *retry_limit*
    retries the call is dead, with every error in its state: a limit of 3 means four
    attempts.

    >>> zizq().schedule
    constant(15.0) + polynomial(4.0, first=1.0) + linear(30.0).full_jitter()
    >>> zizq().schedule.bounds(10)
    (10015.0, 10315.0)

    Args:
        retry_limit: Maximum number of retries. Count, >= 0.
        base: Constant part of the delay. A duration, >= 0.
        exponent: Power of the attempt number. Dimensionless, >= 0; may be fractional.
        jitter: Largest random part per attempt. A duration, >= 0.

    Source:
        "Backoff & Retry Policies", documentation of Zizq.
    """
    schedule = constant(base) + polynomial(exponent) + linear(jitter).full_jitter()
    return job_policy(retry_limit, schedule)
