"""An asyncio event loop whose time is virtual."""

import asyncio
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import pytest

from retrykit import aretry, retry, state_of
from retrykit._internal.clocks import sync_clock
from retrykit.testing import AsyncScriptedFunction, ScriptedFunction, virtual_time
from tests._support.concurrency import DAY, WEEK, sleep_once


class TestVirtualLoop:
    def run(self, main):
        with (
            virtual_time() as clock,
            asyncio.Runner(loop_factory=clock.new_event_loop) as runner,
        ):
            return runner.run(main())

    def test_timeouts_and_sleeps_are_virtual(self):
        async def main():
            loop = asyncio.get_running_loop()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(100):
                    await aretry(WEEK)(AsyncScriptedFunction([OSError, ...]))()
            await asyncio.wait_for(asyncio.sleep(50), 60)
            return loop.time(), sync_clock.now(), sync_clock.current().sleeps

        assert self.run(main) == (150.0, 150.0, [DAY])

    def test_a_timeout_of_each_attempt_is_virtual(self):
        @aretry(schedule=[10, 10])
        async def fetch():
            async with asyncio.timeout(5):
                await asyncio.sleep(3600)

        async def main():
            with pytest.raises(TimeoutError) as caught:
                await fetch()
            return state_of(caught.value).elapsed

        assert self.run(main) == 35.0

    def test_blocking_calls_share_the_time_of_the_loop(self):
        async def main():
            retry(schedule=[100])(ScriptedFunction([OSError, "ok"]))()
            await asyncio.sleep(50)
            return asyncio.get_running_loop().time()

        assert self.run(main) == 150.0

    @pytest.mark.needs("threads")
    def test_timeouts_do_not_expire_while_a_thread_runs(self):
        async def main():
            async with asyncio.timeout(60):
                await asyncio.to_thread(time.sleep, 0.1)
            await asyncio.to_thread(time.sleep, 0.001)
            return asyncio.get_running_loop().time()

        assert self.run(main) == 0.0

    @pytest.mark.needs("sockets")
    def test_timeouts_do_not_expire_while_a_socket_is_awaited(self):
        async def main():
            with socket.create_server(("127.0.0.1", 0)) as listener:
                server = Thread(target=serve, args=[listener])
                server.start()
                async with asyncio.timeout(60):
                    reader, writer = await asyncio.open_connection(
                        *listener.getsockname()
                    )
                    writer.write(b"get")
                    data = await reader.read()
                    writer.close()
                server.join()
            return data, asyncio.get_running_loop().time()

        def serve(listener):
            connection, _ = listener.accept()
            with connection:
                connection.recv(10)
                time.sleep(0.1)
                connection.sendall(b"data")

        assert self.run(main) == (b"data", 0.0)

    @pytest.mark.needs("sockets")
    def test_an_idle_server_delays_time_only_once(self):
        async def main():
            loop = asyncio.get_running_loop()
            server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
            before = time.monotonic()
            for _ in range(20):
                await asyncio.sleep(3600)
            server.close()
            return loop.time(), time.monotonic() - before

        elapsed, took = self.run(main)
        assert elapsed == 20 * 3600
        assert took < 10

    @pytest.mark.needs("sockets")
    def test_an_open_server_does_not_stall_a_call_that_sleeps(self):
        """A listening server could receive data, but nothing waits for it."""

        async def main():
            async with await asyncio.start_server(print, "127.0.0.1", 0):
                await sleep_once("1d")
            return asyncio.get_running_loop().time()

        with (
            virtual_time(stall_timeout=3600) as clock,
            asyncio.Runner(loop_factory=clock.new_event_loop) as runner,
        ):
            # Open sockets are awaited once, and for less than stall_timeout.
            assert runner.run(main()) == 86_400.0

    def test_time_moves_by_steps_below_the_precision_of_floats(self):
        async def main():
            for start in (1e7, 1e9, 1e15, 1e300):
                sync_clock.current().advance(start)
                await asyncio.sleep(1e-9)
                await asyncio.sleep(1)
            return asyncio.get_running_loop().time()

        assert self.run(main) == pytest.approx(1e300)

    def test_equal_times_run_in_the_order_of_scheduling(self):
        order = []

        async def main():
            loop = asyncio.get_running_loop()
            for number in range(50):
                loop.call_later(5, order.append, number)
            await asyncio.gather(*(call(number) for number in range(50, 100)))

        async def call(number):
            await sleep_once(5)
            order.append(number)

        self.run(main)
        assert order == [*range(100)]

    @pytest.mark.thorough
    @pytest.mark.needs("threads")
    def test_a_thread_pool_may_run_as_long_as_stall_timeout(self):
        async def main():
            async with asyncio.timeout(3600):
                await asyncio.to_thread(time.sleep, 1.1)
            return asyncio.get_running_loop().time()

        assert self.run(main) == 0.0

    @pytest.mark.thorough
    @pytest.mark.needs("threads")
    def test_the_shutdown_of_a_thread_pool_waits_in_real_time(self):
        """Since Python 3.12, asyncio waits up to 300 s for them in a closing loop."""

        async def main():
            loop = asyncio.get_running_loop()
            pool = ThreadPoolExecutor()
            loop.set_default_executor(pool)
            # Not with run_in_executor, which the loop would count as real work.
            pool.submit(time.sleep, 1.2)
            await loop.shutdown_default_executor(300)
            return loop.time()

        assert self.run(main) == 0.0

    @pytest.mark.needs("sockets")
    def test_readers_and_writers_can_be_added_and_removed(self):
        async def main():
            loop = asyncio.get_running_loop()
            one, other = socket.socketpair()
            with one, other:
                one.setblocking(False)
                readable, writable = asyncio.Event(), asyncio.Event()
                loop.add_reader(one, readable.set)
                loop.add_writer(one, writable.set)
                await writable.wait()
                loop.remove_writer(one)
                other.send(b"x")
                await readable.wait()
                loop.remove_reader(one)
                return one.recv(1), loop.remove_writer(one), loop.remove_reader(one)

        assert self.run(main) == (b"x", False, False)

    @pytest.mark.needs("sockets")
    def test_another_thread_can_advance_a_loop_that_waits_for_a_socket(self):
        async def main():
            loop = asyncio.get_running_loop()
            one, other = socket.socketpair()
            with one, other:
                one.setblocking(False)
                reading = loop.create_task(loop.sock_recv(one, 1))
                clock = sync_clock.current()
                loop.call_later(5, other.send, b"x")
                mover = Thread(target=lambda: (time.sleep(0.1), clock.advance(5)))
                mover.start()
                received = await reading
                mover.join()
                return received, loop.time()

        assert self.run(main) == (b"x", 5.0)

    @pytest.mark.needs("threads")
    def test_timeouts_do_not_expire_while_a_pipe_is_awaited(self):
        async def main():
            loop = asyncio.get_running_loop()
            reader, writer = os.pipe()
            readable = asyncio.Event()
            loop.add_reader(reader, readable.set)
            thread = Thread(target=lambda: (time.sleep(0.1), os.write(writer, b"x")))
            thread.start()
            async with asyncio.timeout(60):
                await readable.wait()
            thread.join()
            loop.remove_reader(reader)
            os.close(reader)
            os.close(writer)
            return loop.time()

        assert self.run(main) == 0.0
