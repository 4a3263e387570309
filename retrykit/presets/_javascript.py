"""Policies of JavaScript libraries."""

import math
from typing import Annotated, Final, Literal

from retrykit._core.policy import Policy
from retrykit._internal.durations import Duration
from retrykit._internal.validation import check_number
from retrykit.hints import first_of, reset_at, retry_after
from retrykit.presets._form import (
    Attempts,
    Flag,
    Growth,
    Period,
    Retries,
    Share,
    Wait,
    capped,
    check_order,
    client_policy,
    growing,
    job_policy,
    lasting,
    limit_time,
    preset,
    seconds,
    whole_milliseconds,
)
from retrykit.schedules import constant, exponential, uniform
from retrykit.schedules._base import Schedule

__all__ = ["axios_retry", "bullmq", "got", "ky", "node_retry", "p_retry", "undici"]

LONGEST_TIMER: Final = (2**31 - 1) / 1000
"""The longest wait of a timer in JavaScript, in seconds: 24.8 days."""


@preset
def axios_retry(
    *,
    retries: Retries = 3,
    retry_delay: Literal["none", "exponential", "linear"] = "none",
    delay_factor: Wait = "100ms",
) -> Policy:
    """Return the policy of axios-retry, which does not wait by default.

    With ``"exponential"`` the delay of retry n is ``delay_factor * 2 ** n``, plus up to
    20 % of that at random; with ``"linear"`` it is ``delay_factor * n``. A longer
    Retry-After replaces the delay, without a limit.

    >>> growing = axios_retry(retry_delay="exponential", delay_factor=0.5).schedule
    >>> [growing.bounds(retry) for retry in (1, 2, 3)]
    [(1.0, 1.2), (2.0, 2.4), (4.0, 4.8)]

    Args:
        retries: Maximum number of retries. Count, >= 0.
        retry_delay: ``"none"``, or ``"exponential"`` or ``"linear"`` for
            ``exponentialDelay`` and ``linearDelay``.
        delay_factor: Half of the first exponential delay, or the linear step. A
            duration, >= 0.

    Source:
        `axiosRetry`, axios-retry 4.5.
    """
    times, spread = (2, 0.2) if retry_delay == "exponential" else (1, 0)
    delays = growing(retry_delay, seconds(delay_factor) * times)
    return client_policy(retries, delays, None, spread=spread)


@preset
def bullmq(
    *,
    attempts: Attempts = 3,
    type: Literal["fixed", "exponential"] = "exponential",  # noqa: A002  its name there
    delay: Wait = "1s",
    jitter: Share = 0,
) -> Policy:
    """Return the built-in backoff of a BullMQ job.

    The delay of retry n is ``delay * 2 ** (n - 1)`` in whole milliseconds, or always
    *delay* with ``"fixed"``; the share *jitter* of it is random. The defaults are an
    example from BullMQ's documentation: a job without options is attempted once.

    >>> [bullmq(jitter=0.5).schedule.bounds(retry) for retry in (1, 2)]
    [(0.5, 1.0), (1.0, 2.0)]

    Args:
        attempts: Maximum number of attempts, including the first. Count, >= 1.
        type: ``"fixed"`` or ``"exponential"``.
        delay: First delay before jitter. A duration, >= 0.
        jitter: Random part of each delay. Dimensionless, 0 to 1.

    Source:
        `Backoffs`, BullMQ 6.7; "Retrying failing jobs", its documentation.
    """
    grown = whole_milliseconds(exponential(delay))
    schedule = grown if type == "exponential" else constant(delay)
    if jitter:
        certain, random = schedule * (1 - jitter), (schedule * jitter).full_jitter()
        schedule = (certain + random).round_down("1ms")
    return job_policy(attempts - 1, schedule)


