"""Retried gRPC calls of the async client."""

import asyncio
import contextlib

import grpc
import pytest
from grpc import aio

from retrykit import StopReason, aretry, state_of
from retrykit._core.timeouts import AsArgument
from retrykit.integrations.grpc import async_interceptors, policy
from tests._support.grpc_server import DOWN, OPTIONS, Fails, shop, stub

QUICK = {"schedule": [0.001] * 9, "max_attempts": 3}


@contextlib.asynccontextmanager
async def retrying_channel(cart, *others, **settings):
    """Yield a channel with retries to a shop."""
    every = [*async_interceptors(**settings), *others]
    async with aio.insecure_channel(
        cart.address, OPTIONS, interceptors=every
    ) as channel:
        yield channel


def run(answers, client, *others, **settings):
    """Return the result of a client function, which gets a channel, and the shop."""

    async def main(cart):
        async with retrying_channel(cart, *others, **settings) as channel:
            return await client(channel)

    with shop(*answers) as cart:
        return asyncio.run(main(cart)), cart


def failure(answers, client, *others, **settings):
    """Return the error that a client function raises, and the shop."""

    async def catch(channel):
        with pytest.raises(grpc.RpcError) as remaining:
            await client(channel)
        return remaining.value

    return run(answers, catch, *others, **settings)


async def get(channel):
    return await stub(channel)(b"?")


async def list_items(channel):
    return [each async for each in stub(channel, "List")(b"?")]


def test_unavailable_is_retried():
    response, cart = run([[DOWN], [DOWN], [b"milk"]], get, **QUICK)
    assert response == b"milk"
    assert [each.previous_attempts for each in cart.seen] == [None, "1", "2"]


def test_raises_the_last_error_of_grpc_with_its_state_and_a_note():
    error, cart = failure([[DOWN]] * 3, get, **QUICK)
    assert isinstance(error, aio.AioRpcError)
    assert (error.code().name, error.details()) == ("UNAVAILABLE", "by the script")
    assert state_of(error).attempt == cart.attempts() == 3
    assert state_of(error).name == "shop.Cart/Get"
    assert error.__notes__[0].startswith("retrykit: gave up after 3 attempts in ")


@pytest.mark.parametrize("code", ["INTERNAL", "DEADLINE_EXCEEDED", "ABORTED"])
def test_other_codes_are_not_retried(code):
    error, cart = failure([[Fails(code)]], get, **QUICK)
    assert (error.code().name, cart.attempts()) == (code, 1)


@pytest.mark.parametrize(
    "answers", [[[DOWN], [b"milk"]], [[DOWN]] * 3], ids=["good", "bad"]
)
def test_the_call_object_has_the_outcome_of_the_last_attempt(answers):
    async def client(channel):
        done, call = [], stub(channel)(b"?")
        call.add_done_callback(done.append)
        assert not call.done()
        outcome = (
            await call.code(),
            await call.details(),
            await call.trailing_metadata(),
        )
        assert call.done()
        await asyncio.sleep(0)
        return outcome, done == [call], await call.initial_metadata() is not None

    (outcome, done, _), cart = run(answers, client, **QUICK)
    good = len(answers) == 2
    expected = ("OK", "") if good else ("UNAVAILABLE", "by the script")
    assert (outcome[0].name, outcome[1]) == expected
    assert done
    assert cart.attempts() == len(answers)


def test_other_interceptors_see_metadata_of_the_usual_type():
    seen = []

    class Watching(aio.UnaryUnaryClientInterceptor):
        async def intercept_unary_unary(self, continuation, details, request):
            seen.append(details)
            return await continuation(details, request)

    async def client(channel):
        metadata = (("trace", "7"),)
        return await stub(channel)(b"?", metadata=metadata, wait_for_ready=True)

    run([[DOWN], [b"milk"]], client, Watching(), **QUICK)
    assert [type(each.metadata) for each in seen] == [aio.Metadata] * 2
    assert [each.metadata["trace"] for each in seen] == ["7", "7"]
    assert [each.wait_for_ready for each in seen] == [True, True]


def test_metadata_added_by_another_interceptor_do_not_accumulate():
    class Adding(aio.UnaryUnaryClientInterceptor):
        async def intercept_unary_unary(self, continuation, details, request):
            details.metadata.add("token", "5")
            counted.append(len(details.metadata.get_all("token")))
            return await continuation(details, request)

    async def client(channel):
        return await stub(channel)(b"?", metadata=metadata)

    counted, metadata = [], aio.Metadata(("trace", "7"))
    run([[DOWN], [DOWN], [b"milk"]], client, Adding(), **QUICK)
    assert counted == [1, 1, 1]


def test_custom_call_details_are_followed():
    class Details(grpc.ClientCallDetails):
        def __init__(self, given):
            self.method, self.timeout, self.metadata = given.method, 9, ()
            self.credentials, self.wait_for_ready = given[3:]

    class Other(aio.UnaryUnaryClientInterceptor):
        async def intercept_unary_unary(self, continuation, details, request):
            return await continuation(Details(details), request)

    async def main(cart):
        every = [Other(), *async_interceptors(**QUICK)]
        target = cart.address
        async with aio.insecure_channel(target, OPTIONS, interceptors=every) as channel:
            return await get(channel)

    with shop([DOWN], [b"milk"]) as cart:
        assert asyncio.run(main(cart)) == b"milk"
    assert cart.seen[1].previous_attempts == "1"
    assert cart.seen[1].time_remaining < 10


def test_no_attempt_starts_after_the_timeout_of_its_call():
    async def client(channel):
        return await stub(channel)(b"?", timeout=5)

    error, cart = failure([[DOWN]], client, schedule=[6])
    assert state_of(error).stop_reason is StopReason.ELAPSED
    assert cart.attempts() == 1


