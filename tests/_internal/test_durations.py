"""Durations: parsing and formatting."""

import math
import re
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, Policy, schedules as s
from retrykit._internal.durations import format_duration, parse_duration
from retrykit._internal.validation import safe_repr
from retrykit.schedules._randomness import MAX_DELAY
from retrykit.testing.strategies import durations

ACCEPTED = [
    (0, 0.0),
    (7, 7.0),
    (0.5, 0.5),
    (5e-324, 5e-324),
    (MAX_DELAY, MAX_DELAY),
    (10**300, 1e300),
    (timedelta(0), 0.0),
    (timedelta(milliseconds=250), 0.25),
    (timedelta(microseconds=1), 1e-6),
    (timedelta(days=7, seconds=1), 604_801.0),
    (timedelta.max, 86_399_999_999_999.999999),
    ("0s", 0.0),
    ("12.5s", 12.5),
    ("500ms", 0.5),
    ("300ms", 0.3),
    ("100us", 1e-4),
    ("4h", 14_400.0),
    ("1h30m", 5_400.0),
    ("7d", 604_800.0),
    ("2w", 1_209_600.0),
    ("1d2h3m4s5ms6us", 93_784.005006),
    ("30m1h", 5_400.0),
    ("1h 30m", 5_400.0),
    (" 4h\n", 14_400.0),
    ("0.1m", 6.0),
    ("007s", 7.0),
    ("1s1s", 2.0),
    ("\t\v\f\r1s \n", 1.0),
    (f"{10**15 - 1}w", 604_799_999_999_999_395_200.0),
    ("1min", 60.0),
    ("90sec", 90.0),
    ("1 m", 60.0),
    ("1 h 30 min", 5_400.0),
    ("1hour30minutes", 5_400.0),
    ("2 weeks 1 day", 1_296_000.0),
    ("3 hrs", 10_800.0),
    ("5 usecs", 5e-6),
    ("5microseconds", 5e-6),
    ("5 msec", 0.005),
    ("5 milliseconds", 0.005),
    ("1 second\n", 1.0),
    ("PT0.5S", 0.5),
    ("PT1H30M", 5_400.0),
    ("P1DT2H3M4S", 93_784.0),
    ("P2W", 1_209_600.0),
    (" P1D ", 86_400.0),
    ("0." + "3" * 5000 + "s", 1 / 3),
]


@pytest.mark.parametrize(("value", "expected"), ACCEPTED, ids=lambda x: repr(x)[:30])
def test_a_duration_is_a_float_of_seconds(value, expected):
    found = parse_duration("delay", value)
    assert type(found) is float
    assert found == expected


TEXT = 'a duration such as "12.5s", "500ms" or "1h30m"'
UNITS = "write the unit (us, ms, s, m, h, d, w)"
NUMBER = "a finite number >= 0"
KINDS = 'give seconds as a number, a timedelta, or text such as "1h30m"'
LENGTH = "a finite duration >= 0"
HUGE = 10**400

NO_TEXTS = ["", "90", "0.5", "s", "-5s", "+5s", "5S", "5 S", "5mim", "5 m s"]
NO_TEXTS += [".5s", "5.s", "1.2.3s", "1e3s", "1,5s", "1_0s", "٣s", "5ms-"]
NO_TEXTS += ["1h30", "1h,30m", "01:30", "inf", "nan", "soon"]
NO_TEXTS += ["P", "PT", "P1", "PT5", "pt5s", "P1M", "P1Y", "P1H", "T5S", "P5S"]
NO_TEXTS += ["PT1S PT1S", "1s PT1S", "P T1S", "PT 1S", "-PT1S", "PT1S1M", "PT1DT1S"]
NO_TEXTS += ["\xa05s", "5s\u2003", "5s\x1c"]
# Well written, but longer than any use, or even than any float.
NO_TEXTS += [f"{10**15}us", "0" * 16 + "s", "9" * 400 + "s", f"1s{10**308}w"]
OUT_OF_BOUNDS = [-1, -3.5, -0.001, math.nan, math.inf, -math.inf, HUGE]
NO_NUMBERS = [
    True,
    False,
    None,
    b"5s",
    [5],
    (5,),
    {},
    5j,
    object,
    Decimal(5),
    Fraction(5),
]
INVALID = [
    *((text, f"{TEXT}, got {safe_repr(text)}; {UNITS}") for text in NO_TEXTS),
    (" 90 ", f"{TEXT}, got ' 90 '; {UNITS}"),
    *((value, f"{NUMBER}, got {safe_repr(value)}") for value in OUT_OF_BOUNDS),
    *((value, f"{NUMBER}, got {safe_repr(value)}; {KINDS}") for value in NO_NUMBERS),
    (timedelta(seconds=-1), f"{LENGTH}, got {timedelta(seconds=-1)!r}"),
]


