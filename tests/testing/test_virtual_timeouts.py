"""Blocks that end in virtual time, on loops whose own time is real."""

import asyncio
import contextlib
import socket
import threading
import time

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
from retrykit.testing import FakeClock, limit_retries, virtual_time
from tests._support.side import alarm, ended, in_thread, once, together

PATIENT = 3600


def hangs(event=asyncio.Event):
    async def hang():
        await event().wait()

    return hang


@pytest.fixture(params=["asyncio", "trio", "trio with a mock clock", "virtual loop"])
def patient(request):
    """What runs an async function, with a clock that waits long for what is real."""

    def run(main):
        with virtual_time(stall_timeout=PATIENT) as clock:
            if request.param == "trio":
                return trio.run(main, clock)
            if request.param == "trio with a mock clock":
                mock = trio.testing.MockClock(autojump_threshold=0)
                return trio.run(main, clock, clock=mock)
            own = clock.new_event_loop if request.param == "virtual loop" else None
            with asyncio.Runner(loop_factory=own) as runner:
                return runner.run(main(clock))

    run.event = trio.Event if request.param.startswith("trio") else asyncio.Event
    return run


class TestAnAttemptThatAwaitsWhatNeverComes:
    def test_ends_without_patience_where_nothing_real_can_come(self, patient):
        @aretry(schedule=[10, 20])
        @lambda fn: with_timeout(fn, lambda: 5)
        async def fetch():
            await patient.event().wait()

        async def main(clock):
            with pytest.raises(AttemptTimeout) as caught:
                await fetch()
            failures = state_of(caught.value).failures
            return clock.sleeps, [(each.started, each.duration) for each in failures]

        sleeps, attempts = patient(main)
        assert sleeps == [10.0, 20.0]
        assert attempts == [(0.0, 5.0), (15.0, 5.0), (40.0, 5.0)]

    def test_ends_in_its_order_beside_others(self, patient):
        ended = []

        async def attempt(length):
            with contextlib.suppress(AttemptTimeout):
                await aretry(schedule=[])(with_timeout(hang, lambda: length))()
            ended.append((length, async_clock.now()))

        async def sleeper():
            await once(4)
            ended.append(("slept", async_clock.now()))

        hang = hangs(patient.event)

        async def main(_clock):
            await together(attempt(5), attempt(3), sleeper(), attempt(5))

        patient(main)
        assert ended == [(3, 3.0), ("slept", 4.0), (5, 5.0), (5, 5.0)]

    def test_ends_a_call_that_sleeps_inside(self, patient):
        async def main(clock):
            attempt = with_timeout(lambda: once(3600), lambda: 5)
            with pytest.raises(AttemptTimeout):
                await aretry(schedule=[], max_elapsed=None)(attempt)()
            return clock.sleeps, clock.now()

        assert patient(main) == ([3600.0], 5.0)

    def test_ends_at_once_where_it_has_no_time(self, patient):
        async def main(clock):
            attempt = with_timeout(hangs(patient.event), lambda: 0)
            with pytest.raises(AttemptTimeout):
                await aretry(schedule=[])(attempt)()
            return clock.now()

        assert patient(main) == 0.0

    @pytest.mark.parametrize("module", [asyncio, trio], ids=["asyncio", "trio"])
    def test_is_at_work_again_when_it_is_ended(self, module):
        """What it still does then is waited for: time stands still."""
        seen = []

        async def fetch():
            try:
                await module.Event().wait()
            finally:
                if module is trio:
                    with trio.CancelScope(shield=True):
                        await trio.sleep(0.02)
                else:
                    await asyncio.sleep(0.02)
                seen.append(async_clock.now())

        async def attempt():
            with pytest.raises(AttemptTimeout):
                await aretry(schedule=[])(with_timeout(fetch, lambda: 5))()

        async def main():
            await together(attempt(), once(3600))

        with virtual_time(stall_timeout=PATIENT):
            trio.run(main) if module is trio else asyncio.run(main())
        assert seen == [5.0]

    def test_ends_after_some_patience_where_one_cannot_tell(self, loop):
        """A loop that does not show what it waits for may wait for a socket."""
        event = trio.Event if loop is trio.run else asyncio.Event

        async def main():
            with (
                virtual_time(stall_timeout=0.01) as clock,
                pytest.raises(AttemptTimeout),
            ):
                await aretry(schedule=[])(with_timeout(hangs(event), lambda: 5))()
            return clock.now()

        assert loop(main) == 5.0


