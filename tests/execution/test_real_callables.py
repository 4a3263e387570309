"""Time stands still for what is real: sockets, threads and timers of attempts.

What is waited for here is real, and takes some hundredths of a second.
"""

import asyncio
import functools
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest
import trio
import trio.lowlevel
import trio.testing

from retrykit import Policy, aretry, retry, schedules as s
from retrykit.testing import ScriptedFunction, virtual_time
from tests._support.side import WEEK, once, together


class TestAttempts:
    """Time stands still for what an attempt waits for."""

    def test_a_socket_is_not_overtaken(self):
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

            with virtual_time(stall_timeout=30):
                outcome, _ = await asyncio.gather(Policy().arun(fetch), once("7d"))
            server.close()
            return outcome

        outcome = asyncio.run(main())
        assert (outcome.value, outcome.state.elapsed) == (b"data\n", 0.0)

    def test_a_socket_of_trio_is_not_overtaken(self):
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

                with virtual_time(stall_timeout=30):
                    await together(call(), once("7d"))
                nursery.cancel_scope.cancel()

        trio.run(main)
        assert [each.value for each in outcomes] == [b"data"]
        assert [each.state.elapsed for each in outcomes] == [0.0]

    def test_a_thread_of_an_attempt_is_not_overtaken(self, loop):
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
            with virtual_time(stall_timeout=30):
                await together(call(), once("7d"))

        loop(main)
        assert [each.state.elapsed for each in outcomes] == [0.0]

    def test_an_attempt_in_another_thread_is_not_overtaken(self):
        begun = Event()

        def fetch():
            begun.set()
            end = time.monotonic() + 0.1
            while time.monotonic() < end:
                pass

        with (
            virtual_time(process_wide=True, stall_timeout=30),
            ThreadPoolExecutor(1) as pool,
        ):
            outcome = pool.submit(Policy().run, fetch)
            begun.wait()
            retry(WEEK)(ScriptedFunction([OSError, "ok"]))()
        assert outcome.result().state.elapsed == 0.0

    def test_a_thread_that_was_begun_meanwhile_is_not_overtaken(self):
        up = Event()

        def begin():
            time.sleep(0.05)
            up.set()

        @retry(schedule=s.constant(10), max_attempts=None, max_elapsed="1m")
        def fetch():
            if not up.is_set():
                raise OSError

        with virtual_time(stall_timeout=30) as clock:
            server = Thread(target=begin)
            server.start()
            fetch()
            server.join()
        assert clock.sleeps == [10.0]

    def test_a_thread_of_a_pool_is_not_overtaken_in_its_second_task_either(self):
        first, up = Event(), Event()

        def begin():
            time.sleep(0.05)
            up.set()

        @retry(schedule=s.constant(10), max_attempts=None, max_elapsed="1m")
        def fetch():
            if not up.is_set():
                raise OSError

        with virtual_time(stall_timeout=0.2) as clock, ThreadPoolExecutor(1) as pool:
            waits = pool.submit(first.wait)
            clock.sleep(5)
            first.set()
            waits.result()
            clock.sleep(5)
            pool.submit(begin)
            fetch()
        assert clock.sleeps == [5.0, 5.0, 10.0]

    def test_a_timer_of_the_loop_in_an_attempt_is_not_overtaken(self):
        async def fetch():
            await asyncio.sleep(0.03)

        async def main():
            with virtual_time(stall_timeout=30, allow_real_sleep=True):
                outcome, _ = await asyncio.gather(Policy().arun(fetch), once("7d"))
            return outcome

        assert asyncio.run(main()).state.elapsed == 0.0

    def test_calls_inside_of_an_attempt_do_not_hold_their_own_time(self, loop):
        async def outer():
            await together(once(5), once(7))
            await once(9)

        async def main():
            with virtual_time(stall_timeout=3600) as clock:
                await aretry(outer)()
                return clock.now()

        assert loop(main) == 16.0

    def test_an_attempt_that_waits_for_a_call_that_sleeps_does_not_hold_it(self, loop):
        async def main():
            slept = []

            async def waiting():
                while not slept:
                    await checkpoint()

            async def sleeping():
                await once(5)
                slept.append(True)

            with virtual_time(stall_timeout=0.05) as clock:
                await together(aretry(waiting)(), sleeping())
                return clock.now()

        async def checkpoint():
            try:
                trio.lowlevel.current_task()
            except RuntimeError:
                await asyncio.sleep(0)
            else:
                await trio.lowlevel.checkpoint()

        assert loop(main) == 5.0

    @pytest.mark.parametrize("kind", ["asyncio", "trio"])
    def test_where_nothing_real_can_come_there_is_no_need_for_stall_timeout(self, kind):
        async def main():
            slept = asyncio.Event() if kind == "asyncio" else trio.Event()

            async def sleeping():
                await once(5)
                slept.set()

            with virtual_time(stall_timeout=3600) as clock:
                await together(aretry(slept.wait)(), sleeping())
                return clock.now()

        now = asyncio.run(main()) if kind == "asyncio" else trio.run(main)
        assert now == 5.0

    def test_patience_ends_and_is_not_needed_twice(self):
        """The thread of an attempt waits for a call that sleeps: nobody can know."""
        slept = Event()

        def waiting():
            slept.wait()

        polling = Policy(schedule=[1] * 50, max_attempts=None)
        virtual = virtual_time(process_wide=True, stall_timeout=0.1)
        with virtual as clock, ThreadPoolExecutor(1) as pool:
            outcome = pool.submit(Policy().run, waiting)
            before = time.monotonic()
            retry(polling)(ScriptedFunction([*[OSError] * 50, "ok"]))()
            took = time.monotonic() - before
            slept.set()
        assert outcome.result().ok
        assert clock.now() == 50.0
        assert took < 4