@pytest.mark.parametrize("timeout", [0.4, AsArgument(0.4)])
def test_an_attempt_that_times_out_is_retried(timeout):
    settings = {"attempt_timeout": timeout, "schedule": [0]}
    response, _ = run([[0.9, b"late"], [b"milk"]], get, **settings)
    assert response == b"milk"
    error, _ = failure([[0.9, b"late"]], get, **settings | {"max_attempts": 1})
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED


@pytest.mark.parametrize("client", [get, list_items])
def test_only_the_listed_methods_are_retried(client):
    error, cart = failure([[DOWN]], client, methods=["shop.Cart/Add"], **QUICK)
    assert (state_of(error), cart.attempts()) == (None, 1)


@pytest.mark.parametrize("client", [get, list_items])
def test_a_cancelled_call_ends_at_once(client):
    async def cancelled(channel):
        delayed = asyncio.Event()
        observers.append(lambda event: delayed.set())
        task = asyncio.create_task(client(channel))
        await delayed.wait()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        remaining = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait_for(asyncio.gather(*remaining, return_exceptions=True), 5)

    observers = []

    def tell(event):
        for each in observers:
            each(event)

    _, cart = run([[DOWN]], cancelled, schedule=[60], observers=[tell])
    assert cart.attempts() == 1


@pytest.mark.parametrize("method", ["Get", "List"])
def test_cancelling_the_call_object_ends_the_running_attempt(method):
    async def cancelled(channel):
        call = stub(channel, method)(b"?")
        await asyncio.sleep(0.1)
        assert call.cancel()
        assert await call.code() is grpc.StatusCode.CANCELLED
        return call.cancelled()

    ended, cart = run([[0.3, b"milk"]], cancelled, **QUICK)
    assert ended
    assert cart.attempts() == 1


def test_a_stream_is_retried_until_its_first_message():
    async def client(channel):
        call = stub(channel, "List")(b"?")
        got = [each async for each in call]
        return got, await call.code()

    (got, code), cart = run([[DOWN], [DOWN], [b"milk", b"eggs"]], client, **QUICK)
    assert (got, code) == ([b"milk", b"eggs"], grpc.StatusCode.OK)
    assert [each.previous_attempts for each in cart.seen] == [None, "1", "2"]


def test_a_stream_can_be_read_message_by_message():
    async def client(channel):
        call = stub(channel, "List")(b"?")
        return [await call.read(), await call.read(), await call.read()]

    got, _ = run([[DOWN], [b"milk", b"eggs"]], client, **QUICK)
    assert got == [b"milk", b"eggs", aio.EOF]


def test_a_stream_that_has_returned_a_message_is_not_retried():
    got = []

    async def client(channel):
        async for each in stub(channel, "List")(b"?"):
            got.append(each)  # noqa: PERF401  items before an error are kept

    error, cart = failure([[DOWN], [b"milk", DOWN]], client, **QUICK)
    assert (got, cart.attempts(), error.code().name) == ([b"milk"], 2, "UNAVAILABLE")
    assert len(state_of(error).failures) == 1
    assert not hasattr(error, "__notes__")


def test_an_empty_stream_is_a_success():
    got, cart = run([[DOWN], []], list_items, **QUICK)
    assert (got, cart.attempts()) == ([], 2)


def test_a_stream_that_gives_up_raises_its_last_error():
    error, cart = failure([[DOWN]] * 3, list_items, **QUICK)
    assert state_of(error).attempt == cart.attempts() == 3


def test_an_attempt_timeout_does_not_end_streams():
    got, _ = run([[0.1, b"milk", 0.1]], list_items, attempt_timeout=0.05)
    assert got == [b"milk"]


async def send(channel, method, requests):
    call = stub(channel, method)(requests)
    return [await call] if method == "Add" else [each async for each in call]


class Counted:
    """An iterable of requests that counts those sent."""

    def __init__(self, requests):
        self.requests, self.count = iter(requests), 0

    async def __aiter__(self):
        for each in self.requests:
            self.count += 1
            yield each


@pytest.mark.parametrize("method", ["Add", "Chat"])
@pytest.mark.parametrize("kind", [list, tuple])
def test_requests_in_a_list_or_tuple_are_sent_again(method, kind):
    def client(channel):
        return send(channel, method, kind([b"milk", b"eggs"]))

    got, cart = run([[DOWN], [DOWN], [b"sold"]], client, **QUICK)
    assert got == [b"sold"]
    assert [each.requests for each in cart.seen] == [[b"milk", b"eggs"]] * 3


@pytest.mark.parametrize("method", ["Add", "Chat"])
@pytest.mark.parametrize("kind", [iter, Counted])
def test_calls_with_other_iterables_of_requests_are_not_retried(method, kind):
    def client(channel):
        return send(channel, method, kind([b"milk"]))

    error, cart = failure([[DOWN]], client, **QUICK)
    assert (state_of(error), cart.attempts()) == (None, 1)


@pytest.mark.parametrize("method", ["Add", "Chat"])
def test_requests_can_be_written_one_by_one(method):
    async def client(channel):
        call = stub(channel, method)()
        await call.write(b"milk")
        await call.write(b"eggs")
        await call.done_writing()
        return await call if method == "Add" else await call.read()

    got, cart = run([[b"sold"]], client, **QUICK)
    assert got == b"sold"
    assert cart.seen[0].requests == [b"milk", b"eggs"]


@pytest.mark.parametrize("client", [get, list_items])
def test_a_decorated_caller_does_not_multiply_retries(client):
    error, cart = failure([[DOWN]] * 9, aretry(policy(**QUICK))(client), **QUICK)
    assert cart.attempts() == 3
    assert state_of(error).stop_reason is StopReason.NESTED
