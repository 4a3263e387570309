"""Virtual time waits for the real sockets, threads and timers of attempts.

The waits are real and take up to 0.1 s.
"""

import asyncio
import functools
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from retrykit import Policy, aretry, retry
from retrykit.testing import ScriptedFunction, TimeStalledError, virtual_time
from tests._support.concurrency import WEEK, gather, sleep_once
from tests._support.optional_trio import trio


class TestAttempts:
    """Time stands still while an attempt waits."""

    @pytest.mark.needs("sockets")
    def test_time_waits_for_a_socket(self):
        async def serve(reader, writer):
            await reader.readline()
            await asyncio.sleep(0.1)
            writer.write(b"data\n")
            writer.close()

        async def main():
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]

            async def fetch():
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"get\n")
                data = await reader.readline()
                writer.close()
                return data

            with virtual_time():
                outcome, _ = await asyncio.gather(
                    Policy().arun(fetch), sleep_once("7d")
                )
            server.close()
            return outcome

        outcome = asyncio.run(main())
        assert (outcome.value, outcome.state.elapsed) == (b"data\n", 0.0)

    def test_time_waits_for_a_trio_socket(self):
        outcomes = []

        async def serve(stream):
            await stream.receive_some()
            await trio.sleep(0.1)
            await stream.send_all(b"data")

        async def main():
            async with trio.open_nursery() as nursery:
                serving = functools.partial(trio.serve_tcp, serve, 0, host="127.0.0.1")
                listeners = await nursery.start(serving)

                async def fetch():
                    async with await trio.testing.open_stream_to_socket_listener(
                        listeners[0]
                    ) as stream:
                        await stream.send_all(b"get")
                        return await stream.receive_some()

                async def call():
                    outcomes.append(await Policy().arun(fetch))

                with virtual_time():
                    await gather(call(), sleep_once("7d"))
                nursery.cancel_scope.cancel()

        trio.run(main)
        assert [each.value for each in outcomes] == [b"data"]
        assert [each.state.elapsed for each in outcomes] == [0.0]

    @pytest.mark.needs("threads")
    def test_time_waits_for_a_thread_of_an_attempt(self, loop):
        outcomes = []

        async def fetch():
            try:
                trio.lowlevel.current_task()
            except RuntimeError:
                await asyncio.to_thread(time.sleep, 0.1)
            else:
                await trio.to_thread.run_sync(time.sleep, 0.1)

        async def call():
            outcomes.append(await Policy().arun(fetch))

        async def main():
            with virtual_time():
                await gather(call(), sleep_once("7d"))

        loop(main)
        assert [each.state.elapsed for each in outcomes] == [0.0]

    @pytest.mark.needs("threads")
    def test_time_waits_for_an_attempt_in_another_thread(self):
        begun = Event()

        def fetch():
            begun.set()
            end = time.monotonic() + 0.1
            while time.monotonic() < end:
                pass

        with (
            virtual_time(process_wide=True),
            ThreadPoolExecutor(1) as pool,
        ):
            outcome = pool.submit(Policy().run, fetch)
            begun.wait()
            retry(WEEK)(ScriptedFunction([OSError, "ok"]))()
        assert outcome.result().state.elapsed == 0.0

    def test_time_waits_for_a_timer_of_the_loop(self):
        async def fetch():
            await asyncio.sleep(0.03)

        async def main():
            with virtual_time(allow_real_sleep=True):
                outcome, _ = await asyncio.gather(
                    Policy().arun(fetch), sleep_once("7d")
                )
            return outcome

        assert asyncio.run(main()).state.elapsed == 0.0

    def test_an_attempt_with_nested_calls_does_not_stop_their_time(self, loop):
        async def outer():
            await gather(sleep_once(5), sleep_once(7))
            await sleep_once(9)

        async def main():
            with virtual_time() as clock:
                await aretry(outer)()
                return clock.now()

        assert loop(main) == 16.0

    def test_an_attempt_can_wait_for_another_call_on_a_virtual_loop(self):
        async def main():
            slept = asyncio.Event()

            async def sleeping():
                await sleep_once(5)
                slept.set()

            await gather(aretry(slept.wait)(), sleeping())
            return clock.now()

        with (
            virtual_time() as clock,
            asyncio.Runner(loop_factory=clock.new_event_loop) as runner,
        ):
            assert runner.run(main()) == 5.0


class TestStalls:
    """An attempt that never ends stalls time, which raises an error."""

    @pytest.mark.parametrize("module", [asyncio, trio], ids=["asyncio", "trio"])
    def test_a_task_that_waits_for_a_call_that_sleeps(self, module):
        async def main():
            slept = []

            async def waiting():
                while not slept:
                    await module.sleep(0)

            async def sleeping():
                try:
                    await sleep_once(5)
                finally:
                    slept.append(True)

            with virtual_time(stall_timeout=0.05):
                await gather(aretry(waiting)(), sleeping())

        with pytest.raises(BaseExceptionGroup) as caught:
            trio.run(main) if module is trio else asyncio.run(main())
        assert caught.group_contains(TimeStalledError, match="attempt 1 of")

    @pytest.mark.needs("threads")
    def test_a_thread_that_waits_for_a_call_that_sleeps(self):
        begun, slept = Event(), Event()

        def waiting():
            begun.set()
            slept.wait()

        with (
            ThreadPoolExecutor(1) as pool,
            pytest.raises(TimeStalledError, match="attempt 1 of waiting still running"),
            virtual_time(process_wide=True, stall_timeout=0.05) as clock,
        ):
            outcome = pool.submit(Policy(name="waiting").run, waiting)
            begun.wait()
            try:
                retry(schedule=[1])(ScriptedFunction([OSError, "ok"]))()
            finally:
                slept.set()
        assert outcome.result().ok
        assert clock.now() == 0.0

    @pytest.mark.needs("threads")
    def test_an_error_that_is_not_raised_before_is_raised_at_the_end_of_the_block(self):
        over = Event()

        async def main():
            waiting = asyncio.create_task(aretry(asyncio.to_thread)(over.wait))
            await asyncio.sleep(0)
            sleeper = asyncio.create_task(sleep_once(5))
            await asyncio.wait([sleeper])
            over.set()
            await waiting
            assert isinstance(sleeper.exception(), TimeStalledError)

        with pytest.raises(TimeStalledError), virtual_time(stall_timeout=0.05):
            asyncio.run(main())

    @pytest.mark.needs("sockets")
    def test_a_virtual_loop_that_waits_for_an_idle_socket(self):
        """Data could still arrive."""

        writers = []

        def accept(_, writer):
            writers.append(writer)

        async def main():
            async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
                address = server.sockets[0].getsockname()
                _, writer = await asyncio.open_connection(*address)
                try:
                    await asyncio.sleep(5)
                finally:
                    for each in [writer, *writers]:
                        each.close()

        with (
            pytest.raises(TimeStalledError, match="tasks of an event loop"),
            virtual_time(stall_timeout=0.05) as clock,
            asyncio.Runner(loop_factory=clock.new_event_loop) as runner,
        ):
            runner.run(main())
