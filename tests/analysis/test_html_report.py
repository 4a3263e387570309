"""Interaction with the HTML report in a real browser."""

import math
import re
import tomllib
from zipfile import BadZipFile

import pytest

from retrykit import Policy, Rule, budgets, hints, presets, schedules as s
from retrykit._cli.summary import summarize
from retrykit.analysis.preview import preview
from retrykit.config.grpc_service_config import StatusCodes
from retrykit.schedules._randomness import MAX_DELAY
from tests._support import chromium
from tests._support.chromium import STEADY, THREE

browser, steady, three = chromium.browser, chromium.steady, chromium.three


def switches(browser):
    """Return the value of each switch of the chart."""
    chosen = ".picture .switch input:checked"
    names = browser.attributes(chosen, "name")
    return dict(zip(names, browser.attributes(chosen, "value"), strict=True))


def ticks(browser):
    return browser.texts("#chart .level text")


def test_a_slider_moved_by_key_updates_field_chart_table_and_texts(steady):
    was = steady.line_paths()
    steady.press(steady.slider("schedule.of.of.first"), "ARROW_RIGHT")
    assert steady.field("schedule.of.of.first").get_property("value") == "1.5"
    slider = steady.slider("schedule.of.of.first")
    assert slider.get_attribute("aria-valuetext") == "1.5s"
    assert steady.line_paths() != was
    assert steady.rows()[0] == (1, 0.75, 2.25, 0.75, 2.25)
    assert "exponential(1.5, factor=2.0)" in steady.text("#python")
    assert "exponential(1.5, factor=2.0)" in steady.text("#toml")
    assert "exponential(1.5, factor=2.0)" in steady.text("#expression")


def test_a_number_typed_moves_its_slider(steady):
    was = steady.slider("schedule.of.limit").get_property("value")
    steady.type("schedule.of.limit", "1h30m")
    slider = steady.slider("schedule.of.limit")
    assert float(slider.get_property("value")) > float(was)
    assert slider.get_attribute("aria-valuetext") == "1h30m"
    assert '.cap("1h30m")' in steady.text("#python")
    steady.press(steady.field("schedule.of.limit"), "TAB")
    assert steady.field("schedule.of.limit").get_property("value") == "5400"


def test_each_slider_moves_from_its_minimum_to_its_maximum(browser):
    schedule = (s.constant(1) + s.google_interval() * 2).round_down(1).take(3)
    schedule = schedule.then(s.polynomial(2).jitter(0.5))
    policy = Policy(schedule=schedule, max_attempts=5, max_elapsed=60)
    browser.open({"all": policy})
    for slider in browser.all("[data-slider]"):
        path = slider.get_attribute("data-slider")
        for key, end in [("HOME", "min"), ("END", "max")]:
            browser.press(slider, key)
            place = slider.get_property("value")
            # max_interval must not be below initial_interval.
            if browser.error(path) == "" or "interval" not in path:
                assert browser.error(path) == ""
                assert place == slider.get_attribute(end)
    assert browser.console_messages() == []


def test_reset_restores_the_given_policy(steady):
    was = steady.rows(), steady.text("#python")
    steady.type("schedule.of.of.first", "7")
    steady.type("attempt", "3")
    steady.set_limit("max_attempts", enabled=False)
    assert (steady.rows(), steady.text("#python")) != was
    steady.find("#reset").click()
    assert (steady.rows(), steady.text("#python")) == was
    assert steady.field("attempt").get_property("value") == "0"


def test_a_limit_can_be_removed_and_restored(steady):
    steady.type("max_attempts", "7")
    steady.set_limit("max_attempts", enabled=False)
    assert not steady.field("max_attempts").is_enabled()
    assert not steady.slider("max_attempts").is_enabled()
    assert len(steady.rows()) == 100
    assert steady.text(".ending") == "goes on beyond retry 1000"
    assert "max_attempts=None" in steady.text("#python")
    assert 'max_attempts = "unlimited"' in steady.text("#toml")
    steady.set_limit("max_attempts", enabled=True)
    assert steady.field("max_attempts").get_property("value") == "7"


