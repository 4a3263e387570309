"""Cancellation of a hedged call, and of its sends, leaves nothing behind."""

import asyncio
import gc
import signal
import threading
import time
import weakref
from contextlib import suppress

import pytest

from retrykit import Hedge, Policy, StopReason, aretry, observe, retry, state_of
from retrykit._core.thread_sends import ThreadSends
from retrykit.budgets import TokenBucket
from retrykit.events import HedgeStarted
from retrykit.testing import TimeStalledError, virtual_time
from retrykit.testing._scheduler import CHECK_INTERVAL
from tests._support import required
from tests._support.hedged_sends import Form
from tests._support.optional_trio import trio

BOTH = Hedge(0, extra=9, idempotent=True)
LATE = Hedge("1h", extra=9, idempotent=True)


async def others():
    """Return the other tasks of the loop of asyncio, after they had their turn."""
    await asyncio.sleep(0)
    return asyncio.all_tasks() - {asyncio.current_task()}


class Sends:
    """Sends of asyncio that wait for an event each."""

    def __init__(self):
        self.begun, self.cleaned = [], []
        self.changed = asyncio.Event()

    async def until(self, count):
        while len(self.begun) < count:
            self.changed.clear()
            await self.changed.wait()

    def begin(self):
        self.begun.append(event := asyncio.Event())
        self.changed.set()
        return event


@pytest.fixture
def logged():
    """Return what the loop of asyncio reports, such as errors nobody has seen."""
    reports = []

    def run(main):
        async def reporting():
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: reports.append(context))
            await main()
            assert not await others()

        asyncio.run(reporting())
        gc.collect()
        assert reports == []

    return run


def test_the_failures_of_real_sends_are_retried_at_once_without_tests_of_time(logged):
    """No send is in flight while the next one is due."""

    async def main():
        outcomes = [OSError("one"), OSError("two"), "third"]

        async def send():
            outcome = outcomes.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        hedge = Hedge("1h", at_most=3, extra=9, idempotent=True)
        assert await aretry(hedge=hedge)(send)() == "third"

    logged(main)


def test_a_real_send_that_is_late_is_hedged(logged):
    async def main():
        sends = Sends()

        async def send():
            event = sends.begin()
            if len(sends.begun) == 1:
                await event.wait()
            return len(sends.begun)

        hedge = Hedge("1ms", extra=9, idempotent=True)
        assert await aretry(hedge=hedge)(send)() == 2

    logged(main)


def test_a_loop_whose_timers_are_early_sends_nothing_before_it_is_due(logged):
    """Not every loop waits as long as it should, and none may spin meanwhile."""

    async def main():
        loop, early = asyncio.get_running_loop(), []
        call_at = loop.call_at

        def earlier(when, callback, *args, **kwargs):
            early.append(when)
            left = when - loop.time()
            when = loop.time() + left / 2 if left > 1e-4 else when
            return call_at(when, callback, *args, **kwargs)

        loop.call_at = earlier
        begun, both = [], asyncio.Event()

        async def send():
            begun.append(loop.time())
            if len(begun) == 2:
                both.set()
            await asyncio.Event().wait()

        hedge = Hedge("10ms", extra=9, idempotent=True)
        # On a busy machine, a task begins some time after it was created.
        created = loop.time()
        call = asyncio.ensure_future(aretry(hedge=hedge)(send)())
        await both.wait()
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        assert begun[1] - created >= 0.0099
        assert len(early) < 20

    logged(main)


