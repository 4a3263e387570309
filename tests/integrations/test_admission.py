"""Limits in the policy of a client: each request is asked for, and judged."""

import asyncio

import aiohttp
import httpx
import pytest
import requests

from retrykit import CircuitOpenError, state_of
from retrykit.integrations.aiohttp import RetryMiddleware
from retrykit.integrations.httpx import AsyncRetryTransport, RetryTransport
from retrykit.integrations.requests import RetryAdapter
from retrykit.integrations.urllib3 import RetryPoolManager
from retrykit.limits import CircuitBreaker, Registry
from tests._support.scripted_server import answer, serve

UNAVAILABLE = answer(503, [], b"", close=True)
OK = answer(200, [], b"", close=True)


def by_httpx(url, settings):
    client = httpx.Client(transport=RetryTransport(**settings))
    return lambda: client.get(url)


def by_async_httpx(url, settings):
    async def get():
        async with httpx.AsyncClient(
            transport=AsyncRetryTransport(**settings)
        ) as client:
            return await client.get(url)

    return lambda: asyncio.run(get())


def by_requests(url, settings):
    session = requests.Session()
    session.mount("http://", RetryAdapter(**settings))
    return lambda: session.get(url)


def by_urllib3(url, settings):
    pool = RetryPoolManager(**settings)
    return lambda: pool.request("GET", url)


def by_aiohttp(url, settings):
    async def get():
        retrying = RetryMiddleware(**settings)
        async with (
            aiohttp.ClientSession(middlewares=[retrying]) as session,
            session.get(url) as response,
        ):
            return response

    return lambda: asyncio.run(get())


every_client = pytest.mark.parametrize(
    "requests_by", [by_httpx, by_async_httpx, by_requests, by_urllib3, by_aiohttp]
)


@every_client
def test_a_client_asks_its_breaker(requests_by):
    breaker = CircuitBreaker(consecutive_failures=2, name="api")
    settings = {"schedule": [0, 0, 0], "admission": [breaker]}
    with serve(UNAVAILABLE, UNAVAILABLE, OK) as server:
        get = requests_by(server.url, settings)
        response = get()
        status = getattr(response, "status_code", None) or response.status
        assert status == 503
        assert "circuit breaker 'api' is open" in state_of(response).describe()
        with pytest.raises(CircuitOpenError, match="as 2 calls in a row failed"):
            get()
        breaker.close()
        response = get()
    status = getattr(response, "status_code", None) or response.status
    assert status == 200
    assert breaker.metrics[:2] == (1, 0)


@every_client
def test_a_client_has_a_breaker_for_each_host(requests_by):
    hosts = Registry(lambda: CircuitBreaker(consecutive_failures=1))
    settings = {"schedule": [0, 0], "admission": [hosts]}
    with serve(UNAVAILABLE, OK) as server:
        requests_by(server.url, settings)()
        with pytest.raises(CircuitOpenError, match=r"'127\.0\.0\.1' is open"):
            requests_by(server.url, settings)()
        other = server.url.replace("127.0.0.1", "localhost")
        requests_by(other, settings)()
    assert hosts.states() == {"127.0.0.1": "open", "localhost": "closed"}
