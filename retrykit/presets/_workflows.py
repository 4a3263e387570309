"""Policies of workflow engines and job frameworks."""

import math
from typing import Annotated, Literal

from retrykit._core.policy import Policy
from retrykit._internal.validation import check_number
from retrykit.presets._form import (
    Attempts,
    Number,
    Period,
    Retries,
    Wait,
    between,
    drawn_seconds,
    job_policy,
    lengthened,
    preset,
    seconds,
)
from retrykit.schedules import (
    constant,
    exponential,
    linear,
    polynomial,
    sequence,
    uniform,
)

__all__ = ["active_job", "airflow", "argo", "dagster", "oban", "prefect"]


@preset
def active_job(
    *,
    wait: Wait | Literal["polynomially_longer"] = "3s",
    attempts: Attempts | Literal["unlimited"] = 5,
    jitter: Number = 0.15,
) -> Policy:
    """Return the policy of ``retry_on`` in Active Job, of Ruby on Rails.

    Each delay is *wait* plus a random share of it, up to *jitter*. With
    ``"polynomially_longer"`` the delay of retry n is ``n ** 4 + 2`` s plus such a share
    of ``n ** 4`` s.

    >>> growing = active_job(wait="polynomially_longer").schedule
    >>> [growing.bounds(retry) for retry in (1, 2, 3)]
    [(3.0, 3.15), (18.0, 20.4), (83.0, 95.15)]

    Args:
        wait: Delay without jitter. A duration, >= 0, or ``"polynomially_longer"``.
        attempts: Maximum number of attempts, including the first. Count, >= 1, or
            ``"unlimited"``.
        jitter: Largest random part, as a share of the delay. Dimensionless, >= 0; 0.15
            in new applications, 0 in older ones.

    Source:
        `ActiveJob::Exceptions`, Rails 8.
    """
    if wait == "polynomially_longer":
        growing = polynomial(4)
        schedule = constant(2) + lengthened(growing, jitter)
    else:
        schedule = lengthened(constant(wait), jitter)
    if attempts == "unlimited":
        return job_policy(0, schedule).replace(max_attempts=None)
    return job_policy(attempts - 1, schedule)


@preset
def airflow(
    *,
    retries: Annotated[int, between(0, 1000)] = 0,
    retry_delay: Wait = "5m",
    retry_exponential_backoff: Number = 0,
    max_retry_delay: Wait | None = None,
) -> Policy:
    """Return the retries of an Airflow task.

    Each delay is *retry_delay*. With *retry_exponential_backoff* the delay of retry n
    is a whole number of seconds, from ``retry_delay * retry_exponential_backoff **
    (n - 1)``, rounded up and at least 1, to just below twice that. Airflow derives it
    from a hash of the task instance, so that it is the same for each scheduler; here it
    is random.

    >>> backoff = airflow(retries=3, retry_delay="10s", retry_exponential_backoff=2)
    >>> [backoff.schedule.bounds(retry) for retry in (1, 2, 3)]
    [(10.0, 19.0), (20.0, 39.0), (40.0, 79.0)]

    Args:
        retries: Maximum number of retries. Count, 0 to 1,000.
        retry_delay: First delay. A duration, >= 0.
        retry_exponential_backoff: Growth of the delay. Dimensionless, >= 1; 0 and 1
            mean a fixed delay.
        max_retry_delay: Longest growing delay. A duration, >= 0; None, like any value
            above 24 h, means 24 h.

    Source:
        `TaskInstance.next_retry_datetime`, Airflow 3.3.
    """
    first, growth = seconds(retry_delay), retry_exponential_backoff
    if growth in {0, 1}:
        return job_policy(retries, first)
    name, suggestion = "retry_exponential_backoff", "0 for a fixed delay"
    check_number(name, growth, at_least=1, suggestion=suggestion)
    shortest = [max(math.ceil(first), 1)]
    while len(shortest) < retries and shortest[-1] < _DAY:
        shortest.append(max(math.ceil(first * growth ** len(shortest)), 1))
    capped = shortest[-1] >= _DAY
    low = sequence(shortest, repeat_last=capped)
    more = sequence([delay - 1 for delay in shortest], repeat_last=capped)
    longest = _DAY if max_retry_delay is None else seconds(max_retry_delay)
    delays = low + drawn_seconds(more)
    return job_policy(retries, delays.cap(min(longest, _DAY)))


_DAY = 86_400.0


@preset
def argo(
    *,
    limit: Retries = 10,
    duration: Wait = "1s",
    factor: Annotated[int, between(1)] = 2,
    cap: Wait | None = "5s",
    max_duration: Period | None = "1m",
) -> Policy:
    """Return a retry strategy of Argo Workflows, by default its example with backoff.

    The delay of retry n is ``duration * factor ** (n - 1)``, capped at *cap*. There is
    no retry that would start after *max_duration*, at which Argo also ends a running
    attempt. Argo itself waits only if the strategy has a limit.

    >>> list(argo().schedule.take(5).draw())
    [1.0, 2.0, 4.0, 5.0, 5.0]

    Args:
        limit: Maximum number of retries. Count, >= 0.
        duration: First delay. A duration, >= 0.
        factor: Growth of the delay. An integer, >= 1.
        cap: Longest delay. A duration, >= 0; None is unlimited.
        max_duration: Time limit from the start of the first attempt. A duration, > 0;
            None is unlimited.

    Source:
        `processNodeRetries`, Argo Workflows, August 2026; its example
        "retry-backoff".
    """
    growing = exponential(duration, factor=factor)
    policy = job_policy(limit, growing if cap is None else growing.cap(cap))
    return policy.replace(max_elapsed=max_duration)


