"""Runs pytest in Pyodide, where the event loops of asyncio can make no sockets."""

import asyncio
import warnings
from pathlib import Path

import pytest

from tests._support import required


def run_tests(args, index, count):
    """Run every *count*-th file of tests, and return the exit code of pytest."""
    options = [each for each in args if each.startswith("-")]
    paths = [each for each in args if each not in options]
    # pytest itself leaves out no file that it is told to run.
    files = [
        str(file)
        for path in paths
        for file in sorted(Path(path).rglob("test_*.py")) or [path]
        if not required.missing(file)
    ][index::count]
    if not files:
        return 0
    # By these sockets, threads and signals would wake a loop; there are none.
    loops = asyncio.SelectorEventLoop
    loops._make_self_pipe = lambda loop: vars(loop).update(_ssock=None, _csock=None)
    loops._close_self_pipe = lambda loop: None
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        # Not Pyodide's, whose loop is the browser's.
        asyncio.set_event_loop_policy(None)
    browser = asyncio.get_running_loop()
    asyncio._set_running_loop(None)
    try:
        options += ["-p", "no:cacheprovider", "-rs"]
        return int(pytest.main([*options, *files]))
    finally:
        asyncio._set_running_loop(browser)
