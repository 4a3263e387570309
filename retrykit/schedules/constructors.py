"""The schedules that exist by name, each with its formula.

All of them are immutable values that compare, hash, pickle and print as the
expression that builds them; `retrykit.schedules.base.Schedule` says what can be made
of them. Nothing here overflows: delays saturate at the largest float.
"""

from collections.abc import Callable, Iterable, Iterator

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import check_number, invalid_setting
from retrykit.schedules.base import Schedule
from retrykit.schedules.basic import (
    MAX_INTERVAL,
    MAX_INTERVALS,
    Constant,
    Decorrelated,
    Exponential,
    Fibonacci,
    GoogleInterval,
    Linear,
    PollyInterval,
    Polynomial,
    google_intervals,
)
from retrykit.schedules.sequences import Sequence

__all__ = ["constant", "decorrelated", "exponential", "fibonacci"]
__all__ += ["google_interval", "linear", "polly_interval", "polynomial", "sequence"]


def constant(wait: Duration) -> Schedule:
    """Wait the same time before every retry.

    >>> list(constant("1.5s").take(3).draw())
    [1.5, 1.5, 1.5]

    Args:
        wait: Seconds, timedelta or text, >= 0.

    Returns:
        An endless schedule.

    Raises:
        ConfigError: *wait* is no duration.
    """
    return Constant(parse_duration("wait", wait))


def linear(step: Duration) -> Schedule:
    """Wait *step* longer each time: ``step * n`` before retry n.

    >>> list(linear(2).take(3).draw())
    [2.0, 4.0, 6.0]

    Args:
        step: Seconds, timedelta or text, >= 0.

    Returns:
        An endless schedule.

    Raises:
        ConfigError: *step* is no duration.
    """
    return Linear(parse_duration("step", step))


def exponential(first: Duration, *, factor: float = 2.0) -> Schedule:
    """Wait *factor* times longer each time: ``first * factor ** (n - 1)``.

    Give it a ``.cap()``, or the delays soon outgrow any use.

    >>> list(exponential(0.5).cap(3).take(5).draw())
    [0.5, 1.0, 2.0, 3.0, 3.0]

    Args:
        first: Delay before retry 1. Seconds, timedelta or text, >= 0.
        factor: Growth from one delay to the next. Dimensionless, >= 1.

    Returns:
        An endless schedule.

    Raises:
        ConfigError: *first* is no duration, or *factor* is below 1.
    """
    factor = check_number("factor", factor, at_least=1)
    return Exponential(parse_duration("first", first), factor)


def polynomial(exponent: float, *, first: Duration = 1.0) -> Schedule:
    """Wait ``first * n ** exponent`` before retry n.

    Slower to grow than exponential, so that many retries fit in weeks.

    >>> list(polynomial(4).take(3).draw())
    [1.0, 16.0, 81.0]

    Args:
        exponent: Dimensionless, >= 0, fractional if you like.
        first: Delay before retry 1. Seconds, timedelta or text, >= 0.

    Returns:
        An endless schedule.

    Raises:
        ConfigError: *exponent* is negative, or *first* is no duration.
    """
    return Polynomial(
        check_number("exponent", exponent), parse_duration("first", first)
    )


def fibonacci(first: Duration = 1.0) -> Schedule:
    """Wait the sum of the two delays before: 1, 1, 2, 3, 5 times *first*.

    >>> list(fibonacci("1m").take(6).draw())
    [60.0, 60.0, 120.0, 180.0, 300.0, 480.0]

    Args:
        first: Delay before retries 1 and 2. Seconds, timedelta or text, >= 0.

    Returns:
        An endless schedule.

    Raises:
        ConfigError: *first* is no duration.
    """
    return Fibonacci(parse_duration("first", first))


def decorrelated(first: Duration, *, factor: float = 3.0) -> Schedule:
    """Draw between *first* and *factor* times the delay before.

    A random walk that grows on average and spreads callers well. It needs a
    ``.cap()``. What goes in as the delay before is kept within this
    schedule's own bounds, so a sum or a multiple of it keeps its promises.

    >>> walk = decorrelated(1).cap(10)
    >>> [walk.bounds(retry) for retry in (1, 2, 3)]
    [(1.0, 3.0), (1.0, 9.0), (1.0, 10.0)]

    Args:
        first: Shortest delay. Seconds, timedelta or text, >= 0.
        factor: Growth of the longest delay. Dimensionless, >= 1.

    Returns:
        An endless schedule.

    Raises:
        ConfigError: *first* is no duration, or *factor* is below 1.

    Source:
        Decorrelated jitter, M. Brooker, "Exponential Backoff And Jitter", AWS
        Architecture Blog, 2015.
    """
    factor = check_number("factor", factor, at_least=1)
    return Decorrelated(parse_duration("first", first), factor)


