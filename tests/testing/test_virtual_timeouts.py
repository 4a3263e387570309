"""Timeouts of attempts in virtual time."""

import asyncio
import contextlib
import socket
import threading

import pytest
import trio
import trio.testing

from retrykit import aretry, state_of
from retrykit._internal.loop_clock import async_clock
from retrykit.execution.attempt_timeout import (
    AttemptTimeout,
    timeout_scope,
    with_timeout,
)
from retrykit.testing import FakeClock, TimeStalledError, limit_retries, virtual_time
from tests._support.side import once, together


async def hang():
    """Await an event that never comes, under asyncio or trio."""
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        await asyncio.Event().wait()
    else:
        await trio.sleep_forever()


@pytest.fixture
def virtual():
    """What runs an async function on a virtual loop, with its clock."""

    def run(main):
        with (
            virtual_time() as clock,
            asyncio.Runner(loop_factory=clock.new_event_loop) as runner,
        ):
            return runner.run(main(clock))

    return run


class TestAnAttemptThatSleepsInVirtualTime:
    """On any loop."""

    def test_ends_when_its_time_is_up(self, loop):
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

    def test_ends_in_its_order_beside_others(self, loop):
        ended = []

        async def attempt(limit):
            with contextlib.suppress(AttemptTimeout):
                sleep = with_timeout(lambda: async_clock.sleep(60), lambda: limit)
                await aretry(schedule=[])(sleep)()
            ended.append((limit, async_clock.now()))

        async def sleeper():
            await once(4)
            ended.append(("slept", async_clock.now()))

        async def main():
            with virtual_time():
                await together(attempt(5), attempt(3), sleeper(), attempt(5))

        loop(main)
        assert ended == [(3, 3.0), ("slept", 4.0), (5, 5.0), (5, 5.0)]

    def test_ends_with_a_call_that_sleeps_inside(self, loop):
        async def main():
            attempt = with_timeout(lambda: once(3600), lambda: 5)
            with virtual_time() as clock:
                with pytest.raises(AttemptTimeout):
                    await aretry(schedule=[], max_elapsed=None)(attempt)()
                return clock.sleeps, clock.now()

        assert loop(main) == ([3600.0], 5.0)

    def test_ends_at_once_where_it_has_no_time(self, loop):
        async def main():
            with virtual_time() as clock:
                with pytest.raises(AttemptTimeout):
                    await aretry(schedule=[])(with_timeout(hang, lambda: 0))()
                return clock.now()

        assert loop(main) == 0.0

    def test_takes_the_virtual_time_that_it_says(self, loop):
        async def slow(duration):
            clock.advance(duration)
            if duration > 5:
                await hang()
            return duration

        clock = None

        async def main():
            nonlocal clock
            fetch = aretry(schedule=[])(with_timeout(slow, lambda: 5))
            with virtual_time() as clock:
                with pytest.raises(AttemptTimeout):
                    await fetch(6)
                return await fetch(4), clock.now()

        assert loop(main) == (4, 10.0)

    def test_holds_time_again_when_it_is_ended(self, loop):
        """What its cleanup waits for is real."""
        seen = []

        async def fetch():
            try:
                await async_clock.sleep(60)
            finally:
                await in_a_moment()
                seen.append(async_clock.now())

        async def attempt():
            with pytest.raises(AttemptTimeout):
                await aretry(schedule=[])(with_timeout(fetch, lambda: 5))()

        async def main():
            with virtual_time():
                await together(attempt(), once(3600))

        loop(main)
        assert seen == [5.0]


async def in_a_moment():
    """Await a thread that ends, under asyncio or trio."""
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        await asyncio.to_thread(threading.Event().wait, 0.005)
    else:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(threading.Event().wait, 0.005)


