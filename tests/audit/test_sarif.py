"""Reports as SARIF, and what code scanning of GitHub asks of them.

Source: GitHub Docs, "SARIF support for code scanning".
"""

import pytest

from retrykit.audit import RULES, audit
from retrykit.audit._formats import as_sarif
from tests.audit.test_audit import CODES, ENDLESS, write, write_notebook


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*paths, **options):
        [found] = as_sarif(audit(paths or ["."], **options), "1.2.3")["runs"]
        return found

    return run


def region(result):
    return result["locations"][0]["physicalLocation"].get("region")


def artifact(result):
    return result["locations"][0]["physicalLocation"]["artifactLocation"]


def notices(run):
    return run["invocations"][0]["toolExecutionNotifications"]


def test_each_rule_is_described(run):
    rules = run()["tool"]["driver"]["rules"]
    assert [each["id"] for each in rules] == [*RULES]
    for rule in rules:
        assert rule["shortDescription"]["text"].endswith(".")
        assert len(rule["fullDescription"]["text"]) <= 1024
        assert "Don't:" in rule["help"]["text"]
        assert "```python" in rule["help"]["markdown"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning")
        # Otherwise validators want none.
        assert rule.get("name", "").lower() != rule["id"]


def test_a_result_names_its_rule_and_its_line(tmp_path, run):
    text = "import tenacity\nif 1:\n    @tenacity.retry  # ü\n    def f(): ...\n"
    write(tmp_path, "a b.py", text)
    found = run()
    assert [each["ruleId"] for each in found["results"]] == CODES
    first = found["results"][0]
    assert found["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == CODES[0]
    assert first["level"] == "error"
    assert first["message"]["text"].startswith("nothing ends")
    assert artifact(first) == {"uri": "a%20b.py", "uriBaseId": "%SRCROOT%"}
    assert region(first) == {
        "startLine": 3,
        "startColumn": 5,
        "endLine": 3,
        "endColumn": 25,
    }


def test_results_can_be_recognized_when_lines_move(tmp_path, run):
    write(tmp_path)
    before = [each["partialFingerprints"] for each in run()["results"]]
    write(tmp_path, text="import os\n" + ENDLESS)
    assert [each["partialFingerprints"] for each in run()["results"]] == before
    assert len({str(each) for each in before}) == len(before) == 3


def test_a_finding_may_be_on_another_line_than_its_site(tmp_path, run):
    text = (
        "import time\nasync def f():\n  while True:\n    try:\n      return g()\n"
        "    except OSError:\n      time.sleep(1)"
    )
    write(tmp_path, text=text)
    [result] = run(select=["blocking-sleep"])["results"]
    assert (region(result)["startLine"], region(result)["startColumn"]) == (7, 7)


def test_a_file_that_cannot_be_read_is_a_notification(tmp_path, run):
    write(tmp_path, "bad.py", "x = 1\nretry(")
    write(tmp_path, "gone.py", "retry()\0")
    first, second = notices(run())
    assert first["message"]["text"] == "not Python: '(' was never closed"
    assert (region(first)["startLine"], region(second)) == (2, None)


def test_a_file_that_is_gone_has_a_line_too(tmp_path, run):
    file = write(tmp_path)
    report = audit(["."])
    file.unlink()
    [found] = as_sarif(report, "1")["runs"]
    assert region(found["results"][0])["endColumn"] == 2


def test_the_text_tells_the_cell_of_a_notebook(tmp_path, run):
    write_notebook(tmp_path, "x", ENDLESS, "(")
    found = run()
    first = found["results"][0]
    assert artifact(first)["uri"] == "a.ipynb"
    assert region(first)["startLine"] == 1
    assert first["message"]["text"].startswith("In cell 2, line 4: nothing ends")
    assert notices(found)[0]["message"]["text"].startswith("In cell 3, line 1: not P")


def test_a_path_is_relative_and_quoted(tmp_path, run):
    write(tmp_path, "src/ü.py")
    [result, *_] = run(tmp_path / "src")["results"]
    assert artifact(result)["uri"] == "src/%C3%BC.py"


def test_a_path_above_the_folder_is_never_relative(tmp_path, run, monkeypatch):
    write(tmp_path)
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    [result, *_] = run("..")["results"]
    assert artifact(result) == {"uri": (tmp_path / "a.py").as_uri()}
