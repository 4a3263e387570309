"""The fixtures, the marker and the report of the pytest plugin."""

import anyio
import pytest

from tests._support.documents import PAGES, blocks

# A run whose process has imported the plugin before cannot rewrite it.
INI = """
[pytest]
filterwarnings =
    error
    ignore:Module already imported so cannot be rewritten
"""

# Each run loads only the plugins under test.
ASYNCIO = ("-p", "pytest_asyncio.plugin")
STRICT = (
    *ASYNCIO,
    "--asyncio-mode=strict",
    "-o",
    "asyncio_default_fixture_loop_scope=function",
)
AUTO = (
    *ASYNCIO,
    "--asyncio-mode=auto",
    "-o",
    "asyncio_default_fixture_loop_scope=function",
)
TRIO = ("-p", "pytest_trio.plugin")
ANYIO = ("-p", "anyio.pytest_plugin")
XDIST = ("-p", "xdist.plugin", "-p", "xdist.looponfail", "-n1")

FETCH = """
import asyncio
import pytest
from tests._support.optional_trio import trio
from retrykit import retry
from retrykit.testing import AsyncScriptedFunction, ScriptedFunction

fetch = retry(schedule=[60, 3600])(
    ScriptedFunction(
        [ConnectionError("refused"), TimeoutError("slow"), "data"], name="fetch"
    )
)
afetch = retry(schedule=[60, 3600])(
    AsyncScriptedFunction(
        [ConnectionError("refused"), TimeoutError("slow"), "ok"], name="afetch"
    )
)
"""

COUNT = """
def count():
    script = ScriptedFunction([OSError, ...])
    with pytest.raises(OSError):
        retry(schedule=[5, 5, 5])(script)()
    return len(script.calls)

async def acount():
    script = AsyncScriptedFunction([OSError, ...])
    with pytest.raises(OSError):
        await retry(schedule=[5, 5, 5])(script)()
    return len(script.calls)
"""

IN_VIRTUAL_TIME = """
def test_clock(retry_clock):
    assert count() == 4
    assert retry_clock.sleeps == [5.0] * 3

@pytest.mark.asyncio
async def test_clock_of_a_coroutine(retry_clock):
    assert await acount() == 4

@pytest.mark.asyncio
async def test_loop(retry_loop):
    assert await acount() == 4

def test_neither():
    assert count() == 1
"""


@pytest.fixture(scope="module", autouse=True)
def _anyio():
    """Import all of anyio first: a run removes the modules that it imported."""
    anyio.run(anyio.sleep, 0)


@pytest.fixture
def run(pytester):
    def run(code, *args):
        pytester.makeini(INI)
        pytester.makepyfile(FETCH + code)
        plugin = ("--disable-plugin-autoload", "-p", "retrykit.testing.pytest_plugin")
        return pytester.runpytest_inprocess(*plugin, *args)

    return run


