"""Runs the command line as in a terminal of a fixed width.

A transcript is a file of commands and their output. ``python -m
tests._support.terminal`` rewrites all of them; look at the diff before a commit.
"""

import contextlib
import re
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from retrykit._cli import main

__all__ = ["FOLDER", "TRANSCRIPTS", "Printed", "replay", "run_command"]

FOLDER = Path(__file__).parents[1] / "_cli" / "transcripts"
TRANSCRIPTS = sorted(FOLDER.glob("*.txt"))


class Printed(NamedTuple):
    code: int
    out: str
    err: str


def run_command(*args, folder=FOLDER, width=80, charset="utf-8", **environ):
    """Run a command in a folder, and return its exit code and output."""
    runner = CliRunner(charset=charset)
    variables = {
        "COLUMNS": str(width),
        "NO_COLOR": None,
        "FORCE_COLOR": None,
        **environ,
    }
    streams = runner.isolation(env=variables)
    forgotten = _imports_forgotten(folder)
    with contextlib.chdir(folder), forgotten, streams as (out, err, _):
        code = main(args)
        sys.stdout.flush()
        sys.stderr.flush()
        return Printed(code, out.getvalue().decode(), err.getvalue().decode())


@contextlib.contextmanager
def _imports_forgotten(folder):
    """Forget the imported modules of a folder afterwards."""
    path, known = [*sys.path], {*sys.modules}
    try:
        yield
    finally:
        sys.path[:] = path
        for name in sys.modules.keys() - known:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).parent == folder:
                del sys.modules[name]


def replay(text):
    """Return a transcript with the present output of its commands."""
    lines = []
    for line in re.findall(r"^\$ retrykit (.*)$", text, re.MULTILINE):
        code, out, err = run_command(*shlex.split(line))
        printed = [each.rstrip() for each in (out + err).splitlines()]
        ending = [f"[exit {code}]"] if code else []
        lines += [f"$ retrykit {line}", *printed, *ending, ""]
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    for path in TRANSCRIPTS:
        path.write_text(replay(path.read_text("utf-8")), "utf-8")
