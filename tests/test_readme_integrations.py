"""The code of the README and of docs that needs a library beside retrykit."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def blocks(name):
    text = (ROOT / name).read_text("utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def run(code):
    """Run code in a process of its own, since engines keep what was registered."""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)  # noqa: S603  the docs' own


def test_the_code_of_the_readme_about_integrations_runs():
    code = [each for each in blocks("README.md") if "retrykit.integrations" in each]
    assert len(code) == 2
    run("\n".join([*code, "http.close()", "assert verify('') is None"]))


def test_the_code_about_clients_runs():
    names = {}
    for block in blocks("docs/http.md"):
        exec(compile(block, "docs/http.md", "exec"), names)  # noqa: S102  as above
    names["client"].close()
    assert names["fetch"].__name__ == "fetch"


def test_the_code_about_durable_jobs_runs():
    checked = "assert verify('') == verify_soon('') == None"
    run("\n".join([*blocks("docs/durable.md"), checked]))
