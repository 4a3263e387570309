"""What ends a block of a task: its error, what it keeps, and who leaves it."""

import asyncio
import gc
import math
import pickle
import traceback
import weakref

import pytest
import trio

from retrykit._internal.loop_clock import LoopClock
from retrykit.errors import AttemptTimeout, RetrykitError
from retrykit.execution.attempt_timeout import timeout_scope
from tests._support.side import under_asyncio, under_trio


class TestTheError:
    def test_is_of_retrykit_and_a_timeout(self):
        assert issubclass(AttemptTimeout, RetrykitError)
        assert issubclass(AttemptTimeout, TimeoutError)

    def test_survives_pickling(self):
        error = pickle.loads(pickle.dumps(AttemptTimeout(1.5)))  # noqa: S301
        assert (type(error), error.timeout) == (AttemptTimeout, 1.5)

    @pytest.mark.parametrize(
        ("timeout", "told"),
        [(5.0, "5s"), (4.997321, "4.997s"), (3600.0, "3600s"), (0.00012, "0.00012s")],
        ids=["whole", "what is left", "an hour", "a moment"],
    )
    def test_tells_what_was_exceeded(self, timeout, told):
        assert str(AttemptTimeout(timeout)) == f"the attempt took longer than {told}"

    def test_leads_to_where_the_attempt_was(self, under):
        async def hang():
            await under.event().wait()

        async def main():
            with pytest.raises(AttemptTimeout) as caught, timeout_scope(5):
                await hang()
            return caught.value

        error = under.run(main)
        places = [each.name for each in traceback.extract_tb(error.__traceback__)]
        assert places[:4] == ["main", "__exit__", "main", "hang"]
        assert (error.__cause__, error.__context__) == (None, None)

    def test_keeps_what_the_attempt_was_handling(self, under):
        first = KeyError("first")

        async def main():
            with pytest.raises(AttemptTimeout) as caught, timeout_scope(5):
                try:
                    raise first
                except KeyError:
                    await under.event().wait()
            return caught.value.__context__

        assert under.run(main) is first


class Local:
    """Something that is held by a local variable."""


class TestNothingIsLeft:
    """4. Nothing leaks, with the garbage collector off."""

    @pytest.fixture(autouse=True)
    def no_collector(self):
        gc.collect()
        gc.disable()
        yield
        gc.enable()

    @pytest.mark.parametrize("hangs", [True, False])
    def test_locals_die_with_the_error(self, loop, hangs):
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
            # A loop keeps what it cancels a task with until the task waits again.
            await LoopClock().sleep(0)
            return [local() for local in locals_]

        assert loop(main) == [None] * 3

    @pytest.mark.parametrize("hangs", [True, False])
    def test_locals_die_with_the_error_in_virtual_time(self, clock, hangs):
        locals_ = []

        async def attempt():
            local = Local()
            locals_.append(weakref.ref(local))
            if hangs:
                await asyncio.Event().wait()

        async def main():
            async with asyncio.TaskGroup() as group:
                # A sleeper that comes first holds the alarms in their heap.
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

    def test_a_task_dies_although_its_time_is_not_up(self, clock):
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
    """As blocks of an async generator may be left by another one."""

    async def pages(self):
        with timeout_scope(5):
            yield 1
            yield 2

    async def first(self, pages):
        return await anext(pages)

    def test_leaves_it_under_asyncio(self):
        async def main():
            pages = self.pages()
            await asyncio.create_task(self.first(pages))
            await asyncio.create_task(pages.aclose())
            await asyncio.sleep(10)
            return "nothing was cancelled"

        assert under_asyncio(main) == "nothing was cancelled"

    def test_that_is_gone_is_not_cancelled_under_asyncio(self):
        async def main():
            pages = self.pages()
            await asyncio.create_task(self.first(pages))
            await asyncio.sleep(10)
            return await anext(pages)

        assert under_asyncio(main) == 2

    def test_that_is_gone_is_forgotten_by_trio(self):
        async def main():
            pages = self.pages()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.first, pages)
            await trio.sleep(10)
            return await anext(pages), await pages.aclose()

        assert under_trio(main) == (2, None)

    def test_is_refused_by_trio(self):
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
