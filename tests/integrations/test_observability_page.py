"""The code of docs/observability.md reports the calls that are made after it."""

import re

from tests._support.documents import ROOT, blocks
from tests._support.new_process import run_python


def test_the_code_about_telemetry_records_a_call(tmp_path):
    page = ROOT / "docs/observability.md"
    python = [block for language, block in blocks(page) if language == "python"]
    code = [x for x in python if re.search("opentelemetry|prometheus", x)]
    call = "import retrykit\nretrykit.retry(lambda: print('called'))()\nclient.close()"
    code += [call, "print(ORDERS.balance == 100)"]
    ended = run_python("\n".join(code), tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("called\nTrue\n")
    assert '"name": "attempt <lambda>"' in ended.out
    assert '"name": "retrykit.calls"' in ended.out
