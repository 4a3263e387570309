"""Policies of service SDKs."""

from typing import Literal

from retrykit._core.policy import Policy
from retrykit._internal.validation import check_number
from retrykit.hints import first_of, milliseconds, retry_after
from retrykit.presets._form import (
    Attempts,
    Growth,
    Number,
    Retries,
    Wait,
    client_policy,
    growing,
    lengthened,
    preset,
    seconds,
)
from retrykit.schedules import constant, exponential, uniform

__all__ = ["anthropic", "azure_core", "azure_storage", "client_go"]
__all__ += ["elastic_transport", "fern", "google_genai", "openai", "pymongo"]
__all__ += ["stainless", "stripe"]


@preset
def anthropic(*, max_retries: Retries = 2) -> Policy:
    """Return the retries of Anthropic's SDK.

    It has the delays of `stainless`. A requested delay is obeyed up to 4,294,967 s, or
    about 50 days.

    >>> anthropic().schedule.bounds(1), anthropic().hint_cap
    ((0.375, 0.5), 4294967.0)

    Args:
        max_retries: Maximum number of retries. Count, >= 0.

    Source:
        `_calculate_retry_timeout`, anthropic 2.14.
    """
    generated = stainless(max_retries=max_retries)
    return generated.replace(hint_cap=4_294_967, on_long_hint="clip")


@preset
def azure_core(
    *,
    retry_total: Retries = 10,
    retry_status: Retries = 3,
    retry_backoff_factor: Number = 0.8,
    retry_backoff_max: Wait = 120,
    retry_mode: Literal["exponential", "fixed"] = "exponential",
) -> Policy:
    """Return the retries of azure-core's `RetryPolicy`.

    The first retry is immediate. The delay of each later one is
    ``retry_backoff_factor * 2 ** (n - 1)`` s, capped at *retry_backoff_max*. In Azure,
    a Retry-After replaces the delay; here it replaces only a shorter one. Azure also
    counts lost connections and lost replies, up to 3 of each, and *retry_total* in all;
    here all failures count as one kind.

    >>> list(azure_core().schedule.take(3).draw()), azure_core().max_attempts
    ([0.0, 1.6, 3.2], 4)

    Args:
        retry_total: Maximum number of retries. Count, >= 0.
        retry_status: Maximum number of retries of one kind. Count, >= 0.
        retry_backoff_factor: Half of the second delay, or all of it if *retry_mode* is
            ``"fixed"``, in seconds, >= 0.
        retry_backoff_max: Longest delay. A duration, >= 0.
        retry_mode: ``"exponential"``, or ``"fixed"`` for equal delays.

    Source:
        `RetryPolicy`, azure-core 1.41.
    """
    later = growing(retry_mode, retry_backoff_factor).cap(retry_backoff_max)
    delays = constant(0).switch(after=1, to=later)
    names = ["retry-after-ms", "x-ms-retry-after-ms"]
    hint = first_of(retry_after(), *map(milliseconds, names))
    return client_policy(min(retry_total, retry_status), delays, None, hint=hint)


@preset
def azure_storage(
    *,
    initial_backoff: Wait = 15,
    increment_base: Growth = 3,
    retry_total: Retries = 3,
    retry_status: Retries = 3,
    random_jitter_range: Wait = 3,
) -> Policy:
    """Return the retries of Azure's SDKs for blobs, files and queues.

    The delay of retry n is ``initial_backoff + increment_base ** n`` s, and up to
    *random_jitter_range* shorter or longer. No Retry-After is read. Failures are
    counted as in `azure_core`.

    >>> [azure_storage().schedule.bounds(retry) for retry in (1, 2, 3)]
    [(15.0, 21.0), (21.0, 27.0), (39.0, 45.0)]

    Args:
        initial_backoff: Constant part of the delay. A duration, >= 0.
        increment_base: First growing part of the delay in seconds, and its growth,
            >= 1.
        retry_total: Maximum number of retries. Count, >= 0.
        retry_status: Maximum number of retries of one kind. Count, >= 0.
        random_jitter_range: Longest random part of the delay. A duration, up to
            *initial_backoff*.

    Source:
        `ExponentialRetry`, azure-storage-blob 12.31.
    """
    initial, spread = seconds(initial_backoff), seconds(random_jitter_range)
    rule = "no longer than initial_backoff"
    check_number("random_jitter_range", spread, at_most=initial, suggestion=rule)
    powers = exponential(increment_base, factor=increment_base)
    delays = constant(initial - spread) + powers + uniform(0, 2 * spread)
    return Policy(schedule=delays, max_attempts=min(retry_total, retry_status) + 1)


