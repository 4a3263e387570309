import asyncio
import gc
import logging
import os
import signal
import sys
import time

import pytest

from retrykit import observe
from retrykit._core.call import current_entry
from retrykit._internal.clocks import sync_clock
from retrykit.testing import virtual_time
from tests._support import leftovers

LEAVES = {
    "retrykit call": lambda: current_entry.set([None, 0.0, None]),
    "observers": lambda: observe(print),
    "fast_path.failure_blockers": lambda: observe(print, failures_only=True),
    "fast_path.blockers": virtual_time().__enter__,
    "the root logger": lambda: logging.getLogger().addFilter(print),
    "the logger retrykit": lambda: logging.getLogger("retrykit").setLevel("ERROR"),
    "'RETRYKIT_LEFT'": lambda: os.environ.update(RETRYKIT_LEFT="1"),
    "'HOME'": lambda: os.environ.pop("HOME"),
    "the current directory": lambda: os.chdir("/"),
    "sys.path": lambda: sys.path.append("left"),
    "the profiler": lambda: sys.setprofile(lambda *_: None),
    "the switch interval": lambda: sys.setswitchinterval(1),
    "gc.get_threshold()": lambda: gc.set_threshold(9),
    "time.sleep": lambda: setattr(time, "sleep", print),
    "asyncio.sleep": lambda: setattr(asyncio, "sleep", print),
    "the handler of SIGINT": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
}


@pytest.mark.parametrize("name", LEAVES)
def test_what_a_test_leaves_is_named_and_restored(name, monkeypatch):
    monkeypatch.setenv("HOME", "/home")
    before = leftovers.snapshot()
    LEAVES[name]()
    assert name in "\n".join(leftovers.restore(before))
    assert leftovers.restore(before) == []


def test_a_virtual_clock_that_a_test_leaves_is_closed():
    before = leftovers.snapshot()
    virtual_time(process_wide=True).__enter__()
    leftovers.restore(before)
    # Otherwise, the clock of this context is not even looked up.
    with observe(print):
        assert sync_clock.current() is sync_clock.real


def test_a_test_that_leaves_something_fails_and_the_next_one_does_not(
    pytester, monkeypatch
):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest("from tests._support.leftovers import nothing_left_behind")
    pytester.makepyfile(
        """
        from retrykit._core.call import current_entry

        def test_leaves_a_call():
            current_entry.set([None, 0.0, None])

        def test_finds_none():
            assert current_entry.get() is None
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines("*the test leaves changes behind:")
    result.stdout.fnmatch_lines("*retrykit call*is [[]None, 0.0, None], was None")
