"""Policies of cloud services that run jobs."""

from typing import Annotated, Literal

from retrykit._core.policy import Policy
from retrykit._internal.durations import Duration
from retrykit._internal.validation import check_number
from retrykit.presets._form import (
    Attempts,
    Growth,
    Period,
    Wait,
    between,
    job_policy,
    lasting,
    preset,
    seconds,
)
from retrykit.schedules import exponential, linear

__all__ = ["cloud_tasks", "step_functions"]


@preset
def cloud_tasks(
    *,
    max_attempts: Attempts = 100,
    max_retry_duration: Period | None = None,
    min_backoff: Wait = "100ms",
    max_backoff: Wait = "1h",
    max_doublings: Annotated[int, between(0, 60)] = 16,
) -> Policy:
    """Return the retry config of a queue of Google Cloud Tasks.

    The first delay is *min_backoff*. It doubles *max_doublings* times, then grows by
    the same amount each time, up to *max_backoff*. If *max_retry_duration* is set, a
    task is given up only after both limits are reached.

    >>> example = cloud_tasks(min_backoff=10, max_backoff=300, max_doublings=3)
    >>> list(example.schedule.take(8).draw())
    [10.0, 20.0, 40.0, 80.0, 160.0, 240.0, 300.0, 300.0]

    Args:
        max_attempts: Number of attempts, including the first. Count, >= 1.
        max_retry_duration: Time from the first attempt. A duration, > 0; None means no
            second limit.
        min_backoff: First delay. A duration, >= 0.
        max_backoff: Longest delay. A duration, >= *min_backoff*.
        max_doublings: Number of times that the delay doubles. Count, 0 to 60.

    Source:
        `RetryConfig`, API documentation of google-cloud-tasks 2.26; "Create Cloud Tasks
        queues", its documentation, for the defaults.
    """
    first, longest = seconds(min_backoff), seconds(max_backoff)
    suggestion = "no shorter than min_backoff"
    check_number("max_backoff", longest, at_least=first, suggestion=suggestion)
    doubling = exponential(first).take(max_doublings)
    steps = linear(first * 2**max_doublings)
    policy = job_policy(max_attempts - 1, doubling.then(steps).cap(longest))
    if max_retry_duration is None:
        return policy
    return policy.replace(max_elapsed=max_retry_duration, limits="all")


@preset
def step_functions(
    *,
    interval_seconds: Annotated[Duration, lasting(1, 99_999_999)] = 1,
    max_attempts: Annotated[int, between(0, 99_999_999)] = 3,
    backoff_rate: Growth = 2.0,
    max_delay_seconds: Annotated[Duration, lasting(1, 31_622_400)] | None = None,
    jitter_strategy: Literal["NONE", "FULL"] = "NONE",
) -> Policy:
    """Return a retrier of AWS Step Functions.

    The delay of retry n is ``interval_seconds * backoff_rate ** (n - 1)``, capped at
    *max_delay_seconds*; with the jitter ``"FULL"`` it is uniform from 0 to this value.

    >>> list(step_functions(max_delay_seconds=3).schedule.take(4).draw())
    [1.0, 2.0, 3.0, 3.0]

    Args:
        interval_seconds: First delay. A duration, 1 to 99,999,999 s.
        max_attempts: Maximum number of retries, despite its name. Count, 0 to
            99,999,999.
        backoff_rate: Growth of the delay. Dimensionless, >= 1.
        max_delay_seconds: Longest delay. A duration, >= *interval_seconds*, up to 366
            days; None is unlimited.
        jitter_strategy: ``"NONE"`` or ``"FULL"``.

    Source:
        `RetryProps` of Step Functions, API documentation of the AWS CDK 2.
    """
    schedule = exponential(interval_seconds, factor=backoff_rate)
    if max_delay_seconds is not None:
        longest, first = seconds(max_delay_seconds), seconds(interval_seconds)
        suggestion = "no shorter than interval_seconds"
        check_number(
            "max_delay_seconds", longest, at_least=first, suggestion=suggestion
        )
        schedule = schedule.cap(longest)
    jittered = schedule.full_jitter() if jitter_strategy == "FULL" else schedule
    return job_policy(max_attempts, jittered)
