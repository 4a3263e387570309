"""Waits that an event ends, and waits by a function of one's own."""

import asyncio
import threading
import time
import traceback

import pytest

from retrykit import (
    ConfigError,
    Policy,
    RetryState,
    StopReason,
    aretry,
    aretrying,
    resume,
    retry,
    retrying,
    state_of,
)
from retrykit.errors import RetryError
from retrykit.schedules import constant
from retrykit.testing import limit_retries, virtual_time
from tests._support import required
from tests._support.optional_trio import trio

HOUR = Policy(schedule=["1h"] * 3, on=OSError)
SOON = 0.05


def failing():
    raise OSError("down")


async def afailing():
    raise OSError("down")


def timed(call):
    start = time.monotonic()
    with pytest.raises(OSError) as caught:
        call()
    assert time.monotonic() - start < 5
    return caught.value


def check_stopped(error, attempts=1):
    state = state_of(error)
    assert (state.stop_reason, state.attempt) == (StopReason.STOPPED, attempts)
    assert state.stop_reason.value == "stopped"
    (note,) = error.__notes__
    assert note.endswith("stop_event was set")


@pytest.fixture
def event():
    """Return an event that is set soon, by another thread."""
    required.skip_without("threads")
    event = threading.Event()
    timer = threading.Timer(SOON, event.set)
    timer.start()
    yield event
    timer.join()


def test_an_event_ends_the_wait_of_a_thread(event):
    error = timed(retry(HOUR, stop_event=event)(failing))
    check_stopped(error)
    # A process that starts later can resume the call.
    assert state_of(error).next_delay == 3600.0
    frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert frames == ["timed", "failing"]


def test_an_event_ends_the_wait_of_a_block(event):
    def block():
        for attempt in retrying(HOUR, stop_event=event):
            with attempt:
                failing()

    check_stopped(timed(block))


LOOPS = {"asyncio": asyncio, "trio": trio}
TRIO = pytest.mark.needs("trio")


def run_trio(main):
    """Run a coroutine."""
    return trio.run(lambda: main)


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("library", LOOPS.values(), ids=LOOPS)
def test_an_event_ends_the_wait_of_a_task(library, block):
    async def main():
        event = library.Event()
        if library is trio:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(set_soon, trio.sleep, event)
                await call(event)
        else:
            task = asyncio.create_task(set_soon(asyncio.sleep, event))
            await call(event)
            await task

    async def set_soon(sleep, event):
        await sleep(SOON)
        event.set()

    async def call(event):
        policy = HOUR.replace(stop_event=event)
        with pytest.raises(OSError) as caught:
            if not block:
                await aretry(policy)(afailing)()
            async for attempt in aretrying(policy):
                with attempt:
                    failing()
        check_stopped(caught.value)

    start = time.monotonic()
    trio.run(main) if library is trio else asyncio.run(main())
    assert time.monotonic() - start < 5


def test_an_event_that_is_set_already_allows_no_wait():
    event = threading.Event()
    event.set()
    scheduled = []
    hooks = {"retry_scheduled": scheduled.append}
    error = timed(retry(HOUR, stop_event=event, observers=hooks)(failing))
    check_stopped(error)
    assert state_of(error).next_delay is None
    assert scheduled == []


def test_an_event_that_an_observer_sets_allows_no_wait(backend, clock):
    event = threading.Event() if backend.name == "sync" else LOOPS[backend.name].Event()
    hooks = {"retry_scheduled": lambda _: event.set()}
    with pytest.raises(OSError) as caught:
        backend(HOUR, stop_event=event, observers=hooks)(failing)()
    check_stopped(caught.value)
    assert clock.sleeps == []


def test_an_event_that_is_not_set_changes_nothing(flaky):
    policy = Policy(schedule=[SOON], on=OSError, stop_event=threading.Event())
    start = time.monotonic()
    assert retry(policy)(flaky(OSError()))() == "done"
    assert time.monotonic() - start >= SOON


