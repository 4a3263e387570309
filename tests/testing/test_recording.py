"""Which retried calls are recorded, and for how long."""

import asyncio
from threading import Barrier, Thread

import pytest
import trio

from retrykit import Policy, aretrying, retrying
from retrykit._internal import fast_path
from retrykit.errors import NestingError
from retrykit.state import events
from retrykit.testing import AsyncScriptedFunction, ScriptedFunction, record
from retrykit.testing.context_block import Block

POLICY = Policy(schedule=[1, 60], max_elapsed=None, on=OSError, name="fetch")
ATTEMPT = ["AttemptStarted", "AttemptFailed", "RetryScheduled"]


def names(recorded):
    return [call.name for call in recorded.calls]


def succeed(name):
    Policy(name=name).call(int)


async def asucceed(name):
    await Policy(name=name).acall(AsyncScriptedFunction(["ok"]))


def in_thread(fn, *args):
    thread = Thread(target=fn, args=args)
    thread.start()
    thread.join()


class TestRecord:
    def test_has_every_event_in_order(self, colour, clock):
        with record() as recorded:
            colour(POLICY)(ScriptedFunction([OSError, OSError, "ok"]))()
        told = [type(event).__name__ for event in recorded.events]
        assert told == [*ATTEMPT, *ATTEMPT, "AttemptStarted", "Succeeded"]
        (call,) = recorded.calls
        assert {id(event.state) for event in recorded.events} == {id(call)}
        assert call.attempt == 3

    def test_has_calls_of_every_form(self, clock):
        def block():
            script = ScriptedFunction([OSError, "ok"])
            for attempt in retrying(POLICY):
                with attempt:
                    return script()

        async def ablock():
            script = AsyncScriptedFunction([OSError, "ok"])
            async for attempt in aretrying(POLICY):
                with attempt:
                    return await script()

        async def main():
            await POLICY.acall(AsyncScriptedFunction([OSError, "ok"]))
            await POLICY.arun(AsyncScriptedFunction([OSError, "ok"]))
            await ablock()

        with record() as recorded:
            POLICY.call(ScriptedFunction([OSError, "ok"]))
            POLICY.run(ScriptedFunction([OSError, "ok"]))
            block()
            asyncio.run(main())
            trio.run(main)
        recorded.assert_attempts("fetch", *[2] * 9)
        recorded.assert_delays("fetch", *[[1.0]] * 9)

    def test_has_calls_in_the_order_in_which_they_began(self):
        def outer():
            succeed("inner")

        with record() as recorded:
            Policy(name="outer").call(outer)
            succeed("next")
        assert names(recorded) == ["outer", "inner", "next"]

    def test_has_a_call_while_it_runs(self):
        with record() as recorded:
            status = Policy(name="fetch").call(lambda: recorded.of("fetch")[0].status)
        assert status == "running"

    def test_ends_with_its_block(self):
        with record() as recorded:
            succeed("inside")
        succeed("outside")
        assert names(recorded) == ["inside"]

    def test_ends_with_its_block_after_an_error(self):
        before = len(fast_path.blockers), events.process_observers[:]
        with pytest.raises(KeyError), record() as recorded:
            raise KeyError
        succeed("outside")
        assert recorded.events == []
        assert (len(fast_path.blockers), events.process_observers) == before

    def test_keeps_what_it_has_when_the_block_fails(self):
        with pytest.raises(KeyError), record() as recorded:
            succeed("inside")
            raise KeyError
        assert names(recorded) == ["inside"]

    @pytest.mark.parametrize("outer_everywhere", [False, True])
    @pytest.mark.parametrize("inner_everywhere", [False, True])
    def test_both_of_two_that_are_nested_record(
        self, outer_everywhere, inner_everywhere
    ):
        with record(process_wide=outer_everywhere) as outer:
            succeed("before")
            with record(process_wide=inner_everywhere) as inner:
                succeed("inside")
            succeed("after")
        assert names(inner) == ["inside"]
        assert names(outer) == ["before", "inside", "after"]

    def test_begins_afresh_when_it_is_opened_again(self):
        block = record()
        with block as first:
            succeed("first")
        with block as second:
            succeed("second")
        assert (names(first), names(second)) == (["first"], ["second"])


