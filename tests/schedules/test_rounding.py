"""Rounding where floats differ from decimals."""

import math
from fractions import Fraction
from itertools import islice

import pytest
from hypothesis import assume, example, given

from retrykit import schedules as s
from retrykit.schedules._randomness import MAX_DELAY
from retrykit.testing.strategies import durations, schedules

# The error of a few floating-point operations.
ROUNDING = 1 + 1e-12


@given(durations(0, 1e12), durations(1e-6, 1e6))
def test_round_down_is_the_largest_multiple_of_the_unit(delay, unit):
    assume(delay / unit < 1e9)
    rounded, _ = s.constant(delay).round_down(unit).bounds(1)
    assert rounded <= delay * ROUNDING
    assert delay <= (rounded + unit) * ROUNDING
    assert math.isclose(rounded / unit, round(rounded / unit))


@pytest.mark.parametrize(
    ("delay", "unit", "rounded"),
    [
        (14_399.99999, "1s", 14_399),
        (600_000.0007, "1ms", 600_000),
        (2_000_000_000.7, "1s", 2_000_000_000),
    ],
    ids=["in hours", "in days", "in years"],
)
def test_a_long_delay_is_not_rounded_up(delay, unit, rounded):
    assert s.constant(delay).round_down(unit).bounds(1) == (rounded, rounded)


@pytest.mark.parametrize("parts", [1, 2, 3, 6, 7, 9, 12])
def test_the_longest_delay_can_be_rounded(parts):
    low, high = s.constant(MAX_DELAY).round_down(MAX_DELAY / parts).bounds(1)
    assert low == high <= MAX_DELAY


@given(schedules(), durations(at_least=0.001))
@example(s.constant(MAX_DELAY / 3), MAX_DELAY)
def test_the_sum_of_within_never_exceeds_the_limit(schedule, total):
    delays = list(islice(schedule.at_least(total / 30).within(total).draw(7), 99))
    assert len(delays) <= 30
    assert sum(map(Fraction, delays)) <= Fraction(total) * Fraction(ROUNDING)


@pytest.mark.parametrize("unit", [100, 200, 300, 700])
def test_within_does_not_lose_a_delay_to_rounding(unit):
    counts = range(1, 60)
    schedule = s.constant(f"{unit}ms")
    lengths = [len(list(schedule.within(f"{n * unit}ms").draw())) for n in counts]
    assert lengths == list(counts)
