"""Errors of audits: their messages, and code that raises them."""

import os
import tempfile
from contextlib import chdir
from pathlib import Path
from unittest.mock import patch

from retrykit.audit import audit
from retrykit.audit._changes import changed_lines
from retrykit.audit._settings import find_settings
from retrykit.errors import ConfigError

__all__ = ["ERRORS"]


def with_settings(line):
    """Return a function that reads settings with a line of ``pyproject.toml``."""

    def read():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "pyproject.toml").resolve()
            file.write_text(f"[tool.retrykit]\naudit{line}\n", "utf-8")
            try:
                find_settings(file.parent)
            except ConfigError as error:
                text = error.message.replace(f"{file.parent}{os.sep}", "")
                raise ConfigError(text, error.code) from None

    return read


def with_baseline(text):
    """Return a function that audits nothing, with a baseline."""

    def read():
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            if text is not None:
                Path("b.json").write_text(text, "utf-8")
            audit([], baseline="b.json")

    return read


def since(revision, path=os.environ["PATH"], seconds=60):
    """Return a function that asks what has changed, without a repository."""

    def read():
        with tempfile.TemporaryDirectory() as folder:
            set_for_git = {
                "PATH": path,
                "GIT_CEILING_DIRECTORIES": str(Path(folder).parent),
            }
            with patch.dict(os.environ, set_for_git):
                changed_lines(revision, folder, seconds)

    return read


IN = "pyproject.toml, [tool.retrykit.audit]: "
KEYS = "select, ignore, exclude, per-file-ignores, baseline"
ERRORS = {
    "processes must be an integer >= 1, got -5": lambda: audit([], processes=-5),
    "path must be a file or a folder that exists, got 'no/such'": (
        lambda: audit(["no/such"])
    ),
    "select must be the code of a rule, got 'no-jiter'; did you mean no-jitter?": (
        lambda: audit([], select=["no-jiter"])
    ),
    "ignore must be the code of a rule, got 'x'; retrykit audit --rules lists them": (
        lambda: audit([], ignore=["x"])
    ),
    f"{IN}audit must be a table, got 1": with_settings(" = 1"),
    f"{IN}key must be one of {KEYS}, got 'selct'; did you mean select?": (
        with_settings(".selct = []")
    ),
    f"{IN}per-file-ignores must be a table, got 1": (
        with_settings(".per-file-ignores = 1")
    ),
    f"{IN}baseline must be a path, got 1": with_settings(".baseline = 1"),
    f"{IN}ignore must be a list of strings, got 1": with_settings(".ignore = 1"),
    "pyproject.toml: Expected '=' after a key in a key/value pair "
    "(at line 2, column 7)": (with_settings(" 1")),
    "baseline must be a file that --write-baseline has written, got 'b.json'; No such "
    "file or directory": with_baseline(None),
    "baseline must be a file that --write-baseline has written, got 'b.json'; its "
    "version is not 2: write it again": with_baseline("[]"),
    "baseline must be a file that --write-baseline has written, got 'b.json'; it has "
    "no list of findings with path, function, rule, hash": (
        with_baseline('{"version": 2, "findings": [1]}')
    ),
    "diff must be a revision of git, got '--output'": since("--output"),
    "diff needs git, which is not installed": since("main", path=""),
    "git rev-parse took more than 0 s": since("main", seconds=0),
    "diff: git rev-parse: not a git repository (or any of the parent directories): "
    ".git": since("main"),
}
