"""A real browser for the tests of the HTML report, and actions of its user."""

import contextlib
import json
import math
from itertools import count

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from retrykit import Policy, presets, schedules as s
from retrykit.analysis.html_report import page
from tests._support.required import program

__all__ = ["STEADY", "THREE", "Browser", "almost_equal", "started"]
__all__ += ["browser", "steady", "three"]

STEADY = Policy(schedule=s.exponential(1).cap(60).jitter(0.5))
THREE = {
    "zizq": presets.zizq(),
    "google": presets.google(),
    "hostname-verification": presets.hostname_verification(),
}

_FLAGS = (
    "headless=new no-sandbox disable-gpu disable-quic no-first-run "
    "disable-background-networking disable-component-update disable-sync "
    "disable-dev-shm-usage window-size=1400,1000"
)


@contextlib.contextmanager
def started(folder):
    """Run Chromium with an empty profile."""
    options = webdriver.ChromeOptions()
    options.binary_location = program("chromium")
    options.add_argument(f"--user-data-dir={folder / 'profile'}")
    for flag in _FLAGS.split():
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=program("chromedriver"))
    chrome = webdriver.Chrome(options=options, service=service)
    try:
        yield Browser(chrome, folder)
    finally:
        chrome.quit()


class Browser:
    """The HTML report as its user sees it."""

    def __init__(self, chrome, folder):
        self.chrome = chrome
        self.paths = (folder / f"page {number}.html" for number in count())

    def wait(self, script):
        """Wait until a script returns a true value, 10 s at most."""
        WebDriverWait(self.chrome, 10, 0.01).until(lambda _: self.run(script))

    def open(self, policies, *, simulates=False, **settings):
        """Open the page of policies; most tests need no simulation, which is slow."""
        assert self.console_messages() == [], "on the page before this one"
        path, text = next(self.paths), page(policies, **settings)
        if not simulates:
            text = text.replace('"hang": null', '"hang": "left out of this test"')
        path.write_text(text, "utf-8")
        self.chrome.get(path.as_uri())
        self.wait("return typeof retrykit === 'object'")
        self.wait_for_drawing()
        return self

    def wait_for_drawing(self):
        """Wait for two frames: sizes are known after the first."""
        frames = "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
        self.chrome.execute_async_script(frames)

    def run(self, script, *arguments):
        """Return the result of a script; values are converted by Python's JSON."""
        whole = f"return JSON.stringify((function (...arguments) {{ {script} }})"
        texts = ", ".join(map(json.dumps, arguments))
        return json.loads(self.chrome.execute_script(f"{whole}({texts}) ?? null)"))

    def find(self, selector):
        return self.chrome.find_element("css selector", selector)

    def all(self, selector):
        return self.chrome.find_elements("css selector", selector)

    def texts(self, selector):
        """Return the texts of all elements at one moment: redrawing replaces them."""
        return self.run(
            "return [...document.querySelectorAll(arguments[0])]"
            ".map((each) => each.textContent)",
            selector,
        )

    def attributes(self, selector, name):
        """Return an attribute of all elements at one moment, like `texts`."""
        return self.run(
            "return [...document.querySelectorAll(arguments[0])]"
            ".map((each) => each.getAttribute(arguments[1]))",
            selector,
            name,
        )

    def line_paths(self):
        """Return the paths of the chart's lines."""
        return self.run(
            "return [...document.querySelectorAll('.line path')]"
            ".map((each) => each.outerHTML)"
        )

    def field(self, path):
        return self.find(f"[data-path='{path}']")

    def slider(self, path):
        return self.find(f"[data-slider='{path}']")

    def type(self, path, text):
        self.field(path).send_keys(Keys.CONTROL + "a" + Keys.NULL + Keys.DELETE + text)

    def press(self, element, *names):
        element.send_keys(*(getattr(Keys, name) for name in names))

    def choose(self, name, value):
        """Choose a radio button by its label, as the button itself is hidden."""
        self.find(f"label:has([name='{name}'][value='{value}'])").click()

    def resize(self, width):
        """Change the width of the window."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.wait_for_drawing()

    def select(self, path, value):
        self.field(path).find_element(
            "css selector", f"option[value='{value}']"
        ).click()

    def edit_policy(self, name):
        for option in self.all("#edited option"):
            if option.text == name:
                option.click()

    def set_limit(self, name, enabled):
        box = self.find(f"[data-limit='{name}']")
        if box.is_selected() != enabled:
            box.click()

    def text(self, selector):
        return self.run(
            "return document.querySelector(arguments[0]).textContent", selector
        )

    def error(self, path):
        """Return the error shown beside a field, or an empty string."""
        error = self.find(f"#{self.field(path).get_attribute('id')}-error")
        return error.text if error.is_displayed() else ""

    def rows(self):
        """Return the exact numbers of the table."""
        cells = self.run(
            "return [...document.querySelectorAll('#rows tr')].map((row) => ["
            "row.cells[0].textContent, "
            "...[...row.querySelectorAll('.exact')].map((each) => each.textContent)])"
        )
        return [
            (int(retry), *(float(each.removesuffix(" s")) for each in exact))
            for retry, *exact in cells
            if exact
        ]

    def console_messages(self):
        return [entry["message"] for entry in self.chrome.get_log("browser")]


def almost_equal(found, expected):
    """Return whether rows of numbers differ at most by rounding."""
    return len(found) == len(expected) and all(
        len(ours) == len(theirs)
        and all(
            math.isclose(a, b, rel_tol=1e-12) for a, b in zip(ours, theirs, strict=True)
        )
        for ours, theirs in zip(found, expected, strict=True)
    )


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with started(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def steady(browser):
    return browser.open({"steady": STEADY})


@pytest.fixture
def three(browser):
    return browser.open(THREE)
