"""Blocks that run concurrently or recursively, and blocks that are interrupted."""

import asyncio
import contextlib
import json
import threading

import pytest

from retrykit import (
    GiveUp,
    Policy,
    RetryState,
    StopReason,
    aretrying,
    current_state,
    retrying,
    state_of,
)
from retrykit._internal.clocks import sync_clock as thread_clock
from retrykit.events import RetryScheduled
from retrykit.testing import virtual_time
from tests._support.optional_trio import trio

TWICE = Policy(schedule=[0, 0, 0], on=lambda _error: True)


def fail_twice(attempts, seen, error=OSError):
    for attempt in attempts:
        with attempt:
            seen.append(current_state().attempt)
            if attempt.number < 3:
                raise error


async def afail_twice(attempts, seen, pause):
    async for attempt in attempts:
        with attempt:
            seen.append(current_state().attempt)
            await pause(0)
            if attempt.number < 3:
                raise OSError


def test_each_loop_over_one_object_is_a_new_call():
    attempts, seen = retrying(TWICE), []
    for _ in range(3):
        fail_twice(attempts, seen)
    assert seen == [1, 2, 3] * 3


def test_nested_loops_over_one_object_are_two_calls():
    attempts, seen = retrying(TWICE), []
    for outer in attempts:
        with outer:
            fail_twice(attempts, seen)
            assert current_state().attempt == outer.number
            if outer.number < 3:
                raise OSError
    assert seen == [1, 2, 3] * 3


def test_a_recursive_block_is_a_call_at_each_level():
    attempts, seen = retrying(TWICE), []

    def descend(depth):
        for attempt in attempts:
            with attempt:
                if depth:
                    descend(depth - 1)
                seen.append((depth, attempt.state.attempt, len(attempt.state.errors)))
                if attempt.number < 2:
                    raise OSError

    descend(1)
    assert seen == [(0, 1, 0), (0, 2, 1), (1, 1, 0), (0, 1, 0), (0, 2, 1), (1, 2, 1)]


