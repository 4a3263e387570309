"""The parts for aiohttp, under a decorator around the whole of a call."""

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


def told(kind, status):
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
        (told(aiohttp.ClientResponseError, 503), True),
        (told(aiohttp.ContentTypeError, 503), True),
        (told(aiohttp.WSServerHandshakeError, 503), True),
        (told(aiohttp.ClientHttpProxyError, 502), True),
        (told(aiohttp.ClientResponseError, 404), False),
        (told(aiohttp.ContentTypeError, 200), False),
        (told(aiohttp.WSServerHandshakeError, 400), False),
        (told(aiohttp.TooManyRedirects, 0), False),
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
def test_an_outcome_that_may_pass(outcome, passes):
    assert transient(outcome) is passes


def test_the_parts_are_what_their_names_say():
    assert repr(transient) == "transient"
    kept = pickle.loads(pickle.dumps(transient))  # noqa: S301  written here
    assert kept is transient
    assert "POST" not in IDEMPOTENT
    assert policy(max_attempts=3) == Policy(
        max_attempts=3, on=transient, on_result=transient, hint=retry_after
    )
    mine = Policy(on_result=callable, on=OSError, max_attempts=2)
    kept = mine.replace(max_attempts=5, hint=retry_after)
    assert policy(mine, max_attempts=5) == kept


def tried(*steps, get, **settings):
    """Return what comes of a decorated function, its sleeps, and what was sent."""

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
        assert server.settled()
        return found


async def text(client, url):
    async with client.get(url) as response:
        response.raise_for_status()
        return await response.text()


async def parsed(client, url):
    async with client.get(url) as response:
        return await response.json()


@pytest.mark.parametrize(
    "step",
    [cut(5), cut(5, chunked=True), reset_in_body(5), answer(503)],
    ids=["cut", "cut in chunks", "reset", "503"],
)
def test_a_body_that_is_cut_short_is_asked_for_again(step):
    assert tried(step, step, answer(), get=text) == ("ok", [1, 2], 3)


def test_an_error_page_in_place_of_json_is_asked_for_again():
    good = answer(200, [("Content-Type", "application/json")], b"{}")
    assert tried(answer(502, body=b"<html>"), good, get=parsed) == ({}, [1], 2)
    error, sleeps, _ = tried(answer(200, body=b"<html>"), get=parsed)
    assert isinstance(error, aiohttp.ContentTypeError)
    assert sleeps == []


def test_an_error_says_when_to_come_back():
    step = answer(429, [("Retry-After", "5")])
    assert tried(step, answer(), get=text) == ("ok", [5], 2)


def test_a_response_that_is_replaced_gives_its_connection_back():
    async def head(client, url):
        return await client.get(url)

    busy = answer(503, body=b"x" * 999_999)
    response, sleeps, sent = tried(busy, busy, answer(), get=head)
    assert (response.status, sleeps, sent) == (200, [1, 2], 3)


def test_a_redirect_loop_is_gone_round_once():
    error, sleeps, sent = tried(redirect("/"), get=text)
    assert isinstance(error, aiohttp.TooManyRedirects)
    assert state_of(error).stop_reason is StopReason.NOT_RETRYABLE
    assert (sleeps, sent) == ([], 10)


def test_the_client_comes_under_a_decorator_too():
    @aretry(policy(schedule=[1]))
    async def get(client, url):
        return await text(client, url)

    async def main():
        with virtual_time():
            async with aiohttp.ClientSession() as client:
                return await get(client, server.url)

    with serve(answer(503), answer()) as server:
        assert asyncio.run(main()) == "ok"
