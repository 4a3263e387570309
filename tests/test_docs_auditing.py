"""The table of rules in ``docs/auditing.md``, which this file writes.

``python -m tests.test_docs_auditing`` renews it.
"""

import re
from pathlib import Path

from retrykit.audit import RULES

PAGE = Path(__file__).parents[1] / "docs" / "auditing.md"
TABLE = re.compile(r"(<!-- rules: .*? -->\n).*?(<!-- end of rules -->)", re.DOTALL)


def table():
    rows = ["| rule | warns that | why |", "| --- | --- | --- |"]
    rows += [f"| `{x.code}` | {x.summary} | {x.why} |" for x in RULES.values()]
    return "\n".join(rows) + "\n"


def with_table(text):
    return TABLE.sub(lambda x: f"{x[1]}{table()}{x[2]}", text)


def test_the_table_has_every_rule():
    text = PAGE.read_text("utf-8")
    assert with_table(text) == text


def test_the_hook_reads_the_project_since_calls_cross_files():
    hooks = (PAGE.parents[1] / ".pre-commit-hooks.yaml").read_text("utf-8")
    assert "id: retrykit-audit\n" in hooks
    assert "pass_filenames: false\n" in hooks
    assert "- id: retrykit-audit\n" in PAGE.read_text("utf-8")


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