def test_a_stopped_call_has_its_fallback(event):
    assert retry(HOUR, stop_event=event, fallback="stopped")(failing)() == "stopped"


def test_an_outer_call_does_not_retry_a_stopped_one(event, clock):
    event.set()
    inner = retry(HOUR, stop_event=event)(failing)
    with pytest.raises(OSError) as caught:
        retry(schedule=[7])(inner)()
    assert state_of(caught.value).stop_reason is StopReason.NESTED
    assert clock.sleeps == []


def test_a_stopped_call_tells_its_observers_in_order(event):
    kinds = []
    policy = HOUR.replace(stop_event=event, observers=[lambda e: kinds.append(e.kind)])
    timed(retry(policy)(failing))
    assert kinds == ["attempt_started", "attempt_failed", "retry_scheduled", "gave_up"]


def test_a_stopped_coroutine_awaits_its_observers_before_it_raises():
    kinds = []

    async def note(event):
        await asyncio.sleep(0)
        kinds.append(event.kind)

    async def main():
        event = asyncio.Event()
        asyncio.get_running_loop().call_later(SOON, event.set)
        with pytest.raises(OSError):
            await aretry(HOUR, stop_event=event, observers=[note])(afailing)()
        assert kinds[2:] == ["retry_scheduled", "gave_up"]

    asyncio.run(main())


class TestVirtualTime:
    def test_the_event_is_looked_at_after_the_delay(self, clock):
        event = threading.Event()
        calls = []

        @retry(HOUR, stop_event=event)
        def fetch():
            calls.append(event.set() if len(calls) == 1 else None)
            raise OSError

        with pytest.raises(OSError) as caught:
            fetch()
        check_stopped(caught.value, attempts=2)
        assert clock.sleeps == [3600.0]

    def test_the_clock_replaces_an_own_sleep(self, backend, clock, flaky):
        policy = Policy(schedule=[5], sleep=pytest.fail)
        assert backend(policy)(flaky(OSError()))() == "done"
        assert clock.sleeps == [5.0]

    def test_skipped_delays_replace_it_too(self, flaky):
        with limit_retries():
            retry(schedule=[5], sleep=pytest.fail)(flaky(OSError()))()

    def test_a_task_in_virtual_time_is_stopped(self):
        async def main():
            event = asyncio.Event()
            event.set()
            await aretry(HOUR, stop_event=event)(afailing)()

        with virtual_time():
            check_stopped(timed(lambda: asyncio.run(main())))


class TestSleep:
    def test_a_function_sleeps_in_place_of_the_thread(self, flaky):
        slept = []
        retry(schedule=[60, 3600], sleep=slept.append)(flaky(OSError(), OSError()))()
        assert slept == [60.0, 3600.0]

    @pytest.mark.parametrize("run", [asyncio.run, pytest.param(run_trio, marks=TRIO)])
    def test_a_function_sleeps_in_place_of_the_loop(self, run, flaky):
        slept = []

        async def asleep(delay):
            slept.append(delay)

        fetch = flaky(OSError(), OSError())

        @aretry(schedule=[60, 3600])
        async def afetch():
            return fetch()

        from retrykit import with_policy

        assert run(with_policy(afetch, sleep=asleep)()) == "done"
        fetch = flaky(OSError(), OSError())
        assert run(with_policy(afetch, sleep=slept.append)()) == "done"
        assert slept == [60.0, 3600.0] * 2

    def test_an_event_that_it_sets_ends_the_call(self):
        event = threading.Event()
        policy = HOUR.replace(stop_event=event, sleep=lambda _delay: event.set())
        check_stopped(timed(retry(policy)(failing)))

    def test_a_block_sleeps_by_it(self, flaky):
        slept, fetch = [], flaky(OSError())
        for attempt in retrying(schedule=[60], sleep=slept.append):
            with attempt:
                fetch()
        assert slept == [60.0]

    def test_an_interrupt_in_it_ends_the_call(self, flaky):
        def interrupt(_delay):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt) as caught:
            retry(schedule=[60], sleep=interrupt)(flaky(OSError()))()
        assert state_of(caught.value).stop_reason is StopReason.CANCELLED


