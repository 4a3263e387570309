"""Timeouts of attempts in virtual time."""

import asyncio
import contextlib
import socket
import threading

import pytest

from retrykit import aretry, state_of
from retrykit._core.attempt_timeout import (
    AttemptTimeout,
    timeout_scope,
    with_timeout,
)
from retrykit._internal.loop_clock import async_clock
from retrykit.testing import FakeClock, TimeStalledError, limit_retries, virtual_time
from tests._support.concurrency import gather, sleep_once
from tests._support.optional_trio import trio


async def hang():
    """Wait forever, under asyncio or trio."""
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        await asyncio.Event().wait()
    else:
        await trio.sleep_forever()


@pytest.fixture
def run_virtually():
    """Return a function that runs an async function of a clock on its virtual loop."""

    def run(main):
        with (
            virtual_time() as clock,
            asyncio.Runner(loop_factory=clock.new_event_loop) as runner,
        ):
            return runner.run(main(clock))

    return run


class TestAnAttemptThatSleepsInVirtualTime:
    """These tests run on all kinds of loops."""

    def test_ends_after_its_timeout(self, loop):
        @aretry(schedule=[10, 20])
        @lambda fn: with_timeout(fn, lambda: 5)
        async def fetch():
            await async_clock.sleep(3600)

        async def main():
            with virtual_time() as clock:
                with pytest.raises(AttemptTimeout) as caught:
                    await fetch()
                failures = state_of(caught.value).failures
                return clock.now(), [(each.started, each.duration) for each in failures]

        assert loop(main) == (45.0, [(0.0, 5.0), (15.0, 5.0), (40.0, 5.0)])

    def test_ends_in_the_order_of_all_wakeups(self, loop):
        ended = []

        async def attempt(limit):
            with contextlib.suppress(AttemptTimeout):
                sleep = with_timeout(lambda: async_clock.sleep(60), lambda: limit)
                await aretry(max_attempts=1)(sleep)()
            ended.append((limit, async_clock.now()))

        async def sleeper():
            await sleep_once(4)
            ended.append(("slept", async_clock.now()))

        async def main():
            with virtual_time():
                await gather(attempt(5), attempt(3), sleeper(), attempt(5))

        loop(main)
        assert ended == [(3, 3.0), ("slept", 4.0), (5, 5.0), (5, 5.0)]

    def test_cancels_a_nested_call_that_sleeps(self, loop):
        async def main():
            attempt = with_timeout(lambda: sleep_once(3600), lambda: 5)
            with virtual_time() as clock:
                with pytest.raises(AttemptTimeout):
                    await aretry(max_attempts=1)(attempt)()
                return clock.sleeps, clock.now()

        assert loop(main) == ([3600.0], 5.0)

    def test_ends_at_once_with_a_timeout_of_zero(self, loop):
        async def main():
            with virtual_time() as clock:
                with pytest.raises(AttemptTimeout):
                    await aretry(max_attempts=1)(with_timeout(hang, lambda: 0))()
                return clock.now()

        assert loop(main) == 0.0

    def test_counts_virtual_time_that_it_advances(self, loop):
        async def slow(duration):
            clock.advance(duration)
            if duration > 5:
                await hang()
            return duration

        clock = None

        async def main():
            nonlocal clock
            fetch = aretry(max_attempts=1)(with_timeout(slow, lambda: 5))
            with virtual_time() as clock:
                with pytest.raises(AttemptTimeout):
                    await fetch(6)
                return await fetch(4), clock.now()

        assert loop(main) == (4, 10.0)

    @pytest.mark.needs("threads")
    def test_time_stands_still_during_its_cleanup(self, loop):
        """Its cleanup may wait for real work."""
        seen = []

        async def fetch():
            try:
                await async_clock.sleep(60)
            finally:
                await work_in_thread()
                seen.append(async_clock.now())

        async def attempt():
            with pytest.raises(AttemptTimeout):
                await aretry(max_attempts=1)(with_timeout(fetch, lambda: 5))()

        async def main():
            with virtual_time():
                await gather(attempt(), sleep_once(3600))

        loop(main)
        assert seen == [5.0]


async def work_in_thread():
    """Await a real thread for 5 ms, under asyncio or trio."""
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        await asyncio.to_thread(threading.Event().wait, 0.005)
    else:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(threading.Event().wait, 0.005)


