"""timeout_scope: the outcome of blocks that end in time or are cancelled."""

import asyncio
import math
import traceback

import pytest
from hypothesis import given, strategies as st

from retrykit import aretry
from retrykit._core.attempt_timeout import TimeoutScope, timeout_scope
from retrykit._internal.loop_clock import LoopClock, async_clock
from retrykit.errors import AttemptTimeout
from retrykit.testing import AsyncScriptedFunction
from tests._support.concurrency import AsyncLibrary, under_asyncio
from tests._support.optional_trio import trio


async def now():
    return LoopClock().now()


class TestOutcome:
    def test_a_block_that_ends_in_time_returns(self, library):
        async def main():
            with timeout_scope(5) as block:
                await library.sleep(4.9)
                value = "value"
            await library.sleep(10)
            return value, block.timeout

        assert library.run(main) == ("value", 5.0)

    def test_a_block_that_takes_too_long_raises_attempt_timeout(self, library):
        async def main():
            began = await now()
            with pytest.raises(AttemptTimeout) as caught, timeout_scope(5):
                await library.event().wait()
            return caught.value.timeout, await now() - began

        assert library.run(main) == (5.0, pytest.approx(5.0))

    def test_raises_the_error_of_its_timer(self, library):
        fault = OSError("of a signal handler")

        def alarm(delay, ring):
            ring(fault)
            return lambda: calls.append(delay)

        async def main():
            with (
                pytest.raises(OSError, match="handler") as caught,
                TimeoutScope(5, alarm),
            ):
                await library.event().wait()
            return caught.value

        calls = []
        assert library.run(main) is fault
        assert calls == [5.0]

    def test_a_timeout_error_of_the_block_is_raised(self, library):
        own_error = TimeoutError("mine")

        async def main():
            with pytest.raises(TimeoutError) as caught, timeout_scope(5):
                raise own_error
            return caught.value

        assert library.run(main) is own_error

    def test_a_timeout_error_raised_at_the_limit_is_the_blocks_own(self, library):
        own_error = TimeoutError("mine")

        async def main():
            with pytest.raises(TimeoutError) as caught, timeout_scope(5):
                try:
                    await library.event().wait()
                except library.cancelled:
                    raise own_error from None
            return caught.value

        assert library.run(main) is own_error

    def test_the_attempt_timeout_of_an_inner_block_is_raised(self, library):
        async def main():
            with (
                pytest.raises(AttemptTimeout) as caught,
                timeout_scope(5),
                timeout_scope(3),
            ):
                await library.event().wait()
            return caught.value.timeout

        assert library.run(main) == 3.0

    def test_the_attempt_timeout_of_an_outer_block_that_ends_first_is_raised(
        self, library
    ):
        async def main():
            with (
                pytest.raises(AttemptTimeout) as caught,
                timeout_scope(3),
                timeout_scope(5),
            ):
                await library.event().wait()
            return caught.value.timeout

        assert library.run(main) == 3.0

    def test_the_outer_block_wins_if_both_end_at_once(self, library):
        async def main():
            with (
                pytest.raises(AttemptTimeout) as caught,
                timeout_scope(5) as outer,
                timeout_scope(5),
            ):
                await library.event().wait()
            return caught.value.timeout, outer.timeout

        assert library.run(main) == (5.0, 5.0)

    def test_an_error_raised_during_the_cancellation_is_raised(self, library):
        async def main():
            with pytest.raises(KeyError, match="closed"), timeout_scope(5):
                try:
                    await library.event().wait()
                except library.cancelled:
                    raise KeyError("closed") from None
            await library.sleep(1)  # The cancellation is over.
            return "done"

        assert library.run(main) == "done"

    def test_a_block_that_suppresses_its_cancellation_returns(self, library):
        async def main():
            with timeout_scope(5):
                try:
                    await library.event().wait()
                except library.cancelled:
                    value = "half of it"
            await library.sleep(1)
            return value

        assert library.run(main) == "half of it"

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
    def test_a_base_exception_is_raised(self, library, kind):
        async def main():
            with pytest.raises(kind), timeout_scope(5):
                try:
                    await library.event().wait()
                finally:
                    raise kind
            return "done"

        assert library.run(main) == "done"

    @pytest.mark.parametrize("timeout", [0, -1], ids=str)
    def test_a_timeout_of_zero_ends_the_block_at_its_first_await(
        self, library, timeout
    ):
        async def main():
            reached = []
            with pytest.raises(AttemptTimeout) as caught, timeout_scope(timeout):
                reached.append("before")
                await library.sleep(1e-6)
                reached.append("after")
            with timeout_scope(timeout):
                reached.append("without an await")
            return caught.value.timeout, reached

        assert library.run(main) == (0.0, ["before", "without an await"])

    @pytest.mark.parametrize("timeout", [1e300, math.inf], ids=str)
    def test_any_timeout_is_allowed(self, loop, timeout):
        async def main():
            with timeout_scope(timeout):
                await LoopClock().sleep(0)
            return "done"

        assert loop(main) == "done"