class TestClock:
    def test_lets_a_test_pass_without_waiting(self, run):
        result = run(
            """
def test_fetch(retry_clock):
    assert fetch() == "data"
    assert retry_clock.sleeps == [60.0, 3600.0]
"""
        )
        result.assert_outcomes(passed=1)

    def test_prints_the_history_of_a_failing_test(self, run):
        result = run(
            """
def test_fetch(retry_clock):
    assert fetch() == "other"
"""
        )
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            [
                "*- retried calls -*",
                "fetch succeeded after 3 attempts in 1 h 1 min",
                "  attempt  began after  took  next after  outcome",
                "  1        0s           0s    1m          ConnectionError: refused",
                "  2        1m           0s    1h          TimeoutError: slow",
                "  3        1h1m         0s                succeeded",
            ],
            consecutive=True,
        )

    def test_works_in_threads(self, run):
        result = run(
            """
def test_fetch(retry_clock):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor() as pool:
        assert pool.submit(fetch).result() == "data"
"""
        )
        result.assert_outcomes(passed=1)

    @pytest.mark.parametrize("mode", [STRICT, AUTO], ids=["strict", "auto"])
    def test_works_with_pytest_asyncio(self, run, mode):
        result = run(
            """
@pytest.mark.asyncio
async def test_fetch(retry_clock):
    assert await afetch() == "ok"
    assert retry_clock.sleeps == [60.0, 3600.0]
""",
            *mode,
        )
        result.assert_outcomes(passed=1)

    def test_works_without_a_marker_in_the_auto_mode_of_pytest_asyncio(self, run):
        result = run(
            """
async def test_fetch(retry_clock):
    assert await afetch() == "ok"
    assert retry_clock.sleeps == [60.0, 3600.0]
""",
            *AUTO,
        )
        result.assert_outcomes(passed=1)

    def test_works_with_pytest_trio(self, run):
        result = run(
            """
@pytest.mark.trio
async def test_fetch(retry_clock):
    assert await afetch() == "ok"
    assert retry_clock.sleeps == [60.0, 3600.0]
""",
            *STRICT,
            *TRIO,
        )
        result.assert_outcomes(passed=1)

    def test_works_with_anyio(self, run):
        result = run(
            """
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_fetch(retry_clock, anyio_backend):
    script = AsyncScriptedFunction([OSError, "data"])
    assert await retry(schedule=[7])(script)() == "data"
    assert retry_clock.sleeps == [7.0]
""",
            *ANYIO,
        )
        result.assert_outcomes(passed=2)

    def test_ends_with_its_test(self, run):
        result = run(
            """
from retrykit._internal.clocks import sync_clock
def test_inside(retry_clock):
    assert sync_clock.now() == 0
def test_outside():
    assert sync_clock.current() is sync_clock.real
"""
        )
        result.assert_outcomes(passed=2)

    def test_a_real_sleep_fails_the_test_once(self, run):
        result = run(
            """
@retry
def sleeps():
    import time
    time.sleep(600)
def test_sleeps(retry_clock):
    sleeps()
"""
        )
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            ["E*RealSleepError: attempt 1 of *sleeps must not*"]
        )
        result.stdout.no_fnmatch_line("*_listen*")

    def test_a_suppressed_real_sleep_is_an_error_at_teardown(self, run):
        result = run(
            """
@retry
def sleeps():
    import time
    time.sleep(600)
def test_sleeps(retry_clock):
    try:
        sleeps()
    except BaseException:
        pass
"""
        )
        result.assert_outcomes(passed=1, errors=1)
        result.stdout.fnmatch_lines(
            ["E*RealSleepError: attempt 1 of *sleeps must not*"]
        )


