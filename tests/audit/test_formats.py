"""Reports as JSON, SARIF, annotations and a page."""

import json
import re
from html.parser import HTMLParser

import pytest

from retrykit.audit import audit
from retrykit.audit._formats import as_data, as_github, as_sarif
from retrykit.audit._page import as_page, summary
from tests.audit.test_audit import CODES, ENDLESS, write, write_notebook
from tests.audit.test_libraries import CALLS, IMPORTS

GROWING = (
    "from tenacity import retry, stop_after_attempt, stop_after_delay\n"
    "from tenacity import wait_exponential, wait_fixed, "
    "wait_random\n@retry(stop=stop_after_attempt(4), wait=wait_exponential("
    "max=30) + wait_random(0, 2), reraise=True)\ndef f(): ...\n"
    "@retry(stop=stop_after_attempt(2), wait=wait_fixed(1))\ndef g(): ...\n"
    "@retry(stop=stop_after_delay(100), wait=wait_fixed(3))\ndef h(): ...\n"
    "@retry(stop=stop_after_attempt(2))\ndef i(): ...\n"
    "@retry(stop=stop_after_attempt(2), wait=x)\ndef j(): ...\n"
    "from tenacity import retry_if_exception_type as if_type\n@retry(reraise=True, "
    "stop=stop_after_attempt(2), retry=if_type(OSError))\ndef k(): ...\n"
)


@pytest.fixture
def report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "a b.py", ENDLESS)
    write(tmp_path, "bad.py", "retry(")
    write(tmp_path, "gone.py", "retry()\0")
    return audit(["."])


def test_json_has_each_site_with_its_findings(report):
    data = json.loads(json.dumps(as_data(report), allow_nan=False))
    [site] = data["sites"]
    assert site["path"] == "./a b.py"
    assert (site["calls"], site["elapsed"]) == ("unlimited", "unlimited")
    assert site["delays"]["shape"] == "none"
    assert site["retried"] == ["Exception"]
    assert [each["rule"] for each in site["findings"]] == CODES
    assert [each["path"] for each in data["problems"]] == ["./bad.py", "./gone.py"]


def test_what_is_not_known_is_null(tmp_path):
    write(tmp_path, text="import tenacity\nr = tenacity.retry(stop=x, retry=y)")
    [site] = as_data(audit([tmp_path]))["sites"]
    assert (site["calls"], site["retried"]) == (None, None)


def test_numbers_are_whole_where_they_can_be(tmp_path):
    text = (
        "import tenacity as t\nr = t.retry(stop=t.stop_after_attempt(3), "
        "wait=t.wait_chain(t.wait_fixed(0.5), t.wait_fixed(4)))"
    )
    write(tmp_path, text=text)
    [site] = as_data(audit([tmp_path]))["sites"]
    numbers = [site["calls"], site["delays"]["cap"], *site["delays"]["listed"]]
    assert list(map(repr, numbers)) == ["3", "4", "0.5", "4"]


def test_each_call_of_a_library_can_be_told_in_each_format(tmp_path):
    calls = [(IMPORTS[x], call) for x, calls in CALLS.items() for call in calls]
    for index, (imports, call) in enumerate(calls):
        write(tmp_path, f"a{index}.py", f"{imports}\nmade = {call}\n")
    report = audit([tmp_path])
    assert len(report.sites) == len(calls)
    for data in (as_data(report), as_sarif(report, "1")):
        assert json.dumps(data, allow_nan=False)
    assert len([*as_github(report)]) >= len(report.findings)
    assert as_page(report).count("<svg") > len(calls) / 2


def test_annotations_escape_what_would_end_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "a,b:c%.py", ENDLESS)
    write(tmp_path, "bad.py", "x = 1\0")
    lines = [*as_github(audit(["."], select=["unbounded"]))]
    assert lines == [
        (
            "::error file=bad.py,line=1,title=retrykit%3A not read::not "
            "Python: source code "
            "string cannot contain null bytes"
        ),
        (
            "::error file=a%2Cb%3Ac%25.py,line=4,title=retrykit%3A "
            "unbounded::nothing ends a "
            "call that fails every time; limit the number of attempts or the time"
        ),
    ]


def test_annotations_of_a_notebook_tell_the_cell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_notebook(tmp_path, "x", ENDLESS, "(")
    bad, found = as_github(audit(["."], select=["unbounded"]))
    assert bad.startswith("::error file=a.ipynb,line=1,title=retrykit%3A not read::")
    assert bad.endswith("::In cell 3, line 1: not Python: '(' was never closed")
    assert found.startswith("::error file=a.ipynb,line=1,")
    assert "::In cell 2, line 4: nothing ends" in found


class Tags(HTMLParser):
    """Collects the tags of a page, and those that are not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.counts = [], {}

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag not in ("meta", "html"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_has_each_site_with_a_chart_of_its_delays(tmp_path, report):
    write(tmp_path, "a b.py", GROWING)
    write(tmp_path, "<b>.py", "import tenacity\nr = tenacity.retry()")
    page = as_page(audit([tmp_path]))
    tags = Tags()
    tags.feed(page)
    assert not tags.open
    assert tags.counts["article"] == 7
    assert tags.counts["svg"] == 3
    assert "<b>.py" not in page
    assert "1 s to 4 s" not in page
    assert "1 s, 1 retries" not in page
    assert "Not read" in page
    assert not re.search(r"(src|href)=|https?:", page)


def test_a_page_without_findings_says_so(tmp_path):
    write(tmp_path, text="x = 1")
    assert "no findings at no sites" in as_page(audit([tmp_path]))


def test_an_empty_folder_is_told(tmp_path):
    assert summary(audit([tmp_path])) == "no Python files found"


def test_the_summary_counts_everything(report):
    assert summary(report) == (
        "3 findings at 1 of 1 site, in 3 files with 7 lines; 2 problems"
    )


def test_the_summary_counts_what_is_ignored(tmp_path):
    write(tmp_path, text=ENDLESS.replace("retry\n", "retry  # retrykit: ignore\n"))
    assert summary(audit([tmp_path])) == (
        "no findings at 1 site, in 1 file with 5 lines; 3 ignored"
    )


BLOCKING = """\
import asyncio, time


async def fetch():
    for number in range(3):
        try:
            return await get()
        except OSError:
            time.sleep(number)
"""


def test_a_name_that_begins_a_message_is_written_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, text=BLOCKING)
    report = audit(["."], select=["blocking-sleep"])
    [line] = as_github(report)
    [result] = as_sarif(report, "1")["runs"][0]["results"]
    assert "::time.sleep" in line
    assert result["message"]["text"].startswith("time.sleep")


def test_an_unused_comment_is_told_in_data_and_annotations(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, text="x = 1  # retrykit: ignore\n" + ENDLESS)
    report = audit(["."], ignore=["unbounded"])
    assert not report.unused_ignores
    report = audit(["."])
    [told] = as_data(report)["unused_ignores"]
    assert (told["path"], told["line"]) == ("./a.py", 1)
    assert next(as_github(report)).startswith("::notice file=a.py,line=1,")