@pytest.mark.needs("threads")
def test_threads_that_share_one_object_are_independent():
    attempts, barrier = retrying(TWICE), threading.Barrier(4)
    seen = [[] for _ in range(4)]
    errors = [[] for _ in range(4)]

    def work(number):
        for attempt in attempts:
            with attempt:
                barrier.wait()
                seen[number].append(attempt.number)
                errors[number] = list(current_state().errors)
                if attempt.number < 3:
                    raise OSError(number)

    threads = [threading.Thread(target=work, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [[1, 2, 3]] * 4
    assert [{e.args for e in own} for own in errors] == [{(n,)} for n in range(4)]


async def in_asyncio(attempts, seen):
    await asyncio.gather(*(afail_twice(attempts, own, asyncio.sleep) for own in seen))


async def in_trio(attempts, seen):
    async with trio.open_nursery() as nursery:
        for own in seen:
            nursery.start_soon(afail_twice, attempts, own, trio.sleep)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_tasks_that_share_one_object_are_independent(backend):
    attempts, seen = aretrying(TWICE), [[] for _ in range(4)]
    if backend == "asyncio":
        asyncio.run(in_asyncio(attempts, seen))
    else:
        trio.run(in_trio, attempts, seen)
    assert seen == [[1, 2, 3]] * 4


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_base_exception_leaves_the_block_at_once(kind):
    error, seen = kind(), []
    with pytest.raises(kind) as caught:
        fail_twice(retrying(TWICE), seen, error)
    assert caught.value is error
    assert seen == [1]
    assert state_of(error).stop_reason is StopReason.CANCELLED


def test_ctrl_c_leaves_the_block_while_it_sleeps():
    stop = KeyboardInterrupt()

    class Clock:
        now = staticmethod(lambda: 0.0)

        def sleep(self, _delay):
            raise stop

    with thread_clock.use(Clock()), pytest.raises(KeyboardInterrupt) as caught:
        fail_twice(retrying(TWICE), [])
    assert caught.value is stop
    assert state_of(stop).stop_reason is StopReason.CANCELLED


async def return_last_result(operation):
    result = "stale"
    async for attempt in aretrying(TWICE):
        with attempt:
            result = await operation()
    return result


def test_a_cancelled_asyncio_task_does_not_return_a_stale_value():
    async def main():
        entered = asyncio.Event()

        async def operation():
            entered.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(return_last_result(operation))
        await entered.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert asyncio.run(main())


def test_a_cancelled_trio_task_does_not_return_a_stale_value():
    returned = []

    async def main():
        with trio.CancelScope() as scope:

            async def operation():
                scope.cancel()
                await trio.lowlevel.checkpoint()

            returned.append(await return_last_result(operation))
        return scope.cancelled_caught

    assert trio.run(main)
    assert returned == []


def test_an_asyncio_task_is_cancelled_while_it_sleeps():
    async def main():
        asleep = asyncio.Event()
        policy = Policy(
            schedule=["1h"],
            observers=[lambda event: hasattr(event, "delay") and asleep.set()],
        )
        task = asyncio.create_task(afail_twice(aretrying(policy), [], asyncio.sleep))
        await asleep.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return task.cancelled(), state_of(caught.value)

    cancelled, state = asyncio.run(main())
    assert cancelled
    assert (state.stop_reason, state.next_delay) == (StopReason.CANCELLED, 3600.0)


def test_a_cancelled_block_continues_from_its_stored_state():
    policy, seen = Policy(schedule=[1, 2, 4]), []
    errors = iter([OSError, KeyboardInterrupt, OSError])

    def fail(attempts):
        for attempt in attempts:
            with attempt:
                seen.append(attempt.number)
                raise next(errors, GiveUp)

    with virtual_time() as clock:
        with pytest.raises(KeyboardInterrupt) as caught:
            fail(retrying(policy))
        stored = json.dumps(state_of(caught.value).to_dict())
        with pytest.raises(GiveUp):
            fail(retrying(policy, state=RetryState.from_dict(json.loads(stored))))
    assert seen == [1, 2, 2, 3]
    assert clock.sleeps == [1.0, 2.0]


def test_an_async_generator_may_be_closed_in_another_context():
    async def rows():
        async for attempt in aretrying(TWICE):
            with attempt:
                yield current_state().attempt

    async def main():
        generator = rows()
        first = await anext(generator)
        await asyncio.create_task(generator.aclose())
        return first

    assert asyncio.run(main()) == 1


def test_an_error_inside_of_a_generator_is_retried():
    def rows():
        for attempt in retrying(TWICE):
            with attempt:
                yield attempt.number
                if attempt.number < 3:
                    raise OSError

    assert list(rows()) == [1, 2, 3]
    with pytest.raises(LookupError):
        current_state()


def test_a_closed_generator_leaves_no_call_behind():
    def rows():
        for attempt in retrying(TWICE):
            with attempt:
                yield attempt.number

    generator = rows()
    assert next(generator) == 1
    generator.close()
    with pytest.raises(LookupError):
        current_state()


def test_a_started_loop_is_its_own_iterator():
    async def main():
        loop = aiter(aretrying())
        return aiter(loop) is loop

    loop = iter(retrying())
    assert iter(loop) is loop
    assert asyncio.run(main())


@pytest.mark.parametrize(
    "changes",
    [
        {"on": lambda _: interrupt()},
        {"on_result": lambda _: interrupt()},
        {
            "observers": [
                lambda event: isinstance(event, RetryScheduled) and interrupt()
            ]
        },
    ],
    ids=["on", "on_result", "observer"],
)
def test_ctrl_c_in_a_condition_or_observer_ends_the_block(changes):
    def perform():
        for attempt in retrying(TWICE, **changes):
            with attempt:
                attempt.set_result(None)
                if "on_result" not in changes:
                    raise OSError

    with pytest.raises(KeyboardInterrupt) as caught:
        perform()
    assert state_of(caught.value).stop_reason is StopReason.CANCELLED


def interrupt():
    raise KeyboardInterrupt
