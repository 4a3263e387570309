"""Rate limits of many threads and tasks, interrupted, reentered and forked."""

import asyncio
import gc
import subprocess
import sys
from collections import Counter
from functools import partial
from itertools import count

import pytest

from retrykit.limits import Lease, RateLimit
from retrykit.testing import virtual_time
from tests._support.concurrency import in_thread, switching_often
from tests._support.optional_trio import trio
from tests.limits.test_concurrency import THREADS, on_threads
from tests.limits.test_interrupts import interrupt, is_free


@pytest.mark.needs("threads")
def test_64_threads_get_each_time_as_often_as_there_is_room():
    limit, times = RateLimit(7, per="1s", max_wait="1h"), []

    def call(_):
        for _ in range(50):
            lease = limit.acquire()
            lease.succeeded()
            times.append(lease.delay)

    with virtual_time(process_wide=True), switching_often():
        on_threads(call)
    number = THREADS * 50
    assert Counter(times) == Counter(float(n // 7) for n in range(number))
    assert limit.metrics.total_allowed == number


@pytest.mark.needs("threads")
def test_64_threads_that_give_times_back_get_no_time_too_often():
    limit, given, returned = RateLimit(3, per="1s", max_wait="1h"), [], []

    def call(number):
        for step in range(50):
            lease = limit.acquire()
            given.append(lease.delay)
            if (number + step) % 2 and lease.delay:
                # Before it is given back, as another may get it at once.
                returned.append(lease.delay)
                lease.ignored()
            else:
                lease.succeeded()

    with virtual_time(process_wide=True), switching_often():
        on_threads(call)
        metrics = limit.metrics
    kept = Counter(given) - Counter(returned)
    assert max(kept.values()) <= 3
    assert metrics.total_allowed == len(given) == THREADS * 50
    assert metrics.total_returned == len(returned)
    assert metrics.calls + metrics.waiting == kept.total()


@pytest.mark.needs("threads")
def test_no_thread_is_refused_while_there_is_room():
    limit, answers = RateLimit(40, per="1m", max_wait=0), []
    with virtual_time(process_wide=True), switching_often():
        on_threads(lambda _: answers.append(limit.acquire()))
    assert sum(isinstance(each, Lease) for each in answers) == 40
    assert limit.metrics.total_refused == THREADS - 40


@pytest.mark.thorough
def test_10_000_tasks_start_at_their_times_and_others_are_cancelled():
    starts = []

    async def main(clock):
        limit = RateLimit(100, per="1s", max_wait="1h")

        @limit
        async def call():
            starts.append(clock.now())

        tasks = [asyncio.create_task(call()) for _ in range(10_000)]
        await asyncio.sleep(0)
        assert len(starts) == 100
        for task in tasks[1000::2]:
            task.cancel()
        later = [asyncio.create_task(call()) for _ in range(10)]
        await asyncio.gather(*tasks, *later, return_exceptions=True)
        return limit.metrics

    with virtual_time() as clock:
        metrics = asyncio.run(main(clock))
    expected = {0: 100, **dict.fromkeys(range(1, 10), 100)}
    # Of each hundred half were cancelled, and ten times were given out again.
    expected |= {10: 60, **dict.fromkeys(range(11, 100), 50)}
    assert Counter(starts) == expected
    assert metrics.total_returned == 4500


def test_a_task_that_trio_cancels_gives_its_time_back():
    async def main(limit):
        limit.acquire().succeeded()
        with trio.move_on_after(0):
            async with limit.guard():
                pytest.fail("it was not its time")

    with virtual_time():
        limit = RateLimit(1, per="10s")
        trio.run(main, limit)
        assert limit.metrics.total_returned == 1
        assert limit.acquire().delay == 10


def check_times(limit, clock, leases):
    """Raise an error unless leases have times, as far apart as they must be."""
    times, room = [*limit._times], limit.calls  # noqa: SLF001  there is no other way
    assert times == sorted(times)
    assert [x for x, y in zip(times, times[room:], strict=False) if y - x < 8] == []
    given = [getattr(lease, "time", 0) for lease in leases]
    recent = Counter(time for time in given if time > clock.now() - 8)
    assert recent <= Counter(times)


def waiting_limit(clock, room, free):
    """Return a limit at 9 s, and leases that wait, after some were given back."""
    limit = RateLimit(room, per="8s", max_wait="1h")
    leases = [limit.acquire() for _ in range(7)]
    clock.advance("9s")
    for index in free:
        leases[index].ignored()
    kept = [leases[index] for index in range(7) if index not in free]
    for lease in kept:
        lease.succeeded()
    return limit, kept


# One in the middle and the last two, as if they had never been given.
FREE = [(), (3,), (3, 5, 6)]


def use(limit, leases):
    lease = limit.acquire()
    leases.append(lease)
    lease.succeeded()


def guard(limit, leases):
    with limit.guard() as lease:
        leases.append(lease)


def give_back(limit, leases):
    limit.acquire().ignored()


def drop(limit, leases):
    limit.acquire()


def read(limit, leases):
    assert limit.metrics
    assert limit.state


@pytest.mark.parametrize("fn", [use, guard, give_back, drop, read])
@pytest.mark.parametrize("free", FREE)
@pytest.mark.parametrize("room", [1, 2])
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_anywhere_adds_no_call_and_leaves_no_lock(room, free, fn):
    for after in count():
        with virtual_time(process_wide=True) as clock:
            limit, leases = waiting_limit(clock, room, free)
            interrupted = interrupt(partial(fn, limit, leases), after)
            gc.collect(0)
            assert in_thread(partial(is_free, limit))
            for _ in range(6):
                use(limit, leases)
            check_times(limit, clock, leases)
            # What was lost has passed.
            clock.advance("1h")
            delays = [limit.acquire().delay for _ in range(room)]
            assert delays == [0] * room, after
        if not interrupted:
            break
    assert after > 5


@pytest.mark.parametrize("pause", ["0s", "2s", "8s", "40s"])
@pytest.mark.parametrize("act", [use, guard, give_back, drop, read])
@pytest.mark.parametrize("free", FREE)
@pytest.mark.parametrize("room", [1, 2])
def test_a_signal_handler_that_asks_anywhere_takes_no_time_of_another(
    room, free, act, pause
):
    for after in count():
        with virtual_time(process_wide=True) as clock:
            limit, leases = waiting_limit(clock, room, free)

            def handle(limit=limit, clock=clock, leases=leases):
                clock.advance(pause)
                act(limit, leases)
                check_times(limit, clock, leases)

            handled = interrupt(partial(use, limit, leases), after, handle)
            check_times(limit, clock, leases)
            allowed = 7 + (handled and act is not read) + 1
            assert limit.metrics.total_allowed == allowed
            for _ in range(5):
                use(limit, leases)
            check_times(limit, clock, leases)
            assert {lease.generation for lease in leases} == {1}
        if not handled:
            break
    assert after > 5


# As above at one place each, which coverage sees.
@pytest.mark.parametrize("act", [use, read])
def test_a_time_that_was_found_before_a_signal_handler_ran_is_found_again(act):
    with virtual_time() as clock:
        limit, leases = waiting_limit(clock, 1, (3,) if act is read else ())
        find = limit._next_time  # noqa: SLF001  there is no other way

        def find_and_handle(now):
            time = find(now)
            del limit._next_time  # noqa: SLF001  same
            clock.advance("40s")
            act(limit, leases)
            return time

        limit._next_time = find_and_handle  # noqa: SLF001  same
        use(limit, leases)
        check_times(limit, clock, leases)


FORKING = """
import os, signal, threading
from retrykit.limits import Lease, RateLimit

def use(limit):
    lease = limit.acquire()
    assert isinstance(lease, Lease)
    lease.ignored()
    limit.metrics, limit.state

limit = RateLimit(1, per="1h", max_wait="1d")
first, second = limit.acquire(), limit.acquire()

def hold():
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
    use(limit)
    # The times of the parent are taken here, too.
    assert limit.acquire().delay > 7100
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
over.set()
thread.join()
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
