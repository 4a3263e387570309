"""Policies of Python libraries."""

from retrykit._core.policy import Policy
from retrykit.presets._form import (
    Attempts,
    Growth,
    Number,
    Period,
    Retries,
    Share,
    Wait,
    add_random,
    capped,
    client_policy,
    limit_time,
    preset,
    seconds,
)
from retrykit.schedules import constant, exponential, uniform

__all__ = ["aiohttp_retry", "backoff_expo", "google_api_core", "httpx_retries"]
__all__ += ["langchain", "redis_py", "requests", "stamina", "urllib3"]


@preset
def aiohttp_retry(
    *,
    attempts: Attempts = 3,
    start_timeout: Wait = 0.1,
    max_timeout: Wait = 30,
    factor: Growth = 2,
) -> Policy:
    """Return the waits of aiohttp-retry's `ExponentialRetry`, its default.

    The delay of retry n is ``start_timeout * factor ** n``, capped at *max_timeout*:
    even the first is *factor* times *start_timeout*. A Retry-After is ignored.

    >>> [aiohttp_retry().schedule.bounds(retry) for retry in (1, 2)]
    [(0.2, 0.2), (0.4, 0.4)]

    Args:
        attempts: Maximum number of attempts, including the first. Count, >= 1.
        start_timeout: First delay, divided by *factor*. A duration, >= 0.
        max_timeout: Longest delay. A duration, >= 0.
        factor: Growth of the delay. Dimensionless, >= 1.

    Source:
        `ExponentialRetry`, aiohttp-retry 2.9.
    """
    delays = exponential(seconds(start_timeout) * factor, factor=factor)
    return Policy(schedule=delays.cap(max_timeout), max_attempts=attempts)


@preset
def backoff_expo(
    *,
    max_tries: Retries = 0,
    base: Growth = 2,
    factor: Wait = 1,
    max_value: Wait | None = None,
) -> Policy:
    """Return the policy of ``backoff.on_exception(backoff.expo, ...)``.

    The delay of retry n is random, from 0 to ``factor * base ** (n - 1)``, and this
    bound is at most *max_value*; retries are endless unless *max_tries* is given. The
    `max_time` of backoff does not count the duration of the last failed attempt: no
    setting of a policy is equivalent.

    >>> backoff_expo(max_value="1m").schedule
    exponential(1.0, factor=2.0).cap(60.0).full_jitter()

    Args:
        max_tries: Maximum number of attempts, including the first. Count; 0 is
            unlimited.
        base: Growth of the longest delay. Dimensionless, >= 1.
        factor: Longest first delay. A duration, >= 0.
        max_value: Longest delay, a duration >= 0; None is unlimited.

    Source:
        `on_exception`, `expo` and `full_jitter`, backoff 2.2.
    """
    delays = capped(exponential(factor, factor=base), max_value)
    return Policy(schedule=delays.full_jitter(), max_attempts=max_tries or None)


@preset
def google_api_core(
    *,
    initial: Wait = 1,
    maximum: Wait = 60,
    multiplier: Growth = 2,
    timeout: Wait | None = 120,
) -> Policy:
    """Return the policy of `google.api_core.retry.Retry`, for Google's Python clients.

    The delay of retry n is random, from 0 to ``initial * multiplier ** (n - 1)``, and
    this bound is at most *maximum*. There is no retry if *timeout* would pass during
    the delay, and no other limit. The call then ends in a `RetryError`, as in
    google-api-core.

    >>> google_api_core().schedule
    exponential(1.0, factor=2.0).cap(60.0).full_jitter()

    Args:
        initial: Longest first delay. A duration, >= 0.
        maximum: Longest delay. A duration, >= 0.
        multiplier: Growth of the longest delay. Dimensionless, >= 1.
        timeout: Time limit of the whole call, a duration >= 0; None is unlimited.

    Source:
        `google.api_core.retry.Retry`, google-api-core 2.44.
    """
    delays = exponential(initial, factor=multiplier).cap(maximum).full_jitter()
    policy = Policy(schedule=delays, max_attempts=None, raises="retry_error")
    return limit_time(policy, timeout, "stop")


@preset
def httpx_retries(
    *,
    total: Retries = 10,
    backoff_factor: Number = 0,
    max_backoff_wait: Period = 120,
    backoff_jitter: Share = 1,
) -> Policy:
    """Return the waits of httpx-retries' `Retry`: by default none at all.

    The delay of retry n is ``backoff_factor * 2 ** n`` s, of which the share
    *backoff_jitter* is random, capped at *max_backoff_wait*. In httpx-retries, a
    Retry-After with the same cap replaces the delay; here it replaces only a shorter
    one. The `total_timeout` of httpx-retries, which limits the sum of the delays, is
    not part of this policy.

    >>> [httpx_retries(backoff_factor=0.5).schedule.bounds(retry) for retry in (1, 2)]
    [(0.0, 1.0), (0.0, 2.0)]

    Args:
        total: Maximum number of retries. Count, >= 0.
        backoff_factor: Half of the longest first delay, in seconds, >= 0.
        max_backoff_wait: Longest delay, including one from Retry-After. A duration, >
            0.
        backoff_jitter: Random share of a delay. Dimensionless, 0 to 1.

    Source:
        `Retry`, httpx-retries 0.6.
    """
    steady = exponential(backoff_factor * 2 * (1 - backoff_jitter))
    random = exponential(backoff_factor * 2 * backoff_jitter).full_jitter()
    delays = (steady + random).cap(max_backoff_wait)
    return client_policy(total, delays, longest_hint=max_backoff_wait)


