"""Settings of policies in transports of HTTP clients and interceptors of gRPC."""

import asyncio
import threading
import time

import grpc
import httpx
import pytest

from retrykit import ConfigError, Policy, Rule, StopReason, state_of
from retrykit.integrations.aiohttp import RetryMiddleware
from retrykit.integrations.grpc import RetryInterceptor, async_interceptors
from retrykit.integrations.httpx import AsyncRetryTransport, RetryTransport
from retrykit.integrations.requests import RetryAdapter
from retrykit.integrations.urllib3 import RetryPoolManager
from retrykit.testing import virtual_time
from tests._support.grpc_server import DOWN, OPTIONS, retrying_channel, shop, stub
from tests._support.http_clients import CLIENTS
from tests._support.optional_trio import trio
from tests._support.scripted_server import answer, serve

LATE = Policy(schedule=["30s"] * 9)
RETRYING = [RetryTransport, RetryAdapter, RetryPoolManager, RetryInterceptor]
RETRYING += [AsyncRetryTransport, RetryMiddleware, async_interceptors]
EVENTS = {"aiohttp": asyncio.Event, "httpx, asyncio": asyncio.Event}
EVENTS |= {"httpx2, asyncio": asyncio.Event}
EVENTS |= {"httpx, trio": trio.Event, "httpx2, trio": trio.Event}


@pytest.mark.parametrize("retrying", RETRYING)
def test_a_client_has_no_fallback(retrying):
    """Its callers expect a response, or an error of their client."""
    with pytest.raises(
        ConfigError, match="fallback must be left out where no function"
    ):
        retrying(Policy(fallback=None))


@pytest.mark.parametrize("retrying", RETRYING)
def test_a_client_waits_for_events_of_its_own_kind(retrying):
    others = [threading.Event(), asyncio.Event()]
    if retrying in RETRYING[:4]:
        others.reverse()
    for event, accepted in zip(others, (False, True), strict=True):
        if accepted:
            assert retrying(Policy(stop_event=event))
            continue
        with pytest.raises(ConfigError, match="stop_event must be a"):
            retrying(Policy(stop_event=event))


def fetch(client, policy, *steps, method="GET"):
    """Fetch from a server once, and return the result and the number of requests."""
    with serve(*steps) as server:
        [result] = CLIENTS[client](
            "transport", policy, 1, server.url, method, {}, lambda: None
        )
        return result, len(server.seen)


@pytest.mark.parametrize("client", CLIENTS)
def test_an_event_ends_the_wait_of_a_transport(client):
    """The last response is returned, as whenever a transport gives up."""
    stop = EVENTS.get(client, threading.Event)()

    def stop_soon(_event):
        if client in {"httpx, asyncio", "httpx2, asyncio", "aiohttp"}:
            asyncio.get_running_loop().call_later(0.05, stop.set)
        elif client in {"httpx, trio", "httpx2, trio"}:
            stop.set()
        else:
            threading.Timer(0.05, stop.set).start()

    policy = LATE.replace(stop_event=stop, observers={"retry_scheduled": stop_soon})
    begun = time.monotonic()
    result, requests = fetch(client, policy, answer(503, close=True))
    assert time.monotonic() - begun < 20
    assert (result.status, requests) == (503, 1)
    assert result.state.stop_reason is StopReason.STOPPED


@pytest.mark.parametrize("client", EVENTS)
def test_an_async_transport_awaits_observers(client):
    kinds = []

    async def record(event):
        if client in {"httpx, trio", "httpx2, trio"}:
            await trio.lowlevel.checkpoint()
        else:
            await asyncio.sleep(0)
        kinds.append(event.kind)

    policy = Policy(schedule=[0], observers=[record])
    result, _ = fetch(client, policy, answer(503, close=True), answer(close=True))
    assert result.status == 200
    assert kinds == ["attempt_started", "attempt_failed", "retry_scheduled",
                     "attempt_started", "succeeded"]  # fmt: skip


@pytest.mark.parametrize("client", CLIENTS)
def test_a_request_that_must_not_be_repeated_is_sent_once_whatever_the_limits(client):
    joined = Policy(max_attempts=3, max_elapsed="1h", limits="all")
    with virtual_time():
        result, requests = fetch(client, joined, answer(503, close=True), method="POST")
    assert (result.status, requests) == (503, 1)


@pytest.mark.parametrize("client", CLIENTS)
def test_both_limits_must_be_reached(client):
    joined = Policy(schedule=[10] * 9, max_attempts=2, max_elapsed=25, limits="all")
    with virtual_time():
        result, requests = fetch(client, joined, *[answer(503, close=True)] * 9)
    assert (result.status, requests) == (503, 3)
    assert result.state.stop_reason is StopReason.ELAPSED


class Body(httpx.ByteStream):
    closed = False

    def close(self):
        self.closed = True


def test_a_response_that_a_rule_rejects_is_closed_before_the_next_attempt():
    bodies, closed = [Body(b"tea"), Body(b"tea"), Body(b"coffee")], []

    def respond(_request):
        closed.append([each.closed for each in bodies])
        body = bodies[len(closed) - 1]
        return httpx.Response(418 if len(closed) < 3 else 200, stream=body)

    def is_teapot(response):
        return response.status_code == 418

    policy = Policy(rules=[Rule(on_result=is_teapot, schedule=[0, 0])])
    with RetryTransport(policy, httpx.MockTransport(respond)) as transport:
        response = transport.handle_request(httpx.Request("GET", "http://127.0.0.1/"))
        assert (response.status_code, bodies[2].closed) == (200, False)
    assert closed == [[False] * 3, [True, False, False], [True, True, False]]
    assert "is_teapot" in repr(transport)


@pytest.mark.parametrize("retrying", [RetryInterceptor, async_interceptors])
def test_an_interceptor_rejects_what_it_cannot_do(retrying):
    rule = Rule(on_result=callable, max_attempts=2)
    with pytest.raises(ConfigError, match="on_result must be None in an interceptor"):
        retrying(Policy(rules=[rule]))
    with pytest.raises(ConfigError, match="limits must be 'any' in an interceptor"):
        retrying(Policy(limits="all"))


def test_an_event_ends_the_wait_of_an_interceptor():
    stop = threading.Event()

    def stop_soon(_event):
        threading.Timer(0.05, stop.set).start()

    settings = {"stop_event": stop, "observers": {"retry_scheduled": stop_soon}}
    with (
        shop([DOWN]) as cart,
        retrying_channel(cart, schedule=["30s"], **settings) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        stub(channel)(b"?")
    assert (caught.value.code().name, cart.attempts()) == ("UNAVAILABLE", 1)
    assert state_of(caught.value).stop_reason is StopReason.STOPPED


def test_an_event_ends_the_wait_of_an_async_interceptor():
    async def main(cart):
        stop = asyncio.Event()

        async def stop_soon(_event):
            asyncio.get_running_loop().call_later(0.05, stop.set)

        interceptors = async_interceptors(
            schedule=["30s"], stop_event=stop, observers={"retry_scheduled": stop_soon}
        )
        async with grpc.aio.insecure_channel(
            cart.address, OPTIONS, interceptors=interceptors
        ) as channel:
            with pytest.raises(grpc.RpcError) as caught:
                await stub(channel)(b"?")
        return caught.value

    with shop([DOWN]) as cart:
        error = asyncio.run(main(cart))
    assert (error.code().name, cart.attempts()) == ("UNAVAILABLE", 1)
    assert state_of(error).stop_reason is StopReason.STOPPED
