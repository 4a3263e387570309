"""No token of an adaptive rate limit is lost, and none is given twice."""

import asyncio
import gc
import subprocess
import sys
from functools import partial
from itertools import count

import pytest

from retrykit.limits import AdaptiveRateLimit, Lease
from retrykit.testing import virtual_time
from tests._support.concurrency import in_thread, switching_often
from tests._support.optional_trio import trio
from tests.limits.test_concurrency import THREADS, on_threads
from tests.limits.test_interrupts import interrupt, is_free


class SlowDownError(Exception):
    """The service throttles."""


@pytest.fixture
def clock():
    with virtual_time(process_wide=True) as clock:
        yield clock


def throttled():
    """Return a limit that has been throttled once, and fills in a token in 2 s."""
    limit = AdaptiveRateLimit(on=SlowDownError)
    limit.acquire().failed(SlowDownError())
    return limit


@pytest.mark.needs("threads")
@pytest.mark.usefixtures("clock")
def test_64_threads_get_tokens_one_after_the_other():
    limit, leases = throttled(), []
    with switching_often():
        on_threads(lambda _: leases.append(limit.acquire()))
    assert limit.metrics.tokens == -THREADS
    times = sorted(map(limit.time_left, leases))
    assert times == [2.0 * number for number in range(1, THREADS + 1)]


@pytest.mark.needs("threads")
@pytest.mark.usefixtures("clock")
def test_64_threads_that_drop_and_ignore_leases_lose_no_token():
    limit = throttled()

    def call(number):
        for step in range(50):
            lease = limit.acquire()
            if (number + step) % 2:
                lease.ignored()
            del lease

    with switching_often():
        on_threads(call)
    assert limit.metrics.tokens == 0
    assert limit.metrics.total_ignored == THREADS * 50


@pytest.mark.needs("threads")
@pytest.mark.usefixtures("clock")
def test_calls_of_64_threads_are_all_counted():
    limit = AdaptiveRateLimit(on=SlowDownError)

    def call(number):
        for _ in range(50):
            lease = limit.acquire()
            lease.failed(SlowDownError()) if number % 4 == 0 else lease.succeeded()

    with switching_often():
        on_threads(call)
    assert limit.metrics[-4:] == (THREADS * 50 // 4, THREADS * 50 * 3 // 4, 0, 0)


@pytest.mark.needs("threads")
def test_of_64_threads_none_goes_before_its_time(clock):
    limit, went = throttled(), {}
    # The rate stays as it is, since no call ends.
    leases = [limit.acquire() for _ in range(THREADS)]

    def call(number):
        assert leases[number].wait() is None
        went[number] = clock.now()

    on_threads(call)
    # Later, as virtual time does not wait for threads that do not sleep yet.
    assert all(went[number] >= 2.0 * number + 2 for number in range(THREADS))


async def steps(number):
    for _ in range(number):
        await asyncio.sleep(0)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("form", ["decorator", "block"])
@pytest.mark.parametrize("after", range(6))
def test_a_task_that_is_cancelled_at_any_await_gives_its_token_back(form, after):
    async def main():
        limit = throttled()
        if form == "decorator":
            call = limit(steps)
        else:

            async def call(number):
                async with limit.guard():
                    await steps(number)

        task = asyncio.create_task(call(5))
        await steps(after)
        task.cancel()
        await asyncio.wait([task])
        return limit

    limit = asyncio.run(main())
    assert limit.metrics.tokens >= 0
    assert limit.metrics.total_throttled == 1
    assert limit.metrics.total_others == 0


@pytest.mark.usefixtures("clock")
def test_a_wait_that_trio_cancels_gives_its_token_back():
    async def main(limit):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(limit.acquire().wait_async)
                await trio.lowlevel.checkpoint()
                scope.cancel()

    limit = throttled()
    trio.run(main, limit)
    assert limit.metrics.tokens >= 0


def succeed(limit):
    with limit.guard():
        pass


def fail(limit):
    with limit.guard() as lease:
        lease.failed(SlowDownError())


def ignore(limit):
    with limit.guard() as lease:
        lease.ignored()


def decorated(limit):
    limit(lambda: 1)()


@pytest.mark.parametrize("call", [succeed, fail, ignore, decorated])
@pytest.mark.parametrize("state", ["off", "limiting", "waiting"])
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_anywhere_loses_no_token_and_leaves_no_lock(clock, state, call):
    for after in count():
        limit = AdaptiveRateLimit(on=SlowDownError)
        if state != "off":
            limit = throttled()
        if state == "limiting":
            clock.advance(2)
        if not interrupt(partial(call, limit), after):
            break
        gc.collect(0)
        assert in_thread(partial(is_free, limit))
        # A token of each call that ended, and no other, is missing.
        taken = limit._state.filled - limit._state.tokens  # noqa: SLF001
        ended = limit.metrics.total_throttled + limit.metrics.total_others
        if state != "off":
            assert taken <= ended - 1 + 1e-9, after
        assert isinstance(limit.acquire(), Lease), after
    assert after > 5


FORKING = """
import os, signal, threading
from contextlib import ExitStack
from retrykit.limits import AdaptiveRateLimit, Lease
from retrykit.testing import virtual_time

limit = AdaptiveRateLimit(on=OSError)
limit.acquire().failed(OSError())

def use():
    # Those that waited are not in this process.
    assert limit.metrics.tokens >= 0, limit.metrics
    lease = limit.acquire()
    with virtual_time():
        assert lease.wait() is None
        lease.failed(OSError())
        limit.acquire().ignored()

def hold():
    global leases
    leases = [limit.acquire() for _ in range(50)]
    assert limit.metrics.tokens < -49
    with limit._lock:
        holding.set()
        over.wait()

holding, over = threading.Event(), threading.Event()
thread = threading.Thread(target=hold)
thread.start()
holding.wait()
child = os.fork()
if not child:
    signal.alarm(10)
    use()
    os._exit(7)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
over.set()
thread.join()
print(code)
"""


@pytest.mark.needs("processes")
def test_a_child_never_waits_for_a_thread_of_its_parent():
    ended = subprocess.run(  # noqa: S603  our own script
        [sys.executable, "-W", "ignore", "-c", FORKING],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.stdout.split(), ended.stderr) == (["7"], "")
