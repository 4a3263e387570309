"""Transient errors and delays of google-genai, from a server of the test."""

import asyncio
import json

import aiohttp
import httpx
import httpx2
import pytest
import requests
from google import genai
from google.auth.exceptions import RefreshError, TransportError
from google.genai.errors import APIError, ClientError

from retrykit.integrations import google_genai as retries
from retrykit.testing import virtual_time
from tests._support.scripted_server import answer, reset, serve

QUOTA = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}],
}
RETRY_INFO = {
    "@type": "type.googleapis.com/google.rpc.RetryInfo",
    "retryDelay": "53.5s",
}
BODY = {
    "error": {
        "code": 429,
        "message": "You exceeded your current quota",
        "status": "RESOURCE_EXHAUSTED",
        "details": [QUOTA, RETRY_INFO],
    }
}
SUCCESS = answer(
    body=b'{"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]}', close=True
)


@pytest.fixture
def clock():
    with virtual_time(stall_timeout=0.02) as clock:
        yield clock


def failure(status, body, *headers):
    return answer(status, headers, json.dumps(body).encode(), close=True)


def client(url):
    return genai.Client(api_key="key", http_options={"base_url": url})


def once(url):
    """Return a client with the options that the linter names."""

    class Namespace:
        @staticmethod
        def Client(http_options):  # noqa: N802  as the SDK names it
            options = http_options | {"base_url": url}
            return genai.Client(api_key="key", http_options=options)

    return eval(retries.transient.own_retries.text, {"genai": Namespace})  # noqa: S307


def assert_waits(clock, delay):
    [slept] = clock.sleeps
    assert delay <= slept <= delay * 1.1


def test_the_delay_of_an_exhausted_quota_is_obeyed(clock):
    with serve(failure(429, BODY), SUCCESS) as server:
        gemini = client(server.url)
        ask = gemini.models.generate_content
        retries.policy(schedule=[1]).call(ask, model="m", contents="Why?")
    assert_waits(clock, 53.5)


# It derives a class from ClientSession, which aiohttp discourages.
@pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")
def test_an_async_call_is_retried(clock):
    async def main(url):
        async with once(url).aio as gemini:
            ask = gemini.models.generate_content
            policy = retries.policy(schedule=[1, 1])
            return await policy.acall(ask, model="m", contents="Why?")

    with serve(failure(503, {}), reset(), SUCCESS) as server:
        assert asyncio.run(main(server.url)).text == "Hi"
    assert len(server.seen) == 3


def test_an_error_in_a_stream_is_retried(clock):
    event = b"data: " + json.dumps(BODY).encode() + b"\n\n"
    broken = answer(200, [("Content-Type", "text/event-stream")], event, close=True)
    with serve(broken, SUCCESS) as server:
        gemini = client(server.url)

        def ask():
            models = gemini.models
            return [*models.generate_content_stream(model="m", contents="Why?")]

        retries.policy(schedule=[1]).call(ask)
    assert_waits(clock, 53.5)


def api_error(details, code=429):
    return APIError(code, {"error": {"code": code, "details": details}})


@pytest.mark.parametrize(
    ("error", "delay"),
    {
        "nested": (api_error([QUOTA, RETRY_INFO]), "53.5s"),
        "in the event of a stream": (
            APIError(429, {"code": 429, "details": [RETRY_INFO]}),
            "53.5s",
        ),
        "none": (api_error([QUOTA]), None),
        "not a list": (api_error(RETRY_INFO), None),
        "strange details": (api_error([None, 5, "RetryInfo"]), None),
        "a number": (api_error([RETRY_INFO | {"retryDelay": 53}]), None),
        "a text as a body": (APIError(429, "no JSON"), None),
        "another error": (OSError(), None),
    }.values(),
)
def test_the_delay_is_read_from_the_details(error, delay):
    assert retries.retry_after(error) == delay


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 429, 408, 500, 501, 504])
def test_the_status_decides(code):
    expected = code in {408, 429, 500, 502, 503, 504}
    assert retries.transient(ClientError(code, {})) is expected


@pytest.mark.parametrize(
    ("error", "expected"),
    {
        "httpx": (httpx.ConnectError(""), True),
        "httpx2": (httpx2.ReadTimeout(""), True),
        "httpx2, an invalid URL": (httpx2.UnsupportedProtocol(""), False),
        "aiohttp": (aiohttp.ServerDisconnectedError(), True),
        "requests": (requests.ConnectionError(), True),
        "credentials that did not arrive": (TransportError("lost"), True),
        "credentials that were rejected": (RefreshError("no"), False),
        "a timeout": (TimeoutError(), True),
        "a mistake": (ValueError(), False),
        "no exception": (None, False),
    }.values(),
)
def test_failed_connections_are_transient(error, expected):
    assert retries.transient(error) is expected