class TestMarker:
    def test_runs_a_test_in_virtual_time(self, run):
        result = run(
            """
@pytest.mark.retry_time(start=100)
def test_fetch():
    assert fetch() == "data"
    assert fetch.__wrapped__.times == [100.0, 160.0, 3760.0]
"""
        )
        result.assert_outcomes(passed=1)

    def test_sets_the_clock_of_the_fixture(self, run):
        result = run(
            """
pytestmark = pytest.mark.retry_time(100)
def test_fetch(retry_clock):
    assert retry_clock.now() == 100.0
"""
        )
        result.assert_outcomes(passed=1)

    def test_applies_only_to_its_thread_if_not_process_wide(self, run):
        result = run(
            """
@pytest.mark.retry_time(process_wide=False)
def test_fetch():
    from threading import Thread
    from retrykit._internal.clocks import sync_clock
    seen = []
    other = Thread(target=lambda: seen.append(sync_clock.current()))
    other.start()
    other.join()
    assert seen == [sync_clock.real]
"""
        )
        result.assert_outcomes(passed=1)

    def test_prints_the_history_of_a_failing_test(self, run):
        result = run(
            """
@pytest.mark.retry_time
@pytest.mark.asyncio
async def test_fetch():
    assert await afetch() == "other"
""",
            *STRICT,
        )
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["afetch succeeded after 3 attempts in 1 h 1 min"])

    def test_an_invalid_value_is_an_error_of_the_test(self, run):
        result = run(
            """
@pytest.mark.retry_time(start=-1)
def test_fetch():
    pass
"""
        )
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines(
            ["@pytest.mark.retry_time: start must be a finite number >= 0, got -1  *"]
        )

    @pytest.mark.parametrize(
        "arguments", ["1, 2", "begin=3", "process_wide='no'"], ids=str
    )
    def test_invalid_arguments_are_reported_without_a_traceback(self, run, arguments):
        result = run(
            f"""
@pytest.mark.retry_time({arguments})
def test_fetch():
    pass
"""
        )
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines(["@pytest.mark.retry_time: *"])
        result.stdout.no_fnmatch_line("*pytest_plugin.py*")

    def test_a_test_marker_extends_the_marker_of_its_class(self, run):
        result = run(
            """
@pytest.mark.retry_time(start=100)
class TestFetch:
    @pytest.mark.retry_time(allow_real_sleep=True)
    def test_sleeps(self, retry_clock):
        import time
        retry(lambda: time.sleep(0.001))()
        assert retry_clock.now() == 100.0

    @pytest.mark.retry_time(200)
    def test_begins_later(self, retry_clock):
        assert retry_clock.now() == 200.0
"""
        )
        result.assert_outcomes(passed=2)

    def test_virtual_time_starts_before_other_function_fixtures(self, run):
        result = run(
            """
@pytest.fixture(scope="module")
def wide():
    from retrykit._internal.clocks import sync_clock
    assert sync_clock.current() is sync_clock.real
@pytest.fixture
def warm():
    return fetch()
@pytest.mark.retry_time(start=100)
def test_fetch(warm, wide, retry_clock):
    assert (warm, retry_clock.sleeps) == ("data", [60.0, 3600.0])
"""
        )
        result.assert_outcomes(passed=1)

    def test_is_registered_with_pytest(self, run):
        result = run("def test_nothing(): pass", "--strict-markers", "--markers")
        result.stdout.fnmatch_lines(["@pytest.mark.retry_time(start=0.0,*"])


class TestNoRetries:
    def test_calls_each_function_once(self, run):
        result = run(
            """
def test_fetch(no_retries):
    with pytest.raises(ConnectionError):
        fetch()
    assert len(fetch.__wrapped__.calls) == 1

@pytest.mark.asyncio
async def test_afetch(no_retries):
    with pytest.raises(ConnectionError):
        await afetch()
""",
            *STRICT,
        )
        result.assert_outcomes(passed=2)

    def test_prints_the_history_of_a_failing_test(self, run):
        result = run(
            """
def test_fetch(no_retries):
    fetch()
"""
        )
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            [
                "fetch gave up after *: max_attempts=1 *, set by disable_retries()",
                "  attempt  began after *",
                "  1        *ConnectionError: refused",
            ],
            consecutive=True,
        )

    def test_works_in_threads(self, run):
        result = run(
            """
def test_fetch(no_retries):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor() as pool, pytest.raises(ConnectionError):
        pool.submit(fetch).result()
"""
        )
        result.assert_outcomes(passed=1)

    @pytest.mark.parametrize("scope", ["function", "session"])
    def test_a_test_can_switch_retries_on_again(self, run, scope):
        result = run(
            f"""
from retrykit.testing import disable_retries, limit_retries

@pytest.fixture(autouse=True, scope="{scope}")
def _no_retries():
    with disable_retries(process_wide=True):
        yield

def test_limit():
    with limit_retries(3):
        assert count() == 3
    assert count() == 1
{COUNT}{IN_VIRTUAL_TIME}
""",
            *STRICT,
        )
        result.assert_outcomes(passed=5)

    @pytest.mark.parametrize(
        "use",
        [
            "pytestmark = pytest.mark.usefixtures('no_retries')",
            "@pytest.fixture(autouse=True)\ndef _off(no_retries): ...",
        ],
        ids=["mark of the module", "autouse fixture"],
    )
    def test_virtual_time_of_a_test_switches_retries_on_again(self, run, use):
        result = run(
            f"""
{use}

@pytest.mark.retry_time(start=5)
def test_marker():
    assert count() == 4
{COUNT}{IN_VIRTUAL_TIME}
""",
            *STRICT,
        )
        result.assert_outcomes(passed=5)

    def test_a_test_that_names_it_has_no_retries_in_virtual_time_either(self, run):
        result = run(
            f"""
{COUNT}

def test_before(no_retries, retry_clock):
    assert count() == 1

def test_after(retry_clock, no_retries):
    assert count() == 1

class TestClass:
    pytestmark = pytest.mark.retry_time()

    @pytest.mark.usefixtures("no_retries")
    def test_mark(self):
        assert count() == 1

    def test_parameter(self, no_retries):
        assert count() == 1

    def test_neither(self):
        assert count() == 4
"""
        )
        result.assert_outcomes(passed=5)


