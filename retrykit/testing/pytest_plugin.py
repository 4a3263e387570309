"""pytest plugin: fixtures, a marker, and the history of retried calls in reports.

pytest loads it wherever retrykit is installed.
"""

import asyncio
import inspect
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from retrykit._core.retry_state import RetryState
from retrykit._internal.clocks import sync_clock
from retrykit._internal.locks import ForkSafe
from retrykit.errors import RetrykitError
from retrykit.events import Event, GaveUp, Succeeded, Suspended, observe

if TYPE_CHECKING:
    from retrykit.testing import FakeClock, Recording, virtual_time
    from retrykit.testing._virtual_loop import VirtualLoop

# retrykit.testing is imported by the fixtures, not by every test run.

__all__ = ["no_retries", "retry_clock", "retry_events", "retry_loop"]


@pytest.fixture
def retry_clock(request: pytest.FixtureRequest) -> "Iterator[FakeClock]":
    """Run the test in virtual time, in all its threads, tasks and event loops.

    The marker ``retry_time`` takes the arguments of `retrykit.testing.virtual_time`;
    it can be put on a test, a class or a module.
    """
    item: pytest.Item = request.node
    with _virtual_time(item) as clock:
        yield clock
        if _failed in item.stash:
            # The report of the test has the reason already.
            clock.errors.clear()


def _virtual_time(item: pytest.Item) -> "virtual_time":
    from retrykit.testing import virtual_time  # noqa: PLC0415

    settings: dict[str, Any] = {"process_wide": True}
    try:
        for marker in reversed([*item.iter_markers("retry_time")]):
            start = dict(zip(["start"], marker.args, strict=bool(marker.args)))
            settings |= start | dict(marker.kwargs)
        return virtual_time(**settings)
    except (TypeError, ValueError) as error:
        reason = str(error).replace("virtual_time.__init__()", "it")
    pytest.fail(f"@pytest.mark.retry_time: {reason}", pytrace=False)


@pytest.fixture
def retry_loop(
    retry_clock: "FakeClock", request: pytest.FixtureRequest
) -> "Iterator[FakeClock]":
    """Run a pytest-asyncio test on an event loop whose time is virtual.

    ``asyncio.timeout`` and ``asyncio.sleep`` take no time there. Fixtures with a wider
    ``loop_scope`` than the test keep an ordinary loop.
    """
    hook = getattr(request.config.hook, _LOOP_HOOK, None)
    if hook is None or not hook.has_spec():
        msg = "retry_loop needs pytest-asyncio 1.4 or later, which is not loaded"
        raise RetrykitError(msg)
    loops = request.config.stash.setdefault(_loops, [])
    loops.clear()
    yield retry_clock
    if not all(loop.is_closed() for loop in loops):
        msg = "retry_loop must be closed after the event loop of its test; leave "
        msg += "loop_scope at 'function', since each test has its own clock"
        raise RetrykitError(msg)


@pytest.fixture
def no_retries(request: pytest.FixtureRequest) -> Iterator[None]:
    """Call every function once in this test, in all its threads and tasks.

    If an ``autouse`` fixture or the mark of a module uses it for many tests, it does
    not apply to those in virtual time. If a test itself uses it, it does.
    """
    from retrykit.testing import disable_retries  # noqa: PLC0415

    if "retry_clock" in request.fixturenames:
        # The innermost of both applies.
        request.getfixturevalue("retry_clock")
        if not _names_fixture(request.node, "no_retries"):
            yield
            return
    with disable_retries(process_wide=True):
        yield


def _names_fixture(item: pytest.Item, name: str) -> bool:
    """Return whether a test has a fixture as its own parameter or mark."""
    marks = [each for each in item.own_markers if each.name == "usefixtures"]
    test = getattr(item, "function", None)
    parameters = () if test is None else inspect.signature(test).parameters
    return name in parameters or any(name in each.args for each in marks)


