"""timeout_scope: its error, leaks, and scopes that another task exits."""

import asyncio
import gc
import math
import pickle
import traceback
import weakref

import pytest

from retrykit._core.attempt_timeout import timeout_scope
from retrykit._internal.loop_clock import LoopClock
from retrykit.errors import AttemptTimeout, RetrykitError
from tests._support.concurrency import under_asyncio, under_trio
from tests._support.optional_trio import trio


class TestTheError:
    def test_is_a_retrykit_error_and_a_timeout_error(self):
        assert issubclass(AttemptTimeout, RetrykitError)
        assert issubclass(AttemptTimeout, TimeoutError)

    def test_survives_pickling(self):
        error = pickle.loads(pickle.dumps(AttemptTimeout(1.5)))  # noqa: S301
        assert (type(error), error.timeout) == (AttemptTimeout, 1.5)

    @pytest.mark.parametrize(
        ("timeout", "seconds"),
        [
            (5.0, "5 s"),
            (4.997321, "4.997 s"),
            (3600.0, "3600 s"),
            (0.05, "50 ms"),
            (0.00012, "0.12 ms"),
            (0.0, "0 s"),
        ],
        ids=["whole", "remaining", "hour", "short", "shorter", "none"],
    )
    def test_shows_the_exceeded_timeout(self, timeout, seconds):
        assert str(AttemptTimeout(timeout)) == f"the attempt took longer than {seconds}"

    def test_its_traceback_leads_to_the_interrupted_line(self, library):
        async def hang():
            await library.event().wait()

        async def main():
            with pytest.raises(AttemptTimeout) as caught, timeout_scope(5):
                await hang()
            return caught.value

        error = library.run(main)
        places = [each.name for each in traceback.extract_tb(error.__traceback__)]
        assert places[:4] == ["main", "__exit__", "main", "hang"]
        assert (error.__cause__, error.__context__) == (None, None)

    def test_keeps_the_context_of_the_attempt(self, library):
        first = KeyError("first")

        async def main():
            with pytest.raises(AttemptTimeout) as caught, timeout_scope(5):
                try:
                    raise first
                except KeyError:
                    await library.event().wait()
            return caught.value.__context__

        assert library.run(main) is first


class Local:
    """The value of a local variable."""


class TestLeaks:
    """4. Nothing leaks, with the garbage collector off."""

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def no_collector(cls):
        gc.collect()
        gc.disable()
        yield
        gc.enable()

    @pytest.mark.parametrize("hangs", [True, False])
    def test_locals_are_freed_with_the_error(self, loop, hangs):
        locals_ = []

        async def attempt():
            local = Local()
            locals_.append(weakref.ref(local))
            await LoopClock().sleep(3600 if hangs else 0)

        async def main():
            for _ in range(3):
                try:
                    with timeout_scope(0 if hangs else 3600):
                        await attempt()
                except AttemptTimeout:
                    assert hangs
            # The loop keeps the cancellation alive until the task waits again.
            await LoopClock().sleep(0)
            return [local() for local in locals_]

        assert loop(main) == [None] * 3

    @pytest.mark.parametrize("hangs", [True, False])
    def test_locals_are_freed_with_the_error_in_virtual_time(self, clock, hangs):
        locals_ = []

        async def attempt():
            local = Local()
            locals_.append(weakref.ref(local))
            if hangs:
                await asyncio.Event().wait()

        async def main():
            async with asyncio.TaskGroup() as group:
                # A sleeper that is due first keeps the timers in their heap.
                group.create_task(clock.asleep(3))
                await asyncio.sleep(0)
                for _ in range(3):
                    try:
                        with timeout_scope(5):
                            await attempt()
                    except AttemptTimeout:
                        assert hangs
                await asyncio.sleep(0)
                return [local() for local in locals_]

        assert asyncio.run(main()) == [None] * 3

    def test_a_thousand_blocks_leave_no_timer_and_no_task(self):
        async def main():
            loop = asyncio.get_running_loop()
            for _ in range(1000):
                with timeout_scope(3600):
                    await asyncio.sleep(0)
            timers = loop._scheduled  # noqa: SLF001  nothing else shows them
            waiting = [timer for timer in timers if not timer.cancelled()]
            return waiting, len(asyncio.all_tasks())

        assert asyncio.run(main()) == ([], 1)

    def test_a_thousand_blocks_leave_nothing_in_virtual_time(self, clock):
        async def main():
            for _ in range(1000):
                with timeout_scope(3600):
                    await asyncio.sleep(0)
            await clock.asleep(7200)
            for _ in range(50):
                await asyncio.sleep(0)
            loop = asyncio.get_running_loop()
            ready = loop._ready  # noqa: SLF001  nothing else shows callbacks
            return [*ready], len(asyncio.all_tasks())

        assert asyncio.run(main()) == ([], 1)

    def test_a_task_is_freed_before_its_timeout(self, clock):
        async def attempt():
            with timeout_scope(5):
                await asyncio.sleep(0)

        async def main():
            sleeper = asyncio.create_task(clock.asleep(3))
            await asyncio.sleep(0)
            done = asyncio.create_task(attempt())
            await done
            seen = weakref.ref(done)
            del done
            await asyncio.sleep(0)
            assert seen() is None
            await sleeper

        asyncio.run(main())

    def test_a_block_leaves_no_task_of_trio_in_virtual_time(self, clock):
        async def main():
            before = trio.lowlevel.current_statistics().tasks_living
            with timeout_scope(3600):
                await trio.lowlevel.checkpoint()
            await trio.sleep(1)
            return trio.lowlevel.current_statistics().tasks_living - before

        assert under_trio(main) == 0

    def test_a_thousand_blocks_leave_no_task_of_trio(self):
        async def main():
            before = trio.lowlevel.current_statistics()
            for _ in range(1000):
                with timeout_scope(3600):
                    await trio.lowlevel.checkpoint()
            after = trio.lowlevel.current_statistics()
            return (
                after.tasks_living - before.tasks_living,
                after.seconds_to_next_deadline,
            )

        assert trio.run(main) == (0, math.inf)


class TestAnotherTask:
    """A block of an async generator may be exited by another task."""

    async def pages(self):
        with timeout_scope(5):
            yield 1
            yield 2

    async def first(self, pages):
        return await anext(pages)

    def test_may_exit_the_scope_under_asyncio(self):
        async def main():
            pages = self.pages()
            await asyncio.create_task(self.first(pages))
            await asyncio.create_task(pages.aclose())
            await asyncio.sleep(10)
            return "nothing was cancelled"

        assert under_asyncio(main) == "nothing was cancelled"

    def test_that_entered_the_scope_is_not_cancelled_after_the_exit_under_asyncio(self):
        async def main():
            pages = self.pages()
            await asyncio.create_task(self.first(pages))
            await asyncio.sleep(10)
            return await anext(pages)

        assert under_asyncio(main) == 2

    def test_that_entered_the_scope_may_have_ended_under_trio(self):
        async def main():
            pages = self.pages()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.first, pages)
            await trio.sleep(10)
            return await anext(pages), await pages.aclose()

        assert under_trio(main) == (2, None)

    def test_may_not_exit_the_scope_under_trio(self):
        async def main():
            pages = self.pages()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.first_of_two, pages)
                await trio.sleep(1)
                with pytest.raises(RuntimeError, match="Cancel scope") as caught:
                    await pages.aclose()
                nursery.cancel_scope.cancel()
            return caught.value

        assert under_trio(main).__cause__ is None

    async def first_of_two(self, pages):
        await anext(pages)
        await trio.sleep_forever()
