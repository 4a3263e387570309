"""The code blocks of the README and of docs that need a library."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def code_blocks(name):
    text = (ROOT / name).read_text("utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def run(code):
    """Run code in a separate process, since engines keep registered jobs."""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)  # noqa: S603  a fixed command


def test_the_code_of_the_readme_about_httpx_runs():
    [code] = [each for each in code_blocks("README.md") if "import httpx" in each]
    run(f"from retrykit import retry\n{code}\nclient.close()")


def test_the_code_about_clients_runs():
    run("\n".join([*code_blocks("docs/http.md"), "client.close()"]))


def test_the_code_about_telemetry_records_a_call(capfd):
    blocks = code_blocks("docs/observability.md")
    code = [x for x in blocks if re.search("opentelemetry|prometheus", x)]
    call = "import retrykit\nretrykit.retry(lambda: print('called'))()\nclient.close()"
    run("\n".join([*code, call, "print(ORDERS.balance == 100)"]))
    printed = capfd.readouterr().out
    assert printed.startswith("called\nTrue\n")
    assert '"name": "attempt <lambda>"' in printed
    assert '"name": "retrykit.calls"' in printed


def test_the_code_about_durable_jobs_runs():
    checked = "assert verify('') == verify_soon('') == None"
    run("\n".join([*code_blocks("docs/durable.md"), checked]))
