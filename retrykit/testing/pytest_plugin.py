"""The pytest plugin: fixtures, a marker, and the history of calls that fail.

pytest loads it wherever retrykit is installed, and it does nothing until it is
used: a fixture is asked for, or a test fails in which a call was retried.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

import pytest

from retrykit._internal.clocks import sync_clock
from retrykit._internal.locks import ForkSafe
from retrykit.errors import RetrykitError
from retrykit.state.events import Event, GaveUp, Succeeded, Suspended, observe
from retrykit.state.retry_state import RetryState

if TYPE_CHECKING:
    from retrykit.testing import FakeClock, Recording, virtual_time
    from retrykit.testing.virtual_loop import VirtualLoop

# retrykit.testing is imported by those who use it, and not by every test run.
__all__ = ["no_retries", "retry_clock", "retry_events", "retry_loop"]


@pytest.fixture
def retry_clock(request: pytest.FixtureRequest) -> "Iterator[FakeClock]":
    """Virtual time for this test, in all its threads, tasks and event loops.

    The marker ``retry_time`` has its arguments: those of
    `retrykit.testing.virtual_time`; markers of a class or module count too.
    """
    item: pytest.Item = request.node
    with _virtual_time(item) as clock:
        yield clock
        if _failed in item.stash:
            # The test has told why already.
            clock.slips.clear()


def _virtual_time(item: pytest.Item) -> "virtual_time":
    from retrykit.testing import virtual_time  # noqa: PLC0415

    settings: dict[str, Any] = {"process_wide": True}
    try:
        for marker in reversed([*item.iter_markers("retry_time")]):
            start = dict(zip(["start"], marker.args, strict=bool(marker.args)))
            settings |= start | dict(marker.kwargs)
        return virtual_time(**settings)
    except (TypeError, ValueError) as error:
        told = str(error).replace("virtual_time.__init__()", "it")
    told = f"@pytest.mark.retry_time: {told}"
    pytest.fail(told, pytrace=False)


@pytest.fixture
def retry_loop(
    retry_clock: "FakeClock", request: pytest.FixtureRequest
) -> "Iterator[FakeClock]":
    """The same, on an event loop of pytest-asyncio whose time is virtual too.

    There ``asyncio.timeout`` and ``asyncio.sleep`` pass at once. The loop is
    that of the test: what has a wider ``loop_scope`` keeps an ordinary one.
    """
    hook = getattr(request.config.hook, _LOOPS, None)
    if hook is None or not hook.has_spec():
        msg = "retry_loop needs pytest-asyncio 1.4 or later, which is not loaded"
        raise RetrykitError(msg)
    made = request.config.stash.setdefault(_made, [])
    made.clear()
    yield retry_clock
    if not all(loop.is_closed() for loop in made):
        msg = "retry_loop must be closed after the event loop of its test; leave "
        msg += "loop_scope at 'function', since every test has a clock of its own"
        raise RetrykitError(msg)


@pytest.fixture
def no_retries() -> Iterator[None]:
    """Every function is called once in this test, in all its threads and tasks."""
    from retrykit.testing import disable_retries  # noqa: PLC0415

    with disable_retries(process_wide=True):
        yield


@pytest.fixture
def retry_events() -> "Iterator[Recording]":
    """The `retrykit.testing.Recording` of every retried call, from here on."""
    from retrykit.testing import record  # noqa: PLC0415

    with record(process_wide=True) as recording:
        yield recording


def pytest_configure(config: pytest.Config) -> None:
    """Tell pytest of the marker."""
    config.addinivalue_line(
        "markers",
        "retry_time(start=0.0, *, process_wide=True, stall_timeout='5s', "
        "allow_real_sleep=False): run the test in virtual time, as with the fixture "
        "retry_clock",
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let a test that has the marker use the fixture."""
    names: list[str] = getattr(item, "fixturenames", [])
    if item.get_closest_marker("retry_time") and "retry_clock" not in names:
        names.append("retry_clock")


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(
    fixturedef: "pytest.FixtureDef[Any]", request: pytest.FixtureRequest
) -> None:
    """Let the clock of the marker come before every other fixture of a test."""
    own = fixturedef.scope == "function" and fixturedef.argname != "retry_clock"
    if own and request.node.get_closest_marker("retry_time"):
        request.getfixturevalue("retry_clock")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Refuse that a test asks for a virtual loop and runs on another."""
    asked = "retry_loop" in getattr(item, "fixturenames", [])
    if asked and not item.config.stash.get(_made, []):
        msg = "retry_loop is for tests that pytest-asyncio runs, and must come before "
        msg += "fixtures that are async: this test runs on no virtual loop"
        pytest.fail(msg, pytrace=False)


_LOOPS: Final = "pytest_asyncio_loop_factories"


_made: Final = pytest.StashKey["list[VirtualLoop]"]()


@final
class _VirtualLoops:
    """What pytest-asyncio asks for the loop of one test."""

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_asyncio_loop_factories(
        self, config: pytest.Config
    ) -> "Mapping[str, Callable[[], asyncio.AbstractEventLoop]]":
        made = config.stash.setdefault(_made, [])
        return {"virtual": partial(_new_loop, made)}


def _new_loop(made: "list[VirtualLoop]") -> asyncio.AbstractEventLoop:
    from retrykit.testing import FakeClock  # noqa: PLC0415

    clock = sync_clock.current()
    if not isinstance(clock, FakeClock):
        # A loop of a wider scope, which was there before the clock.
        return asyncio.new_event_loop()
    made.append(clock.new_event_loop())
    return made[-1]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Offer virtual loops to pytest-asyncio, for tests that ask for one."""
    if "retry_loop" not in metafunc.fixturenames:
        return (yield)
    plugins = metafunc.config.pluginmanager
    loops = _VirtualLoops()
    plugins.register(loops)
    try:
        return (yield)
    finally:
        plugins.unregister(loops)


@final
class _Seen(ForkSafe):
    """The histories of the calls of one test that failed at least once."""

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[int, RetryState] = {}
        # As text: a state would keep the errors, and they their frames.
        self._ended: deque[str] = deque(maxlen=_MOST)
        self._left_out = 0

    def hear(self, event: Event) -> None:
        state = event.state
        with self._lock:
            if not isinstance(event, Succeeded | GaveUp | Suspended):
                self._running[id(state)] = state
                return
            self._running.pop(id(state), None)
            self._left_out += len(self._ended) == _MOST
            self._ended.append(_history(state))

    def told(self) -> str:
        with self._lock:
            texts = [*self._ended, *map(_history, self._running.values())]
            if self._left_out:
                texts.insert(0, f"({self._left_out} earlier calls are left out)")
            return "\n\n".join(texts)


_MOST: Final = 20
_failed: Final = pytest.StashKey[bool]()
_seen: Final = pytest.StashKey[_Seen]()


def _history(state: RetryState) -> str:
    from retrykit.testing.history_table import history  # noqa: PLC0415

    return history(state)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Hear of the calls that fail while a test runs; others cost nothing."""
    item.stash[_seen] = seen = _Seen()
    with observe(seen.hear, failures_only=True):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Tell what happened in them, if the test fails."""
    report: pytest.TestReport = yield
    if report.failed:
        item.stash[_failed] = True
    told = item.stash[_seen].told() if report.failed and _seen in item.stash else ""
    if told:
        report.sections.append(("retried calls", told))
    return report
