"""Finds the checks of settings whose errors no table of errors covers."""

import ast
import sys
import traceback
from unittest.mock import patch

import pytest

from retrykit import ConfigError
from retrykit._internal import validation

__all__ = ["untested_checks"]

# All of validation.py that raises, and the parser of durations.
CHECKS = {"invalid_setting", "parse_duration"}
CHECKS |= {name for name in validation.__all__ if name.startswith("check_")}


def untested_checks(rows, files):
    """Return the path and line of each check in some files that no row reaches.

    Args:
        rows: Functions that raise a `ConfigError`, by the message of that error.
        files: The modules whose checks are looked for.
    """
    reached = set()

    def record(error, *args):
        # The traceback does not have the frames of the package.
        stack = traceback.walk_stack(sys._getframe())  # noqa: SLF001
        reached.update((frame.f_code.co_filename, line) for frame, line in stack)

    with patch.object(ConfigError, "__init__", record):
        for write in rows.values():
            with pytest.raises(ConfigError):
                write()
    # The command line's own errors are in transcripts.
    outside = [path for path in files if "_cli" not in path.parts]
    checks = {(str(path), line) for path in outside for line in check_lines(path)}
    assert len(checks) > 200, f"hardly any checks found: were {CHECKS} renamed?"
    return sorted(checks - reached)


def check_lines(path):
    """Yield the lines of a module on which it checks a setting."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in CHECKS:
            yield node.lineno
