import asyncio
import functools
import importlib
from importlib.util import find_spec

import pytest
import trio

from retrykit import Policy, aretry, retry
from retrykit.testing import ScriptedFunction, virtual_time
from tests._support.side import Under, under_asyncio, under_trio

# Checked, never run; and what the command line is tried on.
collect_ignore = ["typing", "cli/transcripts"]


class Colour:
    """One way to run a retried function: blocking, under asyncio, under trio."""

    def __init__(self, name):
        self.name = name

    def __call__(self, policy=None, /, **changes):
        """Decorate a plain function, and return it as one that blocks."""
        return functools.partial(self._decorate, policy, changes)

    def run(self, policy, fn):
        """Return what came of a plain function under a policy."""
        if self.name == "blocking":
            return policy.run(fn)
        return self._await(functools.partial(policy.arun, _coroutine(fn)))

    def _decorate(self, policy, changes, fn):
        if self.name == "blocking":
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


@pytest.fixture(params=["blocking", "asyncio", "trio"])
def colour(request):
    return Colour(request.param)


@pytest.fixture
def clock():
    with virtual_time() as clock:
        yield clock


@pytest.fixture
def flaky():
    """What makes a function that fails as it is told, and is done after that."""
    return lambda *outcomes: ScriptedFunction([*outcomes, "done", ...])


LOOPS = ["asyncio", "trio", "virtual loop"]
# There is none for every platform.
LOOPS += ["uvloop"] if find_spec("uvloop") else []


@pytest.fixture(params=LOOPS)
def loop(request):
    """What runs an async function: each kind of event loop there is."""
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
def under(request):
    """An event loop whose time is virtual by itself, as retrykit knows none."""
    if request.param == "trio":
        return Under(trio, under_trio)
    return Under(asyncio, under_asyncio)
