"""The section of the HTML report on what a policy does after an outage."""

import re

import pytest

from retrykit import Policy, Rule, budgets
from retrykit.simulate import Clients, Outage, simulate
from tests._support import chromium

browser = chromium.browser

ONCE = Policy(max_attempts=1)
PATIENT = Policy(schedule=[0, 0, 0], attempt_timeout="2s", budget=budgets.Throttle())


def opened(browser, policy, **others):
    browser.open({"own": policy, **others}, simulates=True)
    return browser.find("#outage").location_once_scrolled_into_view and browser


def verdict(browser, wanted):
    """Wait until the page shows a verdict, and return whether it is that one."""
    text = "return document.querySelector('#verdict').textContent === "
    browser.wait(f"{text}{wanted!r}")
    return True


def slide(browser, name, *keys):
    browser.press(browser.find(f"[data-outage='{name}']"), *keys)


def test_the_verdict_is_that_of_the_library(browser):
    opened(browser, ONCE)
    assert verdict(browser, str(simulate(ONCE)))
    slide(browser, "load", "HOME")
    slide(browser, "duration", "END")
    expected = simulate(ONCE, load="10%", outage="60s")
    assert verdict(browser, str(expected))
    names = dict(
        zip(browser.texts("#outage dt"), browser.texts("#outage dd"), strict=True)
    )
    assert names == {
        "peak load": f"{expected.peak:.1f} times normal",
        "attempts per call": "1.00",
        "calls that give up": f"{100 * expected.given_up / expected.calls:.0f} %",
    }
    assert browser.console_messages() == []


def test_every_control_changes_the_simulation(browser):
    opened(browser, PATIENT)
    few = Clients(PATIENT, processes=1)
    assert verdict(browser, str(simulate(PATIENT)))
    slide(browser, "processes", "HOME")
    assert verdict(browser, str(simulate(few)))
    browser.choose("kind", "error")
    assert verdict(browser, str(simulate(few, outage=Outage("10s", "error"))))
    assert browser.find("#verdict").get_attribute("class") == "verdict recovers"


def test_the_timeout_of_the_policy_is_that_of_the_clients(browser):
    opened(browser, PATIENT)
    slider = browser.find("[data-outage='timeout']")
    assert not slider.is_enabled()
    assert slider.get_attribute("aria-valuetext") == "2s"
    opened(browser, ONCE)
    slider = browser.find("[data-outage='timeout']")
    assert slider.is_enabled()
    assert slider.get_attribute("aria-valuetext") == "1s"


def test_a_changed_policy_is_simulated_anew(browser):
    opened(browser, Policy(max_attempts=2))
    assert verdict(browser, str(simulate(Policy(max_attempts=2))))
    browser.type("max_attempts", "1")
    browser.find("#outage").location_once_scrolled_into_view  # noqa: B018  scrolls
    assert verdict(browser, str(simulate(ONCE)))


def test_what_cannot_be_simulated_is_named_with_a_command(browser):
    ruled = Policy(rules=[Rule(on=OSError, schedule=[1])])
    opened(browser, ruled)
    assert verdict(browser, "This page cannot simulate a policy with rules.")
    assert browser.text("#outage-command") == (
        "In a terminal: retrykit simulate your_module:POLICY --load 70% --outage 10s"
    )
    shown = browser.all("#outage input, #outage svg")
    assert not any(each.is_displayed() for each in shown)


def test_an_outage_whose_error_is_not_retried_has_a_reason(browser):
    opened(browser, Policy(on=ConnectionError, max_attempts=2))
    browser.wait("return document.querySelector('#verdict').textContent")
    assert browser.text("#verdict").startswith("on must be a condition that matches")
    assert not browser.find("#outage-command").is_displayed()
    assert not browser.find("#outage-chart").is_displayed()
    browser.choose("kind", "refuse")
    assert verdict(browser, "recovers at once")
    assert browser.find("#outage-chart").is_displayed()


def test_so_many_attempts_end_the_simulation(browser):
    opened(browser, Policy(schedule=[0] * 3000, max_elapsed="1h"))
    browser.choose("kind", "error")
    slide(browser, "load", "END")
    slide(browser, "duration", "END")
    assert verdict(browser, "So many attempts are too much for this page.")
    assert browser.find("#outage-command").is_displayed()


def test_the_chart_has_load_goodput_and_the_outage(browser):
    opened(browser, ONCE)
    assert verdict(browser, str(simulate(ONCE)))
    drawn = browser.find("#outage-chart").get_attribute("innerHTML")
    assert re.findall("NaN|Infinity|undefined", drawn) == []
    for part in ("rect.outage", "path.load", "path.goodput", "path.capacity"):
        assert len(browser.all(f"#outage-chart {part}")) == 1, part


@pytest.mark.parametrize("width", [360, 1100], ids="{} px".format)
def test_the_section_fits_its_width(browser, width):
    opened(browser, ONCE)
    browser.resize(width)
    try:
        assert browser.run("return document.documentElement.scrollWidth") <= width
        drawn = browser.run(
            "return document.querySelector('#outage-chart svg').viewBox.baseVal.width"
        )
        assert abs(drawn - browser.find("#outage-chart").size["width"]) <= 1
    finally:
        browser.chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_printed_page_has_the_simulation(browser):
    browser.open({"own": ONCE}, simulates=True)
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.text("#verdict") == str(simulate(ONCE))
