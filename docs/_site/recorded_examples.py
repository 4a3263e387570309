"""Examples of the page "Try it", recorded while they run as in a browser."""

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

__all__ = ["ExampleError", "Recording", "record"]

_RUNNER: Final = Path(__file__).parents[1] / "_static/try_it/run_example.py"
_LINE: Final = re.compile(r'File "example\.py", line (\d+)')


class ExampleError(Exception):
    """An example failed.

    Attributes:
        line: The line of the example that failed, from 1.
    """

    def __init__(self, output: str) -> None:
        super().__init__(f"the example failed: {output.strip()}")
        self.line = int([1, *_LINE.findall(output)][-1])


class Recording(NamedTuple):
    """What an example did.

    Attributes:
        output: What it printed.
        page: The HTML page that it wrote, or an empty string.
    """

    output: str
    page: str


def record(source: str) -> Recording:
    """Run an example in a new process, and return what it did."""
    with TemporaryDirectory() as folder:
        ended = subprocess.run(  # noqa: S603  a page of this project
            [sys.executable, str(_RUNNER)],
            input=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            cwd=folder,
            encoding="utf-8",
            timeout=60,
        )
        if ended.returncode:
            raise ExampleError(ended.stdout)
        pages = [each.read_text("utf-8") for each in Path(folder).glob("*.html")]
    return Recording(ended.stdout, "".join(pages))
