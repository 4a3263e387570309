"""Reset times of rate limits, as sent by GitHub and others."""

import logging
import time
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from retrykit.hints import hint_named, reset_at
from retrykit.hints.rate_limit_reset import until_reset

RESET = "x-ratelimit-reset"


def limit_retries(reset, **others):
    headers = {"X-RateLimit-Reset": reset}
    headers |= {name.replace("_", "-"): value for name, value in others.items()}
    return SimpleNamespace(headers=headers)


def at(time):
    return lambda: time


@pytest.mark.parametrize(
    ("reset", "delay"),
    [
        ("0", 0.0),
        ("30", 30.0),
        ("285.5", 285.5),
        ("999999999", 999_999_999.0),
        ("1000000000", 0.0),
        ("1700000060", 60.0),
        ("1700000000.25", 0.25),
        ("1699999999", 0.0),
        ("30, 1700000060", 60.0),
    ],
    ids=str,
)
def test_a_limit_begins_anew_at_a_time_or_after_a_time(reset, delay):
    assert until_reset(limit_retries(reset), RESET, at(1.7e9)) == delay


@pytest.mark.parametrize("reset", ["", "-5", "soon", "1700000060000", "9" * 400, "٣"])
def test_a_limit_that_cannot_be_read_is_left_out_with_one_line(reset, caplog):
    caplog.set_level(logging.DEBUG)
    assert until_reset(limit_retries(reset), RESET, at(1.7e9)) is None
    (record,) = caplog.records
    assert record.levelname == "DEBUG"


def test_a_time_is_relative_to_the_date_of_its_response():
    response = limit_retries("1700000060", Date="Tue, 14 Nov 2023 22:13:30 GMT")
    assert until_reset(response, RESET, at(0)) == 50.0
    assert reset_at()(response) == 50.0


def test_the_clock_of_a_limit_is_that_of_the_wall():
    assert 1e6 - 60 < reset_at()(limit_retries(str(time.time() + 1e6))) < 1e6 + 60


@pytest.mark.parametrize(
    ("left", "delay"), [("0", 30.0), ("0.0", 30.0), ("1", None), ("59.0", None)]
)
def test_a_limit_that_is_not_reached_asks_for_nothing(left, delay):
    """Wait until the time of the reset if nothing remains."""
    response = limit_retries("30", X_RateLimit_Remaining=left)
    assert reset_at()(response) == delay


def test_a_limit_may_have_another_name():
    response = SimpleNamespace(headers={"RateLimit-Reset": "5"})
    assert reset_at()(response) is None
    assert hint_named("reset_at:RateLimit-Reset")(response) == 5.0
    assert hint_named("reset_at") == reset_at()


@given(reset=st.text() | st.from_regex("[0-9]+"), now=st.floats(0, 4e9))
def test_any_limit_is_a_delay_or_nothing(reset, now):
    delay = until_reset(limit_retries(reset), RESET, at(now))
    assert delay is None or 0.0 <= delay < 1e11