class TestWhatIsReal:
    def test_is_waited_for_in_a_thread(self, patient):
        async def fetch():
            if patient.event is trio.Event:
                return await trio.to_thread.run_sync(in_a_moment)
            return await asyncio.to_thread(in_a_moment)

        def in_a_moment():
            time.sleep(0.05)
            return "value"

        async def main(clock):
            value = await aretry(schedule=[])(with_timeout(fetch, lambda: 5))()
            return value, clock.now()

        assert patient(main) == ("value", 0.0)

    def test_is_waited_for_from_a_socket(self):
        async def fetch(address):
            reader, writer = await asyncio.open_connection(*address)
            value = await reader.read()
            writer.close()
            return value

        async def main(clock):
            with socket.create_server(("127.0.0.1", 0)) as listener:
                server = threading.Thread(target=serve, args=[listener])
                server.start()
                fetching = aretry(schedule=[])(with_timeout(fetch, lambda: 5))
                value = await fetching(listener.getsockname())
                server.join()
            return value, clock.now()

        def serve(listener):
            connection, _ = listener.accept()
            with connection:
                time.sleep(0.05)
                connection.sendall(b"data")

        with virtual_time(stall_timeout=PATIENT) as clock:
            assert asyncio.run(main(clock)) == (b"data", 0.0)

    @pytest.mark.parametrize("module", [asyncio, trio], ids=["asyncio", "trio"])
    def test_is_waited_for_while_another_call_sleeps(self, module):
        seen = []

        async def fetch():
            await module.sleep(0.02)
            seen.append(async_clock.now())

        async def main():
            attempt = aretry(schedule=[])(with_timeout(fetch, lambda: 5))
            await together(attempt(), once(3600))

        with virtual_time(stall_timeout=PATIENT):
            trio.run(main) if module is trio else asyncio.run(main())
        assert seen == [0.0]

    def test_is_not_waited_for_where_there_is_no_time(self):
        async def main():
            soon = asyncio.Event()
            asyncio.get_running_loop().call_later(0.05, soon.set)
            with pytest.raises(AttemptTimeout):
                await aretry(schedule=[])(with_timeout(soon.wait, lambda: 0))()

        with virtual_time(stall_timeout=PATIENT):
            asyncio.run(main())

    def test_takes_the_virtual_time_that_it_says(self, patient):
        async def main(clock):
            async def slow(length):
                clock.advance(length)
                if length > 5:
                    await patient.event().wait()
                return length

            fetch = aretry(schedule=[])(with_timeout(slow, lambda: 5))
            with pytest.raises(AttemptTimeout):
                await fetch(6)
            return await fetch(4), clock.now()

        assert patient(main) == (4, 10.0)


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


def test_another_thread_may_move_time_to_the_end_of_a_block():
    async def main():
        with pytest.raises(AttemptTimeout), timeout_scope(5):
            await asyncio.Event().wait()

    with virtual_time(process_wide=True) as clock:
        sleeper = threading.Thread(target=clock.sleep, args=[60])
        sleeper.start()
        in_thread(lambda: asyncio.run(main()))
        sleeper.join()
        assert clock.now() == 60.0


def test_a_delay_that_is_left_out_leaves_blocks_as_they_are():
    async def main():
        with limit_retries(), pytest.raises(AttemptTimeout), timeout_scope(5):
            await asyncio.Event().wait()

    with virtual_time(stall_timeout=PATIENT) as clock:
        asyncio.run(main())
    assert clock.now() == 5.0


def test_outside_of_a_loop_nothing_is_limited():
    with pytest.raises(RuntimeError, match=r"limit\(\) is for coroutines"):
        FakeClock().limit(5)


def test_an_error_of_a_signal_handler_goes_out_of_the_block():
    class TimedOutError(Exception):
        """What tools that end a test after some time raise."""

    async def main():
        loop = asyncio.get_running_loop()
        with timeout_scope(5):
            # A thread that is at work holds the time.
            await loop.run_in_executor(None, over.wait)

    over = threading.Event()
    with pytest.raises(TimedOutError), alarm(TimedOutError, 0.05):
        with virtual_time(stall_timeout=PATIENT):
            asyncio.run(ended(main(), over))