class TestContext:
    def test_is_this_thread_or_everywhere(self):
        with record() as here, record(process_wide=True) as process_wide:
            in_thread(succeed, "other")
            succeed("own")
        assert names(here) == ["own"]
        assert names(process_wide) == ["other", "own"]

    def test_threads_side_by_side_do_not_see_each_other(self):
        barrier, seen = Barrier(2), {}

        def work(name):
            with record() as recorded:
                barrier.wait()
                succeed(name)
                barrier.wait()
            seen[name] = names(recorded)

        workers = [Thread(target=work, args=[name]) for name in "ab"]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert seen == {"a": ["a"], "b": ["b"]}

    def test_a_task_of_asyncio_has_its_own(self):
        seen = {}

        async def work(name):
            with record() as recorded:
                await asyncio.sleep(0)
                await asucceed(name)
                await asyncio.sleep(0)
            seen[name] = names(recorded)

        async def main():
            with record() as recorded:
                await asyncio.gather(work("a"), work("b"))
                await asyncio.to_thread(succeed, "thread")
            seen["all"] = sorted(names(recorded))

        asyncio.run(main())
        assert seen == {"a": ["a"], "b": ["b"], "all": ["a", "b", "thread"]}

    def test_a_task_of_trio_has_its_own(self):
        seen = {}

        async def work(name):
            with record() as recorded:
                await trio.lowlevel.checkpoint()
                await asucceed(name)
                await trio.lowlevel.checkpoint()
            seen[name] = names(recorded)

        async def main():
            with record() as recorded:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(work, "a")
                    nursery.start_soon(work, "b")
                await trio.to_thread.run_sync(succeed, "thread")
            seen["all"] = sorted(names(recorded))

        trio.run(main)
        assert seen == {"a": ["a"], "b": ["b"], "all": ["a", "b", "thread"]}

    def test_a_task_that_was_there_before_is_recorded_everywhere_only(self):
        async def main():
            opened = asyncio.Event()

            async def work():
                await opened.wait()
                await asucceed("earlier")

            earlier = asyncio.create_task(work())
            with record() as here, record(process_wide=True) as process_wide:
                opened.set()
                await earlier
            return names(here), names(process_wide)

        assert asyncio.run(main()) == ([], ["earlier"])

    def test_a_task_that_outlives_the_block_is_recorded_no_more(self):
        async def main():
            closed = asyncio.Event()

            async def work():
                await closed.wait()
                await asucceed("late")

            with record() as recorded:
                late = asyncio.create_task(work())
            closed.set()
            await late
            return recorded.events

        assert asyncio.run(main()) == []


class TestBlock:
    def test_is_opened_once_at_a_time(self):
        block = record()
        with block, pytest.raises(NestingError) as caught, block:
            pass
        assert (
            str(caught.value)
            == "record(process_wide=False) must be closed before it is opened again"
        )

    def test_is_opened_before_it_is_closed(self):
        with pytest.raises(NestingError) as caught:
            record().__exit__(None, None, None)
        assert (
            str(caught.value)
            == "record(process_wide=False) must be opened before it is closed"
        )

    def test_that_is_closed_out_of_turn_records_no_more(self):
        outer, inner = record(), record()
        first, second = outer.__enter__(), inner.__enter__()
        with pytest.raises(NestingError) as caught:
            outer.__exit__(None, None, None)
        succeed("inside")
        inner.__exit__(None, None, None)
        succeed("outside")
        assert "must be closed after record(process_wide=False)" in str(caught.value)
        assert (names(first), names(second)) == ([], ["inside"])

    def test_that_fails_to_open_closes_what_it_had_opened(self):
        closed = []

        class Broken(Block):
            def _open(self, opened):
                opened.callback(closed.append, "closed")
                raise OSError

        block = Broken()
        for _ in range(2):
            with pytest.raises(OSError), block:
                pass
        assert closed == ["closed"] * 2