class TestEvents:
    def test_records_calls(self, run):
        result = run(
            """
def test_fetch(retry_events, retry_clock):
    fetch()
    retry_events.assert_attempts(fetch, 3)
    retry_events.assert_delays(fetch, [60, 3600])
    retry_events.assert_succeeded(fetch)

@pytest.mark.trio
async def test_afetch(retry_events, retry_clock):
    await afetch()
    retry_events.assert_attempts(afetch, 3)
""",
            *TRIO,
        )
        result.assert_outcomes(passed=2)

    def test_a_failing_assertion_prints_the_history_without_frames_of_retrykit(
        self, run
    ):
        result = run(
            """
def test_fetch(retry_events, retry_clock):
    fetch()
    retry_events.assert_attempts(fetch, 2)
"""
        )
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            [
                ">       retry_events.assert_attempts(fetch, 2)",
                "E       AssertionError: attempts of fetch: expected [[]2], got [[]3]",
                "E*",
                "E       fetch succeeded after 3 attempts in 1 h 1 min",
                "E         attempt  began after  took  next after  outcome",
            ],
        )
        result.stdout.no_fnmatch_line("*recording.py*")

    def test_works_in_threads(self, run):
        result = run(
            """
def test_fetch(retry_events, retry_clock):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor() as pool:
        pool.submit(fetch).result()
    retry_events.assert_attempts(fetch, 3)
"""
        )
        result.assert_outcomes(passed=1)