@preset
def langchain(
    *,
    stop_after_attempt: Retries = 3,
    initial: Wait = 1,
    max: Wait | None = None,  # noqa: A002  its name there
    exp_base: Growth = 2,
    jitter: Wait = 1,
) -> Policy:
    """Return the policy of LangChain's ``with_retry``.

    The delay of retry n is ``initial * exp_base ** (n - 1)``, plus a random time of up
    to *jitter*, capped at *max*.

    >>> [langchain().schedule.bounds(retry) for retry in (1, 2)]
    [(1.0, 2.0), (2.0, 3.0)]

    Args:
        stop_after_attempt: Maximum number of attempts, including the first. Count; 0
            is unlimited.
        initial: Shortest first delay. A duration, >= 0.
        max: Longest delay, a duration >= 0; None is unlimited.
        exp_base: Growth of the delay. Dimensionless, >= 1.
        jitter: Largest random part of a delay. A duration, >= 0.

    Source:
        `Runnable.with_retry` and its `exponential_jitter_params`, langchain-core 1.8.
    """
    delays = exponential(initial, factor=exp_base) + uniform(0, jitter)
    return Policy(schedule=capped(delays, max), max_attempts=stop_after_attempt or None)


@preset
def redis_py(*, retries: Retries = 10, base: Wait = 0.01, cap: Wait = 1) -> Policy:
    """Return the policy of each command of a redis-py client.

    The delay of retry n is random, from 0 to ``base * 2 ** n``, and then capped at
    *cap*, so that later delays are likely to equal *cap*. Before version 8 there were
    3 retries, with a *base* of 1 s and a *cap* of 10 s.

    >>> redis_py().schedule
    exponential(0.02, factor=2.0).full_jitter().cap(1.0)

    Args:
        retries: Maximum number of retries. Count, >= 0.
        base: Half of the longest first delay. A duration, >= 0.
        cap: Longest delay. A duration, >= 0.

    Source:
        `Redis`, `Retry` and `ExponentialWithJitterBackoff`, redis-py 8.1.
    """
    delays = exponential(seconds(base) * 2).full_jitter().cap(cap)
    return Policy(schedule=delays, max_attempts=retries + 1)


@preset
def requests(*, max_retries: Retries = 0) -> Policy:
    """Return the policy of a requests `HTTPAdapter` with a number of retries.

    There is no delay, except for a Retry-After, which requests obeys up to 6 h. By
    default nothing is retried.

    >>> requests(max_retries=3).schedule, requests().max_attempts
    (constant(0.0), 1)

    Args:
        max_retries: Maximum number of retries. Count, >= 0.

    Source:
        `HTTPAdapter`, requests 2.34, and `Retry.from_int`, urllib3 2.8.
    """
    return urllib3(total=max_retries).replace(schedule=constant(0))


@preset
def stamina(  # noqa: PLR0913  the parameters of stamina
    *,
    attempts: Attempts = 10,
    timeout: Wait = 45,
    wait_initial: Wait = 0.1,
    wait_max: Wait = 5,
    wait_jitter: Wait = 1,
    wait_exp_base: Growth = 2,
) -> Policy:
    """Return the policy of ``stamina.retry``.

    The delay of retry n is ``wait_initial * wait_exp_base ** (n - 1)``, plus a random
    time of up to *wait_jitter*, capped at *wait_max*. There is no retry once *timeout*
    has passed, or if it would pass during the delay.

    >>> [stamina().schedule.bounds(retry) for retry in (1, 4, 7)]
    [(0.1, 1.1), (0.8, 1.8), (5.0, 5.0)]

    Args:
        attempts: Maximum number of attempts, including the first. Count, >= 1.
        timeout: Time limit of the whole call. A duration, > 0.
        wait_initial: Shortest first delay. A duration, >= 0.
        wait_max: Longest delay. A duration, >= 0.
        wait_jitter: Largest random part of a delay. A duration, >= 0.
        wait_exp_base: Growth of the delay. Dimensionless, >= 1.

    Source:
        `stamina.retry`, stamina 26.1.
    """
    delays = exponential(wait_initial, factor=wait_exp_base) + uniform(0, wait_jitter)
    return Policy(
        schedule=delays.cap(wait_max), max_attempts=attempts, max_elapsed=timeout
    )


@preset
def urllib3(
    *,
    total: Retries = 10,
    backoff_factor: Number = 0,
    backoff_max: Wait = 120,
    backoff_jitter: Wait = 0,
    retry_after_max: Wait = 21_600,
) -> Policy:
    """Return the waits of urllib3's `Retry`.

    The first retry is immediate. The delay of each later one is
    ``backoff_factor * 2 ** (n - 1)`` s, plus a random time of up to *backoff_jitter*,
    capped at *backoff_max*. In urllib3, a Retry-After replaces the delay; here it
    replaces only a shorter one.

    >>> [urllib3(backoff_factor=0.5).schedule.bounds(retry) for retry in (1, 2, 3)]
    [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)]

    Args:
        total: Maximum number of retries. Count, >= 0.
        backoff_factor: Half of the second delay, in seconds, >= 0.
        backoff_max: Longest delay. A duration, >= 0.
        backoff_jitter: Largest random part of a delay. A duration, >= 0.
        retry_after_max: Longest delay of a Retry-After. A duration, >= 0.

    Source:
        `Retry`, urllib3 2.8.
    """
    growing = add_random(exponential(backoff_factor), backoff_jitter)
    delays = constant(0).switch(after=1, to=growing.cap(backoff_max))
    return client_policy(total, delays, longest_hint=retry_after_max)
