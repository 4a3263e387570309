import asyncio
import functools
import gc
import importlib
import logging
from importlib.util import find_spec

import pytest

from retrykit import Policy, aretry, retry
from retrykit.testing import ScriptedFunction, virtual_time
from tests._support.concurrency import AsyncLibrary, under_asyncio, under_trio
from tests._support.leftovers import nothing_left_behind
from tests._support.optional_trio import trio

__all__ = ["nothing_left_behind"]

# Only type-checked, and input files of the command line.
collect_ignore = ["typing", "_cli/transcripts"]


class Backend:
    """Runs retried functions: sync, under asyncio, or under trio."""

    def __init__(self, name):
        self.name = name

    def __call__(self, policy=None, /, **changes):
        """Return a decorator of sync functions; the decorated function is sync, too."""
        return functools.partial(self._decorate, policy, changes)

    def run(self, policy, fn):
        """Return the outcome of a sync function under a policy."""
        if self.name == "sync":
            return policy.run(fn)
        return self._await(functools.partial(policy.arun, _coroutine(fn)))

    def _decorate(self, policy, changes, fn):
        if self.name == "sync":
            return retry(policy or Policy(), **changes)(fn)
        decorated = aretry(policy or Policy(), **changes)(_coroutine(fn))

        @functools.wraps(fn)
        def blocking(*args, **kwargs):
            return self._await(functools.partial(decorated, *args, **kwargs))

        return blocking

    def _await(self, call):
        if self.name == "trio":
            return trio.run(call)
        return asyncio.run(call())


def _coroutine(fn):
    @functools.wraps(fn)
    async def coroutine(*args, **kwargs):
        return fn(*args, **kwargs)

    return coroutine


@pytest.fixture
def quiet():
    """Log no retries, as an application can."""
    log = logging.getLogger("retrykit.retries")
    level = log.level
    log.setLevel("ERROR")
    yield
    log.setLevel(level)


@pytest.fixture(params=["sync", "asyncio", "trio"])
def backend(request):
    return Backend(request.param)


@pytest.fixture
def quick_collector():
    """Let the garbage collector look only at what the test makes."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def clock():
    with virtual_time() as clock:
        yield clock


@pytest.fixture
def flaky():
    """Return a factory of functions with these outcomes, and "done" from then on."""
    return lambda *outcomes: ScriptedFunction([*outcomes, "done", ...])


LOOPS = ["asyncio", "trio", "virtual loop"]
# It is not available on every platform.
LOOPS += ["uvloop"] if find_spec("uvloop") else []


@pytest.fixture(params=LOOPS)
def loop(request):
    """Return a function that runs a coroutine function, on each kind of event loop."""
    if request.param == "trio":
        return trio.run

    def run(main):
        with virtual_time() as clock:
            factory = None
            if request.param == "uvloop":
                factory = importlib.import_module("uvloop").new_event_loop
            elif request.param == "virtual loop":
                factory = clock.new_event_loop
            with asyncio.Runner(loop_factory=factory) as runner:
                return runner.run(main())

    return run


@pytest.fixture(params=["asyncio", "trio"])
def library(request):
    """Asyncio or trio on a virtual clock that is not retrykit's."""
    if request.param == "trio":
        return AsyncLibrary(trio, under_trio)
    return AsyncLibrary(asyncio, under_asyncio)