class TestCancellationFromOutside:
    """2. Cancellation is sacred."""

    def test_is_raised_unchanged(self, library):
        async def main():
            return await cancelled_at(library, 3, length=5)

        assert library.run(main) == "cancelled"

    def test_wins_over_a_timeout_at_the_same_moment(self, library):
        async def main():
            return await cancelled_at(library, 5, length=5)

        assert library.run(main) == "cancelled"

    def test_wins_while_the_block_is_ending(self, library):
        async def main():
            return await cancelled_at(library, 6, length=5, ending=3)

        assert library.run(main) == "cancelled"

    def test_by_asyncio_timeout_is_a_timeout_error(self):
        async def main():
            for outer in (3, 5):
                with pytest.raises(TimeoutError) as caught:
                    async with asyncio.timeout(outer):
                        with timeout_scope(5):
                            await asyncio.Event().wait()
                assert type(caught.value) is TimeoutError
            return asyncio.current_task().cancelling()

        assert under_asyncio(main) == 0

    def test_an_inner_asyncio_timeout_raises_its_own_error(self):
        async def main():
            with pytest.raises(TimeoutError) as caught, timeout_scope(5):
                async with asyncio.timeout(3):
                    await asyncio.Event().wait()
            assert type(caught.value) is TimeoutError
            with pytest.raises(AttemptTimeout), timeout_scope(3):
                async with asyncio.timeout(5):
                    await asyncio.Event().wait()
            return asyncio.current_task().cancelling()

        assert under_asyncio(main) == 0

    @given(
        length=st.integers(0, 3),
        turns=st.integers(0, 3),
        cancels=st.lists(st.integers(0, 3), max_size=3),
    )
    def test_wins_in_every_race(self, length, turns, cancels):
        async def attempt():
            with timeout_scope(length):
                for _ in range(turns):
                    await asyncio.sleep(0)
                await asyncio.Event().wait()

        async def main():
            victim = asyncio.create_task(attempt())
            reached = []

            def cancel():
                if not victim.done():
                    reached.append(victim.cancel())

            for when in cancels:
                asyncio.get_running_loop().call_later(when, cancel)
            await asyncio.wait([victim])
            assert victim.cancelling() == len(reached)
            assert victim.cancelled() is bool(reached)
            assert reached or type(victim.exception()) is AttemptTimeout

        under_asyncio(main)

    def test_two_cancellations_are_counted_like_in_asyncio(self):
        async def main():
            both = asyncio.get_running_loop().call_later
            victim = asyncio.create_task(wait_in_scope(AsyncLibrary(asyncio, None), 5))
            both(5, victim.cancel)
            both(5, victim.cancel)
            await asyncio.wait([victim])
            return victim.cancelled(), victim.cancelling()

        assert under_asyncio(main) == (True, 2)