@pytest.mark.parametrize(("value", "rule"), INVALID, ids=lambda x: repr(x)[:30])
def test_an_invalid_duration_is_rejected_by_name(value, rule):
    with pytest.raises(ConfigError, match=rf"^{re.escape(f'cap must be {rule}')}  \["):
        parse_duration("cap", value)


@given(durations())
def test_numbers_are_seconds(value):
    assert parse_duration("delay", value) == value


@given(st.timedeltas(min_value=timedelta(0)))
def test_a_timedelta_is_its_total_seconds(value):
    assert parse_duration("delay", value) == value.total_seconds()


UNIT_SIZES = {
    "us": Fraction(1, 1_000_000),
    "ms": Fraction(1, 1_000),
    "s": 1,
    "m": 60,
    "h": 3_600,
    "d": 86_400,
    "w": 604_800,
}


@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(sorted(UNIT_SIZES)))))
def test_a_string_is_the_sum_of_its_parts(parts):
    text = "".join(f"{count}{unit}" for count, unit in parts) or "0s"
    exact = sum(count * UNIT_SIZES[unit] for count, unit in parts)
    assert math.isclose(parse_duration("delay", text), exact, rel_tol=1e-15)


@given(st.integers(0, 10**9), st.sampled_from(["us", "ms", "s"]))
def test_a_string_of_one_part_is_the_nearest_float(count, unit):
    assert parse_duration("delay", f"{count}{unit}") == float(count * UNIT_SIZES[unit])


def test_durations_of_every_type_are_accepted_everywhere():
    half_an_hour = (1800, "30m", timedelta(minutes=30))
    assert len({Policy(max_elapsed=each) for each in half_an_hour}) == 1
    assert len({s.constant(each) for each in half_an_hour}) == 1
    assert len({s.exponential(each).cap(each) for each in half_an_hour}) == 1
    assert s.sequence(half_an_hour) == s.sequence([1800] * 3)


FORMATTED = {
    0: "0s",
    1e-12: "0s",
    1e-9: "0.001us",
    1e-6: "1us",
    0.00042: "420us",
    0.0009994: "999us",
    0.0009996: "1ms",
    0.0123: "12.3ms",
    0.25: "250ms",
    0.9994: "999ms",
    0.9996: "1s",
    0.99999: "1s",
    1: "1s",
    7.25: "7.25s",
    7.256: "7.26s",
    59.94: "59.9s",
    59.95: "1m",
    60: "1m",
    60.4: "1m",
    90.4: "1m30s",
    599: "9m59s",
    3_599: "59m59s",
    3_599.6: "1h",
    3_600: "1h",
    3_629: "1h",
    3_660: "1h1m",
    86_369: "23h59m",
    86_399: "1d",
    86_400: "1d",
    89_000: "1d1h",
    604_800: "7d",
    610_000: "7d1h",
    100_000_000: "1157d10h",
    86_399_999_999: "1000000d",
    86_400_000_000: "1e+06d",
    1.2e300: "1.39e+295d",
}


@pytest.mark.parametrize(("duration", "text"), FORMATTED.items())
def test_durations_are_formatted_with_three_digits_or_two_units(duration, text):
    assert format_duration(duration) == text


@given(durations(1e-9, 1e10))
def test_a_formatted_duration_is_near_the_exact_one(duration):
    text = format_duration(duration)
    assert math.isclose(parse_duration("delay", text), duration, rel_tol=0.025)


@given(durations(0, 8e10), durations(0, 8e10))
def test_a_longer_duration_is_never_formatted_as_a_shorter_one(one, other):
    short, long = sorted([one, other])
    assert parse_duration("delay", format_duration(short)) <= parse_duration(
        "delay", format_duration(long)
    )


@given(durations(0, 1e12))
def test_no_part_of_a_formatted_duration_reaches_the_next_unit(duration):
    full = {"us": 1000, "ms": 1000, "s": 60, "m": 60, "h": 24, "d": math.inf}
    parts = re.findall(r"([\d.e+-]+)(us|ms|[smhd])", format_duration(duration))
    assert parts
    assert all(float(count) < full[unit] for count, unit in parts)
