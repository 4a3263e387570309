"""What a test must leave as it was: the context of retrykit, and the process.

What it left changed would change how the tests after it run.
"""

import asyncio
import gc
import logging
import os
import signal
import sys
import time
from contextvars import Context, copy_context
from functools import partial
from reprlib import repr as show

import pytest

from retrykit._core import events
from retrykit._internal import fast_path
from retrykit._internal.context import ContextOverride

__all__ = ["nothing_left_behind", "restore", "snapshot"]


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """Fail a test that leaves something changed for the tests after it."""
    before = snapshot()
    yield
    if changes := restore(before):
        pytest.fail("the test leaves changes behind:\n" + "\n".join(changes))


# An open override blocks the fast path. The other one is where a clock stands.
_IGNORED = {"retrykit scope", "retrykit skipped delays"}


def _variables():
    # One that was reset may have its default, all of which are falsy.
    return {
        each: value
        for each, value in copy_context().items()
        if value and each.name.startswith("retrykit") and each.name not in _IGNORED
    }


def _restore_variables(before):
    for each in _variables().keys() | before.keys():
        each.set(before[each] if each in before else Context().run(each.get))


def _close_overrides(blockers):
    fast_path.blockers[:] = blockers
    # Unless unfrozen, those that were made while tests were collected are not found.
    gc.unfreeze()
    for each in gc.get_objects():
        if type(each) is ContextOverride:
            each._process_wide.clear()  # noqa: SLF001
            each._here.set(None)  # noqa: SLF001


# Pytest changes it while a test runs.
_CURRENT_TEST = os.environ.encodekey("PYTEST_CURRENT_TEST")


def _environment():
    # As os.environ holds them, since it takes longer to decode them all.
    return {**os.environ._data, _CURRENT_TEST: None}  # noqa: SLF001


def _restore_environment(before):
    values = {os.fsdecode(each): value for each, value in before.items() if value}
    for name in os.environ.keys() - values.keys() - {"PYTEST_CURRENT_TEST"}:
        del os.environ[name]
    os.environ.update({name: os.fsdecode(value) for name, value in values.items()})


def _logger(name):
    logger = logging.getLogger(name)

    def read():
        flags = logger.level, logger.disabled, logger.propagate
        return *flags, logger.handlers[:], logger.filters[:]

    def restore(before):
        level, logger.disabled, logger.propagate, *lists = before
        logger.handlers, logger.filters = lists
        # It forgets which levels are logged.
        logger.setLevel(level)

    return read, restore


def _items(items):
    return items.copy, partial(items.__setitem__, slice(None))


def _attribute(owner, name):
    return partial(getattr, owner, name), partial(setattr, owner, name)


def _handler(number):
    return partial(signal.getsignal, number), partial(signal.signal, number)


def _shared_tasks():
    """Return what adds a task to each app of Celery, unless told ``shared=False``."""
    celery = sys.modules.get("celery._state")
    found = getattr(celery, "_on_app_finalizers", ())
    return {each for each in found if each.__module__ != "celery.app.builtins"}


def _restore_shared_tasks(before):
    sys.modules["celery._state"]._on_app_finalizers -= _shared_tasks() - before  # noqa: SLF001


_STATES = {
    "the context": (_variables, _restore_variables),
    "observers of the process": _items(events.process_observers),
    "fast_path.blockers": (fast_path.blockers.copy, _close_overrides),
    "fast_path.failure_blockers": _items(fast_path.failure_blockers),
    "the root logger": _logger(None),
    "the logger retrykit": _logger("retrykit"),
    "the logger retrykit.retries": _logger("retrykit.retries"),
    "environment variables": (_environment, _restore_environment),
    "the current directory": (os.getcwd, os.chdir),
    "sys.path": _items(sys.path),
    "sys.stdout": _attribute(sys, "stdout"),
    "the profiler": (sys.getprofile, sys.setprofile),
    "the recursion limit": (sys.getrecursionlimit, sys.setrecursionlimit),
    "the switch interval": (sys.getswitchinterval, sys.setswitchinterval),
    "gc.get_threshold()": (gc.get_threshold, lambda before: gc.set_threshold(*before)),
    "shared tasks of Celery": (_shared_tasks, _restore_shared_tasks),
    "time.time": _attribute(time, "time"),
    "time.sleep": _attribute(time, "sleep"),
    "time.monotonic": _attribute(time, "monotonic"),
    "asyncio.sleep": _attribute(asyncio, "sleep"),
    "the handler of SIGINT": _handler(signal.SIGINT),
    "the handler of SIGTERM": _handler(signal.SIGTERM),
}
"""Functions that read a state, and that restore it."""


def snapshot():
    """Return the states by name."""
    return {name: read() for name, (read, _) in _STATES.items()}


def restore(before):
    """Restore the states, and describe what was changed."""
    changes = []
    for name, (read, restore_state) in _STATES.items():
        old, new = before[name], read()
        if old != new:
            restore_state(old)
            changes += _describe(name, old, new)
    return changes


def _describe(name, old, new):
    if not isinstance(old, dict):
        return [f"{name}: {show(new)}, was {show(old)}"]
    keys = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    return [
        f"{name}: {key} is {show(new.get(key))}, was {show(old.get(key))}"
        for key in keys
    ]