class TestLoop:
    CODE = """
@pytest.mark.asyncio
async def test_fetch(retry_loop):
    loop = asyncio.get_running_loop()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(100):
            await afetch()
    assert (loop.time(), retry_loop.now()) == (100.0, 100.0)
    assert retry_loop.sleeps == [60.0, 3600.0]
    await asyncio.sleep(3600)
    assert loop.time() == 3700.0

@pytest.mark.asyncio
async def test_other():
    assert type(asyncio.get_running_loop()).__name__ != "VirtualLoop"
"""

    @pytest.mark.parametrize("mode", [STRICT, AUTO], ids=["strict", "auto"])
    def test_runs_a_test_of_pytest_asyncio_on_a_virtual_loop(self, run, mode):
        run(self.CODE, *mode).assert_outcomes(passed=2)

    def test_takes_precedence_over_the_loop_factories_of_a_conftest(
        self, run, pytester
    ):
        pytester.makeconftest(
            """
import asyncio
def pytest_asyncio_loop_factories(config, item):
    return {"own": asyncio.new_event_loop}
"""
        )
        run(self.CODE, *STRICT).assert_outcomes(passed=2)

    def test_prints_the_history_of_a_failing_test(self, run):
        result = run(
            """
@pytest.mark.asyncio
async def test_fetch(retry_loop):
    async with asyncio.timeout(100):
        await afetch()
""",
            *STRICT,
        )
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            [
                "afetch was cancelled after 2 attempts in 1 min 40 s",
                "  attempt  began after  took  next after  outcome",
                "  1        0s           0s    1m          ConnectionError: refused",
                "  2        1m           0s    1h          TimeoutError: slow",
            ],
            consecutive=True,
        )

    def test_a_loop_scope_wider_than_the_test_is_an_error(self, run):
        result = run(
            """
@pytest.mark.asyncio(loop_scope="module")
async def test_fetch(retry_loop):
    pass
""",
            *STRICT,
        )
        result.assert_outcomes(passed=1, errors=1)
        result.stdout.fnmatch_lines(
            ["E*retry_loop must be closed after the event loop of its test; leave*"]
        )

    @pytest.mark.parametrize(
        "code",
        [
            """
import pytest_asyncio
@pytest_asyncio.fixture
async def client():
    return "client"
@pytest.mark.asyncio
async def test_fetch(client, retry_loop):
    pass
""",
            """
def test_fetch(retry_loop):
    asyncio.run(afetch())
""",
            """
import unittest
class TestFetch(unittest.IsolatedAsyncioTestCase):
    @pytest.fixture(autouse=True)
    def virtual(self, retry_loop):
        pass
    async def test_fetch(self):
        pass
""",
        ],
        ids=["loop created before", "no async test", "another runner"],
    )
    def test_fails_a_test_that_does_not_run_on_the_virtual_loop(self, run, code):
        result = run(code, *STRICT)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["retry_loop is for tests that pytest-asyncio*"])

    def test_a_loop_of_an_earlier_test_does_not_count(self, run):
        result = run(
            """
@pytest.mark.asyncio
async def test_first(retry_loop):
    await asyncio.sleep(5)
def test_second(retry_loop):
    pass
""",
            *STRICT,
        )
        result.assert_outcomes(passed=1, failed=1)

    @pytest.mark.parametrize("names", ["first second", "second first", "second"])
    def test_session_fixtures_keep_their_ordinary_loop(self, run, names):
        tests = {
            "first": """
async def test_first(shared):
    assert shared == "pool"
""",
            "second": """
async def test_second(shared, retry_loop):
    await asyncio.sleep(100)
    assert retry_loop.now() == 100.0
""",
        }
        shared = """
import pytest_asyncio
@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared():
    await asyncio.sleep(0)
    return "pool"
"""
        order = names.split()
        result = run(shared + "".join(map(tests.get, order)), *AUTO)
        result.assert_outcomes(passed=len(order))

    def test_async_fixtures_after_it_run_on_the_virtual_loop(self, run):
        result = run(
            """
import pytest_asyncio
@pytest_asyncio.fixture
async def client():
    await asyncio.sleep(5)
    return "client"
@pytest.mark.asyncio
async def test_fetch(retry_loop, client):
    assert retry_loop.now() == 5.0
@pytest.mark.asyncio
async def test_again(retry_loop, client):
    assert retry_loop.now() == 5.0
""",
            *STRICT,
        )
        result.assert_outcomes(passed=2)

    def test_raises_without_pytest_asyncio(self, run):
        result = run("def test_fetch(retry_loop): pass")
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines(["E*retry_loop needs pytest-asyncio 1.4 or later*"])