def test_shows_which_limits_can_end_a_call(browser):
    policy = Policy(
        schedule=s.constant(9).full_jitter(), max_attempts=None, max_elapsed=60
    )
    browser.open({"long": policy}, retries=10)
    ending = "stops after retry 6 at the earliest: max_elapsed; or goes on beyond"
    assert browser.text(".ending") == f"{ending} retry 1000"
    assert browser.texts(".gives-up dd, .worst dd") == ["within 1m", "1m60 s"]


CAREFUL = Policy(
    on=(ConnectionError, TimeoutError),
    max_attempts=5,
    max_elapsed="10m",
    hint=hints.retry_after(),
    hint_cap="5m",
    budget=budgets.RatioBudget(0.2),
    attempt_timeout="10s",
    rules=[Rule(on=BlockingIOError, schedule=["30s", "2m"], max_attempts=3)],
)


def test_caveats_are_those_of_the_show_command(browser):
    browser.open({"careful": CAREFUL})
    summary = {name: " ".join(lines) for name, *lines in summarize(preview(CAREFUL))}
    basis = "with attempts of 10s, by the policy's own schedule"
    assert summary["at worst"] == f"56.1s in total {basis}"
    assert browser.text(".worst dd").startswith("56.1s")
    assert browser.text(".basis") == f"Worst case: {basis}."
    assert browser.text(".caveats") == f"Notes: {summary['notes']}."
    browser.type("attempt", "1m")
    assert browser.text(".worst dd").startswith("56.1s")
    browser.type("attempt", "1s")
    assert browser.text(".basis") == f"Worst case: {basis.replace('10s', '1s')}."
    assert browser.text(".worst dd").startswith("11.1s")


def test_a_policy_of_a_schedule_and_limits_alone_needs_no_caveats(steady):
    assert steady.all(".basis, .caveats") == []


def test_the_deadline_rules_need_max_elapsed(steady):
    assert not steady.field("deadline").is_enabled()
    steady.set_limit("max_elapsed", enabled=True)
    steady.select("deadline", "overshoot")
    assert 'deadline="overshoot"' in steady.text("#python")
    steady.set_limit("max_elapsed", enabled=False)
    assert steady.field("deadline").get_property("value") == "stop"
    assert "deadline" not in steady.text("#python") + steady.text("#toml")


def test_a_chart_has_two_lines_and_the_band_between_them(steady):
    parts = steady.attributes(".line > path", "class")
    assert parts == ["band", "high", "low"]
    assert len(steady.all(".marks > *")) == 8 + 2  # and two in the legends


def test_exact_seconds_have_no_rounding_errors(three):
    """0.25 + 0.375 + 0.562 and so on is 2.0300000000000002 in floats."""
    three.edit_policy("google")
    table = three.text("table")
    assert "2.03 s" in table
    assert "00000" not in table


def test_cumulative_and_logarithmic_have_a_switch_each(three):
    three.open(THREE, log=False)
    delays, linear = three.line_paths(), ticks(three)
    three.choose("cumulative", "yes")
    sums = three.line_paths()
    assert sums != delays
    assert three.text("#chart-title") == "Total delay up to each retry"
    three.choose("log", "yes")
    assert three.line_paths() != sums
    assert {"10s", "1m", "1h", "1d"} <= set(ticks(three))
    three.choose("log", "no")
    three.choose("cumulative", "no")
    assert (three.line_paths(), ticks(three)) == (delays, linear)
    assert ticks(three) == ["0s", "1d", "2d", "3d", "4d", "5d"]


def test_the_page_starts_with_the_requested_view(three):
    three.choose("cumulative", "yes")
    three.choose("log", "no")
    chosen = three.line_paths()
    three.open(THREE, cumulative=True, log=False)
    assert three.line_paths() == chosen
    assert switches(three) == {"cumulative": "yes", "log": "no"}
    three.choose("cumulative", "no")
    three.find("#reset").click()
    assert switches(three) == {"cumulative": "no", "log": "no"}
    three.open(THREE, cumulative=True)
    assert switches(three) == {"cumulative": "yes", "log": "yes"}
    assert three.text("#chart-title") == "Total delay up to each retry"


def test_the_band_of_zizq_is_that_of_its_documentation(browser):
    """Of the delay before retry 1, between 16 s and 46 s."""
    browser.open({"zizq": presets.zizq()})
    assert switches(browser) == {"cumulative": "no", "log": "yes"}
    chart = browser.find("#chart").size["height"]
    high, low = browser.run(
        "return ['high', 'low'].map((side) => document.querySelector("
        "`#chart .${side}`).getPointAtLength(0).y)"
    )
    assert low - high > chart / 20


