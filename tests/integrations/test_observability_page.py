"""The code of docs/observability.md on logs and Sentry prints what the page says."""

import subprocess
import sys

from tests.test_readme import BLOCK, ROOT

SECTIONS = ["Logs: logging, structlog, loguru", "Sentry"]


def test_the_code_on_logs_and_sentry_prints_what_the_page_says():
    page = (ROOT / "docs/observability.md").read_text("utf-8")
    parts = [page.split(f"## {title}\n")[1].split("\n## ")[0] for title in SECTIONS]
    blocks = BLOCK.findall("\n".join(parts))
    code = "".join(block for language, block in blocks if language == "python")
    # In a process of its own, since it changes loggers.
    start = "from retrykit.testing import virtual_time; virtual_time().__enter__()"
    ran = subprocess.run(  # noqa: S603  a fixed command
        [sys.executable, "-W", "error", "-c", f"{start}\n{code}"],
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=60,
    )
    assert ran.stderr == ""
    assert ran.stdout == "".join(
        text for language, text in blocks if language == "text"
    )
