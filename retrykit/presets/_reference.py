"""Policies of the systems whose published tables retrykit was tested against.

Every number of these tables is reproduced in a test.
"""

from retrykit._core.policy import Policy
from retrykit._internal.durations import Duration
from retrykit.presets._form import Period, limit_time, preset
from retrykit.schedules import exponential, google_interval

__all__ = ["google", "hostname_verification"]


@preset
def hostname_verification() -> Policy:
    """Return the schedule of custom hostname verification, over a week.

    There are 75 retries over 7.06 days. The delay of retry n is, for the first ten,
    ``60 * 1.05 ** (n - 1)`` seconds, and ``60 * 1.15 ** (n - 1)`` seconds for the
    others, truncated to whole seconds, and at most 4 hours.

    The documentation says that the first 10 checks complete within 2 minutes and most
    checks in the first 4 hours. Its own table contradicts this: the first 10 retries
    take 751 s (12 min 31 s), and 26 of the 75 come within 4 hours. The table is
    reproduced.

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
    return Policy(schedule=checks)


@preset
def google(
    *,
    initial_interval: Duration = "500ms",
    randomization_factor: float = 0.5,
    multiplier: float = 1.5,
    max_interval: Duration = "1m",
    max_elapsed_time: Period = "15m",
) -> Policy:
    """Return the policy of Google's `ExponentialBackOff`.

    The interval grows by *multiplier* up to *max_interval*; each delay is drawn around
    the interval, so it may exceed *max_interval*. The elapsed time is checked before
    the delay is drawn, so the last delay may end far beyond *max_elapsed_time* (the
    rule ``"overshoot"``). Delays are whole milliseconds, and equal the original's for
    equal random numbers.

    >>> schedule = google().schedule
    >>> [schedule.bounds(request) for request in (1, 2, 3)]
    [(0.25, 0.75), (0.375, 1.125), (0.562, 1.688)]

    Args:
        initial_interval: First interval. A duration, >= 1 ms.
        randomization_factor: Fraction of the interval by which a delay may be shorter
            or longer. Dimensionless, 0 <= factor < 1.
        multiplier: Growth of the interval. Dimensionless, >= 1; there may be at most
            1,000 different intervals.
        max_interval: Longest interval. A duration, >= *initial_interval*, <= 2**31 - 1
            ms.
        max_elapsed_time: Time after which there is no retry. A duration, > 0.

    Source:
        `ExponentialBackOff`, Google HTTP Client Library for Java, API documentation.
    """
    schedule = google_interval(
        initial_interval,
        randomization_factor=randomization_factor,
        multiplier=multiplier,
        max_interval=max_interval,
    )
    policy = Policy(schedule=schedule, max_attempts=None)
    return limit_time(policy, max_elapsed_time, "overshoot")