class TestAsyncioCallers:
    @pytest.mark.parametrize("count", [1, 2])
    def test_a_caller_that_is_cancelled_cancels_its_sends(self, logged, count):
        async def main():
            sends = Sends()

            async def send():
                event = sends.begin()
                try:
                    await event.wait()
                finally:
                    await asyncio.sleep(0)
                    sends.cleaned.append(event)

            hedge = BOTH if count == 2 else LATE
            call = asyncio.create_task(aretry(hedge=hedge)(send)())
            await sends.until(count)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert len(sends.cleaned) == count

        logged(main)

    def test_a_caller_that_is_cancelled_while_losers_clean_up_ends_that_and_waits(
        self, logged
    ):
        async def main():
            sends, cleaning = Sends(), asyncio.Event()

            async def send():
                event = sends.begin()
                try:
                    await event.wait()
                    return "won"
                except asyncio.CancelledError:
                    cleaning.set()
                    try:
                        await asyncio.Event().wait()
                    finally:
                        await asyncio.sleep(0)
                        sends.cleaned.append(event)

            call = asyncio.create_task(aretry(hedge=BOTH)(send)())
            await sends.until(2)
            sends.begun[1].set()
            await cleaning.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert sends.cleaned == [sends.begun[0]]

        logged(main)

    def test_a_timeout_around_it_ends_it(self, logged):
        async def main():
            async def send():
                await asyncio.Event().wait()

            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await aretry(hedge=BOTH)(send)()

        logged(main)

    @pytest.mark.parametrize("steps", range(12))
    def test_cancelled_at_any_await_it_leaves_no_task(self, logged, steps):
        async def main():
            outcomes = [OSError("one"), OSError("two"), "third", "fourth"]

            async def send():
                await asyncio.sleep(0)
                outcome = outcomes.pop(0)
                if isinstance(outcome, Exception):
                    raise outcome
                return outcome

            policy = Policy(hedge=BOTH, schedule=[0], on_result=accept)
            call = asyncio.create_task(aretry(policy)(send)())
            for _ in range(steps):
                await asyncio.sleep(0)
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call

        logged(main)

    @pytest.mark.parametrize("steps", range(8))
    def test_cancelled_alone_at_any_await_it_leaves_no_task(self, logged, steps):
        async def main():
            async def send():
                try:
                    await asyncio.Event().wait()
                finally:
                    await asyncio.sleep(0)

            call = asyncio.create_task(BOTH(send)())
            for _ in range(steps):
                await asyncio.sleep(0)
            for _ in range(3):
                call.cancel()
                await asyncio.sleep(0)
            with suppress(asyncio.CancelledError):
                await call

        logged(main)


async def accept(_):
    await asyncio.sleep(0)
    return False


class TestAsyncioLosers:
    def race(self, logged, lose):
        """Run a send that wins, and one that loses in a given way."""

        async def main():
            sends = Sends()

            async def send():
                event = sends.begin()
                if len(sends.begun) == 2:
                    return "won"
                try:
                    await event.wait()
                except asyncio.CancelledError:
                    return await lose()

            assert await aretry(hedge=BOTH)(send)() == "won"

        logged(main)

    def test_one_that_swallows_its_cancellation_is_awaited(self, logged):
        ended = []

        async def lose():
            await asyncio.sleep(0)
            ended.append("lost")

        self.race(logged, lose)
        assert ended == ["lost"]

    def test_one_that_fails_while_it_is_cancelled_changes_nothing(self, logged):
        async def lose():
            raise OSError("lost")

        self.race(logged, lose)

    def test_one_that_ends_with_a_base_exception_changes_nothing(self, logged):
        class Abort(BaseException):
            pass

        async def lose():
            raise Abort

        self.race(logged, lose)

    def test_one_that_was_never_begun_is_not_run(self, logged):
        async def main():
            begun = []

            async def send():
                begun.append(None)
                return "won"

            assert await aretry(hedge=BOTH)(send)() == "won"

        logged(main)


def test_a_send_that_ends_cancelled_cancels_the_call(logged):
    """As an attempt without a hedge that awaits a cancelled task."""

    async def main():
        async def send():
            task = asyncio.create_task(asyncio.sleep(3600))
            task.cancel()
            await task

        with pytest.raises(asyncio.CancelledError):
            await aretry(hedge=LATE)(send)()

    logged(main)


