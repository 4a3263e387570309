"""Reset times of rate limits, as sent by GitHub and others."""

import logging
import time
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from retrykit.hints import parse_hint, reset_at
from retrykit.hints._rate_limit_reset import until_reset
from retrykit.schedules._randomness import MAX_DELAY

RESET = "x-ratelimit-reset"


def limit_retries(reset, **others):
    headers = {"X-RateLimit-Reset": reset}
    headers |= {name.replace("_", "-"): value for name, value in others.items()}
    return SimpleNamespace(headers=headers)


def clock_at(time):
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
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("120ms", 0.12),
        ("1h2m3.5s", 3723.5),
        ("0s", 0.0),
        ("2023-11-14T22:13:50Z", 30.0),
        ("2023-11-14T23:13:50.5+01:00", 30.5),
        ("2023-11-14T22:13:19Z", 0.0),
        ("1700000060000", 60.0),
        ("1700000000250", 0.25),
        ("1699999999999", 0.0),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30.0),
    ],
    ids=str,
)
def test_a_reset_is_a_time_or_a_duration(reset, delay):
    assert until_reset(limit_retries(reset), RESET, clock_at(1.7e9)) == delay


@pytest.mark.parametrize(
    "reset",
    [
        *(
            "",
            "-5",
            "soon",
            "1700000060000000",
            "170000006000",
            "9" * 400,
            "٣",
            "6m0",
            "1sm",
        ),
        *("2023-13-14T22:13:50Z", "2023-11-14T22:13:50", "2023-11-14"),
    ],
)
def test_an_invalid_reset_is_ignored_and_logged(reset, caplog):
    caplog.set_level(logging.DEBUG)
    assert until_reset(limit_retries(reset), RESET, clock_at(1.7e9)) is None
    assert len(caplog.records) == 1


def test_a_reset_time_is_relative_to_the_date_of_its_response():
    response = limit_retries("1700000060", Date="Tue, 14 Nov 2023 22:13:30 GMT")
    assert until_reset(response, RESET, clock_at(0)) == 50.0
    assert reset_at()(response) == 50.0


def test_reset_at_uses_the_wall_clock():
    assert 1e6 - 60 < reset_at()(limit_retries(str(time.time() + 1e6))) < 1e6 + 60


@pytest.mark.parametrize(
    ("remaining", "delay"), [("0", 30.0), ("0.0", 30.0), ("1", None), ("59.0", None)]
)
def test_a_limit_that_is_not_reached_is_ignored(remaining, delay):
    """Wait until the time of the reset if nothing remains."""
    response = limit_retries("30", X_RateLimit_Remaining=remaining)
    assert reset_at()(response) == delay


def test_the_headers_may_have_another_name():
    response = SimpleNamespace(headers={"RateLimit-Reset": "5"})
    assert reset_at()(response) is None
    assert parse_hint("reset_at:RateLimit-Reset")(response) == 5.0
    assert parse_hint("reset_at") == reset_at()


@given(reset=st.text() | st.from_regex("[0-9]+"), now=st.floats(0, 4e9))
def test_any_reset_is_a_delay_or_nothing(reset, now):
    delay = until_reset(limit_retries(reset), RESET, clock_at(now))
    assert delay is None or 0.0 <= delay <= MAX_DELAY
