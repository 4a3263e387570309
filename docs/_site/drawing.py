"""Drawings that commands make, in light and in dark colors.

A command runs in a copy of the project in which the documented commands run, and
leaves one file ``.svg`` there.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

__all__ = ["DrawingError", "draw", "in_dark"]

_ROOT: Final = Path(__file__).parents[2]
_PROJECT: Final = _ROOT / "tests/as_installed/project"
_PROGRAMS: Final = {
    "python": [sys.executable],
    "retrykit": [sys.executable, "-m", "retrykit"],
}
_SECONDS: Final = 300
"""Only to end a command that hangs: a busy machine takes long."""

# Those of `retrykit.analysis`, and the gray and black of matplotlib.
_DARK: Final = {
    "#000000": "#cfd0d0",
    "#ffffff": "#131416",
    "#dddddd": "#35383d",
    "#cccccc": "#4b4f56",
    "#0072b2": "#56b4e9",
    "#d55e00": "#f08a3c",
    "#009e73": "#3ecf9f",
    "#cde8dd": "#1f4a3a",
    "#f3c9a8": "#5e3a21",
}


class DrawingError(Exception):
    """A command failed, or made no drawing."""


def draw(command: str) -> str:
    """Run a command, and return the SVG that it writes.

    Args:
        command: A command of `retrykit`, or `python -m` and a module of the project.

    Raises:
        DrawingError: The command is another one, fails, or writes no SVG or several.
    """
    program, *arguments = shlex.split(command) or [""]
    if program not in _PROGRAMS:
        msg = f"a picture is made by retrykit or python, got {command!r}"
        raise DrawingError(msg)
    with TemporaryDirectory() as folder:
        shutil.copytree(_PROJECT, folder, dirs_exist_ok=True)
        ended = subprocess.run(  # noqa: S603  a command of a page of the project
            [*_PROGRAMS[program], *arguments],
            capture_output=True,
            check=False,
            cwd=folder,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": str(_ROOT)},
            timeout=_SECONDS,
        )
        if ended.returncode:
            msg = f"{command!r} failed: {ended.stderr.strip()}"
            raise DrawingError(msg)
        drawings = [*Path(folder).glob("*.svg")]
        if len(drawings) != 1:
            names = [each.name for each in drawings]
            msg = f"{command!r} must write one .svg file, got {names}"
            raise DrawingError(msg)
        return drawings[0].read_text("utf-8")


def in_dark(svg: str) -> str:
    """Return a drawing for a dark page: its colors are replaced one by one."""
    colors = re.compile("|".join(_DARK))
    dark = colors.sub(lambda found: _DARK[found[0]], svg)
    # What has no color of its own is black, such as most text.
    return dark.replace("<svg ", f'<svg fill="{_DARK["#000000"]}" ', 1)
