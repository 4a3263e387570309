"""A loop of asyncio whose own time is virtual."""

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
from tests._support.side import DAY, WEEK, once


class TestTheVirtualLoop:
    def run(self, main):
        with (
            virtual_time() as clock,
            asyncio.Runner(loop_factory=clock.new_event_loop) as runner,
        ):
            return runner.run(main())

    def test_its_timeouts_and_sleeps_are_virtual(self):
        async def main():
            loop = asyncio.get_running_loop()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(100):
                    await aretry(WEEK)(AsyncScriptedFunction([OSError, ...]))()
            await asyncio.wait_for(asyncio.sleep(50), 60)
            return loop.time(), sync_clock.now(), sync_clock.current().sleeps

        assert self.run(main) == (150.0, 150.0, [DAY])

    def test_a_timeout_of_each_attempt_is_virtual(self):
        @aretry(schedule=[10, 10], max_elapsed=None)
        async def fetch():
            async with asyncio.timeout(5):
                await asyncio.sleep(3600)

        async def main():
            with pytest.raises(TimeoutError) as caught:
                await fetch()
            return state_of(caught.value).elapsed

        assert self.run(main) == 35.0

    def test_blocking_calls_share_its_time(self):
        async def main():
            retry(schedule=[100], max_elapsed=None)(ScriptedFunction([OSError, "ok"]))()
            await asyncio.sleep(50)
            return asyncio.get_running_loop().time()

        assert self.run(main) == 150.0

    def test_a_thread_is_not_overtaken_by_its_timeouts(self):
        async def main():
            async with asyncio.timeout(60):
                await asyncio.to_thread(time.sleep, 0.1)
            await asyncio.to_thread(time.sleep, 0.001)
            return asyncio.get_running_loop().time()

        assert self.run(main) == 0.0

    def test_a_socket_is_not_overtaken_by_its_timeouts(self):
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

    def test_a_server_that_only_listens_holds_time_once(self):
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

    def test_calls_that_sleep_on_it_rest(self):
        """A server listens: something real might come, if one were at work."""

        async def main():
            async with await asyncio.start_server(print, "127.0.0.1", 0):
                await once("1d")
            return asyncio.get_running_loop().time()

        with (
            virtual_time(stall_timeout=3600) as clock,
            asyncio.Runner(loop_factory=clock.new_event_loop) as runner,
        ):
            # What is open is waited for once, and not with all patience.
            assert runner.run(main()) == 86_400.0

    def test_it_moves_by_steps_that_its_clock_can_hardly_show(self):
        async def main():
            for start in (1e7, 1e9, 1e15, 1e300):
                sync_clock.current().advance(start)
                await asyncio.sleep(1e-9)
                await asyncio.sleep(1)
            return asyncio.get_running_loop().time()

        assert self.run(main) == pytest.approx(1e300)

    def test_equal_times_come_in_the_order_in_which_they_were_asked_for(self):
        order = []

        async def main():
            loop = asyncio.get_running_loop()
            for number in range(50):
                loop.call_later(5, order.append, number)
            await asyncio.gather(*(call(number) for number in range(50, 100)))

        async def call(number):
            await once(5)
            order.append(number)

        self.run(main)
        assert order == [*range(100)]

    def test_a_pool_is_waited_for_with_all_stall_timeout(self):
        async def main():
            async with asyncio.timeout(3600):
                await asyncio.to_thread(time.sleep, 1.1)
            return asyncio.get_running_loop().time()

        assert self.run(main) == 0.0

    def test_the_threads_of_a_pool_end_in_real_time(self):
        """From Python 3.12 on, asyncio allows them 300 s when a loop is closed."""

        async def main():
            loop = asyncio.get_running_loop()
            pool = ThreadPoolExecutor()
            loop.set_default_executor(pool)
            # Not through the loop, which would know of it.
            pool.submit(time.sleep, 1.2)
            await loop.shutdown_default_executor(300)
            return loop.time()

        assert self.run(main) == 0.0

    def test_it_watches_files_as_other_loops_do(self):
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

    def test_another_thread_moves_the_time_of_a_loop_that_waits_for_a_socket(self):
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

    def test_a_pipe_holds_time_as_a_socket_does(self):
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
