"""The retries of clients that somebody waits for, by their own defaults."""

from retrykit.checks import choice, number, refuse, whole
from retrykit.durations import Duration, seconds
from retrykit.schedules import (
    constant,
    decorrelated,
    exponential,
    polly_interval,
    sequence,
)
from retrykit.settings import Settings

__all__ = ["aws_adaptive", "aws_standard", "finagle", "grpc", "polly"]
__all__ += ["tenacity_default"]


def aws_standard(*, version: str = "2.1", max_attempts: int = 3) -> Settings:
    """Return the standard mode of the AWS SDKs, as it waits after transient errors.

    In 2.1, the default of the SDKs since November 2026, retry n waits anything
    up to ``0.05 * 2 ** (n - 1)`` s, capped at 20 s before the chance; in 2.0 up
    to ``2 ** (n - 1)`` s, with what is drawn capped at 20 s.

    After a throttling error 2.1 waits as if 0.05 s were 1 s. DynamoDB begins
    at 0.025 s and makes 4 attempts.

    >>> aws_standard().schedule
    exponential(0.05, factor=2.0).cap(20.0).full_jitter()
    >>> aws_standard(version="2.0").schedule
    exponential(1.0, factor=2.0).full_jitter().cap(20.0)

    Args:
        version: ``"2.0"``, or ``"2.1"`` as revised in 2026.
        max_attempts: Most attempts, the first included. Count, >= 1.

    Raises:
        ConfigError: A setting is out of its bounds.

    Source:
        "Retry behavior", AWS SDKs and Tools Reference Guide, 2026, and
        "Updated default retry behavior for AWS SDKs and tools", AWS Developer
        Tools Blog, 2026.
    """
    limit = whole("max_attempts", max_attempts, at_least=1)
    if choice("version", version, ("2.0", "2.1")) == "2.0":
        schedule = exponential(1).full_jitter().cap(20)
    else:
        schedule = exponential("50ms").cap(20).full_jitter()
    return Settings(schedule=schedule, max_attempts=limit, max_elapsed=None)


def aws_adaptive(*, version: str = "2.1", max_attempts: int = 3) -> Settings:
    """Return what a policy has of the adaptive mode of the AWS SDKs.

    That is the standard mode: its retries are the same. What makes it adaptive
    is no retrying. It measures how many requests a client sends, cuts that
    rate to 70 % when it is throttled, lets it grow again along a cubic curve,
    and keeps back each request, the first one too, until a token is there. A
    policy never delays the first attempt: put a rate limiter before it.

    >>> aws_adaptive() == aws_standard()
    True

    Args:
        version: As for `aws_standard`.
        max_attempts: Most attempts, the first included. Count, >= 1.

    Raises:
        ConfigError: A setting is out of its bounds.

    Source:
        "Retry behavior", AWS SDKs and Tools Reference Guide, 2026.
    """
    return aws_standard(version=version, max_attempts=max_attempts)


def finagle(*, tries: int = 3) -> Settings:
    """Return the backoff of Finagle's ``RetryPolicy.tries``.

    The first retry waits 5 ms; each later one between 5 ms and three times as
    long as the one before, 200 ms at most.

    >>> [finagle().schedule.bounds(retry) for retry in (1, 2, 3, 9)]
    [(0.005, 0.005), (0.005, 0.015), (0.005, 0.045), (0.005, 0.2)]

    That is its documentation. Since 2020 its code draws from the delay before
    upwards, so that no wait is ever shorter than the last one.

    Args:
        tries: Most attempts, the first included. Count, >= 1. The original has
            no default.

    Raises:
        ConfigError: *tries* is no such count.

    Source:
        `RetryPolicy` and `Backoff`, API documentation of Finagle.
    """
    limit = whole("tries", tries, at_least=1)
    walk = decorrelated("5ms").cap("200ms")
    schedule = sequence(["5ms"]).then(walk)
    return Settings(schedule=schedule, max_attempts=limit, max_elapsed=None)


def grpc(
    *,
    max_attempts: int = 4,
    initial_backoff: Duration = "100ms",
    max_backoff: Duration = "1s",
    backoff_multiplier: float = 2.0,
    jitter: str = "proportional",
) -> Settings:
    """Return the retry policy of gRPC, by default the example of its design.

    Before retry n it waits ``min(initial_backoff * backoff_multiplier ** (n -
    1), max_backoff)``, times 0.8 to 1.2 by chance. As designed in 2017 it was
    anything from 0 up to that: the jitter ``"full"``. Of errors it retries the
    status codes that it is told: add ``.replace(on=StatusCodes(["UNAVAILABLE"]))``
    from `retrykit.service_config`, which also reads a whole service config.

    >>> grpc().schedule
    exponential(0.1, factor=2.0).cap(1.0).jitter(0.2)
    >>> grpc(jitter="full").schedule.bounds(2)
    (0.0, 0.2)

    Args:
        max_attempts: Most attempts, the first included. Count, >= 2; more than
            5 count as 5.
        initial_backoff: Delay before the first retry. A duration, > 0.
        max_backoff: Bound on the delay before chance. A duration, > 0.
        backoff_multiplier: Growth of the delay. Dimensionless, >= 1.
        jitter: ``"proportional"``, as designed since 2024, or ``"full"``.

    Raises:
        ConfigError: A setting is out of its bounds.

    Source:
        gRFC A6, "gRPC Retry Design", 2017; its revision of 2024 is pull
        request 452 of the proposals.
    """
    limit = whole("max_attempts", max_attempts, at_least=2)
    first = _longer_than_none("initial_backoff", initial_backoff)
    longest = _longer_than_none("max_backoff", max_backoff)
    growth = number("backoff_multiplier", backoff_multiplier, at_least=1)
    delays = exponential(first, factor=growth).cap(longest)
    full = choice("jitter", jitter, ("proportional", "full")) == "full"
    return Settings(
        schedule=delays.full_jitter() if full else delays.jitter(0.2),
        max_attempts=min(limit, 5),
        max_elapsed=None,
    )


def polly(
    *, median_first_retry_delay: Duration = "1s", retry_count: int = 5
) -> Settings:
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
    limit = whole("retry_count", retry_count, at_least=0)
    schedule = polly_interval(median_first_retry_delay)
    return Settings(schedule=schedule, max_attempts=limit + 1, max_elapsed=None)


def tenacity_default() -> Settings:
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
    return Settings(
        schedule=constant(0),
        max_attempts=None,
        max_elapsed=None,
        raises="retry_error",
    )


def _longer_than_none(name: str, value: Duration) -> float:
    duration = seconds(name, value)
    if not duration:
        raise refuse(name, "a duration > 0", value)
    return duration
