"""Baselines: known findings that are left out."""

import json

import pytest

from retrykit.audit import audit
from retrykit.audit._baseline import Baseline
from retrykit.errors import ConfigError
from tests.audit.test_audit import CODES, ENDLESS, codes, write


@pytest.fixture
def known(tmp_path):
    write(tmp_path)
    file = tmp_path / "known.json"
    Baseline.of(audit([tmp_path]).findings, file).write(file)
    return file


def test_known_findings_are_left_out_wherever_they_stand(tmp_path, known):
    write(tmp_path, text=f"x = 1\n\n{ENDLESS}")
    report = audit([tmp_path], baseline=known)
    assert not report.findings
    assert report.ignored == 3


@pytest.mark.parametrize(
    "text",
    [
        ENDLESS.replace("def f", "def g"),
        ENDLESS.replace("retry\n", "retry(reraise=False)\n"),
    ],
)
def test_a_finding_elsewhere_or_of_another_text_is_new(tmp_path, known, text):
    write(tmp_path, text=text)
    assert "unbounded" in codes(audit([tmp_path], baseline=known))


def test_a_finding_is_new_in_another_file(tmp_path, known):
    write(tmp_path, "b.py")
    assert codes(audit([tmp_path], baseline=known)) == CODES


def test_a_second_one_of_the_same_text_is_new(tmp_path, known):
    write(tmp_path, text=ENDLESS + ENDLESS)
    assert codes(audit([tmp_path], baseline=known)) == CODES


def test_the_file_is_sorted_and_has_relative_paths(known):
    data = json.loads(known.read_text())
    assert data["version"] == 2
    assert [each["rule"] for each in data["findings"]] == sorted(CODES)
    assert {each["path"] for each in data["findings"]} == {"a.py"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Expecting property name"),
        ("[]", "; its version is not 2: write it again"),
        ('{"version": 1}', "; its version is not 2: write it again"),
        ('{"version": 2}', "; it has no list of findings with path, "),
        (
            '{"version": 2, "findings": [{}]}',
            "; it has no list of findings with path, ",
        ),
    ],
)
def test_a_fault_of_the_file_is_told(tmp_path, text, message):
    file = tmp_path / "known.json"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        audit([], baseline=file)
    assert message in caught.value.message


def test_a_missing_file_is_told_with_what_makes_one():
    with pytest.raises(ConfigError) as caught:
        audit([], baseline="no.json")
    assert caught.value.message == (
        "baseline must be a file that --write-baseline has written, got 'no.json'; "
        "No such file or directory"
    )


NESTED = """\
import tenacity


class Client:
    @tenacity.retry
    def fetch(self): ...
"""


@pytest.mark.parametrize("written", [".", "app", "app/a.py"])
@pytest.mark.parametrize("is_package", [True, False])
def test_a_finding_is_known_whichever_path_is_audited(
    tmp_path, monkeypatch, written, is_package
):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "app"
    folder.mkdir()
    write(folder, text=ENDLESS + NESTED)
    if is_package:
        write(folder, "__init__.py", "")
    Baseline.of(audit([written]).findings, "known.json").write("known.json")
    for path in (".", "app", "app/a.py", folder / "a.py"):
        report = audit([path], baseline="known.json")
        assert (report.findings, report.ignored) == ((), 6)


def test_a_method_of_another_class_is_another_function(tmp_path):
    write(tmp_path, text=NESTED)
    file = tmp_path / "known.json"
    Baseline.of(audit([tmp_path]).findings, file).write(file)
    write(tmp_path, text=NESTED.replace("Client", "Other"))
    assert codes(audit([tmp_path], baseline=file)) == CODES