async def wait_in_scope(library, length, ending=0):
    with timeout_scope(length):
        try:
            await library.event().wait()
        finally:
            if ending and library.trio:
                with trio.CancelScope(shield=True):
                    await library.sleep(ending)
            elif ending:
                await library.sleep(ending)


async def cancelled_at(library, when, length, ending=0):
    """Cancel a block from outside, and return its outcome."""
    if library.trio:
        with trio.move_on_at(trio.current_time() + when) as scope:
            await wait_in_scope(library, length, ending)
        return "cancelled" if scope.cancelled_caught else "ended"
    victim = asyncio.create_task(wait_in_scope(library, length, ending))
    asyncio.get_running_loop().call_later(when, victim.cancel)
    await asyncio.wait([victim])
    return "cancelled" if victim.cancelled() else repr(victim.exception())


class TestGroupsOfTasks:
    def test_all_tasks_end_with_the_block(self, library):
        ended = []

        async def child(number):
            try:
                await library.event().wait()
            finally:
                ended.append(number)

        async def main():
            with pytest.raises(AttemptTimeout), timeout_scope(5):
                await group_of(library, child, 1, 2)
            return sorted(ended)

        assert library.run(main) == [1, 2]

    def test_an_error_of_a_task_is_raised(self, library):
        async def child(number):
            try:
                await library.event().wait()
            finally:
                if number == 1:
                    raise KeyError(number)

        async def main():
            with pytest.raises(BaseExceptionGroup) as caught, timeout_scope(5):
                await group_of(library, child, 1, 2)
            await library.sleep(1)
            places = traceback.extract_tb(caught.value.__traceback__)
            return repr(caught.value.exceptions), {each.name for each in places}

        errors, places = library.run(main)
        assert errors == "(KeyError(1),)"
        # The last one is of Python 3.14.
        assert places <= {"main", "__exit__", "group_of", "__aexit__", "_aexit"}


async def group_of(library, child, *numbers):
    if library.trio:
        async with trio.open_nursery() as nursery:
            for number in numbers:
                nursery.start_soon(child, number)
    else:
        async with asyncio.TaskGroup() as group:
            for number in numbers:
                group.create_task(child(number))


def test_outside_of_a_task_it_raises():
    with pytest.raises(RuntimeError):
        timeout_scope(5)


def test_a_clock_without_timers_uses_those_of_the_event_loop():
    class Own:
        now, sleep = LoopClock().now, LoopClock().sleep

    async def main():
        with (
            async_clock.use(Own()),
            pytest.raises(AttemptTimeout) as caught,
            timeout_scope(5),
        ):
            await asyncio.Event().wait()
        return caught.value.timeout

    assert under_asyncio(main) == 5.0


class FastLoop(asyncio.SelectorEventLoop):
    """A second passes at each look at its time; as Pyodide's, it rejects a past one."""

    seconds = 0

    def time(self):
        self.seconds += 1
        return self.seconds

    def call_at(self, when, callback, *args, context=None):
        if when < self.time():
            raise ValueError("Can't schedule in the past")
        return super().call_at(when, callback, *args, context=context)


class TestTimeThatPassesWhileATimerIsSet:
    def test_a_timeout_cancels_the_block(self):
        async def main():
            with pytest.raises(AttemptTimeout), timeout_scope(1.5):
                await asyncio.Event().wait()
            return "went on"

        with asyncio.Runner(loop_factory=FastLoop) as runner:
            assert runner.run(main()) == "went on"

    def test_a_wait_for_an_event_ends(self):
        waiting = aretry(schedule=[1.5], stop_event=asyncio.Event())
        fetch = waiting(AsyncScriptedFunction([OSError, "ok"]))
        with asyncio.Runner(loop_factory=FastLoop) as runner:
            assert runner.run(fetch()) == "ok"
