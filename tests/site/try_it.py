"""The page "Try it" of the site in `build/site`, in a browser: ``nox -s docs``."""

import os
import subprocess
import sys
from http import HTTPStatus

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests._support import chromium
from tests._support.documents import ROOT
from tests.site.server import Quiet, served

SITE = ROOT / "build/site"
ENDS = ("Ended", "Failed", "Python cannot", "Stopped")
browser = chromium.browser


class WithoutPython(Quiet):
    def send_head(self):
        if "/pyodide/" not in self.path:
            return super().send_head()
        return self.send_error(HTTPStatus.NOT_FOUND)


class Example:
    """An example of the page as its user sees it."""

    def __init__(self, browser, box):
        self.browser = browser
        self.source = box.find_element("css selector", "textarea")
        self.button, self.reset = box.find_elements("css selector", "button")
        self.output = box.find_element("css selector", "pre")
        self.frame = box.find_element("css selector", "iframe")
        self.status = box.find_element("css selector", "[role=status]")

    @property
    def shown(self):
        """What it has printed, and its page."""
        return (
            self.output.get_property("textContent"),
            self.frame.is_displayed() and self.frame.get_property("srcdoc"),
        )

    def write(self, source):
        self.source.send_keys(Keys.CONTROL + "a" + Keys.NULL + Keys.DELETE)
        self.browser.run(
            "document.execCommand('insertText', false, ...arguments)", source
        )

    def wait(self, status):
        # The first run loads Python, which takes a busy machine this long.
        wait = WebDriverWait(self.browser.chrome, 120, 0.02)
        wait.until(lambda _: self.status.text.startswith((status, *ENDS)))
        assert self.status.text.startswith(status)

    def press(self):
        self.button.send_keys(Keys.ENTER)

    def run(self, source, status="Ended"):
        """Run another program, and return what it prints."""
        self.write(source)
        self.source.send_keys(Keys.CONTROL + Keys.ENTER)
        self.wait(status)
        return self.output.get_property("textContent")


@pytest.fixture(scope="module")
def opened(browser):
    with served(SITE) as address:
        browser.chrome.get(f"{address}/try_it.html")
        yield browser


@pytest.fixture(scope="module")
def examples(opened):
    return [Example(opened, box) for box in opened.all(".try-it")]


@pytest.fixture
def example(examples):
    return examples[0]


def test_python_is_loaded_only_when_asked_for(opened, examples):
    names = "performance.getEntriesByType('resource').map((each) => each.name)"
    assert not [name for name in opened.run(f"return {names}") if "pyodide" in name]


def test_the_page_says_how_much_it_loads(opened):
    size = sum(each.stat().st_size for each in (SITE / "_static/pyodide").iterdir())
    assert f"about {size / 1e6:.0f} MB" in opened.text("article")


def test_each_example_prints_what_was_recorded(examples):
    recorded = [each.shown for each in examples]
    for each in examples:
        each.press()
        each.wait("Ended")
    assert [each.shown for each in examples] == recorded
    assert all(output for output, _ in recorded)


def test_the_page_that_an_example_writes_draws_its_chart(opened, examples):
    [page] = [each for each in examples if each.frame.is_displayed()]
    opened.chrome.switch_to.frame(page.frame)
    try:
        opened.wait("return document.querySelectorAll('.line path').length")
    finally:
        opened.chrome.switch_to.default_content()


def test_a_changed_example_prints_something_else_until_it_is_reset(example):
    recorded = example.source.get_property("value"), example.shown
    assert example.run("print(6 * 7)") == "42\n"
    example.reset.send_keys(Keys.ENTER)
    assert (example.source.get_property("value"), example.shown) == recorded


def test_an_error_shows_its_traceback(example):
    assert example.run("def f():\n    1 / 0\n\n\nf()", "Failed") == (
        "Traceback (most recent call last):\n"
        '  File "example.py", line 5, in <module>\n    f()\n    ~^^\n'
        '  File "example.py", line 2, in f\n    1 / 0\n    ~~^~~\n'
        "ZeroDivisionError: division by zero\n"
    )


def test_an_error_in_a_command_shows_its_message(example):
    printed = example.run("retrykit show nothing", "Failed")
    assert printed.startswith("retrykit: POLICY must be")


def test_an_event_loop_runs_coroutines(example):
    source = "import asyncio\nprint(asyncio.run(asyncio.sleep(0.01, 'slept')))"
    assert example.run(source) == "slept\n"


def test_tab_indents_and_leaves_after_escape(opened, example):
    example.write("if True:")
    example.source.send_keys(Keys.ENTER, Keys.TAB, "a = 1", Keys.ENTER, "b = 2")
    assert example.source.get_property("value") == "if True:\n    a = 1\n    b = 2"
    example.source.send_keys(Keys.ESCAPE, Keys.TAB)
    assert opened.chrome.switch_to.active_element == example.button


def test_an_endless_loop_is_stopped(example, examples):
    example.run("while True:\n    print('again')", "Running")
    examples[1].press()
    examples[1].wait("Another example is running")
    example.press()
    example.wait("Stopped")
    assert example.shown[0].startswith("again\nagain\n")
    assert example.run("print('another Python')") == "another Python\n"


def test_a_phone_shows_all_of_it(opened):
    opened.resize(420)
    try:
        wide = "document.documentElement.scrollWidth - window.innerWidth"
        assert opened.run(f"return {wide}") <= 0
    finally:
        opened.chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_what_was_recorded_is_shown_where_python_cannot_be_loaded(browser):
    with served(SITE, WithoutPython) as address:
        browser.chrome.get(f"{address}/try_it.html")
        example = Example(browser, browser.find(".try-it"))
        recorded = example.shown
        example.press()
        example.wait("Python cannot run here")
        assert example.shown == recorded


def test_what_was_recorded_is_shown_without_a_server(browser):
    browser.chrome.get((SITE / "try_it.html").as_uri())
    assert not browser.all(".try-it textarea")
    assert "retrying fetch" in browser.texts(".try-it pre")[1]


@pytest.fixture
def build(tmp_path):
    """Return a function that builds a site of one page, without a Python."""

    def build(example):
        page = f"# Page\n\n```{{try-it}}\n{example}\n```\n"
        (tmp_path / "index.md").write_text(page, "utf-8")
        command = [sys.executable, "-m", "sphinx", "-W", "-q", "-C", ".", "site"]
        command += ["-D", "extensions=myst_parser,_site.try_it"]
        return subprocess.run(  # noqa: S603  fixed
            command,
            capture_output=True,
            check=False,
            cwd=tmp_path,
            encoding="utf-8",
            env=os.environ | {"PYTHONPATH": str(ROOT / "docs")},
        )

    return build


def test_an_example_that_fails_fails_the_build_and_names_its_line(build):
    done = build("print(1)\n1 / 0")
    assert done.returncode == 1
    assert "index.md:5: ERROR: the example failed: 1\nTraceback" in done.stderr


def test_a_site_without_python_has_what_was_recorded_and_no_script(build, tmp_path):
    done = build("print(6 * 7)")
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "site/index.html").read_text("utf-8")
    assert ">42\n<" in page
    assert "try_it.mjs" not in page
