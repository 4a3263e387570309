"""Requests of an HTTP client that retries, in a function that is retried."""

import asyncio

import aiohttp
import httpx
import pytest
import requests

from retrykit import Policy, aretry, retry
from retrykit._core import ineffective
from retrykit.integrations.aiohttp import RetryMiddleware
from retrykit.integrations.httpx import RetryTransport
from retrykit.integrations.requests import RetryAdapter
from retrykit.integrations.urllib3 import RetryPoolManager
from tests._support.scripted_server import answer, serve

UNAVAILABLE = answer(503, [], b"", close=True)
THREE = Policy(on=Exception, schedule=[0, 0], name="fetch")


class ShopError(Exception):
    """An error that has neither the response nor the error of a client."""


def check(status):
    if status == 503:
        raise ShopError


@pytest.fixture(autouse=True)
def _no_warnings():
    ineffective.warned.clear()


def by_httpx(url, raises, policy):
    with httpx.Client(transport=RetryTransport(schedule=[0, 0])) as client:

        @retry(policy)
        def fetch():
            raises(client.get(url))

        fetch()


def by_requests(url, raises, policy):
    with requests.Session() as session:
        session.mount("http://", RetryAdapter(schedule=[0, 0]))

        @retry(policy)
        def fetch():
            raises(session.get(url))

        fetch()


def by_urllib3(url, raises, policy):
    pool = RetryPoolManager(schedule=[0, 0])

    @retry(policy)
    def fetch():
        raises(pool.request("GET", url))

    fetch()


def by_aiohttp(url, raises, policy):
    async def main():
        retrying = RetryMiddleware(schedule=[0, 0])
        async with aiohttp.ClientSession(middlewares=[retrying]) as session:

            @aretry(policy)
            async def fetch():
                async with session.get(url) as response:
                    raises(response)

            await fetch()

    asyncio.run(main())


CLIENTS = {
    "aiohttp": by_aiohttp,
    "httpx": by_httpx,
    "requests": by_requests,
    "urllib3": by_urllib3,
}


def status_of(response):
    names = "status", "status_code"
    return next(getattr(response, name) for name in names if hasattr(response, name))


def an_error_of_its_own(response):
    check(status_of(response))


def raise_for_status(response):
    response.raise_for_status()


def from_the_error_of_the_client(response):
    try:
        response.raise_for_status()
    except Exception as error:
        raise ShopError from error


HAVE_STATUS_ERRORS = ["aiohttp", "httpx", "requests"]
PRODUCT = "fetch: GET 127.0.0.1 makes up to 3 requests in each of 3 attempts: 3 x 3 = 9"


def requests_of(client, raises, policy, caplog):
    """Return the number of requests, and the warnings that they multiply."""
    with serve(UNAVAILABLE) as server, pytest.raises(Exception):  # noqa: B017  its own
        CLIENTS[client](server.url, raises, policy)
    texts = [each.getMessage() for each in caplog.records]
    return len(server.seen), [text for text in texts if "makes up to" in text]


@pytest.mark.parametrize("client", CLIENTS)
def test_an_error_without_the_response_repeats_the_retries_of_a_client(client, caplog):
    told = []

    def an_error(response):
        told.append(sum("makes up to" in each.getMessage() for each in caplog.records))
        an_error_of_its_own(response)

    made, [text] = requests_of(client, an_error, THREE, caplog)
    assert made == 9
    # The first failure tells.
    assert told == [0, 1, 1]
    way_out = "an error with its response, as of raise_for_status(), is not retried"
    assert text == f"{PRODUCT}; max_attempts=1 in its client makes one; {way_out}"


@pytest.mark.parametrize("client", HAVE_STATUS_ERRORS)
@pytest.mark.parametrize("raises", [raise_for_status, from_the_error_of_the_client])
def test_an_error_with_the_response_ends_the_call(client, raises, caplog):
    assert requests_of(client, raises, THREE, caplog) == (3, [])


@pytest.mark.parametrize("client", HAVE_STATUS_ERRORS)
def test_nested_retry_repeats_the_retries_of_a_client(client, caplog):
    policy = THREE.replace(nested="retry")
    made, [text] = requests_of(client, raise_for_status, policy, caplog)
    assert made == 9
    assert text.startswith(PRODUCT)
    assert text.endswith('; nested="respect" does not repeat them')


def test_a_request_that_is_not_idempotent_is_not_multiplied(caplog):
    def by_post(url, raises, policy):
        with httpx.Client(transport=RetryTransport(schedule=[0, 0])) as client:
            policy.call(lambda: raises(client.post(url)))

    with serve(UNAVAILABLE) as server, pytest.raises(ShopError):
        by_post(server.url, an_error_of_its_own, THREE)
    assert len(server.seen) == 3
    assert [x for x in caplog.records if "makes up to" in x.getMessage()] == []
