"""The checks of settings that a table of their errors reaches."""

import ast

import pytest

from retrykit import ConfigError

__all__ = ["unheld"]

CHECKS = {"refuse", "instance", "number", "whole", "choice", "seconds", "_unknown"}


def unheld(rows, files):
    """Return the checks in some files that no row of a table reaches.

    Args:
        rows: What raises a `ConfigError`, by the message of that error.
        files: The modules whose checks are looked for.
    """
    reached = set()
    for write in rows.values():
        with pytest.raises(ConfigError) as caught:
            write()
        reached |= {(str(at.path), at.lineno + 1) for at in caught.traceback}
    # Of its own errors the command line has transcripts.
    outside = [path for path in files if "cli" not in path.parts]
    written = {(str(path), line) for path in outside for line in lines(path)}
    return sorted(written - reached)


def lines(path):
    """Return the lines of a module on which it checks a setting."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in CHECKS:
            yield node.lineno