def sequence(
    delays: Iterable[Duration] | Callable[[], Iterator[Duration]],
) -> Schedule:
    """Wait as a list says, or anything that can be iterated afresh.

    Whatever takes a schedule takes such a list as it is.

    >>> list(sequence([0.1, "2s"]).draw())
    [0.1, 2.0]
    >>> def halving():
    ...     delay = 8.0
    ...     while True:
    ...         yield delay
    ...         delay /= 2
    >>> list(sequence(halving).take(3).draw())
    [8.0, 4.0, 2.0]

    Args:
        delays: A list, a tuple or another re-iterable of durations, or a
            generator function without parameters. Of one that has no length
            the n-th delay is found by going through it from its start.

    Returns:
        A schedule that ends where *delays* ends.

    Raises:
        ConfigError: *delays* can be iterated only once or not at all, or a
            delay in it is no duration.
    """
    return Sequence(delays)


def google_interval(
    initial_interval: Duration = 0.5,
    *,
    randomization_factor: float = 0.5,
    multiplier: float = 1.5,
    max_interval: Duration = 60.0,
) -> Schedule:
    """Wait as `ExponentialBackOff` does, in whole milliseconds.

    Its intervals are cut to whole milliseconds as they grow, and so is what
    is drawn around them: for the same chance, the very numbers of the
    original. Where those do not matter, ``exponential(0.5, factor=1.5)``
    with ``.cap(60).jitter(0.5)`` is the same in seconds.

    >>> list(google_interval(randomization_factor=0).take(5).draw())
    [0.5, 0.75, 1.125, 1.687, 2.53]
    >>> google_interval().bounds(1)
    (0.25, 0.75)

    Args:
        initial_interval: Interval before retry 1. A duration, >= 1 ms.
        randomization_factor: Part of the interval that a delay may be shorter
            or longer. Dimensionless, 0 <= factor < 1.
        multiplier: Growth of the interval. Dimensionless, >= 1; at most 1,000
            intervals may differ until they reach *max_interval*.
        max_interval: Bound on the interval, not on what is drawn around it. A
            duration, >= *initial_interval*, <= 2**31 - 1 ms as in the original.

    Returns:
        An endless schedule.

    Raises:
        ConfigError: A setting is out of its bounds.

    Source:
        `ExponentialBackOff`, Google HTTP Client Library for Java: class
        documentation and checks.
    """
    first = parse_duration("initial_interval", initial_interval)
    check_number("initial_interval", first, at_least=0.001)
    longest = parse_duration("max_interval", max_interval)
    suggestion = (
        "no shorter than initial_interval, no longer than the original can hold"
    )
    check_number(
        "max_interval",
        longest,
        at_least=first,
        at_most=MAX_INTERVAL,
        suggestion=suggestion,
    )
    spread = check_number("randomization_factor", randomization_factor, at_most=1)
    if spread == 1:
        rule = "a number >= 0 and < 1"
        raise invalid_setting("randomization_factor", rule, randomization_factor)
    growth = check_number("multiplier", multiplier, at_least=1)
    if len(google_intervals(first, growth, longest)) > MAX_INTERVALS:
        rule = f"1, or large enough for at most {MAX_INTERVALS} different intervals"
        raise invalid_setting("multiplier", rule, multiplier)
    return GoogleInterval(first, spread, growth, longest)


def polly_interval(median_first_retry_delay: Duration = 1.0) -> Schedule:
    """Wait as Polly does with jitter: exponential, without a crowd anywhere.

    What is drawn is no delay but the time of the retry: that of retry n is
    ``2 ** t * tanh(sqrt(4 * t))`` with t between n - 1 and n, where 1.4 is
    *median_first_retry_delay*. So the retries of many callers follow each other
    evenly, and after a long wait comes a shorter one. Give it a ``.cap()``.

    >>> smooth = polly_interval("1s")
    >>> [round(smooth.bounds(retry)[1], 3) for retry in (1, 2, 3, 4)]
    [1.377, 2.837, 4.326, 8.584]
    >>> list(smooth.without_jitter().take(5).draw())
    [1.0, 1.0, 2.0, 4.0, 8.0]

    Args:
        median_first_retry_delay: When the first half of all first retries is made,
            nearly; for those after, it is 2, 4, 8 times as late. Seconds,
            timedelta or text, >= 0.

    Returns:
        An endless schedule. Each of its delays may be 0.

    Raises:
        ConfigError: *median_first_retry_delay* is no duration.

    Source:
        `DecorrelatedJitterBackoffV2`, Polly.Contrib.WaitAndRetry 1.1 and
        Polly 8, by the formula of G. Polevoy, issue 530 of Polly, 2019.
    """
    return PollyInterval(
        parse_duration("median_first_retry_delay", median_first_retry_delay)
    )
