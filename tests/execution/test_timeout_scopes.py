"""Blocks of a task that end when their time is up, and what goes out of them."""

import asyncio
import math
import traceback

import pytest
import trio
from hypothesis import given, strategies as st

from retrykit._internal.loop_clock import LoopClock, async_clock
from retrykit.errors import AttemptTimeout
from retrykit.execution.attempt_timeout import TimeoutScope, timeout_scope
from tests._support.side import Under, under_asyncio


async def now():
    return LoopClock().now()


class TestWhatItIsLeftBy:
    def test_its_value_if_there_is_time(self, under):
        async def main():
            with timeout_scope(5) as block:
                await under.sleep(4.9)
                value = "value"
            await under.sleep(10)
            return value, block.timeout

        assert under.run(main) == ("value", 5.0)

    def test_an_error_of_its_own_when_time_is_up(self, under):
        async def main():
            began = await now()
            with pytest.raises(AttemptTimeout) as caught, timeout_scope(5):
                await under.event().wait()
            return caught.value.timeout, await now() - began

        assert under.run(main) == (5.0, pytest.approx(5.0))

    def test_the_error_that_its_alarm_rings_with(self, under):
        fault = OSError("of a signal handler")

        def alarm(delay, ring):
            ring(fault)
            return lambda: told.append(delay)

        async def main():
            with (
                pytest.raises(OSError, match="handler") as caught,
                TimeoutScope(5, alarm),
            ):
                await under.event().wait()
            return caught.value

        told = []
        assert under.run(main) is fault
        assert told == [5.0]

    def test_a_timeout_error_of_the_users_is_the_users(self, under):
        mine = TimeoutError("mine")

        async def main():
            with pytest.raises(TimeoutError) as caught, timeout_scope(5):
                raise mine
            return caught.value

        assert under.run(main) is mine

    def test_a_timeout_error_of_the_users_is_the_users_at_the_same_moment(self, under):
        mine = TimeoutError("mine")

        async def main():
            with pytest.raises(TimeoutError) as caught, timeout_scope(5):
                try:
                    await under.event().wait()
                except under.cancelled:
                    raise mine from None
            return caught.value

        assert under.run(main) is mine

    def test_an_attempt_timeout_of_a_block_inside_is_that_one(self, under):
        async def main():
            with (
                pytest.raises(AttemptTimeout) as caught,
                timeout_scope(5),
                timeout_scope(3),
            ):
                await under.event().wait()
            return caught.value.timeout

        assert under.run(main) == 3.0

    def test_its_own_if_it_is_over_before_the_one_inside(self, under):
        async def main():
            with (
                pytest.raises(AttemptTimeout) as caught,
                timeout_scope(3),
                timeout_scope(5),
            ):
                await under.event().wait()
            return caught.value.timeout

        assert under.run(main) == 3.0

    def test_the_outer_one_if_both_are_over_at_once(self, under):
        async def main():
            with (
                pytest.raises(AttemptTimeout) as caught,
                timeout_scope(5) as outer,
                timeout_scope(5),
            ):
                await under.event().wait()
            return caught.value.timeout, outer.timeout

        assert under.run(main) == (5.0, 5.0)

    def test_the_error_that_it_makes_of_its_cancellation(self, under):
        async def main():
            with pytest.raises(KeyError, match="closed"), timeout_scope(5):
                try:
                    await under.event().wait()
                except under.cancelled:
                    raise KeyError("closed") from None
            await under.sleep(1)  # Nothing of the cancellation is left.
            return "done"

        assert under.run(main) == "done"

    def test_the_value_that_it_returns_in_spite_of_its_cancellation(self, under):
        async def main():
            with timeout_scope(5):
                try:
                    await under.event().wait()
                except under.cancelled:
                    value = "half of it"
            await under.sleep(1)
            return value

        assert under.run(main) == "half of it"

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
    def test_what_ends_the_program(self, under, kind):
        async def main():
            with pytest.raises(kind), timeout_scope(5):
                try:
                    await under.event().wait()
                finally:
                    raise kind
            return "done"

        assert under.run(main) == "done"

    @pytest.mark.parametrize("timeout", [0, -1], ids=str)
    def test_no_time_ends_it_at_its_first_await(self, under, timeout):
        async def main():
            reached = []
            with pytest.raises(AttemptTimeout) as caught, timeout_scope(timeout):
                reached.append("before")
                await under.sleep(1e-6)
                reached.append("after")
            with timeout_scope(timeout):
                reached.append("without an await")
            return caught.value.timeout, reached

        assert under.run(main) == (0.0, ["before", "without an await"])

    @pytest.mark.parametrize("timeout", [1e300, math.inf], ids=str)
    def test_any_length_is_allowed(self, loop, timeout):
        async def main():
            with timeout_scope(timeout):
                await LoopClock().sleep(0)
            return "done"

        assert loop(main) == "done"


