"""The aiohttp policy in a decorator around a whole call."""

import asyncio
import errno
import pickle
import ssl

import aiohttp
import pytest

from retrykit import AttemptTimeout, Policy, StopReason, aretry, state_of
from retrykit.integrations.aiohttp import IDEMPOTENT, policy, retry_after, transient
from tests._support.aiohttp_sessions import virtual_time
from tests._support.scripted_server import (
    answer,
    cut,
    redirect,
    reset_in_body,
    serve,
)

KEY = aiohttp.client_reqrep.ConnectionKey("host", 443, True, True, None, None, None)
INFO = aiohttp.RequestInfo("http://host", "GET", {}, "http://host")


def response_error(kind, status):
    return kind(INFO, (), status=status)


@pytest.mark.parametrize(
    ("outcome", "passes"),
    [
        (aiohttp.ClientOSError(errno.ECONNRESET, "reset"), True),
        (aiohttp.ClientConnectorError(KEY, ConnectionRefusedError()), True),
        (aiohttp.ClientConnectorDNSError(KEY, OSError()), True),
        (aiohttp.ClientProxyConnectionError(KEY, OSError()), True),
        (aiohttp.ClientConnectorSSLError(KEY, ssl.SSLEOFError()), True),
        (aiohttp.ClientConnectionResetError("closing"), True),
        (aiohttp.ServerDisconnectedError(), True),
        (aiohttp.ServerTimeoutError(), True),
        (aiohttp.ConnectionTimeoutError(), True),
        (aiohttp.SocketTimeoutError(), True),
        (aiohttp.ClientPayloadError("cut"), True),
        (TimeoutError(), True),
        (AttemptTimeout(5), True),
        (ConnectionAbortedError(), True),
        (response_error(aiohttp.ClientResponseError, 503), True),
        (response_error(aiohttp.ContentTypeError, 503), True),
        (response_error(aiohttp.WSServerHandshakeError, 503), True),
        (response_error(aiohttp.ClientHttpProxyError, 502), True),
        (response_error(aiohttp.ClientResponseError, 404), False),
        (response_error(aiohttp.ContentTypeError, 200), False),
        (response_error(aiohttp.WSServerHandshakeError, 400), False),
        (response_error(aiohttp.TooManyRedirects, 0), False),
        (
            aiohttp.ClientConnectorCertificateError(
                KEY, ssl.SSLCertVerificationError()
            ),
            False,
        ),
        (aiohttp.ServerFingerprintMismatch(b"a", b"b", "host", 443), False),
        (aiohttp.ClientConnectionError("Connector is closed."), False),
        (aiohttp.InvalidURL("nowhere"), False),
        (aiohttp.NonHttpUrlClientError("ftp://host"), False),
        (aiohttp.WSMessageTypeError(), False),
        (RuntimeError("Session is closed"), False),
        (OSError(errno.ENOSPC, "no space left"), False),
        (None, False),
    ],
    ids=lambda value: f"{type(value).__name__}" if isinstance(value, Exception) else "",
)
def test_transient_outcomes(outcome, passes):
    assert transient(outcome) is passes


def test_the_policy_has_the_documented_defaults():
    assert repr(transient) == "transient"
    copied = pickle.loads(pickle.dumps(transient))  # noqa: S301  pickled here
    assert copied is transient
    assert "POST" not in IDEMPOTENT
    assert policy(max_attempts=3) == Policy(
        max_attempts=3, on=transient, on_result=transient, hint=retry_after
    )
    base = Policy(on_result=callable, on=OSError, max_attempts=2)
    expected = base.replace(max_attempts=5, hint=retry_after)
    assert policy(base, max_attempts=5) == expected


def call_decorated(*steps, get, **settings):
    """Return the outcome of a decorated function, its sleeps, and its requests."""

    async def main():
        with virtual_time() as clock:
            async with aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=1)
            ) as client:
                waits = {"schedule": [1, 2], "max_attempts": 3}
                try:
                    result = await policy(**waits | settings).acall(
                        get, client, server.url
                    )
                except aiohttp.ClientError as error:
                    result = error
            return result, clock.sleeps, len(server.seen)

    with serve(*steps) as server:
        found = asyncio.run(main())
        assert server.wait_for_open()
        return found


async def read_text(client, url):
    async with client.get(url) as response:
        response.raise_for_status()
        return await response.text()


async def read_json(client, url):
    async with client.get(url) as response:
        return await response.json()


@pytest.mark.parametrize(
    "step",
    [cut(5), cut(5, chunked=True), reset_in_body(5), answer(503)],
    ids=["cut", "cut in chunks", "reset", "503"],
)
def test_a_truncated_body_is_retried(step):
    assert call_decorated(step, step, answer(), get=read_text) == ("ok", [1, 2], 3)


def test_an_error_page_in_place_of_json_is_retried():
    good = answer(200, [("Content-Type", "application/json")], b"{}")
    assert call_decorated(answer(502, body=b"<html>"), good, get=read_json) == (
        {},
        [1],
        2,
    )
    error, sleeps, _ = call_decorated(answer(200, body=b"<html>"), get=read_json)
    assert isinstance(error, aiohttp.ContentTypeError)
    assert sleeps == []


def test_the_retry_after_of_an_error_is_obeyed():
    step = answer(429, [("Retry-After", "5")])
    exact = call_decorated(step, answer(), get=read_text, hint_jitter=0)
    assert exact == ("ok", [5], 2)


def test_a_rejected_response_releases_its_connection():
    async def head(client, url):
        return await client.get(url)

    busy = answer(503, body=b"x" * 999_999)
    response, sleeps, sent = call_decorated(busy, busy, answer(), get=head)
    assert (response.status, sleeps, sent) == (200, [1, 2], 3)


def test_a_redirect_loop_is_not_retried():
    error, sleeps, sent = call_decorated(redirect("/"), get=read_text)
    assert isinstance(error, aiohttp.TooManyRedirects)
    assert state_of(error).stop_reason is StopReason.NOT_RETRYABLE
    assert (sleeps, sent) == ([], 10)


def test_a_client_method_can_be_decorated():
    @aretry(policy(schedule=[1]))
    async def get(client, url):
        return await read_text(client, url)

    async def main():
        with virtual_time():
            async with aiohttp.ClientSession() as client:
                return await get(client, server.url)

    with serve(answer(503), answer()) as server:
        assert asyncio.run(main()) == "ok"
