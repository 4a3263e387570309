"""Programs run as a user runs them: installed, in a new process, nothing configured."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

__all__ = ["RETRYING", "Ended", "bare_environment", "run_file", "run_python"]
__all__ += ["run_shell"]

RETRYING = re.compile(
    r"^(retrying .+ in|going on with) .+ \(.*attempt \d+[^)\n]*\)\n", re.MULTILINE
)
"""A line of the default log, which reaches stderr unless logging is configured."""


class Ended(NamedTuple):
    """How a process ended, and what it printed."""

    code: int
    out: str
    err: str


def bare_environment(home=None):
    """Return the environment of a terminal in which nothing is configured."""
    folders = [sysconfig.get_path("scripts"), os.environ["PATH"]]
    return {"HOME": str(home or Path.home()), "PATH": os.pathsep.join(folders)}


def run_shell(line, folder, home=None):
    """Run a line of a shell in a folder."""
    return _run(["bash", "-euc", line], folder, home)


def run_python(code, folder, *arguments, **settings):
    """Run code as the first thing that an interpreter does."""
    return _run([sys.executable, "-c", code, *arguments], folder, **settings)


def run_file(file):
    """Run a Python file, and make every warning an error."""
    return _run([sys.executable, "-W", "error", str(file)], None)


def _run(command, folder, home=None, **settings):
    done = subprocess.run(  # noqa: S603  from the documents of the project
        command,
        capture_output=True,
        check=False,
        cwd=folder,
        encoding="utf-8",
        env=bare_environment(home) | settings,
        stdin=subprocess.DEVNULL,
        # Only to end one that hangs: a busy machine takes a minute for some.
        timeout=300,
    )
    return Ended(done.returncode, done.stdout, done.stderr)
