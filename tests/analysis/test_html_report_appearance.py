"""Accessibility of the HTML report: contrast, width, keyboard, print."""

import contextlib
import re

import pytest

from retrykit import presets
from tests._support import chromium
from tests._support.chromium import STEADY

browser, steady, three = chromium.browser, chromium.steady, chromium.three


@contextlib.contextmanager
def emulated(browser, **media):
    """Emulate another medium or other media features."""
    browser.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        yield
    finally:
        none = {"media": "", "features": []}
        browser.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", none)


def test_the_theme_follows_the_system_and_a_switch(steady):
    def background():
        return steady.run(
            "return getComputedStyle(document.documentElement).backgroundColor"
        )

    def system(theme):
        feature = {"name": "prefers-color-scheme", "value": theme}
        steady.chrome.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [feature]}
        )
        return background()

    light, dark = system("light"), system("dark")
    assert light != dark
    steady.choose("theme", "light")
    assert background() == light
    steady.choose("theme", "dark")
    assert system("light") == dark
    steady.choose("theme", "system")
    assert background() == light


def luminance(color):
    channels = [int(each) / 255 for each in re.findall(r"\d+", color)[:3]]
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4
        for each in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_and_texts_have_enough_contrast(browser, theme):
    """WCAG 2.2: contrast of 3 to 1 for graphics, 4.5 to 1 for text."""
    browser.open({f"policy {number}": STEADY for number in range(7)})
    browser.choose("theme", theme)
    browser.type("schedule.factor", "x")

    def styles(selector, name):
        return browser.run(
            "return [...document.querySelectorAll(arguments[0])].map("
            "(each) => getComputedStyle(each)[arguments[1]])",
            selector,
            name,
        )

    (card,) = set(styles(".card", "backgroundColor"))
    drawn = styles(".line .high", "stroke")
    assert len(set(drawn)) == 6
    assert min(contrast(card, each) for each in drawn) >= 3
    read = [
        *styles(".hint, .exact, .error, dt", "color"),
        *styles(".level text", "fill"),
    ]
    assert min(contrast(card, each) for each in read) >= 4.5


def chosen_and_track(browser):
    """Return the colors of a switch: background and text if checked, and others."""
    return browser.run(
        "const style = (selector) =>"
        " getComputedStyle(document.querySelector(`.switch ${selector}`));"
        "const chosen = style('input:checked + span');"
        "return [chosen.backgroundColor, chosen.color,"
        " getComputedStyle(document.querySelector('.switch')).backgroundColor]"
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_selected_option_of_a_switch_has_enough_contrast(steady, theme):
    steady.choose("theme", theme)
    chosen, text, track = chosen_and_track(steady)
    assert contrast(chosen, track) >= 3
    assert contrast(chosen, text) >= 4.5


def test_the_selected_option_is_visible_in_forced_colors(steady):
    feature = {"name": "forced-colors", "value": "active"}
    with emulated(steady, features=[feature]):
        assert steady.run("return matchMedia('(forced-colors: active)').matches")
        chosen, text, track = chosen_and_track(steady)
        assert contrast(chosen, track) >= 3
        assert contrast(chosen, text) >= 4.5


def test_the_whole_table_is_printed_without_controls(three):
    with emulated(three, media="print"):
        shown = [
            each.is_displayed() for each in three.all("input, select, button, #keys")
        ]
        assert not any(shown)
        table, box = (
            three.find(selector).rect for selector in (".scroll table", ".scroll")
        )
        assert box["height"] >= table["height"] > 460
        assert three.find("#chart svg").is_displayed()


def test_an_operator_is_shown_between_its_operands(browser):
    """At this width, groups are side by side."""
    browser.open({"sum": presets.zizq()})
    browser.resize(800)
    try:
        rects = {
            selector: [each.rect for each in browser.all(selector)]
            for selector in (".symbol", ".group")
        }
        symbol, (before, after, *_) = rects[".symbol"][0], rects[".group"]
        assert symbol["x"] == before["x"] == after["x"]
        assert before["y"] < symbol["y"] < after["y"]
    finally:
        browser.chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_each_landmark_has_its_own_name(three):
    landmarks = three.all("section, [role='region']")
    names = [each.accessible_name for each in landmarks]
    assert all(names)
    assert len(set(names)) == len(names)


def test_every_control_is_reachable_by_keyboard_and_shows_focus(three):
    reached = []
    for _ in range(60):
        three.press(three.chrome.switch_to.active_element, "TAB")
        active = three.chrome.switch_to.active_element
        if active.tag_name == "body":
            break
        seen = active
        if active.get_attribute("type") == "radio":
            seen = active.find_element("xpath", "following-sibling::span")
        assert seen.value_of_css_property("outline-style") == "solid"
        reached.append(
            active.get_attribute("id") or active.get_attribute("data-slider")
        )
    assert {"chart", "reset", "edited", "python", "toml"} <= set(reached)
    assert {
        s.get_attribute("data-slider") for s in three.all("[data-slider]:enabled")
    } <= set(reached)


def test_every_control_has_an_accessible_name(three):
    for control in three.all("input, select, button, [tabindex]"):
        assert control.accessible_name.strip(), control.get_attribute("outerHTML")


@pytest.mark.parametrize("width", [400, 700, 1100, 1600], ids="{} px".format)
def test_no_width_makes_the_page_scroll_horizontally(three, width):
    three.resize(width)
    try:
        assert three.run("return document.documentElement.scrollWidth") <= width
        chart = three.run(
            "return document.querySelector('#chart > svg').viewBox.baseVal.width"
        )
        assert abs(chart - three.find("#chart").size["width"]) <= 1
    finally:
        three.chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