@preset
def got(
    *,
    limit: Retries = 2,
    backoff_limit: Annotated[Duration, lasting(0, 2_147_483)] | None = None,
    noise: Annotated[Duration, lasting(0, 0.1)] = "100ms",
    max_retry_after: Wait | None = None,
) -> Policy:
    """Return the retry policy of got.

    The delay of retry n is ``2 ** (n - 1)`` s, capped at *backoff_limit*, plus a random
    time of up to *noise*. There is no retry whose delay exceeds the longest timer of
    JavaScript, 24.8 days. In got, a Retry-After replaces the delay; here it replaces
    only a shorter one. If it exceeds *max_retry_after* there is no retry.

    >>> [got().schedule.bounds(retry) for retry in (1, 2)]
    [(1.0, 1.1), (2.0, 2.1)]

    Args:
        limit: Maximum number of retries. Count, >= 0.
        backoff_limit: Longest delay without noise. A duration, >= 0; None is unlimited.
        noise: Largest random part of a delay. A duration, 0 to 100 ms.
        max_retry_after: Longest Retry-After. A duration, >= 0; None is 24.8 days, where
            got takes the timeout of the request, if there is one.

    Source:
        `calculateRetryDelay`, got 16.1.
    """
    delays = (capped(exponential(1), backoff_limit) + uniform(0, noise)).at_least("1ms")
    # Without a limit, retry 23 would come after 48.5 days.
    retries = min(limit, 22) if backoff_limit is None else limit
    longest = _shorter(max_retry_after)
    return client_policy(retries, delays, longest, on_long_hint="give_up")


@preset
def ky(
    *,
    limit: Retries = 2,
    backoff_limit: Wait | None = None,
    jitter: Flag = False,
    max_retry_after: Wait | None = None,
) -> Policy:
    """Return the retry policy of ky.

    The delay of retry n is ``0.3 * 2 ** (n - 1)`` s; with *jitter* it is uniform from 0
    to that value. It is capped at *backoff_limit* after the jitter. In ky, a
    Retry-After or the reset time of a rate limit replaces the delay, if the status is
    413, 429 or 503. Here it replaces only a shorter delay, whatever the status.

    >>> ky(jitter=True, backoff_limit="1s").schedule
    exponential(0.3, factor=2.0).full_jitter().cap(1.0)

    Args:
        limit: Maximum number of retries. Count, >= 0.
        backoff_limit: Longest delay. A duration, >= 0; None is JavaScript's longest
            timer, 24.8 days.
        jitter: Whether each delay is random.
        max_retry_after: Longest Retry-After that is obeyed. A duration, >= 0; None is
            24.8 days.

    Source:
        `retry`, ky 2.1.
    """
    delays = exponential("300ms").full_jitter() if jitter else exponential("300ms")
    names = ["ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset"]
    hint = first_of(retry_after(), *map(reset_at, names))
    delays = delays.cap(_shorter(backoff_limit))
    return client_policy(limit, delays, _shorter(max_retry_after), hint=hint)


@preset
def node_retry(  # noqa: PLR0913  the options of retry
    *,
    retries: Retries = 10,
    factor: Growth = 2,
    min_timeout: Wait = "1s",
    max_timeout: Wait | None = None,
    randomize: Flag = False,
    max_retry_time: Period | None = None,
) -> Policy:
    """Return the policy of the npm package ``retry``, once called node-retry.

    The delay of retry n is ``min_timeout * factor ** (n - 1)`` in whole milliseconds,
    capped at *max_timeout*; with *randomize* it is multiplied by a random factor of 1
    to 2 before the cap. The package async-retry is ``node_retry(randomize=True)``. Once
    *max_retry_time* has passed there is no retry, but one that is already scheduled may
    come later (the rule ``"overshoot"``).

    >>> [node_retry(randomize=True).schedule.bounds(retry) for retry in (1, 2, 3)]
    [(1.0, 2.0), (2.0, 4.0), (4.0, 8.0)]

    Args:
        retries: Maximum number of retries. Count, >= 0.
        factor: Growth of the delay. Dimensionless, >= 1; >= 2 with *randomize*, since
            the original sorts its delays.
        min_timeout: Shortest first delay. A duration, >= 0; less than 1 ms is 1 ms.
        max_timeout: Longest delay. A duration, >= *min_timeout*; None is unlimited.
        randomize: Whether the delays are random.
        max_retry_time: Time limit of the whole call. A duration, > 0; None is
            unlimited.

    Source:
        `timeouts`, retry 0.13.
    """
    if randomize:
        check_number("factor", factor, at_least=2, suggestion="or randomize=False")
    check_order(min_timeout=min_timeout, max_timeout=max_timeout)
    delays = timeouts(max(seconds(min_timeout), 0.001), factor, randomize=randomize)
    policy = Policy(schedule=capped(delays, max_timeout), max_attempts=retries + 1)
    return limit_time(policy, max_retry_time, "overshoot")


