"""The system clocks and those of event loops: these tests really sleep, briefly."""

import asyncio
import signal
import sys
import time
from types import ModuleType

import pytest

from retrykit import Policy, aretry, current_state
from retrykit._internal import loop_clock
from retrykit._internal.clocks import SystemClock, sync_clock, wait_for_event, wall
from retrykit._internal.loop_clock import LoopClock, async_clock
from retrykit.schedules import constant
from retrykit.testing import FakeClock, virtual_time
from tests._support.optional_trio import trio

MOMENT = 0.003


def fail():
    raise OSError("refused")


def test_the_sync_clock_is_monotonic():
    """5. Time is monotonic: a wall clock that is set back changes nothing."""
    assert SystemClock.now is time.monotonic
    assert sync_clock.real.now is time.monotonic


def test_the_sync_clock_really_sleeps():
    clock = SystemClock()
    before = clock.now()
    clock.sleep(MOMENT)
    assert clock.now() - before >= MOMENT


@pytest.mark.needs("signals")
def test_a_sleep_too_long_for_a_timer_is_split():
    clock = SystemClock(longest_sleep=0.0)
    reached = []

    def interrupt(*_):
        reached.append(clock.now() - before)
        raise KeyboardInterrupt

    # In one piece, time.sleep would raise OverflowError.
    before = clock.now()
    previous_handler = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, MOMENT)
    try:
        with pytest.raises(KeyboardInterrupt):
            clock.sleep(1e30)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous_handler)
    assert reached[0] >= MOMENT * 0.9
    clock = SystemClock(longest_sleep=MOMENT / 4)
    before = clock.now()
    clock.sleep(MOMENT)
    assert clock.now() - before >= MOMENT


def test_a_wait_for_an_event_too_long_for_a_timer_is_split():
    waits = []

    class Event:
        def wait(self, timeout):
            waits.append(timeout)
            return len(waits) == 3

    # In one piece, the wait of an event would raise OverflowError.
    wait_for_event(Event(), 1e12)
    assert waits == [30 * 86_400.0] * 3


def test_a_wait_to_be_woken_too_long_for_a_timer_is_split():
    asked, wakes = [], []

    class Longest(float):
        # What `min` asks before each part of the wait.
        def __lt__(self, delay):
            asked.append(delay)
            if len(asked) == 3:
                wakes[0]()
            return True

    def arm(wake):
        wakes.append(wake)
        return True

    SystemClock(longest_sleep=Longest(0.0)).wait_until_woken(arm, 1e12)
    assert len(asked) == 3


