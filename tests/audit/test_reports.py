"""Public reports, as small programs: what was reported is found."""

import re
from pathlib import Path

import pytest

from tests._support.audited import audit_texts

REPORTS = sorted(Path(__file__).with_name("reports").glob("*.txt"))


@pytest.mark.parametrize("path", REPORTS, ids=[path.stem for path in REPORTS])
def test_what_was_reported_is_found(path):
    text = path.read_text(encoding="utf-8")
    expected = re.findall(r"^# findings: ([^:]+): (.+)$", text, re.MULTILINE)
    _, findings = audit_texts(**{path.stem: text})
    found = [(each.rule, each.message) for each in findings]
    assert expected
    for rule, message in expected:
        assert any(x == rule and y.startswith(message) for x, y in found), found