@preset
def client_go(
    *,
    steps: Attempts = 5,
    duration: Wait = "10ms",
    factor: Growth = 1,
    jitter: Number = 0.1,
) -> Policy:
    """Return the policy of client-go's `RetryOnConflict`, for Kubernetes.

    The delay of retry n is ``duration * factor ** (n - 1)``, plus a random share of
    that, up to *jitter*. The default is `DefaultRetry`; `DefaultBackoff` is ``steps=4,
    factor=5``.

    >>> client_go().schedule.bounds(1), client_go().max_attempts
    ((0.01, 0.011), 5)

    Args:
        steps: Maximum number of attempts, including the first. Count, >= 1.
        duration: Shortest first delay. A duration, >= 0.
        factor: Growth of the delay. Dimensionless, >= 1.
        jitter: Largest random part, as a share of the delay. Dimensionless, >= 0.

    Source:
        `on_error`, kubernetes 37, which is client-go's `OnError` in Python.
    """
    delays = lengthened(exponential(duration, factor=factor), jitter)
    return Policy(schedule=delays, max_attempts=steps)


@preset
def elastic_transport(
    *,
    max_retries: Retries = 3,
    retry_backoff_base: Wait = 0,
    retry_backoff_cap: Wait = 0,
) -> Policy:
    """Return the retries of the Elasticsearch client, by default without a delay.

    With *retry_backoff_base* and *retry_backoff_cap* set, the delay of retry n is
    uniform from half of ``retry_backoff_base * 2 ** (n - 2)``, capped at
    *retry_backoff_cap*, to all of it. The client waits only after a lost connection: it
    retries a status such as 503 at once, and ignores Retry-After.

    >>> elastic_transport(retry_backoff_base=1, retry_backoff_cap=9).schedule.bounds(1)
    (0.25, 0.5)

    Args:
        max_retries: Maximum number of retries. Count, >= 0.
        retry_backoff_base: Twice the longest first delay. A duration, >= 0.
        retry_backoff_cap: Longest delay. A duration, >= 0.

    Source:
        `Transport.perform_request`, elastic-transport 9.4.
    """
    delays = exponential(seconds(retry_backoff_base) / 2).cap(retry_backoff_cap)
    return Policy(schedule=delays.equal_jitter(), max_attempts=max_retries + 1)


@preset
def fern(*, max_retries: Retries = 2) -> Policy:
    """Return the retries of SDKs that Fern generates, such as Cohere's and Square's.

    The delay of retry n is ``2 ** (n - 1)`` s, capped at 60 s, and up to 10 % shorter
    or longer. In the SDKs, a retry-after-ms or Retry-After of up to 60 s replaces the
    delay; here it replaces only a shorter one. The SDKs also read X-RateLimit-Reset,
    and wait up to 20 % longer; this policy does not.

    >>> [fern().schedule.bounds(retry) for retry in (1, 2, 7)]
    [(0.9, 1.1), (1.8, 2.2), (54.0, 66.0)]

    Args:
        max_retries: Maximum number of retries. Count, >= 0.

    Source:
        `_retry_timeout`, cohere 7.3 and squareup 46.
    """
    delays = exponential(1).cap(60).jitter(0.1)
    hint = first_of(milliseconds("retry-after-ms"), retry_after())
    return client_policy(max_retries, delays, longest_hint=60, hint=hint)


@preset
def google_genai(
    *,
    attempts: Attempts = 5,
    initial_delay: Wait = 1,
    max_delay: Wait = 60,
    exp_base: Growth = 2,
    jitter: Wait = 1,
) -> Policy:
    """Return the retries of Google's Gen AI SDK with `HttpRetryOptions`.

    The delay of retry n is ``initial_delay * exp_base ** (n - 1)``, plus a random time
    of up to *jitter*, capped at *max_delay*. No Retry-After is read. Without the
    options the SDK retries nothing.

    >>> [google_genai().schedule.bounds(retry) for retry in (1, 2, 7)]
    [(1.0, 2.0), (2.0, 3.0), (60.0, 60.0)]

    Args:
        attempts: Maximum number of attempts, including the first. Count, >= 1.
        initial_delay: Shortest first delay. A duration, >= 0.
        max_delay: Longest delay. A duration, >= 0.
        exp_base: Growth of the delay. Dimensionless, >= 1.
        jitter: Largest random part of a delay. A duration, >= 0.

    Source:
        `retry_args`, google-genai 3.6.
    """
    delays = exponential(initial_delay, factor=exp_base) + uniform(0, jitter)
    return Policy(schedule=delays.cap(max_delay), max_attempts=attempts)