async def asleep(_delay):
    pass


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda: Policy(stop_event=True), r"an event with is_set\(\) and wait\(\)"),
        (lambda: Policy(stop_event=threading.Event), r"write threading.Event\(\)"),
        (
            lambda: retry(stop_event=asyncio.Event())(failing),
            "stop_event must be a threading.Event under retry, got",
        ),
        (
            lambda: retrying(stop_event=trio.Event()),
            "stop_event must be a threading.Event under retry, got",
        ),
        (
            lambda: aretry(stop_event=threading.Event())(afailing),
            "stop_event must be an asyncio.Event or a trio.Event under aretry, got",
        ),
        (lambda: Policy(sleep=5), "sleep must be a function of the seconds, got 5"),
        (lambda: Policy(sleep=lambda: 0), "a function that takes the seconds"),
        (lambda: retry(sleep=asleep)(failing), "sleep must be a sync function"),
    ],
)
def test_what_cannot_wait_is_an_error(write, message):
    with pytest.raises(ConfigError, match=message):
        write()


def test_a_sleep_that_returns_an_awaitable_is_an_error(flaky):
    with pytest.raises(ConfigError, match="sleep must be a sync function"):
        # Not known to be async before it is called.
        hidden = lambda delay: asleep(delay)  # noqa: E731, PLW0108
        retry(schedule=[1], sleep=hidden)(flaky(OSError()))()


@pytest.mark.parametrize(
    ("event", "run"),
    [
        pytest.param(trio.Event, asyncio.run, marks=TRIO),
        pytest.param(asyncio.Event, run_trio, marks=TRIO),
    ],
    ids=["trio", "asyncio"],
)
def test_an_event_of_another_loop_is_an_error(event, run):
    fetch = aretry(schedule=constant(1), stop_event=event())(afailing)
    with pytest.raises(ConfigError, match="stop_event must be an event of"):
        run(fetch())


class Results:
    """A predicate of results that remembers which ones it released."""

    def __init__(self):
        self.released = []

    def __call__(self, result):
        return result != "done"

    def release(self, result):
        self.released.append(result)


def test_the_result_of_a_stopped_call_is_not_released(event):
    results = Results()
    policy = HOUR.replace(stop_event=event, on_result=results)
    outcome = policy.run(lambda: "open")
    assert outcome.state.failures[-1].result == "open"
    assert results.released == []


def test_a_result_that_is_retried_is_released_after_the_wait(backend, clock, flaky):
    results = Results()
    event = threading.Event() if backend.name == "sync" else LOOPS[backend.name].Event()
    policy = HOUR.replace(on_result=results, stop_event=event)
    assert backend(policy)(flaky("open"))() == "done"
    assert results.released == ["open"]


def waiting_state():
    """Return the state of a call that waits for its second attempt."""
    states = []
    hooks = {"retry_scheduled": lambda event: states.append(event.state.to_dict())}
    policy = HOUR.replace(schedule=["1h"], sleep=lambda _: None, observers=hooks)
    with pytest.raises(OSError):
        policy.call(failing)
    return RetryState.from_dict(states[0])


@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
def test_an_event_ends_the_wait_of_a_resumed_call(awaited):
    stopped = asyncio.Event() if awaited else threading.Event()
    stopped.set()
    policy = HOUR.replace(stop_event=stopped)

    def run(policy):
        call = resume(afailing if awaited else failing, waiting_state(), policy)
        return asyncio.run(call()) if awaited else call()

    assert run(policy.replace(fallback="old")) == "old"
    with pytest.raises(RetryError) as caught:
        run(policy)
    assert state_of(caught.value).stop_reason is StopReason.STOPPED
