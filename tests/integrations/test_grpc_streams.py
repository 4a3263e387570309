"""Retried gRPC streams of the sync client: retries end with the first message."""

import gc
import threading
import weakref

import grpc
import pytest

from retrykit import StopReason, retry, state_of
from retrykit.integrations.grpc import policy
from retrykit.testing import virtual_time
from tests._support.grpc_server import DOWN, Fails, retrying_channel, shop, stub

QUICK = {"schedule": [0.001] * 9, "max_attempts": 3}


def test_a_stream_is_retried_until_its_first_message():
    with (
        shop([DOWN], [DOWN], [b"milk", b"eggs"]) as cart,
        retrying_channel(cart, **QUICK) as channel,
    ):
        call = stub(channel, "List")(b"?")
        assert list(call) == [b"milk", b"eggs"]
        assert isinstance(call, grpc.Call)
        assert call.code() is grpc.StatusCode.OK
    assert [each.previous_attempts for each in cart.seen] == [None, "1", "2"]
    assert len(state_of(call).failures) == 2


def test_a_stream_that_has_returned_a_message_is_not_retried():
    with (
        shop([DOWN], [b"milk", DOWN]) as cart,
        retrying_channel(cart, **QUICK) as channel,
    ):
        call, got = stub(channel, "List")(b"?"), []
        with pytest.raises(grpc.RpcError) as caught:
            got.extend(call)
            pytest.fail("it has an end")
    error = caught.value
    assert (next(iter(cart.seen)).method, cart.attempts()) == ("List", 2)
    assert (error.code().name, error.details()) == ("UNAVAILABLE", "by the script")
    assert len(state_of(error).failures) == 1
    assert not hasattr(error, "__notes__")


def test_a_decorated_caller_retries_a_stream_that_breaks_off():
    with (
        shop([b"milk", DOWN], [DOWN], [b"milk", b"eggs"]) as cart,
        retrying_channel(cart, **QUICK) as channel,
    ):
        fetch = retry(policy(**QUICK))(lambda: list(stub(channel, "List")(b"?")))
        assert fetch() == [b"milk", b"eggs"]


def test_a_server_that_stops_during_a_stream_ends_it():
    with shop([b"milk", 5.0]) as cart, retrying_channel(cart, **QUICK) as channel:
        call = stub(channel, "List")(b"?")
        assert next(call) == b"milk"
        cart.server.stop(None)
        with pytest.raises(grpc.RpcError) as caught:
            next(call)
        cart.done.set()
    assert state_of(caught.value).stop_reason is StopReason.SUCCEEDED


def test_an_empty_stream_is_a_success():
    with shop([DOWN], []) as cart, retrying_channel(cart, **QUICK) as channel:
        call = stub(channel, "List")(b"?")
        assert list(call) == list(call) == []
    assert state_of(call).stop_reason is StopReason.SUCCEEDED


def test_a_stream_that_gives_up_raises_its_last_error_again():
    with shop(*[[DOWN]] * 3) as cart, retrying_channel(cart, **QUICK) as channel:
        call = stub(channel, "List")(b"?")
        for _ in range(2):
            with pytest.raises(grpc.RpcError) as caught:
                next(call)
    assert state_of(caught.value).attempt == cart.attempts() == 3


def test_a_stream_starts_before_it_is_read():
    with shop([b"milk"]) as cart, retrying_channel(cart, **QUICK) as channel:
        call = stub(channel, "List")(b"?")
        assert cart.begun.wait(9)
        assert list(call) == [b"milk"]


def test_the_timeout_of_a_stream_starts_with_its_call():
    with (
        shop([DOWN]) as cart,
        retrying_channel(cart, schedule=[0.4]) as channel,
    ):
        call = stub(channel, "List")(b"?", timeout=0.5)
        threading.Event().wait(0.15)
        with pytest.raises(grpc.RpcError) as caught:
            next(call)
    assert state_of(caught.value).stop_reason is StopReason.ELAPSED


def test_each_attempt_of_a_stream_has_its_remaining_time():
    with (
        shop([DOWN], [b"milk"]) as cart,
        retrying_channel(cart, schedule=[40]) as channel,
        virtual_time(),
    ):
        assert list(stub(channel, "List")(b"?", timeout=100)) == [b"milk"]
    assert [each.time_remaining for each in cart.seen] == pytest.approx(
        [100, 60], abs=3
    )