@pytest.fixture
def retry_events() -> "Iterator[Recording]":
    """Record every retried call of the test, as `retrykit.testing.record` does."""
    from retrykit.testing import record  # noqa: PLC0415

    with record(process_wide=True) as recording:
        yield recording


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "retry_time(start=0.0, *, process_wide=True, stall_timeout='5s', "
        "allow_real_sleep=False): run the test in virtual time, as with the fixture "
        "retry_clock",
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Add the fixture to tests with the marker."""
    names: list[str] = getattr(item, "fixturenames", [])
    if item.get_closest_marker("retry_time") and "retry_clock" not in names:
        names.append("retry_clock")


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(
    fixturedef: "pytest.FixtureDef[Any]", request: pytest.FixtureRequest
) -> None:
    """Set up the clock of the marker before a test's function-scoped fixtures."""
    own = fixturedef.scope == "function" and fixturedef.argname != "retry_clock"
    if own and request.node.get_closest_marker("retry_time"):
        request.getfixturevalue("retry_clock")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Fail a test that uses retry_loop but runs on another loop."""
    uses_loop = "retry_loop" in getattr(item, "fixturenames", [])
    if uses_loop and not item.config.stash.get(_loops, []):
        msg = "retry_loop is for tests that pytest-asyncio runs, and must come before "
        msg += "async fixtures; this test does not run on a virtual loop"
        pytest.fail(msg, pytrace=False)


_LOOP_HOOK: Final = "pytest_asyncio_loop_factories"
_loops: Final = pytest.StashKey["list[VirtualLoop]"]()


class _VirtualLoops:
    """Plugin that gives pytest-asyncio the loop of one test."""

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_asyncio_loop_factories(
        self, config: pytest.Config
    ) -> "Mapping[str, Callable[[], asyncio.AbstractEventLoop]]":
        loops = config.stash.setdefault(_loops, [])
        return {"virtual": partial(_new_loop, loops)}


def _new_loop(loops: "list[VirtualLoop]") -> asyncio.AbstractEventLoop:
    from retrykit.testing import FakeClock  # noqa: PLC0415

    clock = sync_clock.current()
    if not isinstance(clock, FakeClock):
        # The loop of a wider scope is created before the clock.
        return asyncio.new_event_loop()
    loops.append(clock.new_event_loop())
    return loops[-1]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Offer virtual loops to pytest-asyncio, for tests that use retry_loop."""
    if "retry_loop" not in metafunc.fixturenames:
        return (yield)
    plugins = metafunc.config.pluginmanager
    plugin = _VirtualLoops()
    plugins.register(plugin)
    try:
        return (yield)
    finally:
        plugins.unregister(plugin)


class _Histories(ForkSafe):
    """The histories of the calls with failed attempts in one test."""

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[int, RetryState] = {}
        # As text: states hold errors, and errors hold frames.
        self._ended: deque[str] = deque(maxlen=_MAX_HISTORIES)
        self._left_out = 0

    def on_event(self, event: Event) -> None:
        state = event.state
        ended = isinstance(event, Succeeded | GaveUp | Suspended)
        # Without the lock: texts of errors are code of the user.
        text = _history(state) if ended else ""
        with self._lock:
            if not ended:
                self._running[id(state)] = state
                return
            self._running.pop(id(state), None)
            self._left_out += len(self._ended) == _MAX_HISTORIES
            self._ended.append(text)

    def format(self) -> str:
        with self._lock:
            texts, running = [*self._ended], [*self._running.values()]
            left_out = self._left_out
        texts += map(_history, running)
        if left_out:
            texts.insert(0, f"({left_out} earlier calls are left out)")
        return "\n\n".join(texts)


_MAX_HISTORIES: Final = 20
_failed: Final = pytest.StashKey[bool]()
_histories: Final = pytest.StashKey[_Histories]()


def _history(state: RetryState) -> str:
    from retrykit.testing._history_table import history  # noqa: PLC0415

    return history(state)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Collect the histories of the calls with failed attempts in a test."""
    item.stash[_histories] = histories = _Histories()
    with observe(histories.on_event, failures_only=True):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Add the histories to the report of a test that fails."""
    report: pytest.TestReport = yield
    if report.failed:
        item.stash[_failed] = True
        histories = item.stash[_histories].format() if _histories in item.stash else ""
        if histories:
            report.sections.append(("retried calls", histories))
    return report
