"""Helpers for concurrent calls on threads, asyncio and trio."""

import asyncio
import contextvars
import functools
import sys
import time
from contextlib import contextmanager
from threading import Thread

import looptime

from retrykit import Policy, aretry
from retrykit.testing import AsyncScriptedFunction
from tests._support import required
from tests._support.optional_trio import trio

DAY = 86_400.0
WEEK = Policy(schedule=["1d"] * 7, max_attempts=None)


def in_thread(fn):
    """Run a function in a new thread, and return its result."""
    required.skip_without("threads")
    results = []
    thread = Thread(target=lambda: results.append(fn()))
    thread.start()
    thread.join()
    return results[0]


def in_own_context(test):
    """Decorate a test whose context cannot be restored at its end."""

    @functools.wraps(test)
    def wrapper(*args, **kwargs):
        contextvars.copy_context().run(test, *args, **kwargs)

    return wrapper


def eventually(condition, seconds=20.0):
    """Let other threads run until a condition is true, for a bounded time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "never became true"
        time.sleep(0)


@contextmanager
def switching_often():
    """Let threads take turns a thousand times more often than usual."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def sleep_once(delay):
    """Return a coroutine of a retried call that sleeps once, for *delay*."""
    return aretry(schedule=[delay])(AsyncScriptedFunction([OSError, "ok"]))()


async def gather(*calls):
    """Await coroutines concurrently, under asyncio or trio."""
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(call)
    else:
        # Trio starts the tasks of a batch in random order.
        async with trio.open_nursery() as nursery:
            for call in calls:
                nursery.start_soon(lambda call=call: call)


class AsyncLibrary:
    """Asyncio or trio, run on a virtual clock that is not retrykit's."""

    def __init__(self, module, run):
        self.sleep = module.sleep
        self.event = module.Event
        self.cancelled = module.Cancelled if module is trio else asyncio.CancelledError
        self.trio = module is trio
        self.run = run


def under_asyncio(main):
    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        return runner.run(main())


def under_trio(main):
    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
