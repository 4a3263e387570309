"""Virtual time beside what is real: interrupts, other clocks, other threads."""

import asyncio
import functools
import queue
import socket
import time
from threading import Event, Thread

import anyio.to_thread
import pytest
import trio

from retrykit import Policy, aretry, retry, state_of
from retrykit.testing import virtual_time
from tests._support.side import alarm, ended, once


class TestInterrupts:
    def test_what_a_signal_handler_raises_leaves_the_loop(self):
        """As pytest-timeout does it: the loop itself would log it and go on."""

        class TimedOutError(Exception):
            pass

        async def main():
            with virtual_time(stall_timeout=3600):
                await asyncio.gather(once(5), asyncio.to_thread(over.wait))

        over = Event()
        with pytest.raises(TimedOutError), alarm(TimedOutError, 0.05):
            asyncio.run(ended(main(), over))

    def test_after_an_interrupt_the_loop_goes_on(self):
        async def sleeping(clock):
            await clock.asleep(5)
            return clock.now()

        over, loop = Event(), asyncio.new_event_loop()
        try:
            with virtual_time(stall_timeout=3600) as clock:
                work = aretry(asyncio.to_thread)(over.wait)
                waiting = loop.create_task(work)
                first = loop.create_task(sleeping(clock))
                for _ in range(5):
                    left = pytest.raises(KeyboardInterrupt)
                    with left, alarm(KeyboardInterrupt, 0.02):
                        loop.run_until_complete(first)
                over.set()
                assert loop.run_until_complete(first) == 5.0
                loop.run_until_complete(waiting)
        finally:
            over.set()
            loop.close()

    def test_two_clocks_on_one_loop_do_not_disturb_each_other(self):
        async def test():
            with virtual_time(stall_timeout=3600) as clock:
                await once(5)
                return clock.now()

        async def main():
            return await asyncio.gather(test(), test())

        assert asyncio.run(main()) == [5.0, 5.0]

    def test_a_task_that_asks_again_and_again_holds_nobody_up(self):
        async def main():
            with virtual_time(stall_timeout=3600) as clock:
                call = asyncio.create_task(once(5))
                while not call.done():  # noqa: ASYNC110  it is what is tested
                    await asyncio.sleep(0)
                return clock.now()

        assert asyncio.run(main()) == 5.0


class TestNeighbours:
    def test_a_thread_of_ones_own_that_serves_attempts_is_not_overtaken(self):
        """It was there before, and waits for work as no pool does."""
        jobs = queue.SimpleQueue()

        def serve():
            while (job := jobs.get()) is not None:
                time.sleep(0.05)
                job()

        async def ask():
            loop = asyncio.get_running_loop()
            answer = loop.create_future()
            jobs.put(lambda: loop.call_soon_threadsafe(answer.set_result, 1))
            return await answer

        async def main():
            with virtual_time(stall_timeout=30):
                outcome, _ = await asyncio.gather(Policy().arun(ask), once("7d"))
            return outcome

        server = Thread(target=serve)
        server.start()
        try:
            assert asyncio.run(main()).state.elapsed == 0.0
        finally:
            jobs.put(None)
            server.join()

    def test_threads_of_anyio_are_not_overtaken(self):
        async def main():
            await anyio.to_thread.run_sync(time.sleep, 0)
            work = functools.partial(anyio.to_thread.run_sync, time.sleep, 0.05)
            with virtual_time(stall_timeout=30):
                outcome, _ = await asyncio.gather(Policy().arun(work), once("7d"))
            return outcome

        assert asyncio.run(main()).state.elapsed == 0.0

    def test_a_thread_with_the_number_of_another_is_not_overtaken(self):
        up = Event()

        def begin():
            time.sleep(0.1)
            up.set()

        @retry(schedule=[10] * 5, max_elapsed=None)
        def fetch():
            if not up.is_set():
                raise OSError

        first = Thread(target=time.sleep, args=[0.02])
        first.start()
        with virtual_time(stall_timeout=30) as clock:
            first.join()
            second = Thread(target=begin)
            second.start()
            fetch()
            second.join()
        assert clock.sleeps == [10.0]

    @pytest.mark.parametrize("way", ["timeout", "wait_for"])
    def test_a_timeout_of_an_attempt_that_waits_for_a_call_is_no_false_one(self, way):
        async def main():
            slept = asyncio.Event()

            async def waiting():
                if way == "wait_for":
                    await asyncio.wait_for(slept.wait(), 3)
                    return
                async with asyncio.timeout(3):
                    await slept.wait()

            async def sleeping():
                await once(5)
                slept.set()

            with virtual_time(stall_timeout=3600) as clock:
                await asyncio.gather(aretry(waiting, max_attempts=1), sleeping())
                return clock.now()

        async def aretry(fn, **changes):
            return await Policy(**changes).acall(fn)

        assert asyncio.run(main()) == 5.0

    def test_a_timeout_shorter_than_patience_is_no_false_one(self):
        """A connection is open that nobody uses: something real might come."""

        async def main():
            slept = asyncio.Event()

            async def waiting():
                async with asyncio.timeout(0.4):
                    await slept.wait()

            async def sleeping():
                await once(5)
                slept.set()

            async with await asyncio.start_server(print, "127.0.0.1", 0):
                with virtual_time(stall_timeout=3600) as clock:
                    await asyncio.gather(aretry(waiting)(), sleeping())
                    return clock.now()

        assert asyncio.run(main()) == 5.0

    def test_a_socket_outside_of_calls_is_not_overtaken_on_any_loop(self, loop):
        ready = []

        @aretry(schedule=[10] * 5, max_elapsed=None)
        async def poll():
            if not ready:
                raise OSError

        async def ask(address):
            reader, writer = await asyncio.open_connection(*address)
            await reader.read()
            writer.close()
            ready.append(True)

        async def main():
            try:
                trio.lowlevel.current_task()
            except RuntimeError:
                pass
            else:
                pytest.skip("it is written for asyncio")
            with socket.create_server(("127.0.0.1", 0)) as listener:
                server = Thread(target=serve, args=[listener])
                server.start()
                with virtual_time(stall_timeout=30) as clock:
                    await asyncio.gather(poll(), ask(listener.getsockname()))
                server.join()
            return clock.sleeps

        def serve(listener):
            connection, _ = listener.accept()
            with connection:
                time.sleep(0.1)

        assert loop(main) == [10.0]

    def test_a_call_that_began_before_keeps_the_time_that_it_began_with(self):
        begun, go = Event(), Event()
        outcomes = []

        @retry(schedule=[1], max_attempts=1)
        def fetch(*, fails):
            if fails:
                begun.set()
                go.wait()
                raise OSError

        def call():
            try:
                fetch(fails=True)
            except OSError as error:
                outcomes.append(state_of(error))

        fetch(fails=False)
        thread = Thread(target=call)
        thread.start()
        begun.wait()
        with virtual_time(process_wide=True):
            go.set()
            thread.join()
        assert 0 <= outcomes[0].elapsed < 60
