"""Reports as JSON, SARIF, annotations and a page."""

import json
import re
from html.parser import HTMLParser

import jsonschema
import pytest

from retrykit.audit import RULES, audit
from retrykit.audit._formats import as_data, as_github, as_sarif
from retrykit.audit._page import as_page, summary
from tests.audit.test_audit import CODES, ENDLESS, write

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
# The parts of the schema of SARIF 2.1.0 that a report uses, with what they require.
TEXT = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"minLength": 1}},
}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
PLACE = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "physicalLocation": {
            "required": ["artifactLocation"],
            "additionalProperties": False,
            "properties": {
                "artifactLocation": {
                    "required": ["uri"],
                    "additionalProperties": False,
                    "properties": {
                        "uri": {"pattern": r"^[!-~]+$"},
                        "uriBaseId": {"const": "%SRCROOT%"},
                    },
                },
                "region": {
                    "required": ["startLine"],
                    "additionalProperties": False,
                    "properties": {
                        "startLine": {"type": "integer", "minimum": 1},
                        "startColumn": {"type": "integer", "minimum": 1},
                    },
                },
            },
        }
    },
}
RULE = {
    "required": ["id", "name", "shortDescription", "fullDescription", "help"],
    "properties": {
        "shortDescription": TEXT,
        "fullDescription": TEXT,
        "help": TEXT,
        "defaultConfiguration": {"properties": {"level": LEVEL}},
    },
}
RESULT = {
    "required": ["ruleId", "message", "locations", "partialFingerprints"],
    "properties": {
        "level": LEVEL,
        "message": TEXT,
        "locations": {"type": "array", "minItems": 1, "items": PLACE},
        "partialFingerprints": {"additionalProperties": {"pattern": "^[0-9a-f]{16}$"}},
    },
}
NOTICE = {
    "required": ["message"],
    "properties": {"level": LEVEL, "message": TEXT, "locations": {"items": PLACE}},
}
RUN = {
    "required": ["tool", "results"],
    "properties": {
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "results": {"items": RESULT},
        "tool": {"properties": {"driver": {"properties": {"rules": {"items": RULE}}}}},
        "invocations": {
            "items": {
                "required": ["executionSuccessful"],
                "properties": {"toolExecutionNotifications": {"items": NOTICE}},
            }
        },
    },
}
SARIF = {
    "required": ["version", "runs"],
    "properties": {"version": {"const": "2.1.0"}, "runs": {"items": RUN}},
}


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


def test_sarif_is_as_its_schema_says(report):
    data = as_sarif(report, "1.2.3")
    jsonschema.validate(data, SARIF)
    [run] = data["runs"]
    driver = run["tool"]["driver"]
    assert [each["id"] for each in driver["rules"]] == [*RULES]
    first = run["results"][0]
    assert driver["rules"][first["ruleIndex"]]["id"] == first["ruleId"] == "unbounded"
    assert first["level"] == "error"
    [location] = first["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 4, "startColumn": 2},
    }
    notices = run["invocations"][0]["toolExecutionNotifications"]
    regions = [x["locations"][0]["physicalLocation"].get("region") for x in notices]
    assert regions == [{"startLine": 1}, None]


def test_a_file_outside_of_the_folder_has_a_whole_uri(tmp_path, report):
    (tmp_path / "inner").mkdir()
    [result, *_] = as_sarif(audit([tmp_path.parent]), "1")["runs"][0]["results"]
    assert not result["locations"][0]["physicalLocation"]["artifactLocation"][
        "uri"
    ].startswith("..")


def test_a_finding_on_another_line_than_its_site_has_no_column(tmp_path):
    text = (
        "import time\nasync def f():\n  while True:\n    try:\n      return g()\n"
        "    except OSError:\n      time.sleep(1)"
    )
    write(tmp_path, text=text)
    results = as_sarif(audit([tmp_path], select=["blocking-sleep"]), "1")["runs"][0]
    place = results["results"][0]["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 7}


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
            "unbounded::Nothing ends a "
            "call that fails every time. Fix: limit the number of attempts or the time."
        ),
    ]


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
    assert "no findings at no sites" in as_page(audit([tmp_path]))


def test_the_summary_counts_everything(report):
    assert summary(report) == (
        "3 findings at 1 of 1 site, in 3 files with 7 lines; 2 problems"
    )


def test_the_summary_counts_what_is_ignored(tmp_path):
    write(tmp_path, text=ENDLESS.replace("retry\n", "retry  # retrykit: ignore\n"))
    assert summary(audit([tmp_path])) == (
        "no findings at 1 site, in 1 file with 5 lines; 3 ignored"
    )