class TestAnAttemptThatHangs:
    def test_ends_on_a_virtual_loop(self, virtual):
        @aretry(schedule=[10, 20])
        @lambda fn: with_timeout(fn, lambda: 5)
        async def fetch():
            await hang()

        async def main(clock):
            with pytest.raises(AttemptTimeout) as caught:
                await fetch()
            failures = state_of(caught.value).failures
            return clock.sleeps, [(each.started, each.duration) for each in failures]

        sleeps, attempts = virtual(main)
        assert sleeps == [10.0, 20.0]
        assert attempts == [(0.0, 5.0), (15.0, 5.0), (40.0, 5.0)]

    def test_ends_in_its_order_beside_others_on_a_virtual_loop(self, virtual):
        ended = []

        async def attempt(limit):
            with contextlib.suppress(AttemptTimeout):
                await aretry(schedule=[])(with_timeout(hang, lambda: limit))()
            ended.append((limit, async_clock.now()))

        async def sleeper():
            await once(4)
            ended.append(("slept", async_clock.now()))

        async def main(_clock):
            await together(attempt(5), attempt(3), sleeper(), attempt(5))

        virtual(main)
        assert ended == [(3, 3.0), ("slept", 4.0), (5, 5.0), (5, 5.0)]

    def test_ends_on_the_mock_clock_of_trio(self):
        async def main():
            with pytest.raises(AttemptTimeout):
                await aretry(schedule=[])(with_timeout(hang, lambda: 5))()
            return trio.current_time()

        clock = trio.testing.MockClock(autojump_threshold=0)
        assert trio.run(main, clock=clock) == 5.0

    def test_is_an_error_on_other_loops(self, loop):
        """Nobody can tell what it waits for."""

        async def main():
            with virtual_time(stall_timeout=0.05):
                fetch = aretry(schedule=[], name="fetch")
                await fetch(with_timeout(hang, lambda: 5))()

        with pytest.raises(TimeStalledError) as caught:
            loop(main)
        assert str(caught.value) == (
            "virtual time must move within stall_timeout=50ms while calls wait for it, "
            "got attempt 1 of fetch still running; clock.sleep() and clock.asleep() "
            "stand for a slow attempt, clock.new_event_loop() and the fixture "
            "retry_loop run attempts that wait for timeouts or for other calls, and a "
            "longer stall_timeout allows for slow attempts"
        )


class TestWhatIsReal:
    def test_is_waited_for_in_a_thread(self, loop):
        async def main():
            with virtual_time() as clock:
                attempt = with_timeout(in_a_moment, lambda: 5)
                await together(aretry(schedule=[])(attempt)(), once(0))
                return clock.now()

        assert loop(main) == 0.0

    def test_is_waited_for_in_a_thread_on_a_virtual_loop(self, virtual):
        async def main(clock):
            await aretry(schedule=[])(with_timeout(in_a_moment, lambda: 5))()
            return clock.now()

        assert virtual(main) == 0.0

    @pytest.mark.parametrize("kind", ["real loop", "virtual loop"])
    def test_is_waited_for_from_a_socket(self, kind):
        async def fetch(address):
            reader, writer = await asyncio.open_connection(*address)
            value = await reader.read()
            writer.close()
            return value

        async def main():
            with socket.create_server(("127.0.0.1", 0)) as listener:
                server = threading.Thread(target=serve, args=[listener])
                server.start()
                fetching = aretry(schedule=[])(with_timeout(fetch, lambda: 5))
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


def test_a_block_that_is_over_when_its_time_is_up_is_left_alone():
    async def main():
        told = []
        asyncio.get_running_loop().set_exception_handler(lambda *it: told.append(it))
        with timeout_scope(5):
            clock.advance(6)
        for _ in range(5):
            await asyncio.sleep(0)
        return told

    with virtual_time() as clock:
        assert asyncio.run(main()) == []


@pytest.mark.parametrize("run", [asyncio.run, trio.run], ids=["asyncio", "trio"])
def test_another_thread_may_move_time_to_the_end_of_an_attempt(run):
    begun = threading.Event()

    async def fetch():
        begun.set()
        await hang()

    async def main():
        with pytest.raises(AttemptTimeout):
            await aretry(schedule=[])(with_timeout(fetch, lambda: 5))()

    def advance():
        begun.wait()
        clock.advance(60)

    with virtual_time(process_wide=True) as clock:
        other = threading.Thread(target=advance)
        other.start()
        run(main if run is trio.run else main())
        other.join()
        assert clock.now() == 60.0


def test_a_delay_that_is_left_out_leaves_blocks_as_they_are():
    async def main():
        with limit_retries(), pytest.raises(AttemptTimeout), timeout_scope(5):
            await asyncio.Event().wait()

    with virtual_time() as clock:
        asyncio.run(main())
    assert clock.now() == 5.0


def test_outside_of_a_loop_nothing_is_limited():
    with pytest.raises(RuntimeError, match=r"timeout_scope\(\) is for coroutines"):
        FakeClock().timeout_scope(5)