class TestHistory:
    def test_is_printed_without_any_fixture(self, run):
        result = run(
            """
@retry(schedule=[0])
def broken():
    raise OSError("no route")

def test_fetch():
    broken()
"""
        )
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            [
                "*- retried calls -*",
                "*broken gave up after 2 attempts in *: the schedule has ended",
                "  attempt *",
                "  1 * OSError: no route",
                "  2 * OSError: no route",
            ],
            consecutive=True,
        )

    def test_is_as_the_readme_shows(self, run):
        result = run(
            """
def test_fetch(retry_clock):
    @retry(schedule=[1, 5], name="fetch")
    def fetch():
        return server()
    server = ScriptedFunction(
        [TimeoutError("no answer"), ConnectionError("reset"), TimeoutError("no answer")]
    )
    fetch()
"""
        )
        [shown] = (text for _, text in blocks(PAGES[0]) if "retried calls" in text)
        heading, *rows = shown.splitlines()
        begin = result.outlines.index(heading)
        assert result.outlines[begin + 1 : begin + 1 + len(rows)] == rows

    def test_contains_a_call_that_the_test_interrupted(self, run):
        result = run(
            """
def test_fetch():
    @retry(schedule=[0], max_attempts=2)
    def hanging():
        if hanging.calls:
            pytest.fail("it hangs")
        hanging.calls = 1
        raise OSError
    hanging.calls = 0
    hanging()
"""
        )
        result.stdout.fnmatch_lines(["*hanging was cancelled after 2 attempts in *"])

    def test_is_not_printed_if_no_attempt_failed(self, run):
        result = run(
            """
def test_fetch():
    retry(lambda: None)()
    assert False
"""
        )
        result.assert_outcomes(failed=1)
        result.stdout.no_fnmatch_line("*retried calls*")

    def test_is_not_printed_for_a_passing_test(self, run):
        result = run(
            """
def test_fetch(retry_clock):
    fetch()
""",
            "-rA",
        )
        result.assert_outcomes(passed=1)
        result.stdout.no_fnmatch_line("*retried calls*")

    def test_contains_only_calls_of_its_test(self, run):
        result = run(
            """
def test_first(retry_clock):
    fetch()
def test_second():
    assert False
"""
        )
        result.assert_outcomes(passed=1, failed=1)
        result.stdout.no_fnmatch_line("*retried calls*")

    def test_is_limited_to_the_last_20_calls(self, run):
        result = run(
            """
def test_fetch(retry_clock):
    for number in range(60):
        retry(ScriptedFunction([OSError, "data"], name=f"call_{number}"))()
    assert False
"""
        )
        result.stdout.fnmatch_lines(["(40 earlier calls are left out)", "call_40 *"])
        result.stdout.no_fnmatch_line("call_39 *")

    def test_contains_attempts_of_durable_jobs(self, run):
        result = run(
            """
from retrykit import Policy
from retrykit.durable import Job
def test_verify(retry_clock):
    for number in range(60):
        fails = ScriptedFunction([OSError])
        job = Job(fails, Policy(schedule=["4h"]))
        job.attempt(job.envelope(f"job-{number}"), [], {})
    assert False
"""
        )
        result.stdout.fnmatch_lines(
            [
                "(40 earlier calls are left out)",
                "job-40 is running: 1 attempt in *",
                "  attempt  began after  took  next after  outcome",
                "  1        0s *  4h          OSError",
            ]
        )
        result.stdout.no_fnmatch_line("job-39 *")

    @pytest.mark.parametrize("error", ["StopIteration", "RuntimeError"])
    def test_names_calls_whose_clock_raises(self, run, error):
        result = run(
            f"""
from retrykit._internal.clocks import sync_clock

class Clock:
    used_up = False
    def now(self):
        if self.used_up:
            raise {error}("used up")
        return 0.0
    def sleep(self, delay):
        self.used_up = True

def test_fetch():
    for name in ["first", "second"]:
        try:
            with sync_clock.use(Clock()):
                retry(ScriptedFunction([OSError, "data"], name=name))()
        except {error}:
            pass
    assert False
"""
        )
        result.assert_outcomes(failed=1)
        reason = f"*: its history cannot be read: {error}: used up"
        result.stdout.fnmatch_lines(
            ["*- retried calls -*", f"first{reason}", "", f"second{reason}"],
            consecutive=True,
        )

    @pytest.mark.thorough
    def test_is_printed_under_xdist(self, run):
        result = run(
            """
def test_fetch(retry_clock):
    assert fetch() == "other"
""",
            *XDIST,
        )
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["fetch succeeded after 3 attempts in 1 h 1 min"])


def test_does_nothing_if_it_is_unused(run):
    result = run(
        """
import sys
from retrykit._internal import fast_path
def test_nothing():
    assert fast_path.blockers == []
    assert "retrykit.testing" in sys.modules  # the head of this file imports it
"""
    )
    result.assert_outcomes(passed=1)
