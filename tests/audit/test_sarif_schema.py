"""Reports as SARIF, against models that were made from its schema."""

import pytest
from pydantic import ValidationError
from pydantic_sarif.model import (
    StaticAnalysisResultsFormatSarifVersion210JsonSchema as Log,
)

from retrykit.audit import RULES, audit
from retrykit.audit._formats import as_sarif
from tests.audit.test_audit import program, write, write_notebook


def test_every_finding_is_as_the_schema_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for code, rule in RULES.items():
        write(tmp_path, f"{code}.py", program(rule.bad))
    write_notebook(tmp_path, program(RULES["unbounded"].bad), "(")
    write(tmp_path, "bad.py", "retry(")
    write(tmp_path, "gone.py", "retry()\0")
    data = as_sarif(audit(["."]), "1.2.3")
    Log.model_validate(data)
    assert {each["ruleId"] for each in data["runs"][0]["results"]} == {*RULES}
    data["runs"][0]["results"][0]["line"] = 1
    with pytest.raises(ValidationError, match="line\n  Extra inputs"):
        Log.model_validate(data)