class TestTrio:
    def test_a_caller_that_is_cancelled_cancels_its_sends(self):
        cleaned = []

        async def send():
            try:
                await trio.sleep_forever()
            finally:
                cleaned.append(None)

        async def main():
            with trio.move_on_after(3) as scope:
                await aretry(hedge=BOTH)(send)()
            assert scope.cancelled_caught

        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
        assert len(cleaned) == 2

    def test_the_cancellation_is_no_group(self):
        caught = []

        async def main():
            with trio.move_on_after(3):
                try:
                    await aretry(hedge=BOTH)(trio.sleep_forever)()
                except BaseException as error:
                    caught.append(type(error))
                    raise

        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
        assert caught == [trio.Cancelled]

    def test_the_hedge_is_sent_by_the_time_of_the_loop(self):
        times = []

        async def send():
            times.append(trio.current_time())
            await trio.sleep(9 if len(times) == 1 else 1)
            return len(times)

        async def main():
            hedge = Hedge(2, extra=9, idempotent=True)
            return await aretry(hedge=hedge)(send)()

        clock = trio.testing.MockClock(autojump_threshold=0)
        assert trio.run(main, clock=clock) == 2
        assert times[1] - times[0] == 2

    def losing(self, lose):
        begun = []

        async def send():
            begun.append(None)
            if len(begun) == 2:
                await trio.sleep(1)
                return "won"
            try:
                await trio.sleep_forever()
            except trio.Cancelled as cancelled:
                lose(cancelled)

        async def main():
            return await aretry(hedge=BOTH)(send)()

        return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))

    def test_a_loser_that_fails_while_it_is_cancelled_changes_nothing(self):
        def lose(cancelled):
            raise OSError("lost")

        assert self.losing(lose) == "won"

    def test_a_loser_that_fails_beside_its_cancellation_changes_nothing(self):
        def lose(cancelled):
            raise BaseExceptionGroup("", [cancelled, OSError("lost")])

        assert self.losing(lose) == "won"

    def test_an_interrupt_in_a_loser_comes_through_alone(self):
        def lose(cancelled):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            self.losing(lose)


class TestThreads:
    @pytest.fixture(autouse=True)
    def threads(self):
        required.skip_without("threads")

    def test_a_loser_goes_on_and_its_outcome_is_dropped(self):
        go, ended = threading.Event(), threading.Event()
        begun = []

        def send():
            begun.append(None)
            if len(begun) == 2:
                return "won"
            go.wait(5)
            ended.set()
            raise OSError("lost")

        hedge = Hedge("1ms", extra=9, idempotent=True)
        assert retry(hedge=hedge)(send)() == "won"
        assert not ended.is_set()
        go.set()
        assert ended.wait(5)

    def test_real_sends_that_fail_are_sent_again(self):
        outcomes = [OSError("one"), OSError("two"), "third"]

        def send():
            outcome = outcomes.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        hedge = Hedge("1h", at_most=3, extra=9, idempotent=True)
        assert retry(hedge=hedge)(send)() == "third"

    def test_sends_that_ended_together_are_returned_one_by_one(self):
        def fail():
            raise OSError("two")

        with ThreadSends() as sends:
            for send in (fail, lambda: "first"):
                sends.start(send)
            for thread in threading.enumerate():
                if thread.name.startswith("hedge-"):
                    thread.join(5)
            assert sends.wait(None).result == "first"
            assert isinstance(sends.wait(None).error, OSError)

    def test_a_send_that_holds_virtual_time_for_too_long_ends_the_call(self):
        go = threading.Event()
        with (
            pytest.raises(TimeStalledError, match="stall_timeout"),
            virtual_time(stall_timeout=0.05),
        ):
            try:
                retry(hedge=LATE)(go.wait)(5)
            finally:
                go.set()

    def test_a_send_may_hold_virtual_time_for_a_while(self):
        with virtual_time(stall_timeout=30) as clock:
            # Longer than the interval after which the clock is checked.
            retry(hedge=LATE)(threading.Event().wait)(5 * CHECK_INTERVAL)
            assert clock.now() == 0

    @pytest.mark.parametrize("seconds", [1e9, 1e12])
    def test_a_delay_may_be_longer_than_the_timers_of_the_system(self, seconds):
        hedge = Hedge(seconds, extra=9, idempotent=True)
        assert retry(hedge=hedge)(lambda: "done")() == "done"

        async def send():
            return "done"

        assert asyncio.run(aretry(hedge=hedge)(send)()) == "done"

    @pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
    def test_ctrl_c_ends_a_caller_that_waits(self):
        go = threading.Event()
        begun = threading.Event()

        def send():
            begun.set()
            go.wait(1)

        def interrupt(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)

        def alarm():
            begun.wait(5)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)

        thread = threading.Thread(target=alarm)
        thread.start()
        try:
            with pytest.raises(KeyboardInterrupt) as caught:
                retry(hedge=LATE)(send)()
        finally:
            go.set()
            thread.join()
            signal.signal(signal.SIGALRM, before)
        assert state_of(caught.value).stop_reason is StopReason.CANCELLED

    def no_more(self):
        """Make the system refuse another thread."""
        threading.stack_size(2**46)

    @pytest.fixture
    def full(self):
        before = threading.stack_size()
        yield self.no_more
        threading.stack_size(before)

    def test_without_a_thread_the_first_send_runs_in_that_of_its_caller(self, full):
        full()
        with suppress(RuntimeError):
            threading.Thread(target=int).start()
            pytest.skip("this system gives any size to a stack")
        assert retry(hedge=LATE)(threading.get_ident)() == threading.get_ident()

    @pytest.mark.parametrize("virtual", [False, True], ids=["real", "virtual"])
    def test_without_a_thread_there_is_no_hedge_and_no_failure(self, full, virtual):
        full()
        with suppress(RuntimeError):
            threading.Thread(target=int).start()
            pytest.skip("this system gives any size to a stack")
        threading.stack_size(0)
        begun = []

        def send():
            begun.append(None)
            full()
            if virtual:
                clock.sleep(5)
            else:
                time.sleep(0.01)
            return "first"

        if not virtual:
            assert retry(hedge=Hedge("1ms", extra=9, idempotent=True))(send)()
        else:
            with virtual_time() as clock:
                assert retry(hedge=Hedge(2, extra=9, idempotent=True))(send)()
        assert begun == [None]