@preset
def openai(*, max_retries: Retries = 2) -> Policy:
    """Return the retries of OpenAI's SDK.

    It has the delays of `stainless`. If a response asks for more than 2 minutes,
    there is no retry.

    >>> openai().schedule.bounds(1), openai().hint_cap, openai().on_long_hint
    ((0.375, 0.5), 120.0, 'give_up')

    Args:
        max_retries: Maximum number of retries. Count, >= 0.

    Source:
        `_calculate_retry_timeout` and `_should_retry`, openai 3.57.
    """
    generated = stainless(max_retries=max_retries)
    return generated.replace(hint_cap=120, on_long_hint="give_up")


@preset
def pymongo(*, max_adaptive_retries: Retries = 2) -> Policy:
    """Return PyMongo's retries of a command that an overloaded server rejects.

    The delay of retry n is uniform from 0 to ``0.1 * 2 ** n`` s, with this bound capped
    at 10 s. A server may replace 0.1 with its baseBackoffMS, which this policy does not
    read. After other errors PyMongo retries once, as soon as it has a server.

    >>> [pymongo().schedule.bounds(retry) for retry in (1, 2, 7)]
    [(0.0, 0.2), (0.0, 0.4), (0.0, 10.0)]

    Args:
        max_adaptive_retries: Maximum number of retries. Count, >= 0.

    Source:
        `_RetryPolicy`, PyMongo 4.20.
    """
    delays = exponential("200ms").cap(10).full_jitter()
    return Policy(schedule=delays, max_attempts=max_adaptive_retries + 1)


@preset
def stainless(
    *,
    max_retries: Retries = 2,
    initial_retry_delay: Wait = 0.5,
    max_retry_delay: Wait = 8,
) -> Policy:
    """Return the retries of SDKs that Stainless generates, such as Groq's.

    The delay of retry n is ``initial_retry_delay * 2 ** (n - 1)``, capped at
    *max_retry_delay*, and up to a quarter shorter. In the SDKs, a retry-after-ms or
    Retry-After of up to 60 s replaces the delay; here it replaces only a shorter one. A
    requested delay above 60 s is ignored. The SDK of Together AI has delays from 1 to
    10 s; `anthropic` and `openai` treat long requested delays differently.

    >>> [stainless().schedule.bounds(retry) for retry in (1, 2, 9)]
    [(0.375, 0.5), (0.75, 1.0), (6.0, 8.0)]

    Args:
        max_retries: Maximum number of retries. Count, >= 0.
        initial_retry_delay: Longest first delay. A duration, >= 0.
        max_retry_delay: Longest delay. A duration, >= 0.

    Source:
        `_calculate_retry_timeout`, groq 1.7 and together 3.1.
    """
    # A half and the other half, of which up to a half is taken off.
    half = exponential(initial_retry_delay).cap(max_retry_delay) * 0.5
    delays = half + half.equal_jitter()
    hint = first_of(milliseconds("retry-after-ms"), retry_after())
    return client_policy(max_retries, delays, 60, hint=hint, on_long_hint="ignore")


@preset
def stripe(*, max_network_retries: Retries = 2) -> Policy:
    """Return the retries of Stripe's SDK.

    The delay of retry n is uniform from half of ``0.5 * 2 ** (n - 1)`` s, capped at
    5 s, to all of it, and at least 0.5 s. No Retry-After is read. The functions of the
    module `stripe` retry twice; a `StripeClient` retries only if it has
    *max_network_retries*.

    >>> [stripe().schedule.bounds(retry) for retry in (1, 2, 5)]
    [(0.5, 0.5), (0.5, 1.0), (2.5, 5.0)]

    Args:
        max_network_retries: Maximum number of retries. Count, >= 0.

    Source:
        `HTTPClient._sleep_time_seconds`, stripe 16.1.
    """
    delays = exponential(0.5).cap(5).equal_jitter().at_least(0.5)
    return Policy(schedule=delays, max_attempts=max_network_retries + 1)
