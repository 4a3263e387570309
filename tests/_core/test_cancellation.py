"""2. Cancellation is sacred. Only Exception is ever retried."""

import asyncio
import inspect
import signal
import threading
import traceback

import pytest

from retrykit import Policy, StopReason, aretry, current_state, retry, state_of
from retrykit._internal.clocks import sync_clock
from retrykit.schedules import constant
from retrykit.testing import virtual_time
from tests._support.optional_trio import trio

SACRED = [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError]
NEGATIVE = Policy(
    schedule=constant(0), on=lambda error: not isinstance(error, KeyError)
)


@pytest.mark.parametrize("kind", SACRED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "policy",
    [Policy(), NEGATIVE, Policy(raises="retry_error"), Policy(raises="group")],
    ids=["default", "negative", "retry_error", "group"],
)
def test_a_base_exception_in_the_call_is_raised_at_once(clock, flaky, kind, policy):
    fetch = flaky(kind("now"))
    with pytest.raises(kind) as caught:
        retry(policy)(fetch)()
    assert (len(fetch.calls), clock.sleeps) == (1, [])
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("kind", SACRED, ids=lambda kind: kind.__name__)
def test_a_base_exception_in_the_sleep_is_raised_at_once(flaky, kind):
    class InterruptedClock:
        def now(self):
            return 0.0

        def sleep(self, delay):
            raise kind

    fetch = flaky(OSError("refused"), "value")
    with sync_clock.use(InterruptedClock()), pytest.raises(kind) as caught:
        retry(NEGATIVE)(fetch)()
    assert len(fetch.calls) == 1
    state = state_of(caught.value)
    assert state.stop_reason is StopReason.CANCELLED
    assert [error.args for error in state.errors] == [("refused",)]
    assert state.next_delay == 0.0


def test_a_task_cancelled_in_the_call_makes_no_further_attempt():
    calls = []

    @aretry(NEGATIVE)
    async def fetch():
        calls.append(1)
        await asyncio.sleep(3600)

    async def main():
        task = asyncio.create_task(fetch())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert asyncio.run(main())
    assert calls == [1]


def test_a_task_cancelled_in_the_sleep_makes_no_further_attempt():
    calls = []

    @aretry(schedule=[3600])
    async def fetch():
        calls.append(1)
        raise OSError

    async def main():
        task = asyncio.create_task(fetch())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert asyncio.run(main())
    assert calls == [1]


def test_a_timeout_around_a_retried_call_ends_it():
    @aretry(schedule=constant(3600), max_attempts=None)
    async def fetch():
        raise OSError

    async def main():
        async with asyncio.timeout(0.01):
            await fetch()

    with pytest.raises(TimeoutError):
        asyncio.run(main())


def test_a_trio_scope_around_a_retried_call_ends_it():
    calls = []

    @aretry(schedule=constant(3600), on=lambda error: True)
    async def fetch():
        calls.append(1)
        raise OSError

    async def main():
        with trio.move_on_after(5400) as scope:
            await fetch()
        return scope.cancelled_caught

    async def cancelled_in_the_call():
        with trio.CancelScope() as scope:
            scope.cancel()
            await aretry(trio.sleep_forever)()
        return scope.cancelled_caught

    clock = trio.testing.MockClock(autojump_threshold=0)
    assert trio.run(main, clock=clock)
    assert calls == [1, 1]
    assert trio.run(cancelled_in_the_call)


@pytest.mark.needs("threads")
def test_ctrl_c_in_a_real_sleep_ends_the_call():
    failed, over = threading.Event(), threading.Event()
    pressed = []

    def on_key(_signal, _frame):
        if not pressed:
            pressed.append(1)
            raise KeyboardInterrupt

    def press():
        failed.wait()
        # The key may be pressed a moment before the sleep begins.
        while not over.wait(0.01):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    @retry(schedule=[3600])
    def fetch():
        failed.set()
        raise OSError

    before = signal.signal(signal.SIGINT, on_key)
    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        fetch()
    over.set()
    presser.join()
    signal.signal(signal.SIGINT, before)


def test_a_coroutine_can_be_closed_in_another_context():
    @retry(schedule=[0])
    async def fetch():
        await asyncio.sleep(3600)

    async def main():
        task = asyncio.ensure_future(fetch())
        await asyncio.sleep(0)
        coroutine = task.get_coro()
        task.cancel()
        coroutine.close()
        return inspect.getcoroutinestate(coroutine)

    assert asyncio.run(main()) == inspect.CORO_CLOSED


def test_a_task_cancelled_after_a_first_success_leaves_no_call_behind():
    steps = iter([0.0, 3600.0])

    @aretry(NEGATIVE)
    async def fetch():
        await asyncio.sleep(next(steps))

    async def main():
        await fetch()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(fetch(), 0.01)
        with pytest.raises(LookupError):
            current_state()

    asyncio.run(main())


@pytest.mark.needs("threads")
def test_a_cancelled_call_knows_its_elapsed_time_if_a_thread_created_its_state():
    """The thread cannot read the clock of the event loop."""
    states = []

    @aretry(NEGATIVE)
    async def fetch():
        if states:
            states.append(await asyncio.to_thread(current_state))
            await asyncio.sleep(3600)

    async def main():
        await fetch()
        states.append(None)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(fetch(), 0.05)

    asyncio.run(main())
    assert states[1].stop_reason is StopReason.CANCELLED
    assert states[1].elapsed >= 0.04


def test_an_outer_timeout_tells_the_error_that_was_being_retried():
    @aretry(on=OSError, schedule=["1h"])
    async def fetch():
        raise ConnectionError("refused")

    async def main():
        async with asyncio.timeout(5):
            await fetch()

    with virtual_time() as clock:
        with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
            with pytest.raises(TimeoutError) as caught:
                runner.run(main())
    note = "retrykit: was cancelled after 1 attempt in 5 s; ConnectionError: refused"
    assert caught.value.__cause__.__notes__ == [note]
    assert note in "".join(traceback.format_exception(caught.value))


def test_a_rejected_result_is_told_too_and_secrets_are_not():
    error = OSError("GET https://user:secret@example.com/?token=secret failed")

    @retry(on=OSError, on_result=lambda page: page == "queued", schedule=[0, 0, "1h"])
    def fetch():
        outcome = scripted.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    notes = []
    for failure in ("queued", error):
        scripted = [failure, KeyboardInterrupt()]
        with pytest.raises(KeyboardInterrupt) as caught:
            fetch()
        notes += caught.value.__notes__
    assert [note.partition("; ")[2] for note in notes] == [
        "a rejected result",
        "OSError: GET https://example.com/?... failed",
    ]