class TestLeaks:
    """Nothing is kept: the errors of sends are freed without the collector."""

    @pytest.mark.parametrize("name", ["threads", "asyncio", "trio"])
    def test_the_errors_of_sends_are_freed(self, name):
        class Local:
            pass

        kept = []

        def fail():
            local = Local()
            kept.append(weakref.ref(local))
            raise OSError(len(kept))

        def call(form, outcomes):
            hedge = Hedge(2, at_most=3, extra=9, idempotent=True)
            fn, settings = form.function(*outcomes), {"max_attempts": 1}
            if form.in_tasks:
                caller = aretry(hedge=hedge, **settings)(fn)

                # The loop itself would keep the error.
                async def main():
                    with suppress(OSError):
                        await caller()

                form.blocking(main)()
            else:
                with suppress(OSError):
                    retry(hedge=hedge, **settings)(fn)()

        gc.collect()
        gc.disable()
        try:
            with virtual_time() as clock:
                form = Form(name, clock)
                call(form, [(1, fail), (1, fail), (1, "third")])
                form.sent.clear()
                call(form, [(1, fail), (1, fail), (1, fail)])
            # A thread may take a moment to end.
            for thread in threading.enumerate():
                if thread.name.startswith("hedge-"):
                    thread.join(5)
            alive = [ref for ref in kept if ref() is not None]
        finally:
            gc.enable()
        assert len(kept) == 5
        assert alive == []


def test_a_token_of_a_budget_is_not_lost_when_the_caller_is_cancelled(logged):
    async def main():
        budget = TokenBucket(10)
        begun = asyncio.Event()

        async def send():
            begun.set()
            await asyncio.Event().wait()

        events = []
        with observe(events.append):
            call = asyncio.create_task(aretry(hedge=LATE, budget=budget)(send)())
            await begun.wait()
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
        assert budget.balance == 10
        assert not [e for e in events if isinstance(e, HedgeStarted)]

    logged(main)
