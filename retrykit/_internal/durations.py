"""Durations: parsed to float seconds, and formatted for people."""

import math
import re
import sys
from typing import TYPE_CHECKING

from retrykit._internal.validation import check_number, invalid_setting

if TYPE_CHECKING:
    from datetime import timedelta
else:
    try:
        # `datetime` takes its classes from there; in Python 3.11 it defines them in
        # Python before, which takes four times as long.
        from _datetime import timedelta
    except ImportError:  # pragma: no cover  (a Python without modules in C)
        from datetime import timedelta

__all__ = ["CENTURY", "DURATION_PATTERN", "LONGEST_TEXT", "Duration"]
__all__ += [
    "duration_in_words",
    "format_duration",
    "parse_duration",
    "parse_positive_duration",
    "parse_signed_duration",
]

Duration = float | timedelta | str
"""Seconds as a number, a `timedelta`, or a string such as ``"1h30m"``."""

# Divisors, since 300 / 1000 is the float nearest to 0.3, and 300 * 0.001 may not be.
_PARTS = {"us": 1_000_000, "ms": 1_000}
_WHOLES = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SPACE = r"[ \t\n\r\f\v]*"
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]+)?"
# Longer names first, so that ``min`` is not read as ``m``.
_TERM = (
    rf"({_NUMBER}){_SPACE}(microseconds?|usecs?|us|milliseconds?|msecs?|ms|minutes?|"
    "mins?|m|seconds?|secs?|s|hours?|hrs?|h|days?|d|weeks?|w)"
)
# Years and months have no fixed length.
_ISO = (
    rf"P(?=[0-9T])(?:{_NUMBER}W)?(?:{_NUMBER}D)?"
    rf"(?:T(?=[0-9])(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?"
)

CENTURY = 36_525 * 86_400.0
"""A century in seconds: the longest duration worth naming. It fits into a timedelta."""

DURATION_PATTERN = rf"^{_SPACE}(?:(?:{_TERM}{_SPACE})+|{_ISO}{_SPACE})$"
"""Pattern of a duration string, in the syntax of Python, JavaScript and JSON Schema.

With at most fifteen digits before each point, no sum of terms is infinite.
"""

LONGEST_TEXT = 10_000
"""Maximum length of a duration string, in characters."""


def parse_duration(name: str, value: object) -> float:
    """Parse a duration to seconds.

    >>> parse_duration("cap", "1h30m")
    5400.0
    >>> parse_duration("cap", "1 min 30 sec"), parse_duration("cap", "PT0.5S")
    (90.0, 0.5)
    >>> parse_duration("cap", timedelta(milliseconds=250))
    0.25
    >>> parse_duration("cap", "90")
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: cap must be a duration such as "12.5s", "500ms" or \
"1h30m", got '90'; write the unit (us, ms, s, m, h, d, w)  \
[invalid-value]

    Args:
        name: The name of the parameter, for the error.
        value: Seconds as a number, a timedelta, or a string of numbers with units
            (us, ms, s, m, h, d, w, or their names such as ``min``) or in the form of
            ISO 8601, of at most 10,000 characters. Finite and >= 0.

    Returns:
        Seconds, finite and >= 0.

    Raises:
        ConfigError: *value* is not a duration, is negative, or is not finite.
    """
    if isinstance(value, str):
        return _parse(name, value)
    if not isinstance(value, timedelta):
        # A number is the right type, and only out of bounds.
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return check_number(name, value, suggestion="" if is_number else _SUGGESTION)
    if value < timedelta(0):
        raise invalid_setting(
            name, "a finite duration >= 0", value, code="out-of-range"
        )
    return value.total_seconds()


def parse_positive_duration(name: str, value: object, suggestion: str = "") -> float:
    """Parse a duration > 0 to seconds."""
    seconds = parse_duration(name, value)
    if not seconds:
        raise invalid_setting(
            name, "a duration > 0", value, suggestion, code="out-of-range"
        )
    return seconds


def parse_signed_duration(name: str, value: object) -> float:
    """Parse a duration to seconds; a number or a timedelta may be negative.

    >>> parse_signed_duration("step", -2), parse_signed_duration("step", "2s")
    (-2.0, 2.0)
    """
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, int | float) and -sys.float_info.max <= value < 0:
        return float(value)
    return parse_duration(name, value)


_SUGGESTION = 'give seconds as a number, a timedelta, or text such as "1h30m"'


def _parse(name: str, text: str) -> float:
    if len(text) > LONGEST_TEXT:
        raise invalid_setting(
            name,
            f"a string of at most {LONGEST_TEXT} characters",
            text,
            code="out-of-range",
        )
    if not re.search(DURATION_PATTERN, text):
        rule = 'a duration such as "12.5s", "500ms" or "1h30m"'
        suggestion = "write the unit (us, ms, s, m, h, d, w)"
        raise invalid_setting(name, rule, text, suggestion)
    if "P" in text:
        text = text.replace("T", "").lower()
    total = 0.0
    for digits, word in re.findall(_TERM, text):
        unit: str = _SHORT.get(word[:3]) or word[0]
        parts = _PARTS.get(unit)
        number = float(digits)
        total += number / parts if parts else number * _WHOLES[unit]
    return total


# By the first three letters; the first letter tells the others.
_SHORT = {"us": "us", "use": "us", "mic": "us", "ms": "ms", "mse": "ms", "mil": "ms"}


def format_duration(duration: float) -> str:
    """Format a duration for people, rounded.

    >>> [format_duration(x) for x in (0, 0.0123, 7, 90.4, 3600, 610_000)]
    ['0s', '12.3ms', '7s', '1m30s', '1h', '7d1h']

    Returns:
        At most three digits below a minute and from a million days on, and at most two
        units in between.
    """
    if duration < _SMALL[-1][2]:
        return _below_a_minute(duration, "")
    if duration >= _MOST:
        return f"{duration / 86_400:.3g}d"
    totals = ((round(duration / step) * step, end) for step, end in _STEPS)
    total = next(total for total, end in totals if total < end)
    units = [(unit, size) for unit, size in _LARGE if size <= total]
    large, size = units[0]
    rest = total % size
    text = f"{total // size}{large}"
    if not rest or len(units) == 1:
        return text
    small, step = units[1]
    return f"{text}{rest // step}{small}" if rest >= step else text


def duration_in_words(duration: float) -> str:
    """Format a duration as part of a sentence, rounded like `format_duration`.

    >>> [duration_in_words(x) for x in (0, 0.0123, 7.2, 90.4, 3600)]
    ['0 s', '12.3 ms', '7.2 s', '1 min 30 s', '1 h']
    """
    if duration < _SMALL[-1][2]:
        return _below_a_minute(duration, " ")
    parts = re.findall(r"([0-9.e+]+)([a-z]+)", format_duration(duration))
    return " ".join(f"{n} {'min' if unit == 'm' else unit}" for n, unit in parts)


def _below_a_minute(duration: float, space: str) -> str:
    unit, size, _ = next(each for each in _SMALL if duration < each[2])
    # Less is below the resolution of clocks.
    shown = duration / size if duration >= 1e-9 else 0  # noqa: PLR2004
    return f"{shown:.3g}{space}{unit if shown else 's'}"


# A million days, in seconds.
_MOST = 86_400 * 1e6

# Three digits just below these limits would round up to the next unit.
_SMALL = [("us", 1e-6, 0.9995e-3), ("ms", 1e-3, 0.9995), ("s", 1, 59.95)]
_STEPS = [(1, 3_600), (60, 86_400), (3_600, math.inf)]
_LARGE = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)]
