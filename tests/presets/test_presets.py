"""Presets against the numbers in the documentation of their systems."""

import math
from itertools import accumulate, islice

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, StopReason, presets, schedules as s
from retrykit.testing.strategies import seeds
from tests._support.exhausted_calls import exhaust
from tests._support.reference_data import reference_data

HOSTNAME = reference_data("hostname_verification")
ZIZQ = reference_data("zizq")
DAY = 86_400


ROWS = HOSTNAME["rows"][:75]


def test_hostname_verification_has_the_delays_of_its_table():
    """Row 0 is the delay before the first retry."""
    schedule = presets.hostname_verification().schedule
    for row in ROWS:
        low, high = schedule.bounds(row["retry_attempt"] + 1)
        assert low == high == row["seconds"], row
        assert low.is_integer(), row
        assert round(low / 60, 6) == row["minutes"], row
        assert round(low / 3600, 6) == row["hours"], row


def test_hostname_verification_follows_its_formula():
    def formula(attempt):
        base = 1.05 if attempt < 10 else 1.15
        return min(math.floor(60 * math.pow(base, attempt)), 4 * 3600)

    drawn = list(presets.hostname_verification().schedule.draw())
    assert drawn == [formula(attempt) for attempt in range(75)]


def test_the_repr_of_hostname_verification_is_its_formula():
    assert repr(presets.hostname_verification().schedule) == (
        "exponential(60.0, factor=1.05)"
        ".switch(after=10, to=exponential(60.0, factor=1.15))"
        ".round_down(1.0).cap(14400.0).take(75)"
    )


def test_hostname_verification_makes_75_retries_in_7_days(backend, clock):
    calls, state = exhaust(backend, presets.hostname_verification())
    assert calls == state.attempt == 76
    assert clock.sleeps == [row["seconds"] for row in ROWS]
    assert round(sum(clock.sleeps) / DAY, 2) == 7.06
    assert state.elapsed == state.total_delay == sum(clock.sleeps)
    assert state.stop_reason is StopReason.SCHEDULE_ENDED
    assert state.status == "dead"


def test_hostname_verification_keeps_every_error(backend, clock):
    _, state = exhaust(backend, presets.hostname_verification())
    assert [error.args for error in state.errors] == [(n,) for n in range(1, 77)]
    assert [failure.delay for failure in state.failures] == [*clock.sleeps, None]
    assert state.dropped_failures == 0


def test_hostname_verification_takes_longer_than_its_documentation_says():
    """The first 10 retries take 751 s, and 26 of the 75 come within 4 hours."""
    times = list(accumulate(presets.hostname_verification().schedule.draw()))
    assert times[9] == 751
    assert sum(time <= 4 * 3600 for time in times) == 26
    assert "751 s" in presets.hostname_verification.__doc__
    assert "26 of the" in presets.hostname_verification.__doc__


def test_zizq_has_the_defaults_of_its_documentation():
    defaults = ZIZQ["defaults"]
    assert presets.zizq() == presets.zizq(
        retry_limit=defaults["retry_limit"],
        base=defaults["B_s"],
        exponent=defaults["E"],
        jitter=defaults["J_s"],
    )
    assert presets.zizq().max_attempts == defaults["retry_limit"] + 1
    assert presets.zizq().max_elapsed is None


def test_the_repr_of_zizq_is_its_formula():
    schedule = s.constant("15s") + s.polynomial(4) + s.linear("30s").full_jitter()
    assert presets.zizq().schedule == schedule
    assert repr(schedule) == (
        "constant(15.0) + polynomial(4.0, first=1.0) + linear(30.0).full_jitter()"
    )


@pytest.mark.parametrize("row", ZIZQ["bounds"], ids=lambda row: f"attempt {row['a']}")
def test_zizq_has_the_bounds_of_its_table(row):
    bounds = presets.zizq().schedule.bounds(row["a"])
    assert bounds == (row["low_s"], row["high_s"])


def test_zizq_lasts_as_long_as_its_formula_says():
    bounds = [presets.zizq().schedule.bounds(a) for a in range(1, 26)]
    lows, highs = zip(*bounds, strict=True)
    assert sum(lows) / DAY == pytest.approx(ZIZQ["total_window_days"]["low"])
    assert sum(highs) / DAY == pytest.approx(ZIZQ["total_window_days"]["high"])
    drawn = math.fsum(islice(presets.zizq().schedule.draw(7), 25)) / DAY
    assert 24.93 < drawn < 25.05


