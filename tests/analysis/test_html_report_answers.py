"""The top of the HTML report in a real browser: its answers, and its address."""

from urllib.parse import quote, unquote

import pytest

from retrykit import Policy, presets, schedules as s
from retrykit.simulate import simulate
from tests._support import chromium
from tests._support.chromium import STEADY

browser = chromium.browser

FETCH = Policy(schedule=s.exponential(0.1).full_jitter(), max_attempts=6)
BOTH = {"fetch": FETCH, "google": presets.google()}


def answered(browser):
    """Wait until every answer is known, and return the page."""
    browser.wait("return !document.querySelector('.end[aria-busy=true]')")
    return browser


def address(browser):
    """Return the readable address of the page, without the `#`."""
    return unquote(browser.run("return location.hash")[1:])


def follow(browser, text):
    browser.run("location.hash = arguments[0]", text)
    browser.wait_for_drawing()


def test_a_policy_answers_three_questions(browser):
    answered(browser.open({"fetch": FETCH}, simulates=True))
    assert browser.texts(".end dt") == [
        "When does it give up?",
        "How long does a call take at worst?",
        "What does it do to a server that is down?",
    ]
    outage = simulate(FETCH)
    assert browser.texts(".end dd") == [
        "after 6 attempts",
        "3.1s3.1 s",
        f"up to {outage.peak:.1f} times its normal load",
    ]
    median = "half of the calls that fail every time take less than 1.55s"
    assert browser.text(".typical") == f"{median}; attempts not counted"
    assert browser.text(".end .verdict") == str(outage)
    assert browser.text(".circumstances") == "if it hangs for 10s at 70 % load"


def test_the_answers_follow_every_change(browser):
    answered(browser.open(BOTH, simulates=True))
    browser.press(browser.slider("max_attempts"), "HOME")
    answered(browser)
    assert browser.text(".gives-up dd") == "after the first attempt"
    outage = simulate(FETCH.replace(max_attempts=1))
    assert browser.text(".end .verdict") == browser.text("#verdict") == str(outage)
    google = browser.text("[data-name='google'] .load")
    browser.press(browser.find("[data-outage='load']"), "HOME")
    assert browser.text("[data-name='google'] .circumstances").endswith("70 % load")
    answered(browser)
    assert browser.text("[data-name='google'] .load") != google
    assert browser.text(".circumstances").endswith("10 % load")


def test_the_address_has_every_policy_after_a_change(browser):
    browser.open(BOTH)
    assert address(browser) == ""
    browser.type("max_attempts", "3")
    browser.edit_policy("google")
    browser.type("schedule.multiplier", "3")
    browser.type("attempt", "2")
    browser.wait("return location.hash.startsWith('#attempt=2&')")
    changed = address(browser)
    assert changed == (
        "attempt=2&policy=fetch&schedule=exponential(0.1, factor=2.0).full_jitter()"
        "&max_attempts=3&max_elapsed=unlimited&deadline=stop&policy=google"
        "&schedule=google_interval(0.5, randomization_factor=0.5, multiplier=3.0, "
        "max_interval=60.0)&max_attempts=unlimited&max_elapsed=900&deadline=overshoot"
    )
    seen = browser.texts(".ending")
    link = browser.run("return location.href")
    browser.open({"another": STEADY})
    browser.chrome.get(link)
    browser.wait("return typeof retrykit === 'object'")
    assert browser.texts(".ending") == seen
    assert "max_attempts=3" in browser.text("#python")
    assert address(browser) == changed
    browser.edit_policy("google")
    assert "multiplier=3.0" in browser.text("#python")


def test_a_new_address_is_shown_at_once(browser):
    browser.open({"fetch": FETCH})
    follow(browser, "max_attempts=3&schedule=" + quote("linear(2) + uniform(1, 2)"))
    assert browser.text(".gives-up dd") == "after 3 attempts"
    python = browser.text("#python")
    names = {}
    exec(python, names)  # noqa: S102  under test
    schedule = s.linear(2) + s.uniform(1, 2)
    assert names["policy"] == Policy(schedule=schedule, max_attempts=3)
    assert "import linear, uniform" in python


def test_an_address_that_cannot_be_read_is_named_and_changes_nothing(browser):
    browser.open({"fetch": FETCH})
    follow(browser, "max_attempts=3&max_elapsed=-3")
    problem = browser.find("#problem")
    assert problem.text == (
        "The address cannot be read, and the page is as it was made: "
        "max_elapsed must be a finite number >= 0, got -3."
    )
    assert browser.text(".gives-up dd") == "after 6 attempts"
    follow(browser, "max_attempts=3")
    assert not problem.is_displayed()
    assert browser.text(".gives-up dd") == "after 3 attempts"
    assert browser.console_messages() == []


def test_the_link_is_copied(browser):
    from selenium.webdriver.common.keys import Keys

    browser.open({"fetch": FETCH})
    browser.find("#link").click()
    browser.wait("return document.querySelector('#link').textContent === 'Copied'")
    field = browser.field("schedule.of.factor")
    field.send_keys(Keys.CONTROL + "av")
    pasted = field.get_property("value")
    assert pasted.startswith(browser.run("return location.href") + "#policy=fetch&")


def test_limits_that_are_the_default_are_not_written(browser):
    browser.open({"fetch": FETCH})
    assert "max_elapsed" not in browser.text("#python") + browser.text("#toml")
    browser.set_limit("max_attempts", enabled=False)
    assert "max_attempts=None" in browser.text("#python")
    browser.set_limit("max_elapsed", enabled=True)
    assert "max_attempts" not in browser.text("#python") + browser.text("#toml")


@pytest.mark.parametrize("width", [420, 1280], ids="{} px".format)
def test_no_line_of_code_is_broken_by_the_width(browser, width):
    browser.open({"fetch": FETCH})
    browser.resize(width)
    try:
        heights = browser.run(
            "const pre = document.querySelector('#python');"
            "const style = getComputedStyle(pre);"
            "const inner = pre.scrollHeight - 2 * parseFloat(style.paddingTop);"
            "return inner / parseFloat(style.lineHeight)"
        )
        assert round(heights) == len(browser.text("#python").splitlines())
    finally:
        browser.chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
