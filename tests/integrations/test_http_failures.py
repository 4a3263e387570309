"""The failures of real HTTP clients, as the predicate of all clients sees them."""

import asyncio
import urllib.request

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3

from retrykit import Policy
from retrykit.conditions import HttpFailures
from tests._support.ports import free_port
from tests._support.scripted_server import answer, close, cut, hang, reset, serve

BUSY = HttpFailures([503])
TWICE = Policy(on=BUSY, on_result=BUSY, schedule=[0])

QUICK = 0.2
"""The timeout of the clients, in seconds."""


def fetch_with_httpx(url, library=httpx):
    with library.Client(timeout=QUICK, trust_env=False) as client:
        client.get(url).raise_for_status()


async def fetch_with_async_httpx(url):
    async with httpx.AsyncClient(timeout=QUICK, trust_env=False) as client:
        (await client.get(url)).raise_for_status()


async def fetch_with_aiohttp(url):
    timeout = aiohttp.ClientTimeout(QUICK)
    async with aiohttp.ClientSession(timeout=timeout, raise_for_status=True) as session:
        async with session.get(url) as response:
            await response.read()


def fetch_with_requests(url):
    with requests.Session() as session:
        session.trust_env = False
        session.get(url, timeout=QUICK).raise_for_status()


def fetch_with_urllib3(url):
    with urllib3.PoolManager(timeout=QUICK) as pool:
        return pool.request("GET", url, retries=0)


def fetch_with_urllib(url):
    handler = urllib.request.ProxyHandler({})
    with urllib.request.build_opener(handler).open(url, timeout=QUICK) as response:
        response.read()


CLIENTS = {
    "httpx": fetch_with_httpx,
    "httpx, asyncio": lambda url: asyncio.run(fetch_with_async_httpx(url)),
    "httpx2": lambda url: fetch_with_httpx(url, httpx2),
    "aiohttp": lambda url: asyncio.run(fetch_with_aiohttp(url)),
    "requests": fetch_with_requests,
    "urllib3": fetch_with_urllib3,
    "urllib": fetch_with_urllib,
}


@pytest.fixture(params=CLIENTS)
def outcome_of(request):
    """Return the function that returns the response or the error of a client."""

    def outcome_of(url):
        try:
            return CLIENTS[request.param](url)
        except Exception as error:  # noqa: BLE001
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            return error

    return outcome_of


def failures_in(outcome):
    kinds = {
        "5xx": HttpFailures(["5xx"]),
        "lost": HttpFailures(connections=True),
        "unprocessed": HttpFailures(unprocessed=True),
    }
    return [name for name, failed in kinds.items() if failed(outcome)]


def test_a_status_is_a_failure(outcome_of):
    with serve(answer(503)) as server:
        assert failures_in(outcome_of(server.url)) == ["5xx"]


def test_another_status_is_none(outcome_of):
    with serve(answer(404)) as server:
        assert failures_in(outcome_of(server.url)) == []


def test_a_refused_connection_was_not_processed(outcome_of):
    url = f"http://127.0.0.1:{free_port()}/"
    assert failures_in(outcome_of(url)) == ["lost", "unprocessed"]


STEPS = {"reset": reset(), "close": close(), "cut": cut(10), "hang": hang()}


@pytest.mark.parametrize("step", STEPS)
def test_a_lost_connection_may_have_been_processed(outcome_of, step):
    with serve(STEPS[step]) as server:
        assert failures_in(outcome_of(server.url)) == ["lost"]


def test_a_rejected_response_of_aiohttp_gives_its_connection_back():
    async def main(url):
        async with aiohttp.ClientSession() as session:
            response = await TWICE.acall(session.get, url)
            assert (response.status, await response.read()) == (200, b"ok")

    with serve(answer(503), answer()) as server:
        asyncio.run(main(server.url))


def test_a_rejected_stream_of_httpx_is_closed():
    seen = []

    async def send(client, url):
        response = await client.send(client.build_request("GET", url), stream=True)
        seen.append(response)
        return response

    async def main(url):
        async with httpx.AsyncClient(trust_env=False) as client:
            response = await TWICE.acall(send, client, url)
            assert [each.is_closed for each in seen] == [True, False]
            assert await response.aread() == b"ok"

    with serve(answer(503), answer()) as server:
        asyncio.run(main(server.url))