@preset
def dagster(
    *,
    max_retries: Annotated[int, between(0, 1000)] = 1,
    delay: Wait = 0,
    backoff: Literal["none", "linear", "exponential"] = "none",
    jitter: Literal["none", "full", "plus_minus"] = "none",
) -> Policy:
    """Return a `RetryPolicy` of Dagster.

    The delay of retry n is *delay*, or ``delay * n`` if linear, or ``delay * (2 ** n -
    1)`` if exponential. With the jitter ``"full"`` it is uniform from 0 to this value;
    with ``"plus_minus"`` it is up to *delay* shorter or longer than this value.

    >>> how = {"backoff": "exponential", "jitter": "plus_minus"}
    >>> policy = dagster(max_retries=3, delay=2, **how)
    >>> [policy.schedule.bounds(retry) for retry in (1, 2, 3)]
    [(0.0, 4.0), (4.0, 8.0), (12.0, 16.0)]

    Args:
        max_retries: Maximum number of retries. Count, 0 to 1,000.
        delay: Unit of the delays. A duration, >= 0.
        backoff: ``"none"``, ``"linear"`` or ``"exponential"``.
        jitter: ``"none"``, ``"full"`` or ``"plus_minus"``.

    Source:
        `calculate_delay`, Dagster 1.13.
    """
    unit = seconds(delay)
    # Longer ones are beyond 10 ** 11 years, and not told apart.
    numbers = (min(n, 63) for n in range(1, max(max_retries, 1) + 1))
    doubled = sequence([(2**n - 1) * unit for n in numbers])
    grown = {"none": constant(unit), "linear": linear(unit), "exponential": doubled}
    if jitter == "plus_minus":
        # The delay less one unit, and 0 to 2 units more.
        less = {"none": constant(0), "linear": linear(unit), "exponential": doubled * 2}
        shortest = sequence([0]).then(less[backoff])
        return job_policy(max_retries, shortest + uniform(0, unit * 2))
    schedule = grown[backoff]
    return job_policy(
        max_retries, schedule.full_jitter() if jitter == "full" else schedule
    )


@preset
def oban(*, max_attempts: Annotated[int, between(1, 1000)] = 20) -> Policy:
    """Return the retries of an Oban job, for Elixir.

    The delay of retry n is ``15 + 2 ** n`` s, plus up to 10 % of that at random, in
    whole seconds. If *max_attempts* is above 20, the exponent is
    ``n / max_attempts * 20``, rounded, so that the longest delay stays the same.

    >>> [oban().schedule.bounds(retry) for retry in (1, 5, 19)]
    [(17.0, 18.0), (47.0, 51.0), (524303.0, 576733.0)]

    Args:
        max_attempts: Maximum number of attempts, including the first. Count, 1 to
            1,000.

    Source:
        `Oban.Worker` and `Oban.Backoff`, Oban 2.23.
    """
    powers = exponential(2)
    if max_attempts > _CLAMPED:
        # Halves are rounded up, as in Erlang.
        shares = (n / max_attempts * _CLAMPED for n in range(1, max_attempts))
        powers = sequence([2 ** math.floor(share + 0.5) for share in shares])
    base = constant(15) + powers
    return job_policy(max_attempts - 1, lengthened(base, 0.1).round_down(1))


_CLAMPED = 20


@preset
def prefect(
    *,
    retries: Retries = 0,
    retry_delay_seconds: Wait = 0,
    exponential_backoff: Wait | None = None,
) -> Policy:
    """Return the retries of a Prefect task.

    Each delay is *retry_delay_seconds*; with *exponential_backoff*, which is the
    argument of Prefect's function of that name, the delay of retry n is
    ``exponential_backoff * 2 ** (n - 1)``, and the delay of retry 50 is repeated. There
    is no parameter for ``retry_jitter_factor``, whose distribution no schedule has.

    >>> list(prefect(exponential_backoff=10).schedule.take(4).draw())
    [10.0, 20.0, 40.0, 80.0]

    Args:
        retries: Maximum number of retries. Count, >= 0.
        retry_delay_seconds: Delay of each retry. A duration, >= 0.
        exponential_backoff: First growing delay. A duration, >= 0; None means a fixed
            delay.

    Source:
        `Task` and `exponential_backoff`, Prefect 3.9.
    """
    if exponential_backoff is None:
        return job_policy(retries, retry_delay_seconds)
    first = seconds(exponential_backoff)
    return job_policy(retries, exponential(first).cap(first * 2**49))
