"""Ticks of an axis of durations: round, in order, and few."""

import pytest
from hypothesis import given, strategies as st

from retrykit.analysis._duration_ticks import ticks

MINUTE, HOUR, DAY = 60, 3_600, 86_400


@pytest.mark.parametrize(
    ("high", "step"),
    [
        (0.003, 0.0005),
        (1, 0.2),
        (80, 15),
        (300, MINUTE),
        (4_000, 10 * MINUTE),
        (6 * HOUR, HOUR),
        (3 * DAY, 12 * HOUR),
        (5 * DAY, DAY),
        (60 * DAY, 10 * DAY),
        (3_000 * DAY, 500 * DAY),
    ],
    ids=str,
)
def test_ticks_are_multiples_of_a_readable_step(high, step):
    marks = ticks(0, high, log=False)
    assert marks == pytest.approx([step * n for n in range(len(marks))])
    assert high - step < marks[-1] <= high


def test_an_axis_that_does_not_start_at_zero_has_ticks():
    assert ticks(100, 280, log=False) == [120, 150, 180, 210, 240, 270]


def test_a_logarithmic_axis_has_ticks_at_units_and_their_tens():
    assert ticks(1, 2 * DAY, log=True) == [1, 10, 60, 600, 3_600, 36_000, DAY]
    assert ticks(1, 2 * DAY, log=True, most=4) == [1, 60, 3_600, DAY]
    assert ticks(50, 70, log=True) == [60]
    assert ticks(61, 70, log=True) == []
    assert ticks(DAY, 2e4 * DAY, log=True) == [DAY * 10**n for n in range(5)]


@given(
    st.floats(0, 1e12),
    st.floats(1e-5, 1e12),
    st.booleans(),
    st.integers(2, 12),
)
def test_ticks_are_on_the_axis_in_order_and_no_more_than_requested(
    low, length, log, most
):
    high = low + length
    if not low < high:
        return
    marks = ticks(low, high, log=log, most=most)
    assert marks == sorted(set(marks))
    assert all(low <= mark <= high * (1 + 1e-9) for mark in marks)
    assert len(marks) <= most + 1