def test_the_wall_clock_is_the_system_clock():
    assert abs(wall() - time.time()) < 60


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop that is always at one time of its own."""

    def __init__(self, now):
        super().__init__()
        self.now = now

    def time(self):
        return self.now


@pytest.mark.needs("threads")
@pytest.mark.parametrize("modules", [{}, sys.modules], ids=["no trio", "trio"])
def test_each_loop_has_its_own_time_in_turn_and_in_threads(monkeypatch, modules):
    """The last loop is remembered only for the thread that runs it."""
    monkeypatch.setattr(loop_clock, "modules", modules)
    clock = LoopClock()

    async def read():
        return clock.now(), clock.reader()()

    async def read_elsewhere():
        other = await asyncio.to_thread(run, 7.0)
        return clock.now(), other, clock.now()

    def run(now, reading=read):
        with asyncio.Runner(loop_factory=lambda: SteppedLoop(now)) as runner:
            return runner.run(reading())

    assert [run(now) for now in (1.0, 2.0, 1.0)] == [(1, 1), (2, 2), (1, 1)]
    assert run(3.0, read_elsewhere) == (3, (7, 7), 3)
    with pytest.raises(RuntimeError, match="no running event loop"):
        clock.now()


def test_the_async_clock_is_the_event_loop_clock():
    async def main():
        before = LoopClock().now()
        assert before <= asyncio.get_running_loop().time()
        await LoopClock().sleep(MOMENT)
        return LoopClock().now() - before

    assert asyncio.run(main()) >= MOMENT * 0.9


def test_the_async_clock_is_the_trio_clock():
    async def main():
        before = LoopClock().now()
        await LoopClock().sleep(3600)
        return LoopClock().now() - before

    clock = trio.testing.MockClock(autojump_threshold=0)
    assert trio.run(main, clock=clock) == pytest.approx(3600)


def test_the_time_of_a_custom_event_loop_is_used():
    class VirtualLoop(asyncio.SelectorEventLoop):
        ahead = 0.0

        def time(self):
            return super().time() + self.ahead

    async def main():
        before = current_state().elapsed
        asyncio.get_running_loop().ahead += 100
        return current_state().elapsed - before

    loop = VirtualLoop()
    try:
        assert loop.run_until_complete(aretry(Policy())(main)()) >= 100
    finally:
        loop.close()


def test_a_partially_imported_trio_does_not_break_asyncio_calls(monkeypatch):
    monkeypatch.setitem(sys.modules, "trio", ModuleType("trio"))

    @aretry
    async def fetch():
        return "value"

    assert asyncio.run(fetch()) == "value"


def test_the_async_clock_works_without_trio(monkeypatch):
    monkeypatch.delitem(sys.modules, "trio", raising=False)

    async def main():
        await LoopClock().sleep(0)
        return LoopClock().now(), asyncio.get_running_loop().time()

    now, expected = asyncio.run(main())
    assert now == pytest.approx(expected, abs=1)


def test_the_async_clock_raises_outside_of_an_event_loop():
    with pytest.raises(RuntimeError):
        LoopClock().now()
    assert async_clock.reader() is None


def test_nested_clocks_are_restored():
    outer, inner = FakeClock(10), FakeClock(20)
    with sync_clock.use(outer):
        with sync_clock.use(inner):
            assert sync_clock.now() == 20.0
        assert sync_clock.now() == 10.0
        with pytest.raises(KeyError), sync_clock.use(inner):
            raise KeyError
        assert sync_clock.now() == 10.0
    assert sync_clock.now() > 20.0


def test_an_async_sleep_lets_other_tasks_run():
    order = []

    @aretry(schedule=[MOMENT])
    async def fetch():
        order.append("attempt")
        if len(order) == 1:
            raise OSError

    async def other():
        order.append("other")

    async def main():
        await asyncio.gather(fetch(), other())

    asyncio.run(main())
    assert order == ["attempt", "other", "attempt"]


@pytest.mark.parametrize("changes", [{}, {"max_attempts": 9}], ids=["time", "attempts"])
@pytest.mark.usefixtures("quiet")
def test_warns_if_a_patched_sleep_would_make_a_call_endless(
    monkeypatch, caplog, changes
):
    monkeypatch.setattr(time, "sleep", lambda _delay: None)
    limits = {"max_attempts": None, "max_elapsed": 0.02, "deadline": "overshoot"}
    with pytest.raises(OSError):
        Policy(schedule=constant(1), **limits | changes).call(fail)
    messages = [record.getMessage() for record in caplog.records]
    if changes:
        assert messages == []
    else:
        (message,) = messages
        assert (
            "fail slept 1s before its next attempt, but its clock advanced only"
            in message
        )
        assert "retrykit.testing.virtual_time" in message


@pytest.mark.usefixtures("quiet")
def test_does_not_warn_about_short_or_virtual_sleeps(monkeypatch, caplog):
    limits = {"max_attempts": None, "max_elapsed": 30}
    with virtual_time(), pytest.raises(OSError):
        Policy(schedule=constant(1), **limits).call(fail)
    monkeypatch.setattr(time, "sleep", lambda _delay: None)
    with pytest.raises(OSError):
        Policy(schedule=[0.09, 0, 0.05], **limits).call(fail)
    assert caplog.records == []
