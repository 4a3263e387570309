"""Recordings of retried calls."""

import asyncio
from threading import Barrier, Thread

import pytest

from retrykit import Policy, aretrying, retrying
from retrykit._core import events
from retrykit._internal import fast_path
from retrykit.errors import NestingError
from retrykit.testing import AsyncScriptedFunction, ScriptedFunction, record
from retrykit.testing._context_block import Block
from tests._support.optional_trio import trio

POLICY = Policy(schedule=[1, 60], on=OSError, name="fetch")
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


class TestRecording:
    def test_contains_all_events_in_order(self, backend, clock):
        with record() as recorded:
            backend(POLICY)(ScriptedFunction([OSError, OSError, "ok"]))()
        event_types = [type(event).__name__ for event in recorded.events]
        assert event_types == [*ATTEMPT, *ATTEMPT, "AttemptStarted", "Succeeded"]
        (call,) = recorded.calls
        assert {id(event.state) for event in recorded.events} == {id(call)}
        assert call.attempt == 3

    def test_contains_calls_of_every_form(self, clock):
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

    def test_lists_calls_in_the_order_of_their_start(self):
        def outer():
            succeed("inner")

        with record() as recorded:
            Policy(name="outer").call(outer)
            succeed("next")
        assert names(recorded) == ["outer", "inner", "next"]

    def test_contains_a_running_call(self):
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

    def test_keeps_recorded_calls_after_an_error(self):
        with pytest.raises(KeyError), record() as recorded:
            succeed("inside")
            raise KeyError
        assert names(recorded) == ["inside"]

    @pytest.mark.parametrize("outer_process_wide", [False, True])
    @pytest.mark.parametrize("inner_process_wide", [False, True])
    def test_nested_recordings_both_record(
        self, outer_process_wide, inner_process_wide
    ):
        with record(process_wide=outer_process_wide) as outer:
            succeed("before")
            with record(process_wide=inner_process_wide) as inner:
                succeed("inside")
            succeed("after")
        assert names(inner) == ["inside"]
        assert names(outer) == ["before", "inside", "after"]

    def test_a_reopened_block_starts_a_new_recording(self):
        block = record()
        with block as first:
            succeed("first")
        with block as second:
            succeed("second")
        assert (names(first), names(second)) == (["first"], ["second"])


class TestScope:
    @pytest.mark.needs("threads")
    def test_is_one_thread_or_the_process(self):
        with record() as thread_only, record(process_wide=True) as process_wide:
            in_thread(succeed, "other")
            succeed("own")
        assert names(thread_only) == ["own"]
        assert names(process_wide) == ["other", "own"]

    @pytest.mark.needs("threads")
    def test_concurrent_threads_record_only_their_own_calls(self):
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

    @pytest.mark.needs("threads")
    def test_asyncio_tasks_record_only_their_own_calls(self):
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

    def test_trio_tasks_record_only_their_own_calls(self):
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

    def test_an_earlier_task_is_recorded_only_process_wide(self):
        async def main():
            opened = asyncio.Event()

            async def work():
                await opened.wait()
                await asucceed("earlier")

            earlier = asyncio.create_task(work())
            with record() as thread_only, record(process_wide=True) as process_wide:
                opened.set()
                await earlier
            return names(thread_only), names(process_wide)

        assert asyncio.run(main()) == ([], ["earlier"])

    def test_a_task_is_not_recorded_after_the_block(self):
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
    def test_cannot_be_opened_twice_at_once(self):
        block = record()
        with block, pytest.raises(NestingError) as caught, block:
            pass
        assert (
            str(caught.value)
            == "record(process_wide=False) must be closed before it is opened again"
        )

    def test_cannot_be_closed_before_it_is_opened(self):
        with pytest.raises(NestingError) as caught:
            record().__exit__(None, None, None)
        assert (
            str(caught.value)
            == "record(process_wide=False) must be opened before it is closed"
        )

    def test_stops_recording_if_closed_out_of_order(self):
        outer, inner = record(), record()
        first, second = outer.__enter__(), inner.__enter__()
        with pytest.raises(NestingError) as caught:
            outer.__exit__(None, None, None)
        succeed("inside")
        inner.__exit__(None, None, None)
        succeed("outside")
        assert "must be closed after record(process_wide=False)" in str(caught.value)
        assert (names(first), names(second)) == ([], ["inside"])

    def test_closes_its_resources_if_opening_fails(self):
        closed = []

        class FailingBlock(Block):
            def _open(self, opened):
                opened.callback(closed.append, "closed")
                raise OSError

        block = FailingBlock()
        for _ in range(2):
            with pytest.raises(OSError), block:
                pass
        assert closed == ["closed"] * 2