@given(
    st.integers(0, 10**6),
    st.floats(0, 6),
    st.integers(0, 10**6),
    st.integers(1, 500),
    seeds(),
)
def test_zizq_follows_its_formula_with_every_setting(base, exponent, jitter, a, seed):
    """``t = B + a ** E + a * rand(0 to J)``; E may be fractional."""
    policy = presets.zizq(base=base, exponent=exponent, jitter=jitter)
    low, high = policy.schedule.bounds(a)
    assert low == pytest.approx(base + a**exponent)
    assert high == pytest.approx(base + a**exponent + a * jitter)
    *_, last = islice(policy.schedule.draw(seed), a)
    assert low <= last <= high


def test_zizq_accepts_an_exponent_of_two_and_a_half():
    policy = presets.zizq(exponent=2.5, jitter=0)
    assert list(islice(policy.schedule.draw(), 4)) == pytest.approx(
        [16, 15 + 2**2.5, 15 + 3**2.5, 47]
    )


def test_zizq_with_a_limit_of_3_is_dead_after_the_fourth_failure(backend, clock):
    calls, state = exhaust(backend, presets.zizq(retry_limit=3))
    assert calls == state.attempt == 4
    assert state.status == "dead"
    assert state.stop_reason is StopReason.ATTEMPTS
    assert [error.args for error in state.errors] == [(1,), (2,), (3,), (4,)]
    for row, nap in zip(ZIZQ["bounds"], clock.sleeps, strict=False):
        assert row["low_s"] <= nap <= row["high_s"]
    assert len(clock.sleeps) == 3


def test_zizq_with_a_limit_of_0_is_dead_at_once(backend, clock):
    calls, state = exhaust(backend, presets.zizq(retry_limit=0))
    assert (calls, state.status, clock.sleeps) == (1, "dead", [])


@pytest.mark.thorough
def test_zizq_keeps_every_error_with_any_limit(backend, clock):
    calls, state = exhaust(backend, presets.zizq(retry_limit=200))
    assert calls == len(state.errors) == len(clock.sleeps) + 1 == 201


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("retry_limit", -1),
        ("retry_limit", 2.5),
        ("retry_limit", None),
        ("base", -1),
        ("base", "15"),
        ("exponent", -0.5),
        ("exponent", "4"),
        ("jitter", math.inf),
        ("jitter", None),
    ],
    ids=str,
)
def test_zizq_names_an_invalid_setting(setting, value):
    with pytest.raises(ConfigError, match=rf"^{setting} must be .*, got {value!r}"):
        presets.zizq(**{setting: value})


GOOGLE_AT_ITS_BOUNDS = [
    {"initial_interval": "1ms"},
    {"initial_interval": "1m"},
    {"randomization_factor": 0},
    {"randomization_factor": math.nextafter(1, 0)},
    {"multiplier": 1},
    {"max_interval": "500ms"},
    {"max_interval": "2147483647ms"},
    {"max_elapsed_time": "1ms"},
]


@pytest.mark.parametrize("settings", GOOGLE_AT_ITS_BOUNDS, ids=str)
def test_google_accepts_settings_at_their_bounds(settings):
    policy = presets.google(**settings)
    low, high = policy.schedule.bounds(1)
    assert 0 <= low <= high


GOOGLE_BEYOND_ITS_BOUNDS = [
    ("initial_interval", 0, "initial_interval"),
    ("initial_interval", -0.5, "initial_interval"),
    ("initial_interval", "1m1ms", "max_interval"),
    ("randomization_factor", 1, "randomization_factor"),
    ("randomization_factor", -0.1, "randomization_factor"),
    ("multiplier", 0.99, "multiplier"),
    ("multiplier", math.inf, "multiplier"),
    ("max_interval", "499ms", "max_interval"),
    ("max_interval", "2147483648ms", "max_interval"),
    ("max_interval", math.nan, "max_interval"),
    ("max_elapsed_time", 0, "max_elapsed_time"),
    ("max_elapsed_time", "-1s", "max_elapsed_time"),
    ("max_elapsed_time", None, "max_elapsed_time"),
]


@pytest.mark.parametrize(
    ("setting", "value", "named"), GOOGLE_BEYOND_ITS_BOUNDS, ids=str
)
def test_google_names_a_setting_beyond_its_bounds(setting, value, named):
    with pytest.raises(ConfigError, match=f"^{named} must be .*, got "):
        presets.google(**{setting: value})
