"""The retries of clients that somebody waits for, by their own defaults."""

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import (
    check_choice,
    check_integer,
    check_number,
    invalid_setting,
)
from retrykit.budgets import RatioBudget, Throttle
from retrykit.hints import grpc_pushback
from retrykit.policy.policy import Policy
from retrykit.schedules import (
    constant,
    decorrelated,
    exponential,
    polly_interval,
    sequence,
)

__all__ = ["finagle", "grpc", "polly", "tenacity_default"]


def finagle(*, tries: int = 3) -> Policy:
    """Return the backoff of Finagle's ``RetryPolicy.tries``.

    The first retry waits 5 ms; each later one between 5 ms and three times as
    long as the one before, 200 ms at most.

    >>> [finagle().schedule.bounds(retry) for retry in (1, 2, 3, 9)]
    [(0.005, 0.005), (0.005, 0.015), (0.005, 0.045), (0.005, 0.2)]

    That is its documentation. Since 2020 its code draws from the delay before
    upwards, so that no wait is ever shorter than the last one.

    Its budget allows a retry for every fifth request of the last 10 s, and 10
    in each second besides. Every call of this function makes a new one.

    Args:
        tries: Most attempts, the first included. Count, >= 1. The original has
            no default.

    Raises:
        ConfigError: *tries* is no such count.

    Source:
        `RetryPolicy`, `Backoff` and `RetryBudget`, API documentation of Finagle.
    """
    limit = check_integer("tries", tries, at_least=1)
    walk = decorrelated("5ms").cap("200ms")
    return Policy(
        schedule=sequence(["5ms"]).then(walk),
        max_attempts=limit,
        max_elapsed=None,
        budget=RatioBudget(0.2, reserve=10, window="10s"),
    )


def grpc(  # noqa: PLR0913  what a service config says of one method
    *,
    max_attempts: int = 4,
    initial_backoff: Duration = "100ms",
    max_backoff: Duration = "1s",
    backoff_multiplier: float = 2.0,
    jitter: str = "proportional",
    max_tokens: int = 10,
    token_ratio: float = 0.1,
) -> Policy:
    """Return the retry policy of gRPC, by default the example of its design.

    Before retry n it waits ``min(initial_backoff * backoff_multiplier ** (n -
    1), max_backoff)``, times 0.8 to 1.2 by chance. As designed in 2017 it was
    anything from 0 up to that: the jitter ``"full"``. Of errors it retries the
    status codes that it is told: add ``.replace(on=StatusCodes(["UNAVAILABLE"]))``
    from `retrykit.config.grpc_service_config`, which also reads a whole service config.

    A server may say when to come back, or not to, by grpc-retry-pushback-ms.
    Retries are throttled: a failure takes one token, a success gives
    *token_ratio* back, and nothing is retried unless more than half of
    *max_tokens* are there. Every call of this function makes a new throttle.
    After a pushback the delays go on where they were; those of gRPC begin anew.
    An answer that forbids a retry takes a token here if its error is one to retry.

    >>> grpc(jitter="full").schedule
    exponential(0.1, factor=2.0).cap(1.0).full_jitter()

    Args:
        max_attempts: Most attempts, the first included. Count, >= 2; more than
            5 count as 5.
        initial_backoff: Delay before the first retry. A duration, > 0.
        max_backoff: Bound on the delay before chance. A duration, > 0.
        backoff_multiplier: Growth of the delay. Dimensionless, >= 1.
        jitter: ``"proportional"``, as designed since 2024, or ``"full"``.
        max_tokens: Tokens when nothing fails. Count, 1 to 1000.
        token_ratio: What a success gives back. Tokens, > 0; three decimals count.

    Raises:
        ConfigError: A setting is out of its bounds.

    Source:
        gRFC A6, "gRPC Retry Design", 2017; its revision of 2024 is pull
        request 452 of the proposals.
    """
    limit = check_integer("max_attempts", max_attempts, at_least=2)
    first = _longer_than_none("initial_backoff", initial_backoff)
    longest = _longer_than_none("max_backoff", max_backoff)
    growth = check_number("backoff_multiplier", backoff_multiplier, at_least=1)
    delays = exponential(first, factor=growth).cap(longest)
    full = check_choice("jitter", jitter, ("proportional", "full")) == "full"
    tokens = check_integer("max_tokens", max_tokens, at_least=1, at_most=_MOST_TOKENS)
    return Policy(
        schedule=delays.full_jitter() if full else delays.jitter(0.2),
        max_attempts=min(limit, 5),
        max_elapsed=None,
        hint=grpc_pushback(),
        hint_cap=None,
        budget=Throttle(tokens, token_ratio),
    )


def polly(*, median_first_retry_delay: Duration = "1s", retry_count: int = 5) -> Policy:
    """Return the wait and retry that Polly recommends: decorrelated jitter V2.

    By default the example of its documentation: five retries, whose times are
    near to 1, 2, 4, 8 and 16 s in the median. `retrykit.schedules.polly_interval`
    has the formula, which is that of Polly 8 too, where it retries
    exponentially and with jitter.

    >>> polly(retry_count=3).max_attempts
    4

    Args:
        median_first_retry_delay: When half of all first retries are made,
            nearly. A duration, >= 0.
        retry_count: Most retries. Count, >= 0.

    Raises:
        ConfigError: A setting is out of its bounds.

    Source:
        "Wait and Retry with Jittered Back-off", documentation of
        Polly.Contrib.WaitAndRetry.
    """
    limit = check_integer("retry_count", retry_count, at_least=0)
    schedule = polly_interval(median_first_retry_delay)
    return Policy(schedule=schedule, max_attempts=limit + 1, max_elapsed=None)


def tenacity_default() -> Policy:
    """Return what ``tenacity.retry`` does without arguments. It is unsafe.

    It retries every `Exception`, for ever, without waiting: a loop that calls
    a broken service as fast as it can, and never tells its caller. It is here
    to be compared and replaced, not to be used. A limit that is added ends in
    a `RetryError`, as there; ``raise TryAgain`` is ``raise RetryAfter(0)``.

    >>> endless = tenacity_default()
    >>> endless.schedule, endless.max_attempts, endless.max_elapsed
    (constant(0.0), None, None)

    Source:
        "Basic Retry", documentation of Tenacity 9.
    """
    return Policy(
        schedule=constant(0),
        max_attempts=None,
        max_elapsed=None,
        raises="retry_error",
    )


_MOST_TOKENS = 1000


def _longer_than_none(name: str, value: Duration) -> float:
    duration = parse_duration(name, value)
    if not duration:
        raise invalid_setting(name, "a duration > 0", value)
    return duration
