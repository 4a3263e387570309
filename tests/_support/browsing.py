"""A real browser for the tests of the page, and what a person does in it."""

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

__all__ = ["STEADY", "THREE", "Browser", "near", "started"]
__all__ += ["browser", "steady", "three"]

STEADY = Policy(schedule=s.exponential(1).cap(60).jitter(0.5), max_elapsed=None)
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
    """Start Chromium with nothing of a person's, and end it."""
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
    """The page as a person meets it: by what is seen, typed and pressed."""

    def __init__(self, chrome, folder):
        self.chrome = chrome
        self.paths = (folder / f"page {number}.html" for number in count())

    def wait(self, script):
        """Wait until a script returns what is true, 10 s at most."""
        WebDriverWait(self.chrome, 10, 0.01).until(lambda _: self.run(script))

    def open(self, policies, **settings):
        assert self.complaints() == [], "of the page that was open before"
        path = next(self.paths)
        path.write_text(page(policies, **settings), "utf-8")
        self.chrome.get(path.as_uri())
        self.wait("return typeof retrykit === 'object'")
        self.drawn()
        return self

    def drawn(self):
        """Wait until what has a size is drawn to it, after the next frame."""
        frames = "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
        self.chrome.execute_async_script(frames)

    def run(self, script, *arguments):
        """Return what a script returns; numbers come and go as Python's JSON."""
        whole = f"return JSON.stringify((function (...arguments) {{ {script} }})"
        texts = ", ".join(map(json.dumps, arguments))
        return json.loads(self.chrome.execute_script(f"{whole}({texts}) ?? null)"))

    def find(self, selector):
        return self.chrome.find_element("css selector", selector)

    def all(self, selector):
        return self.chrome.find_elements("css selector", selector)

    def texts(self, selector):
        """Return the texts of all at one time: what is redrawn is another element."""
        return self.run(
            "return [...document.querySelectorAll(arguments[0])]"
            ".map((each) => each.textContent)",
            selector,
        )

    def attributes(self, selector, name):
        """Return an attribute of all at one time, as for `texts`."""
        return self.run(
            "return [...document.querySelectorAll(arguments[0])]"
            ".map((each) => each.getAttribute(arguments[1]))",
            selector,
            name,
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
        """Choose a radio button by its label, as it is not seen itself."""
        self.find(f"label:has([name='{name}'][value='{value}'])").click()

    def resize(self, width):
        """Make the window so wide, and wait until it is drawn."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.drawn()

    def select(self, path, value):
        self.field(path).find_element(
            "css selector", f"option[value='{value}']"
        ).click()

    def edit(self, name):
        for option in self.all("#edited option"):
            if option.text == name:
                option.click()

    def limit(self, name, wanted):
        box = self.find(f"[data-limit='{name}']")
        if box.is_selected() != wanted:
            box.click()

    def text(self, selector):
        return self.run(
            "return document.querySelector(arguments[0]).textContent", selector
        )

    def error(self, path):
        """Return what is told beside a field; the empty text if nothing is."""
        error = self.find(f"#{self.field(path).get_attribute('id')}-error")
        return error.text if error.is_displayed() else ""

    def rows(self):
        """Return the numbers of the table as it is read."""
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

    def complaints(self):
        return [entry["message"] for entry in self.chrome.get_log("browser")]


def near(found, expected):
    """Return whether numbers are equal but for the last bits of a power."""
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
