"""The systems whose published tables and examples retrykit was built against.

Every number of theirs is reproduced and under test.
"""

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import check_integer, invalid_setting
from retrykit.policy.policy import Policy
from retrykit.schedules import (
    constant,
    exponential,
    google_interval,
    linear,
    polynomial,
)

__all__ = ["google", "hostname_verification", "zizq"]


def hostname_verification() -> Policy:
    """Return the schedule by which a custom hostname is verified for a week.

    75 retries over 7.06 days. Before retry n the delay is ``60 * 1.05 ** (n - 1)``
    seconds for the first ten, ``60 * 1.15 ** (n - 1)`` for those after, cut to
    whole seconds, and 4 hours at most.

    Its documentation says that the first 10 checks complete within 2 minutes
    and that most complete in the first 4 hours. The numbers of its own table
    say otherwise: the first 10 retries take 751 s, 12 min 31 s, and 26 of the
    75 come within 4 hours. The numbers are what is reproduced.

    >>> delays = list(hostname_verification().schedule.draw())
    >>> delays[:3], delays[10], delays[-1], len(delays)
    ([60.0, 63.0, 66.0], 242.0, 14400.0, 75)
    >>> sum(delays[:10]), round(sum(delays) / 86_400, 2)
    (751.0, 7.06)

    Source:
        "Hostname verification backoff schedule", documentation of custom
        hostnames, 2021.
    """
    first = exponential("60s", factor=1.05)
    remaining = exponential("60s", factor=1.15)
    checks = first.switch(after=10, to=remaining).round_down("1s").cap("4h").take(75)
    return Policy(schedule=checks, max_attempts=None, max_elapsed=None)


def google(
    *,
    initial_interval: Duration = "500ms",
    randomization_factor: float = 0.5,
    multiplier: float = 1.5,
    max_interval: Duration = "1m",
    max_elapsed_time: Duration = "15m",
) -> Policy:
    """Return the policy of Google's `ExponentialBackOff`.

    The interval grows by *multiplier* up to *max_interval*; what is waited is
    drawn around it, so it may be longer than *max_interval*. The elapsed time
    is asked before the interval is drawn: the last wait may end far beyond
    *max_elapsed_time* (the rule ``"overshoot"``). Delays are whole
    milliseconds, those of the original for the same chance.

    >>> schedule = google().schedule
    >>> [schedule.bounds(request) for request in (1, 2, 3)]
    [(0.25, 0.75), (0.375, 1.125), (0.562, 1.688)]

    Args:
        initial_interval: First interval. A duration, >= 1 ms.
        randomization_factor: Part of the interval that a wait may be shorter
            or longer. Dimensionless, 0 <= factor < 1.
        multiplier: Growth of the interval. Dimensionless, >= 1.
        max_interval: Bound on the interval. A duration, >= *initial_interval*.
        max_elapsed_time: When it has passed, no retry is made. A duration, > 0.

    Raises:
        ConfigError: A setting is out of its bounds.

    Source:
        `ExponentialBackOff`, Google HTTP Client Library for Java, API
        documentation.
    """
    allowed = parse_duration("max_elapsed_time", max_elapsed_time)
    if not allowed:
        raise invalid_setting("max_elapsed_time", "a duration > 0", max_elapsed_time)
    schedule = google_interval(
        initial_interval,
        randomization_factor=randomization_factor,
        multiplier=multiplier,
        max_interval=max_interval,
    )
    return Policy(
        schedule=schedule,
        max_attempts=None,
        max_elapsed=allowed,
        deadline="overshoot",
    )


def zizq(
    *,
    retry_limit: int = 25,
    base: Duration = "15s",
    exponent: float = 4,
    jitter: Duration = "30s",
) -> Policy:
    """Return the backoff policy of the Zizq job queue.

    ``t = B + a ** E + a * rand(0 to J)`` seconds after the a-th attempt. With
    the defaults its documentation speaks of roughly 3 weeks; the formula gives
    24.9 to 25.0 days. After *retry_limit* retries the call is dead, with every
    error on its list: a limit of 3 means four calls.

    >>> zizq().schedule
    constant(15.0) + polynomial(4.0, first=1.0) + linear(30.0).full_jitter()
    >>> zizq().schedule.bounds(10)
    (10015.0, 10315.0)

    Args:
        retry_limit: Most retries. Count, >= 0.
        base: Delay that every retry has. A duration, >= 0.
        exponent: Growth with the attempts. Dimensionless, >= 0; may be
            fractional.
        jitter: Widest chance per attempt made. A duration, >= 0.

    Raises:
        ConfigError: A setting is out of its bounds.

    Source:
        "Backoff & Retry Policies", documentation of Zizq.
    """
    limit = check_integer("retry_limit", retry_limit, at_least=0)
    base, jitter = parse_duration("base", base), parse_duration("jitter", jitter)
    schedule = constant(base) + polynomial(exponent) + linear(jitter).full_jitter()
    return Policy(
        schedule=schedule,
        max_attempts=limit + 1,
        max_elapsed=None,
        max_failures=max(limit + 1, 100),
    )
