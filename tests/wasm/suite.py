"""Runs pytest in Pyodide, where the event loops of asyncio can make no sockets."""

import asyncio
import warnings

import pytest


def run_tests(args):
    """Return the exit code of pytest."""
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
        return int(pytest.main(["-p", "no:cacheprovider", "-rs", *args]))
    finally:
        asyncio._set_running_loop(browser)
