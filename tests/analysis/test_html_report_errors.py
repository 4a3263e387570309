"""Invalid input in the HTML report."""

import pytest

from retrykit import ConfigError, Policy, presets, schedules as s
from tests._support import chromium
from tests._support.chromium import STEADY
from tests._support.schedule_data import schedule_data, schedule_from

browser = chromium.browser


WRONG = {
    "max_attempts": {"0": 0, "2.5": 2.5, "many": "many", "": "", "-1": -1},
    "max_elapsed": {"-1": -1, "90x": "90x", "1e999": float("inf")},
    "exponential.first": {"1 month": "1 month", "-0.5": -0.5, "it's": "it's"},
    "exponential.factor": {"0.5": 0.5, "fast": "fast", "1e309": float("inf")},
    "decay.rate": {"-1": -1},
    "polynomial.exponent": {"-1": -1},
    "jitter.factor": {"1.01": 1.01, "half": "half"},
    "round_down.unit": {"0": 0, "0s": "0s", "x": "x"},
    "take.retries": {"-1": -1, "3.0": 3.0},
    "google_interval.initial_interval": {"0": 0, "0.5ms": "0.5ms"},
    "google_interval.randomization_factor": {"1": 1, "2": 2},
    "google_interval.max_interval": {"0.1": 0.1, "1e7": 1e7, "x": "x"},
    "uniform.low": {"-1": -1, "4": 4},
    "uniform.high": {"0.5": 0.5, "x": "x"},
    "sequence.delays": {"1, x": [1, "x"], "1 2 -3": [1, 2, -3]},
}
SCHEDULES = {
    "exponential": s.exponential(1),
    "decay": s.decay(1),
    "polynomial": s.polynomial(1),
    "jitter": s.constant(1).jitter(0.5),
    "round_down": s.constant(5).round_down(1),
    "take": s.constant(1).take(3),
    "google_interval": s.google_interval(),
    "uniform": s.uniform(1, 3),
    "sequence": s.sequence([1, 2]),
}
TYPED = [(field, *each) for field, values in WRONG.items() for each in values.items()]


@pytest.mark.parametrize(
    ("field", "typed", "value"), TYPED, ids=[f"{each[0]} {each[1]}" for each in TYPED]
)
def test_invalid_input_has_the_message_of_the_library(browser, field, typed, value):
    kind, _, part = field.rpartition(".")
    schedule = SCHEDULES.get(kind, s.constant(1))
    policy = Policy(schedule=schedule, max_attempts=2, max_elapsed=60)
    with pytest.raises(ConfigError) as caught:
        if kind:
            schedule_from(schedule_data(schedule) | {part: value})
        Policy(**{part: value})
    browser.open({"wrong": policy})
    was = browser.rows(), browser.text("#python")
    path = f"schedule.{part}" if kind else part
    browser.type(path, "60")
    browser.type(path, typed)
    assert browser.error(path) == caught.value.message
    assert browser.field(path).get_attribute("aria-invalid") == "true"
    browser.find("#reset").click()
    assert (browser.rows(), browser.text("#python")) == was
    assert browser.error(path) == ""
    assert browser.console_messages() == []


def test_a_count_that_is_too_large_is_rejected(browser):
    browser.open({"steady": STEADY})
    with pytest.raises(ConfigError) as caught:
        Policy(max_attempts=2**53)
    browser.type("max_attempts", str(2**53))
    assert browser.error("max_attempts") == caught.value.message
    browser.type("max_attempts", str(10**400))
    assert "<= 9007199254740991, got" in browser.error("max_attempts")
    browser.type("max_attempts", "9007199254740991")
    assert "max_attempts=9007199254740991" in browser.text("#python")


def test_invalid_input_leaves_the_last_valid_results(browser):
    steady = browser.open({"steady": STEADY})
    was = steady.rows(), steady.line_paths()
    steady.run(
        "const field = document.querySelector('[data-path=\"schedule.factor\"]');"
        "field.value = 'x'; field.dispatchEvent(new Event('input'))"
    )
    assert steady.error("schedule.factor").startswith("factor must be")
    assert (steady.rows(), steady.line_paths()) == was
    steady.press(steady.slider("schedule.factor"), "ARROW_RIGHT")
    assert steady.error("schedule.factor") == ""
    assert steady.rows() != was[0]


def test_then_rejects_an_endless_first_schedule(browser):
    def first(after):
        return s.sequence([1, 2]).switch(after=after, to=s.linear(1))

    browser.open({"then": Policy(schedule=first(5).then([9]))})
    browser.type("schedule.of.after", "2")
    with pytest.raises(ConfigError) as caught:
        first(2).then([9])
    assert browser.error("schedule.of.after") == caught.value.message
    assert ".switch(after=5" in browser.text("#python")


def test_an_error_in_another_field_is_updated(browser):
    browser.open({"google": presets.google()})
    browser.type("schedule.initial_interval", "2m")
    assert browser.error("schedule.initial_interval").startswith("max_interval must be")
    browser.type("schedule.max_interval", "5m")
    assert browser.error("schedule.initial_interval") == ""
    assert browser.rows()[0][1:3] == (60.0, 180.0)