class TestCancellationFromOutside:
    """2. Cancellation is sacred."""

    def test_stays_what_it_is(self, under):
        async def main():
            return await cancelled_at(under, 3, length=5)

        assert under.run(main) == "cancelled"

    def test_comes_first_at_the_same_moment(self, under):
        async def main():
            return await cancelled_at(under, 5, length=5)

        assert under.run(main) == "cancelled"

    def test_comes_first_while_the_block_is_ending(self, under):
        async def main():
            return await cancelled_at(under, 6, length=5, ending=3)

        assert under.run(main) == "cancelled"

    def test_is_the_same_for_a_timeout_of_the_users(self):
        async def main():
            for outer in (3, 5):
                with pytest.raises(TimeoutError) as caught:
                    async with asyncio.timeout(outer):
                        with timeout_scope(5):
                            await asyncio.Event().wait()
                assert type(caught.value) is TimeoutError
            return asyncio.current_task().cancelling()

        assert under_asyncio(main) == 0

    def test_a_timeout_of_the_users_inside_is_the_users(self):
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
    def test_comes_first_in_every_race(self, length, turns, cancels):
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

    def test_two_of_them_are_counted_as_asyncio_counts_them(self):
        async def main():
            both = asyncio.get_running_loop().call_later
            victim = asyncio.create_task(in_limit(Under(asyncio, None), 5))
            both(5, victim.cancel)
            both(5, victim.cancel)
            await asyncio.wait([victim])
            return victim.cancelled(), victim.cancelling()

        assert under_asyncio(main) == (True, 2)


async def in_limit(under, length, ending=0):
    with timeout_scope(length):
        try:
            await under.event().wait()
        finally:
            if ending and under.trio:
                with trio.CancelScope(shield=True):
                    await under.sleep(ending)
            elif ending:
                await under.sleep(ending)


async def cancelled_at(under, when, length, ending=0):
    """Cancel a block from outside, and return what came of it."""
    if under.trio:
        with trio.move_on_at(trio.current_time() + when) as scope:
            await in_limit(under, length, ending)
        return "cancelled" if scope.cancelled_caught else "ended"
    victim = asyncio.create_task(in_limit(under, length, ending))
    asyncio.get_running_loop().call_later(when, victim.cancel)
    await asyncio.wait([victim])
    return "cancelled" if victim.cancelled() else repr(victim.exception())


class TestGroupsOfTasks:
    def test_all_end_with_the_block(self, under):
        ended = []

        async def child(number):
            try:
                await under.event().wait()
            finally:
                ended.append(number)

        async def main():
            with pytest.raises(AttemptTimeout), timeout_scope(5):
                await group_of(under, child, 1, 2)
            return sorted(ended)

        assert under.run(main) == [1, 2]

    def test_an_error_that_one_ends_with_goes_out(self, under):
        async def child(number):
            try:
                await under.event().wait()
            finally:
                if number == 1:
                    raise KeyError(number)

        async def main():
            with pytest.raises(BaseExceptionGroup) as caught, timeout_scope(5):
                await group_of(under, child, 1, 2)
            await under.sleep(1)
            places = traceback.extract_tb(caught.value.__traceback__)
            return repr(caught.value.exceptions), {each.name for each in places}

        kept, places = under.run(main)
        assert kept == "(KeyError(1),)"
        assert places <= {"main", "__exit__", "group_of", "__aexit__"}


async def group_of(under, child, *numbers):
    if under.trio:
        async with trio.open_nursery() as nursery:
            for number in numbers:
                nursery.start_soon(child, number)
    else:
        async with asyncio.TaskGroup() as group:
            for number in numbers:
                group.create_task(child(number))


def test_outside_of_a_task_there_is_no_limit():
    with pytest.raises(RuntimeError):
        timeout_scope(5)


def test_a_clock_without_limits_of_its_own_leaves_them_to_the_loop():
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
