"""Faults of the connections of gRPC calls."""

import asyncio

import grpc
import pytest
from grpc import aio

from retrykit import StopReason, observe, state_of
from retrykit.events import AttemptFailed
from retrykit.integrations.grpc import RetryInterceptor, async_interceptors
from retrykit.testing import record
from tests._support.fault_proxy import (
    cut_down,
    hang,
    proxy,
    refused,
    reset_at_once,
    through,
)
from tests._support.grpc_server import OPTIONS, shop, stub

# A channel waits by itself before it connects again: as shortly as it can here.
SOON = [
    *OPTIONS,
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 100),
]

PATIENT = {"schedule": [0.15] * 40, "max_attempts": 41}

PLANS = {
    "refused": [refused(), through()],
    "reset at once": [reset_at_once(), through()],
    "cut before the first byte": [cut_down(0), through()],
    "cut in the greeting": [cut_down(5), through()],
    "reset in the greeting": [cut_down(5, reset=True), through()],
}


def sync_response(address, **settings):
    """Return the response to a call of the sync client."""
    with grpc.insecure_channel(address, SOON) as bare:
        channel = grpc.intercept_channel(bare, RetryInterceptor(**settings))
        return stub(channel)(b"shoes")


def async_response(address, **settings):
    """Return the response to a call of the async client."""

    async def main():
        again = async_interceptors(**settings)
        async with aio.insecure_channel(address, SOON, interceptors=again) as channel:
            return await stub(channel)(b"shoes")

    return asyncio.run(main())


@pytest.fixture(params=[sync_response, async_response], ids=["blocking", "awaited"])
def call(request):
    return request.param


@pytest.mark.parametrize("plan", PLANS)
def test_is_retried_until_the_server_is_reached(call, plan):
    with (
        shop([b"a pair"], [b"a pair"]) as cart,
        proxy(int(cart.address.rpartition(":")[2]), *PLANS[plan]) as faults,
        observe(
            lambda event: isinstance(event, AttemptFailed) and faults.attempt_failed()
        ),
        record() as recorded,
    ):
        assert call(f"127.0.0.1:{faults.port}", **PATIENT) == b"a pair"
    [state] = recorded.calls
    assert state.stop_reason is StopReason.SUCCEEDED
    assert {error.code().name for error in state.errors} == {"UNAVAILABLE"}
    assert {seen.previous_attempts for seen in cart.seen} == {str(state.attempt - 1)}


def test_a_hanging_server_raises_the_error_of_grpc(call):
    with shop() as cart:
        with proxy(int(cart.address.rpartition(":")[2]), hang()) as faults:
            with pytest.raises(grpc.RpcError) as caught:
                settings = {"schedule": [0, 0], "attempt_timeout": "100ms"}
                call(f"127.0.0.1:{faults.port}", **settings)
    # The channel or the attempt is the first to lose its patience.
    assert caught.value.code().name in {"DEADLINE_EXCEEDED", "UNAVAILABLE"}
    state = state_of(caught.value)
    assert (state.attempt, state.stop_reason) == (3, StopReason.SCHEDULE_ENDED)
    assert cart.seen == []


def test_makes_more_than_the_five_attempts_of_grpc_itself(call):
    with proxy(1, refused()) as faults:
        with pytest.raises(grpc.RpcError) as caught:
            call(f"127.0.0.1:{faults.port}", schedule=[0] * 7, max_attempts=8)
    assert state_of(caught.value).attempt == 8