def test_the_tooltip_shows_the_retry_under_the_mouse(three):
    from selenium.webdriver import ActionChains

    chart = three.find("#chart")
    width = chart.size["width"]
    ActionChains(three.chrome).move_to_element_with_offset(
        chart, -width // 2 + 9, 0
    ).perform()
    tooltip = three.find("#tooltip")
    assert tooltip.text.splitlines()[0] == "Retry 1"
    assert "google 250ms to 750ms" in tooltip.text
    ActionChains(three.chrome).move_to_element(three.find("h1")).perform()
    assert not tooltip.is_displayed()


def test_the_arrow_keys_move_through_the_retries_and_announce_them(three):
    chart = three.find("#chart")
    three.press(chart, "ARROW_RIGHT", "ARROW_RIGHT", "ARROW_LEFT", "ARROW_UP")
    assert three.find("#tooltip").text.splitlines()[0] == "Retry 2"
    announcement = (
        "Retry 2. zizq: 31s to 1m31s. google: 375ms to 1.12s. hostname-verification: "
    )
    assert three.text("#status") == f"{announcement}1m3s"
    assert three.find("#status").get_attribute("aria-live") == "polite"
    for keys, retry in [(["END"], 75), (["PAGE_DOWN"], 65), (["HOME"], 1)]:
        three.press(chart, *keys)
        assert three.find("#tooltip p").text == f"Retry {retry}"
    three.press(chart, "END")
    assert "zizq: no retry" in three.text("#status")
    three.press(chart, "ESCAPE")
    assert not three.find("#tooltip").is_displayed()
    assert three.text("#status") == ""


def test_the_tooltip_stays_on_the_chart(three):
    chart = three.find("#chart")
    for key in ("HOME", "END"):
        three.press(chart, key)
        within = three.run(
            "const [t, c] = ['tooltip', 'chart'].map((id) =>"
            " document.getElementById(id).getBoundingClientRect());"
            "return t.left >= c.left && t.right <= c.right + 1"
        )
        assert within


def test_policies_are_drawn_over_one_another_and_can_be_hidden(three):
    assert three.attributes("#chart .line", "data-name") == list(THREE)
    three.choose("log", "no")
    three.all("#legend input")[0].click()
    assert three.attributes("#chart .line", "data-name") == list(THREE)[1:]
    assert ticks(three)[-1] == "4h"
    for box in three.all("#legend input")[1:]:
        box.click()
    assert three.find("#nothing").is_displayed()


def test_the_edited_policy_can_be_selected(three):
    zizq = three.text("[data-name='zizq'].end")
    three.edit_policy("google")
    assert len(three.rows()) == 40
    three.type("schedule.multiplier", "3")
    assert "multiplier=3.0" in three.text("#python")
    assert three.text("[data-name='zizq'].end") == zizq
    three.edit_policy("zizq")
    three.edit_policy("google")
    assert three.field("schedule.multiplier").get_property("value") == "3"
    assert three.text("#table-name") == "google"


def test_one_policy_has_no_legend_and_no_selection(steady):
    assert not steady.find("#legend").is_displayed()
    assert not steady.find("#edited").is_displayed()


def test_a_policy_without_retries_says_so(browser):
    browser.open({"once": Policy(max_attempts=1)})
    assert browser.find("#nothing").text == "no retries"
    assert browser.text("#rows") == "no retries"
    assert browser.text(".ending") == "never retries: max_attempts"
    browser.press(browser.find("#chart"), "ARROW_RIGHT")
    assert browser.text("#status") == "Retry 1. once: no retry"


LARGEST = {
    "longest": Policy(schedule=[0, 5e-324, 1.7e308]),
    "overflowing": Policy(schedule=s.exponential(1), max_attempts=1100),
}


@pytest.mark.parametrize("policy", LARGEST.values(), ids=LARGEST)
def test_the_scale_contains_the_longest_delays(browser, policy):
    browser.open({"odd": policy}, retries=1100)
    for log in ("yes", "no"):
        browser.choose("log", log)
        drawn = browser.find("#chart").get_attribute("innerHTML")
        assert re.findall("NaN|Infinity|undefined", drawn) == []
        assert 2 <= len(ticks(browser)) <= 12, ticks(browser)
    longest = preview(policy, retries=1100).rows[-1].high
    assert math.isclose(browser.rows()[-1][2], longest, rel_tol=1e-12)