class TestAnAttemptThatHangs:
    def test_ends_on_a_virtual_loop(self, run_virtually):
        @aretry(schedule=[10, 20])
        @lambda fn: with_timeout(fn, lambda: 5)
        async def fetch():
            await hang()

        async def main(clock):
            with pytest.raises(AttemptTimeout) as caught:
                await fetch()
            failures = state_of(caught.value).failures
            return clock.sleeps, [(each.started, each.duration) for each in failures]

        sleeps, attempts = run_virtually(main)
        assert sleeps == [10.0, 20.0]
        assert attempts == [(0.0, 5.0), (15.0, 5.0), (40.0, 5.0)]

    def test_ends_in_the_order_of_all_wakeups_on_a_virtual_loop(self, run_virtually):
        ended = []

        async def attempt(limit):
            with contextlib.suppress(AttemptTimeout):
                await aretry(max_attempts=1)(with_timeout(hang, lambda: limit))()
            ended.append((limit, async_clock.now()))

        async def sleeper():
            await sleep_once(4)
            ended.append(("slept", async_clock.now()))

        async def main(_clock):
            await gather(attempt(5), attempt(3), sleeper(), attempt(5))

        run_virtually(main)
        assert ended == [(3, 3.0), ("slept", 4.0), (5, 5.0), (5, 5.0)]

    def test_ends_on_the_mock_clock_of_trio(self):
        async def main():
            with pytest.raises(AttemptTimeout):
                await aretry(max_attempts=1)(with_timeout(hang, lambda: 5))()
            return trio.current_time()

        clock = trio.testing.MockClock(autojump_threshold=0)
        assert trio.run(main, clock=clock) == 5.0

    def test_stalls_time_on_other_loops(self, loop):
        """retrykit does not know what it waits for: perhaps a socket."""

        async def main():
            with virtual_time(stall_timeout=0.05):
                fetch = aretry(max_attempts=1, name="fetch")
                await fetch(with_timeout(hang, lambda: 5))()

        with pytest.raises(TimeStalledError) as caught:
            loop(main)
        assert str(caught.value) == (
            "virtual time must move within stall_timeout=50ms while calls wait for it, "
            "got attempt 1 of fetch still running; to simulate a slow attempt, use "
            "clock.sleep() or clock.asleep(); if it waits for a timeout or another "
            "call, use clock.new_event_loop() or the fixture retry_loop; if it is "
            "really slow, pass a longer stall_timeout"
        )


class TestAnAttemptThatWaitsForRealWork:
    @pytest.mark.needs("threads")
    def test_has_time_for_a_thread(self, loop):
        async def main():
            with virtual_time() as clock:
                attempt = with_timeout(work_in_thread, lambda: 5)
                await gather(aretry(max_attempts=1)(attempt)(), sleep_once(0))
                return clock.now()

        assert loop(main) == 0.0

    @pytest.mark.needs("threads")
    def test_has_time_for_a_thread_on_a_virtual_loop(self, run_virtually):
        async def main(clock):
            await aretry(max_attempts=1)(with_timeout(work_in_thread, lambda: 5))()
            return clock.now()

        assert run_virtually(main) == 0.0

    @pytest.mark.needs("sockets")
    @pytest.mark.parametrize("kind", ["real loop", "virtual loop"])
    def test_has_time_for_a_socket(self, kind):
        async def fetch(address):
            reader, writer = await asyncio.open_connection(*address)
            value = await reader.read()
            writer.close()
            return value

        async def main():
            with socket.create_server(("127.0.0.1", 0)) as listener:
                server = threading.Thread(target=serve, args=[listener])
                server.start()
                fetching = aretry(max_attempts=1)(with_timeout(fetch, lambda: 5))
                value = await fetching(listener.getsockname())
                server.join()
            return value, async_clock.now()

        def serve(listener):
            connection, _ = listener.accept()
            with connection:
                threading.Event().wait(0.005)
                connection.sendall(b"data")

        with virtual_time() as clock:
            factory = clock.new_event_loop if kind == "virtual loop" else None
            with asyncio.Runner(loop_factory=factory) as runner:
                assert runner.run(main()) == (b"data", 0.0)


def test_a_block_that_ended_before_its_timeout_fired_causes_no_error():
    async def main():
        errors = []
        asyncio.get_running_loop().set_exception_handler(
            lambda *context: errors.append(context)
        )
        with timeout_scope(5):
            clock.advance(6)
        for _ in range(5):
            await asyncio.sleep(0)
        return errors

    with virtual_time() as clock:
        assert asyncio.run(main()) == []


@pytest.mark.needs("threads")
@pytest.mark.parametrize("run", [asyncio.run, trio.run], ids=["asyncio", "trio"])
def test_another_thread_can_advance_time_to_the_end_of_an_attempt(run):
    begun = threading.Event()

    async def fetch():
        begun.set()
        await hang()

    async def main():
        with pytest.raises(AttemptTimeout):
            await aretry(max_attempts=1)(with_timeout(fetch, lambda: 5))()

    def advance():
        begun.wait()
        clock.advance(60)

    with virtual_time(process_wide=True) as clock:
        other = threading.Thread(target=advance)
        other.start()
        run(main if run is trio.run else main())
        other.join()
        assert clock.now() == 60.0


def test_limit_retries_does_not_skip_timeouts():
    async def main():
        with limit_retries(), pytest.raises(AttemptTimeout), timeout_scope(5):
            await asyncio.Event().wait()

    with virtual_time() as clock:
        asyncio.run(main())
    assert clock.now() == 5.0


def test_timeout_scope_raises_outside_of_an_event_loop():
    with pytest.raises(RuntimeError, match=r"timeout_scope\(\) is for coroutines"):
        FakeClock().timeout_scope(5)
