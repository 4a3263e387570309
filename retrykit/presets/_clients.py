"""Policies of RPC clients and retry libraries."""

from typing import Annotated, Literal

from retrykit._core.policy import Policy
from retrykit.budgets import RatioBudget, Throttle
from retrykit.hints import grpc_pushback
from retrykit.presets._form import (
    Attempts,
    Growth,
    Period,
    Retries,
    Wait,
    between,
    preset,
)
from retrykit.schedules import (
    constant,
    decorrelated,
    exponential,
    polly_interval,
    sequence,
)

__all__ = ["finagle", "grpc", "polly", "tenacity_default"]


@preset
def finagle(*, tries: Attempts = 3) -> Policy:
    """Return the backoff of Finagle's ``RetryPolicy.tries``.

    The first delay is 5 ms; each later one is drawn from 5 ms to three times the
    previous one, and is at most 200 ms.

    >>> [finagle().schedule.bounds(retry) for retry in (1, 2, 3, 9)]
    [(0.005, 0.005), (0.005, 0.015), (0.005, 0.045), (0.005, 0.2)]

    This follows Finagle's documentation. Since 2020 Finagle's code draws from the
    previous delay upwards, so that no delay is shorter than the previous one.

    The budget allows a retry for every fifth request of the last 10 s, and 10 more per
    second. Each call of this function creates a budget.

    Args:
        tries: Maximum number of attempts, including the first. Count, >= 1. The
            original has no default.

    Source:
        `RetryPolicy`, `Backoff` and `RetryBudget`, API documentation of Finagle.
    """
    walk = decorrelated("5ms").cap("200ms")
    return Policy(
        schedule=sequence(["5ms"]).then(walk),
        max_attempts=tries,
        budget=RatioBudget(0.2, reserve=10, window="10s"),
    )


@preset
def grpc(  # noqa: PLR0913  the settings of a service config
    *,
    max_attempts: Annotated[int, between(2)] = 4,
    initial_backoff: Period = "100ms",
    max_backoff: Period = "1s",
    backoff_multiplier: Growth = 2.0,
    jitter: Literal["proportional", "full"] = "proportional",
    max_tokens: Annotated[int, between(1, 1000)] = 10,
    token_ratio: float = 0.1,
) -> Policy:
    """Return the retry policy of gRPC, by default the example of its design.

    The delay of retry n is ``min(initial_backoff * backoff_multiplier ** (n - 1),
    max_backoff)``, times a random factor of 0.8 to 1.2. In the design of 2017 it was
    uniform from 0 to this value: the jitter ``"full"``. gRPC retries the errors of some
    status codes: add ``.replace(on=StatusCodes(["UNAVAILABLE"]))`` from
    `retrykit.config.grpc_service_config`, which also reads a whole service config.

    A server may set the delay, or forbid a retry, with grpc-retry-pushback-ms. Retries
    are throttled: a failure takes one token, a success returns *token_ratio*, and
    there is no retry unless more than half of *max_tokens* are left. Each call of this
    function creates a throttle. After a pushback the delays continue here; gRPC starts
    them over. A pushback that forbids a retry takes a token here if its error is
    retryable.

    >>> grpc(jitter="full").schedule
    exponential(0.1, factor=2.0).cap(1.0).full_jitter()

    Args:
        max_attempts: Maximum number of attempts, including the first. Count, >= 2;
            capped at 5.
        initial_backoff: Delay before the first retry. A duration, > 0.
        max_backoff: Longest delay before jitter. A duration, > 0.
        backoff_multiplier: Growth of the delay. Dimensionless, >= 1.
        jitter: ``"proportional"``, as designed since 2024, or ``"full"``.
        max_tokens: Tokens when nothing fails. Count, 1 to 1000.
        token_ratio: Tokens that a success returns. Tokens, > 0; three decimals count.

    Source:
        gRFC A6, "gRPC Retry Design", 2017; its revision of 2024 is pull
        request 452 of the proposals.
    """
    delays = exponential(initial_backoff, factor=backoff_multiplier).cap(max_backoff)
    return Policy(
        schedule=delays.full_jitter() if jitter == "full" else delays.jitter(0.2),
        max_attempts=min(max_attempts, 5),
        hint=grpc_pushback(),
        hint_cap=None,
        budget=Throttle(max_tokens, token_ratio),
    )


@preset
def polly(*, median_first_retry_delay: Wait = "1s", retry_count: Retries = 5) -> Policy:
    """Return the retries that Polly recommends: decorrelated jitter V2.

    The default is the example of its documentation: five retries, at medians of about
    1, 2, 4, 8 and 16 s. `retrykit.schedules.polly_interval` has the formula, which
    Polly 8 also uses for exponential backoff with jitter.

    >>> polly(retry_count=3).max_attempts
    4

    Args:
        median_first_retry_delay: Approximate median of the first delay. A
            duration, >= 0.
        retry_count: Maximum number of retries. Count, >= 0.

    Source:
        "Wait and Retry with Jittered Back-off", documentation of
        Polly.Contrib.WaitAndRetry.
    """
    schedule = polly_interval(median_first_retry_delay)
    return Policy(schedule=schedule, max_attempts=retry_count + 1)


@preset
def tenacity_default() -> Policy:
    """Return the policy of ``tenacity.retry`` without arguments. It is unsafe.

    It retries every `Exception` forever, without a delay: a loop that calls a broken
    service as fast as it can, and never tells its caller. It is here to be compared
    and replaced, not to be used. With a limit added it ends in a `RetryError`, as
    Tenacity does; ``raise TryAgain`` is ``raise RetryAfter(0)``.

    >>> endless = tenacity_default()
    >>> endless.schedule, endless.max_attempts, endless.max_elapsed
    (constant(0.0), None, None)

    Source:
        "Basic Retry", documentation of Tenacity 9.
    """
    return Policy(
        schedule=constant(0), max_attempts=None, on=Exception, raises="retry_error"
    )