def test_an_axis_without_a_round_number_has_ticks(browser):
    browser.open({"near": Policy(schedule=[37, 38])}, log=True)
    assert ticks(browser) == ["37s", "38s"]
    assert browser.console_messages() == []


def test_a_logarithmic_axis_starts_at_the_shortest_delay(browser):
    browser.open({"overflowing": LARGEST["overflowing"]}, retries=1100, log=True)
    assert ticks(browser)[0] == "1s"


def test_delays_that_overflow_are_shown_everywhere(browser):
    browser.open({"zizq": presets.zizq()})
    was = browser.line_paths()
    browser.type("schedule.left.right.exponent", "300")
    assert "polynomial(300.0" in browser.text("#expression")
    assert "exponent=300.0" in browser.text("#python")
    assert "exponent=300," in browser.text("#toml")
    assert browser.line_paths() != was
    assert math.isclose(browser.rows()[-1][2], MAX_DELAY, rel_tol=1e-12)
    exponent = browser.slider("schedule.left.right.exponent")
    assert exponent.get_property("value") == exponent.get_property("max")
    browser.type("schedule.right.of.step", "1e308")
    slider = browser.slider("schedule.right.of.step")
    assert slider.get_property("value") == slider.get_property("max")


def test_draws_more_rows_than_javascript_allows_arguments(browser):
    many = {f"{n}": Policy(max_attempts=None) for n in range(7)}
    browser.open(many, retries=10_000)
    assert len(browser.rows()) == 10_000


def test_hidden_settings_are_in_both_texts(browser):
    policy = Policy(on=(OSError, BadZipFile), raises="group", seed=7, name="pay")
    browser.open({"pay it": policy.replace(on_result=callable)})
    names = {}
    exec(browser.text("#python"), names)  # noqa: S102  under test
    assert names["policy"] == policy
    toml = browser.text("#toml")
    tables = tomllib.loads(toml)["tool"]["retrykit"]["policies"]
    assert Policy.from_dict(tables["pay it"]) == policy
    for text in (toml, browser.text("#python")):
        assert text.endswith("\n# omitted (code): on_result")


def test_names_of_retrykit_are_imported(browser):
    policy = Policy(on=StatusCodes(["UNAVAILABLE"]), give_up_on=BadZipFile)
    browser.open({"grpc": policy})
    names = {}
    exec(browser.text("#python"), names)  # noqa: S102  under test
    assert names["policy"] == policy
    assert 'on = ["grpc=UNAVAILABLE"]' in browser.text("#toml")


def test_the_copy_button_copies_the_text(steady):
    from selenium.webdriver.common.keys import Keys

    steady.find("[data-copies='toml']").click()
    copied = "return document.querySelector('[data-copies=toml]').textContent"
    steady.wait(f"{copied} === 'Copied'")
    assert steady.text("#status") == "Copied."
    steady.field("schedule.factor").send_keys(Keys.CONTROL + "av")
    pasted = steady.field("schedule.factor").get_property("value")
    # A field has one line.
    assert pasted.split() == steady.text("#toml").split() or pasted == steady.text(
        "#toml"
    ).replace("\n", "")


def test_no_request_leaves_the_page(three):
    assert three.run("return performance.getEntriesByType('resource')") == []
    assert three.console_messages() == []
    blocked = three.chrome.execute_async_script(
        "const done = arguments[0];"
        "const violation = 'securitypolicyviolation';"
        "document.addEventListener(violation, (e) => done(e.effectiveDirective));"
        "fetch('http://127.0.0.1:9/').catch(() => {})"
    )
    assert blocked == "connect-src"
    three.console_messages()


def test_a_name_is_never_markup(browser):
    name = "</script><img src=x onerror=alert(1)> \"'\\\x7f"
    browser.open({name: STEADY}, title="<b>A & B</b>")
    assert browser.text("h1") == browser.chrome.title == "<b>A & B</b>"
    assert browser.text(".end h3") == name
    tables = tomllib.loads(browser.text("#toml"))["tool"]["retrykit"]["policies"]
    assert Policy.from_dict(tables[name]) == STEADY
    assert browser.console_messages() == []