def test_an_attempt_timeout_does_not_end_streams():
    with (
        shop([DOWN], [0.1, b"milk", 0.1, b"eggs"]) as cart,
        retrying_channel(cart, attempt_timeout=0.05, schedule=[0]) as channel,
    ):
        assert list(stub(channel, "List")(b"?")) == [b"milk", b"eggs"]


def cancelled_at(moment):
    """Return the error of a stream cancelled at a moment, and its shop."""
    calls = []

    def cancel_when(event):
        if type(event).__name__ == moment:
            calls[0].cancel()

    class CancelBetween(grpc.UnaryStreamClientInterceptor):
        def intercept_unary_stream(self, continuation, details, request):
            if calls and moment == "between":
                calls[0].cancel()
            return continuation(details, request)

    settings = {"on": grpc.RpcError, "observers": [cancel_when], **QUICK}
    with (
        shop([DOWN], [0.2, b"milk"]) as cart,
        retrying_channel(cart, CancelBetween(), **settings) as channel,
    ):
        calls.append(stub(channel, "List")(b"?"))
        with pytest.raises(grpc.RpcError) as caught:
            next(calls[0])
        cart.done.set()
    return caught.value, cart


@pytest.mark.parametrize("moment", ["AttemptStarted", "RetryScheduled"])
def test_a_cancelled_stream_is_not_retried(moment):
    error, cart = cancelled_at(moment)
    assert state_of(error).stop_reason is StopReason.GAVE_UP
    assert cart.attempts() <= 1


def test_a_stream_cancelled_during_a_retry_ends():
    error, _ = cancelled_at("between")
    assert error.code() is grpc.StatusCode.CANCELLED
    assert state_of(error).stop_reason is StopReason.GAVE_UP


@pytest.mark.parametrize("method", ["Add", "Chat"])
@pytest.mark.parametrize("kind", [list, tuple])
def test_requests_in_a_list_or_tuple_are_sent_again(method, kind):
    requests = kind([b"milk", b"eggs"])
    with (
        shop([DOWN], [DOWN], [b"sold"]) as cart,
        retrying_channel(cart, **QUICK) as channel,
    ):
        assert b"sold" in [*stub(channel, method)(requests), b"sold"]
        assert [each.requests for each in cart.seen] == [[b"milk", b"eggs"]] * 3


class Counted:
    """An iterable of requests that counts those sent."""

    def __init__(self, requests):
        self.requests, self.count = iter(requests), 0

    def __iter__(self):
        for each in self.requests:
            self.count += 1
            yield each


@pytest.mark.parametrize("method", ["Add", "Chat"])
@pytest.mark.parametrize("kind", [iter, Counted])
def test_other_iterables_of_requests_are_sent_once(method, kind):
    with (
        shop([DOWN]) as cart,
        retrying_channel(cart, **QUICK) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        list(stub(channel, method)(kind([b"milk"])))
    assert cart.attempts() == 1
    note = "only requests in a sequence, such as a list, can be sent again"
    assert caught.value.__notes__ == [f"retrykit: gave up after 1 attempt: {note}"]


def test_an_error_that_is_not_retryable_has_no_note_about_its_requests():
    with (
        shop([Fails("INTERNAL")]) as cart,
        retrying_channel(cart, **QUICK) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        stub(channel, "Add")(iter([b"milk"]))
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("method", ["Add", "Chat"])
def test_only_the_listed_methods_with_many_requests_are_retried(method):
    with (
        shop([DOWN]) as cart,
        retrying_channel(cart, methods=["shop.Cart/Get"], **QUICK) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        list(stub(channel, method)([b"milk"]))
    assert (cart.attempts(), state_of(caught.value)) == (1, None)


def test_finished_attempts_are_freed_with_their_stream():
    calls = []

    class Watching(grpc.UnaryStreamClientInterceptor):
        def intercept_unary_stream(self, continuation, details, request):
            call = continuation(details, request)
            calls.append(weakref.ref(call))
            return call

    with (
        shop([DOWN], [b"milk"]) as cart,
        retrying_channel(cart, Watching(), **QUICK) as channel,
    ):
        assert list(stub(channel, "List")(b"?")) == [b"milk"]
        # An error of a stream is its call object, which holds itself.
        gc.collect()
        assert [each() for each in calls] == [None, None]
