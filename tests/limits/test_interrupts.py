"""An interrupt between any two instructions of a limit, as Ctrl-C makes it."""

import gc
import sys
from contextlib import suppress
from functools import partial
from itertools import count
from opcode import opname
from pathlib import Path

import pytest

import retrykit
from retrykit import RefusedError
from retrykit._internal.clocks import sync_clock
from retrykit.limits import CircuitBreaker, Concurrency, Lease
from retrykit.testing import virtual_time
from tests._support.concurrency import in_thread

PACKAGE = str(Path(retrykit.__file__).parent / "limits")


class Interrupt(BaseException):
    """Raised between two instructions."""


# Python looks for signals after these, and at no other instruction but jumps back.
CHECKED = {"CALL", "CALL_FUNCTION_EX", "CALL_KW", "RESUME"}


def raise_interrupt():
    raise Interrupt


def interrupt(fn, after, act=raise_interrupt):
    """Call a function; raise an interrupt where Python may, the one after others.

    Or do something else there, as a signal handler does.

    Returns:
        Whether there was such a place.
    """
    left, previous = [after], {}

    def trace(frame, event, _):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            before = previous.get(frame)
            previous[frame] = opname[frame.f_code.co_code[frame.f_lasti]]
            if before in CHECKED:
                left[0] -= 1
                if left[0] < 0:
                    sys.settrace(None)
                    previous.clear()
                    act()
                    return None
        return trace

    before = sys.gettrace()
    # Tracing makes objects at each instruction, so that a collection could call
    # finalizers where Python does not.
    gc.disable()
    sys.settrace(trace)
    try:
        fn()
    except Interrupt:
        pass
    finally:
        sys.settrace(before)
        gc.enable()
    return left[0] < 0


def is_free(limit):
    """Return whether this thread can get the lock of a limit."""
    lock = limit._lock  # noqa: SLF001  there is no other way
    free = lock.acquire(blocking=False)
    if free:
        lock.release()
    return free


def succeed(breaker):
    with breaker.guard():
        pass


def fail(breaker):
    with breaker.guard() as lease:
        lease.failed()


def ignore(breaker):
    with breaker.guard() as lease:
        lease.ignored()


def decorated(breaker):
    breaker(lambda: 1)()


@pytest.mark.parametrize("call", [succeed, fail, ignore, decorated])
@pytest.mark.parametrize("state", ["closed", "half-open"])
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_loses_no_place_and_leaves_no_lock(state, call):
    with virtual_time(process_wide=True) as clock:
        for after in count():
            breaker = CircuitBreaker(consecutive_failures=1, open_for="5s")
            if state == "half-open":
                breaker.open()
                clock.advance("5s")
            if not interrupt(partial(call, breaker), after):
                break
            gc.collect(0)
            assert in_thread(partial(is_free, breaker))
            answer = breaker.acquire()
            if breaker.state == "open":
                clock.advance("5s")
                answer = breaker.acquire()
            assert isinstance(answer, Lease), after
    assert after > 5


def look(breaker):
    assert breaker.metrics


@pytest.mark.parametrize("call", [succeed, fail, look])
@pytest.mark.parametrize("window", [100, "1m"])
def test_loses_no_other_call(window, call):
    with virtual_time(process_wide=True):
        for after in count():
            breaker = CircuitBreaker(window=window, consecutive_failures=3)
            for _ in range(2):
                breaker.acquire().failed()
            for _ in range(5):
                breaker.acquire().succeeded()
            interrupted = interrupt(partial(call, breaker), after)
            metrics = breaker.metrics
            assert metrics.calls - 7 in {0, call is not look}, after
            assert metrics.failures - 2 in {0, call is fail}, after
            assert metrics.total_succeeded - 5 in {0, call is succeed}, after
            # The successes ended the row.
            breaker.acquire().failed()
            assert breaker.state == "closed"
            if not interrupted:
                break
    assert after > 5


class Freed:
    """A clock on which those that wait are woken by what frees their permits."""

    def __init__(self, free):
        self.time, self._free = 0.0, free

    def now(self):
        return self.time

    def wait_until_woken(self, arm, delay):
        woken = []
        if arm(partial(woken.append, 1)):
            self._free()
        if not woken:
            self.time += delay


def wait_for_permit(limit, running):
    clock = sync_clock.use(Freed(running.succeeded))
    # The oldest is next, and this one waits for too long, if the order is fifo.
    with clock, suppress(RefusedError), limit.guard():
        pass


def hand_on(limit, running):
    limit.acquire().wait(at_most=0)
    running.succeeded()


def resize(limit, running):
    waiting = limit.acquire()
    limit.resize(2)
    running.succeeded()
    if isinstance(waiting, Lease):
        waiting.wait(at_most=0)


@pytest.mark.parametrize("call", [succeed, fail, ignore, decorated])
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_loses_no_permit(call):
    for after in count():
        limit = Concurrency(1, queue=1)
        if not interrupt(partial(call, limit), after):
            break
        gc.collect(0)
        assert in_thread(partial(is_free, limit))
        assert limit.metrics[:2] == (0, 0), after
        assert limit.acquire().delay == 0
    assert after > 5


@pytest.mark.parametrize("call", [wait_for_permit, hand_on, resize])
@pytest.mark.parametrize("order", ["fifo", "lifo"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_loses_no_permit_and_no_place_while_others_wait(order, call):
    for after in count():
        limit = Concurrency(1, queue=2, order=order, max_wait=5)
        running, other = limit.acquire(), limit.acquire()
        woken = []
        other._arm(partial(woken.append, 1))  # noqa: SLF001  as its wait does
        if not interrupt(partial(call, limit, running), after):
            break
        running.ignored()
        del running
        gc.collect(0)
        assert in_thread(partial(is_free, limit))
        # All others have left: the permit is for the one that waits.
        assert limit.metrics.running == 1, after
        assert woken, after
        assert other.wait(at_most=0) is None, after
        other.succeeded()
        assert limit.metrics[:2] == (0, 0), after
    assert after > 5
