"""The code blocks of the README and of docs run, in their order."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

import retrykit
from retrykit import Policy
from retrykit.schedules import exponential
from retrykit.testing import virtual_time

ROOT = Path(__file__).parents[1]
PACKAGE = Path(retrykit.__file__).parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"```(python|text)\n(.*?)```", re.DOTALL)

# These libraries are not needed here: see test_readme_integrations.py.
LIBRARIES = re.compile(
    r"^(?:import|from) (httpx|dbos|celery|openai|procrastinate|redis|sqlalchemy)",
    re.MULTILINE,
)
WITH_LIBRARIES = {"durable.md", "http.md", "observability.md", "web_frameworks.md"}


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.name not in WITH_LIBRARIES], ids=lambda p: p.name
)
def test_every_block_of_code_runs(page):
    names, printed = {"__name__": page.stem}, ""
    with virtual_time():
        for language, block in BLOCK.findall(page.read_text("utf-8")):
            if language == "text":
                assert without_numbers(printed) == without_numbers(block)
            elif not LIBRARIES.search(block):
                printed = run(block, page, names)
    for name, test in names.items():
        if name.startswith("test_"):
            test()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_has_a_target(page):
    text = page.read_text("utf-8")
    # The tests of a wheel do not have all files.
    for link in re.findall(r"\]\(((?!https?:|[A-Z])[^)]+)\)", text):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if name.startswith("../retrykit/"):
            # The package may be installed elsewhere.
            target = PACKAGE.parent / name.removeprefix("../")
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def test_the_readme_states_the_limits_of_a_policy():
    text = PAGES[0].read_text("utf-8")
    row = r"^\| (?:`(.+?)`|nothing)[^|]*\| (\S+) \| (.+) \|$"
    rows = re.findall(row, text, re.MULTILINE)
    names = {"Policy": Policy, "exponential": exponential}
    durations = {None: "unlimited", 60.0: "60 s", 600.0: "10 minutes"}
    assert len(rows) == 6
    for written, attempts, time in rows:
        policy = eval(f"Policy({written})", names)  # noqa: S307  our own text
        delays = policy.schedule.take(9).draw(7)
        most = policy.max_attempts or len(list(delays)) + 1
        assert attempts == ("unlimited" if most == 10 else str(most))
        assert time == durations[policy.max_elapsed]


def test_the_readme_is_short():
    assert len(PAGES[0].read_text("utf-8").split()) <= 900


def run(block, page, names):
    """Run a block of code, and return the text that it prints."""
    with redirect_stdout(StringIO()) as output:
        exec(compile(block, str(page), "exec"), names)  # noqa: S102  under test
    return output.getvalue()


def without_numbers(text):
    """Return a text without durations and error numbers, which differ in each run."""
    return re.sub(r"\d+(\.\d+)?( ?[um]?s\b)?", "0", text)


def anchors(page):
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}
