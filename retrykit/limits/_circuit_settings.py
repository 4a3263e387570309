"""Checks of the settings of a circuit breaker."""

import math
from datetime import timedelta
from fractions import Fraction
from typing import Any, Final

from retrykit._conditions import check_condition
from retrykit._internal.durations import parse_duration, parse_positive_duration
from retrykit._internal.introspection import accepts_one_argument, is_coroutine_function
from retrykit._internal.validation import (
    check_integer,
    check_number,
    invalid_setting,
    prefix_errors,
)
from retrykit.schedules._base import Schedule, as_schedule

__all__ = ["DEFAULT_RATE", "MOST_PROBES", "as_fraction", "check_minimum", "check_on"]
__all__ += ["check_on_result", "check_open_for", "check_rate", "check_successes"]
__all__ += ["check_window"]

DEFAULT_RATE: Final = 0.5
"""The default rate of Hystrix, which most breakers adopted."""
# As in Hystrix.
_MINIMUM_CALLS: Final = 20

MOST_PROBES: Final = 10_000
"""Maximum number of probes."""
_MOST_CALLS: Final = 100_000
_DAY: Final = 86_400


def as_fraction(rate: float | None) -> tuple[int, int] | None:
    """Return the numerator and the denominator of a rate as a fraction.

    0.07 is 7/100, and 1/3 is 1/3; None is None.
    """
    if rate is None:
        return None
    return Fraction(rate).limit_denominator(_MOST_CALLS).as_integer_ratio()


def check_rate(name: str, rate: object) -> float | None:
    """Return a rate as a float; None if it is None."""
    return None if rate is None else _check_share(name, rate, "0.5 is 50 %")


def _check_share(name: str, value: object, suggestion: str) -> float:
    share = check_number(name, value, at_most=1, suggestion=suggestion)
    if not share:
        raise invalid_setting(
            name, "a number > 0 and <= 1", value, suggestion, code="out-of-range"
        )
    return share


def check_window(window: object) -> tuple[int | str, float | None]:
    """Return a window: a number of calls and None, or a time's text and seconds."""
    if isinstance(window, str | timedelta):
        seconds = parse_duration("window", window)
        if not 1 <= seconds <= _DAY:
            raise invalid_setting(
                "window", "a duration from 1s to 1d", window, code="out-of-range"
            )
        return f"{seconds!r}s".replace(".0s", "s"), seconds
    if isinstance(window, int) and not isinstance(window, bool):
        return check_integer("window", window, at_least=1, at_most=_MOST_CALLS), None
    rule = "a number of calls, or a time as text or timedelta"
    raise invalid_setting("window", rule, window, 'write 100, or "30s"')


def check_minimum(minimum: object, window: int | str) -> int:
    """Return the minimum number of calls, by default 20, or a smaller window of calls.

    Raises:
        ConfigError: It is invalid, or greater than a window of calls.
    """
    most = window if isinstance(window, int) else None
    if minimum is None:
        return _MINIMUM_CALLS if most is None else min(_MINIMUM_CALLS, most)
    number = check_integer("minimum_calls", minimum, at_least=1)
    if most is not None and number > most:
        rule = f"at most the window, {most}"
        suggestion = "a window of so few calls never has that many"
        raise invalid_setting(
            "minimum_calls", rule, minimum, suggestion, code="contradiction"
        )
    return number


def check_open_for(value: object) -> float | Schedule:
    """Return the open time as seconds or a schedule."""
    if isinstance(value, str | int | float | timedelta):
        suggestion = "list several, or give a schedule, for a time that grows"
        return parse_positive_duration("open_for", value, suggestion)
    with prefix_errors("open_for"):
        schedule = as_schedule(value)
    if schedule.bounds(1) is None:
        rule = "a schedule with at least one delay"
        raise invalid_setting("open_for", rule, value)
    return schedule


def check_successes(successes: object, probes: int) -> int:
    """Return how many of the probes must succeed, from a number, a share or None.

    None means all of them.
    """
    if successes is None:
        return probes
    suggestion = f"at most the number of probes, {probes}, or 0.5 for half of them"
    if isinstance(successes, float):
        share = Fraction(_check_share("successes", successes, suggestion))
        return max(math.ceil(probes * share.limit_denominator(_MOST_CALLS)), 1)
    return check_integer(
        "successes", successes, at_least=1, at_most=probes, suggestion=suggestion
    )


def check_on(on: object) -> object:
    """Return *on* if it is a condition without an async predicate."""
    if is_coroutine_function(check_condition("on", on)):
        raise invalid_setting("on", "a sync predicate", on, code="async-mismatch")
    return on


def check_on_result(on_result: Any) -> Any:
    """Return *on_result* if it is None or a sync predicate of results."""
    if on_result is None:
        return None
    if not callable(on_result) or not accepts_one_argument(on_result):
        rule = "a predicate that takes the result"
        raise invalid_setting("on_result", rule, on_result)
    if is_coroutine_function(on_result):
        raise invalid_setting(
            "on_result", "a sync predicate", on_result, code="async-mismatch"
        )
    return on_result
