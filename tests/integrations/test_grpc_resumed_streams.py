"""gRPC streams that a generator function reads, and that go on behind a message."""

import asyncio
import random
from contextlib import aclosing

import grpc
import pytest

from retrykit import StopReason, retry, state_of, streams
from retrykit.integrations.grpc import policy
from tests._support.grpc_server import (
    DOWN,
    OPTIONS,
    Fails,
    retrying_channel,
    shop,
    stub,
)

QUICK = policy(schedule=[0] * 9, max_attempts=3)
END = 6


def answers(cart, cuts, error=DOWN):
    """Return the answers of a service of numbers, cut before some of them.

    A request is the number to begin with.
    """
    cuts = iter(cuts)
    while True:
        start, cut = int(cart.seen[-1].requests[0]), next(cuts, None)
        stop = END if cut is None else min(cut, END)
        numbers = [b"%d" % number for number in range(start, stop)]
        yield numbers if cut is None else [*numbers, error]


def behind(last, _state):
    return {"request": b"%d" % (int(last) + 1)}


MODE = streams.resume(behind)


@retry(QUICK, stream=MODE)
def read(channel, request):
    call = stub(channel, "List")(request)
    try:
        yield from call
    finally:
        call.cancel()


@retry(QUICK, stream=MODE)
async def aread(channel, request):
    call = stub(channel, "List")(request)
    try:
        async for message in call:
            yield message
    finally:
        call.cancel()


@pytest.fixture(params=["sync", "aio"])
def reading(request):
    """Return a function that reads a stream of a shop: its items, state and error."""

    def collect(cart, got):
        with grpc.insecure_channel(cart.address, OPTIONS) as channel:
            stream, error = read(channel, b"0"), None
            try:
                for each in stream:
                    got.append(int(each))
            except grpc.RpcError as raised:
                error = raised
            return stream.state, error

    async def acollect(cart, got):
        async with grpc.aio.insecure_channel(cart.address, OPTIONS) as channel:
            stream, error = aread(channel, b"0"), None
            try:
                async with aclosing(stream):
                    async for each in stream:
                        got.append(int(each))
            except grpc.RpcError as raised:
                error = raised
            return stream.state, error

    def read_all(cart, got):
        if request.param == "sync":
            return collect(cart, got)
        return asyncio.run(acollect(cart, got))

    return read_all


def test_a_stream_goes_on_behind_its_last_message_wherever_it_is_cut(reading):
    rng = random.Random(7)  # noqa: S311
    with shop() as cart:
        for _ in range(20):
            cuts = sorted(rng.choices(range(END + 1), k=rng.randrange(5)))
            # No more than two in a row at one message.
            cuts = [
                cut for index, cut in enumerate(cuts) if cut not in cuts[index + 2 :]
            ]
            cart.seen.clear()
            cart.answers, got = answers(cart, cuts), []
            state, error = reading(cart, got)
            assert (got, error) == ([*range(END)], None)
            assert [int(each.requests[0]) for each in cart.seen] == [0, *cuts]
            assert state.attempt == len(cuts) + 1
            assert state.stream.items == END


def test_a_code_that_is_not_transient_ends_a_stream(reading):
    with shop() as cart:
        cart.answers, got = answers(cart, [2, 4], Fails("INTERNAL")), []
        state, error = reading(cart, got)
    assert (got, state.attempt) == ([0, 1], 1)
    assert error.code() is grpc.StatusCode.INTERNAL
    assert state_of(error).stop_reason is StopReason.NOT_RETRYABLE


def test_failures_are_counted_from_the_last_message(reading):
    with shop() as cart:
        cart.answers, got = answers(cart, [0, 0, 2, 2, 3, 3, 3]), []
        state, error = reading(cart, got)
    assert (got, state.attempt) == ([0, 1, 2], 7)
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert state.stop_detail == "max_attempts=3 reached by failures in a row"


def test_the_service_may_request_the_delay(reading, clock):
    with shop() as cart:
        cart.answers, got = answers(cart, [2], Fails(pushback="1500")), []
        state, error = reading(cart, got)
    assert (got, error) == ([*range(END)], None)
    assert [each.delay for each in state.failures] == [1.5]


def test_a_channel_with_retries_retries_until_the_first_message_of_each_attempt():
    with (
        shop() as cart,
        retrying_channel(cart, schedule=[0] * 9, max_attempts=3) as channel,
    ):
        cart.answers = answers(cart, [0, 2, 2, 4])
        with read(channel, b"0") as stream:
            assert [int(each) for each in stream] == [*range(END)]
        assert [int(each.requests[0]) for each in cart.seen] == [0, 0, 2, 2, 4]
        # Of the stream itself: the others were retried by the channel.
        assert stream.state.attempt == 3


def test_a_stream_that_is_closed_cancels_its_call():
    with shop([b"0", 9.0]) as cart, grpc.insecure_channel(cart.address) as channel:
        with read(channel, b"0") as stream:
            assert next(stream) == b"0"
            assert not cart.ended.is_set()
        assert cart.ended.wait(4)
        cart.done.set()
    assert stream.state.status == "succeeded"


def test_a_stream_that_is_closed_cancels_its_call_of_aio():
    async def main(cart):
        async with grpc.aio.insecure_channel(cart.address) as channel:
            async with aread(channel, b"0") as stream:
                assert await anext(stream) == b"0"
                assert not cart.ended.is_set()
            assert await asyncio.to_thread(cart.ended.wait, 4)
        return stream.state

    with shop([b"0", 9.0]) as cart:
        state = asyncio.run(main(cart))
        cart.done.set()
    assert state.status == "succeeded"


def test_a_task_that_is_cancelled_cancels_its_call():
    async def main(cart):
        async with grpc.aio.insecure_channel(cart.address) as channel:
            async with asyncio.timeout(9), aread(channel, b"0") as stream:
                assert await anext(stream) == b"0"
                waiting = asyncio.ensure_future(anext(stream))
                await asyncio.sleep(0)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            assert await asyncio.to_thread(cart.ended.wait, 4)
        return stream.state

    with shop([b"0", 9.0]) as cart:
        state = asyncio.run(main(cart))
        cart.done.set()
    assert (state.attempt, state.status) == (1, "dead")