@preset
def p_retry(  # noqa: PLR0913  the options of p-retry
    *,
    retries: Retries = 10,
    factor: Growth = 2,
    min_timeout: Wait = "1s",
    max_timeout: Wait | None = None,
    randomize: Flag = False,
    max_retry_time: Period | None = None,
) -> Policy:
    """Return the policy of p-retry.

    The delay of retry n is ``min_timeout * factor ** (n - 1)`` in whole milliseconds,
    times a random factor of 1 to 2 with *randomize*, and capped at *max_timeout*. A
    delay that would end after *max_retry_time* is cut, so that the last attempt is made
    then.
    Before version 7 p-retry was `node_retry`.

    >>> list(p_retry(retries=3, factor=3).schedule.take(3).draw())
    [1.0, 3.0, 9.0]

    Args:
        retries: Maximum number of retries. Count, >= 0.
        factor: Growth of the delay. Dimensionless, >= 1.
        min_timeout: Shortest first delay. A duration, >= 0.
        max_timeout: Longest delay, rounded up to milliseconds. A duration, >= 0; None
            is JavaScript's longest timer, 24.8 days.
        randomize: Whether the delays are random.
        max_retry_time: Time limit of the whole call. A duration, > 0; None is
            unlimited.

    Source:
        `pRetry`, p-retry 9.0.
    """
    delays = timeouts(seconds(min_timeout), factor, randomize=randomize)
    # 1.1 * 1000 is just above 1100.
    longest = math.ceil(round(_shorter(max_timeout) * 1000, 6)) / 1000
    policy = Policy(schedule=delays.cap(longest), max_attempts=retries + 1)
    return limit_time(policy, max_retry_time, "clip")


@preset
def undici(
    *,
    max_retries: Retries = 5,
    min_timeout: Wait = "500ms",
    max_timeout: Wait = "30s",
    timeout_factor: Growth = 2,
) -> Policy:
    """Return the policy of undici's `RetryAgent`, for Node's HTTP client.

    The delay of retry n is ``min_timeout * timeout_factor ** (n - 1)``, capped at
    *max_timeout*. In undici, a Retry-After with the same cap replaces the delay; here
    it replaces only a shorter one.

    >>> list(undici().schedule.take(8).draw())
    [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]

    Args:
        max_retries: Maximum number of retries. Count, >= 0.
        min_timeout: First delay. A duration, >= 0.
        max_timeout: Longest delay, and longest Retry-After. A duration, >= 0.
        timeout_factor: Growth of the delay. Dimensionless, >= 1.

    Source:
        `RetryHandler`, undici 8.13.
    """
    delays = exponential(min_timeout, factor=timeout_factor).cap(max_timeout)
    return client_policy(max_retries, delays, max_timeout)


def timeouts(first: float, factor: float, *, randomize: bool = False) -> Schedule:
    """Return the delays of `node_retry`, which other presets share, without a cap.

    Args:
        first: Shortest first delay, in seconds.
        factor: Growth of the delay.
        randomize: Whether each delay is multiplied by a random factor of 1 to 2.
    """
    delays = exponential(first * 2 if randomize else first, factor=factor)
    return whole_milliseconds(delays.equal_jitter() if randomize else delays)


def _shorter(limit: Duration | None) -> float:
    """Return a limit in seconds; the longest timer if the limit is longer or None."""
    return LONGEST_TIMER if limit is None else min(seconds(limit), LONGEST_TIMER)
