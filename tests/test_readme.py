"""The README and docs: links, tables and length.

Their code is run by tests/as_installed.
"""

import re
from pathlib import Path

import pytest

import retrykit
from retrykit import Policy
from retrykit.schedules import exponential
from retrykit.testing import virtual_time
from tests._support.documents import PAGES, ROOT
from tests._support.new_process import run_shell
from tests._support.scripted_server import answer, close, serve

README = PAGES[0].read_text("utf-8")
REFERENCE = (ROOT / "docs/reference/index.md").read_text("utf-8")
PACKAGE = Path(retrykit.__file__).parent


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
        if "reference/retrykit." in name:
            # Its page is written by the build of the site.
            assert target.stem in REFERENCE.split(), link
            continue
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


@pytest.mark.needs("sockets")
@pytest.mark.parametrize(
    ("step", "requests"),
    [(answer(404), 1), (answer(403), 1), (answer(503), 3), (close(), 3)],
    ids=["404", "403", "503", "no answer"],
)
def test_the_first_example_repeats_what_may_succeed_later(step, requests):
    [code, _] = re.search(r"```python\n(.*?)(\ntry:.*?)```", README, re.DOTALL).groups()
    names = {}
    exec(code, names)  # noqa: S102  our own text
    with serve(step) as server, virtual_time(), pytest.raises(OSError):
        names["fetch"](server.url)
    assert len(server.seen) == requests


def test_the_readme_compares_as_the_page_does():
    rows = re.findall(r"^(\| [A-Z][^|\n]*(?: \| [^|\n]+){4}) \|$", README, re.MULTILINE)
    page = (ROOT / "docs/comparison.md").read_text("utf-8")
    assert len(rows) == 8
    assert [row for row in rows if row not in page] == []


def test_the_readme_is_short():
    words = (each for each in README.split() if re.search(r"\w", each))
    assert len([*words]) <= 700


@pytest.mark.thorough
@pytest.mark.needs("matplotlib")
def test_the_picture_is_what_its_command_draws(tmp_path):
    [command] = re.findall(r"`retrykit (chart .*?)`", README)
    ended = run_shell(f"retrykit {command}", tmp_path)
    assert ended.code == 0, ended
    drawn = (tmp_path / "delays.svg").read_text("utf-8")
    kept = (ROOT / "docs/delays.svg").read_text("utf-8")
    version = re.search(r"<dc:title>(.*?),", drawn)[1]
    if version not in kept:
        pytest.skip(f"drawn by another version than {version}")
    assert drawn == kept


def anchors(page):
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}
