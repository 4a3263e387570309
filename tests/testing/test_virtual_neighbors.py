"""Virtual time with other clocks and real threads."""

import asyncio
import functools
import queue
import time
from threading import Event, Thread

import anyio.to_thread
import pytest

from retrykit import Policy, retry, state_of
from retrykit.testing import virtual_time
from tests._support.concurrency import sleep_once


class TestOneLoop:
    def test_two_clocks_on_one_loop_are_independent(self):
        async def test():
            with virtual_time() as clock:
                await sleep_once(5)
                return clock.now()

        async def main():
            return await asyncio.gather(test(), test())

        assert asyncio.run(main()) == [5.0, 5.0]

    def test_a_polling_task_does_not_stop_time(self):
        async def main():
            with virtual_time() as clock:
                call = asyncio.create_task(sleep_once(5))
                while not call.done():  # noqa: ASYNC110  under test
                    await asyncio.sleep(0)
                return clock.now()

        assert asyncio.run(main()) == 5.0


class TestOtherThreads:
    @pytest.mark.needs("threads")
    def test_time_waits_for_a_worker_thread_of_an_attempt(self):
        """A thread that started before, and is not one of a pool."""
        jobs = queue.SimpleQueue()

        def serve():
            while (job := jobs.get()) is not None:
                time.sleep(0.05)
                job()

        async def request():
            loop = asyncio.get_running_loop()
            answer = loop.create_future()
            jobs.put(lambda: loop.call_soon_threadsafe(answer.set_result, 1))
            return await answer

        async def main():
            with virtual_time():
                outcome, _ = await asyncio.gather(
                    Policy().arun(request), sleep_once("7d")
                )
            return outcome

        server = Thread(target=serve)
        server.start()
        try:
            assert asyncio.run(main()).state.elapsed == 0.0
        finally:
            jobs.put(None)
            server.join()

    @pytest.mark.needs("threads")
    def test_time_waits_for_threads_of_anyio(self):
        async def main():
            await anyio.to_thread.run_sync(time.sleep, 0)
            work = functools.partial(anyio.to_thread.run_sync, time.sleep, 0.05)
            with virtual_time():
                outcome, _ = await asyncio.gather(Policy().arun(work), sleep_once("7d"))
            return outcome

        assert asyncio.run(main()).state.elapsed == 0.0

    @pytest.mark.needs("threads")
    def test_a_call_that_started_before_uses_the_real_clock(self):
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
