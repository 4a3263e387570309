"""Thousands of requests leave nothing behind; here a few hundred do not.

`python -m benchmarks.soak` is the long form, for every transport.
"""

import asyncio
import logging
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import cache, partial

import httpx
import pytest

from benchmarks.faulty import Faulty
from benchmarks.soak import EVERY, soak
from benchmarks.transports import TRANSPORTS, Client, Pool, Transport, in_pool

REQUESTS = 160
FAULTS_MET = REQUESTS // (EVERY - 1)


@pytest.fixture(scope="module")
def servers():
    with ExitStack() as stack:
        yield cache(lambda module: stack.enter_context(Faulty(EVERY, module)))


@pytest.fixture
def server(servers):
    return servers("benchmarks.faulty")


@pytest.mark.parametrize("transport", TRANSPORTS, ids=lambda each: each.name)
def test_leaves_nothing_behind(transport, servers, caplog):
    # What urllib3 logs of an error holds the pool by it, for as long as it is kept.
    caplog.set_level(logging.ERROR, logger="urllib3")
    came = soak(transport, servers(transport.server), REQUESTS)
    assert list(came.leaks()) == []
    assert came.errors == []
    assert abs(came.faults - FAULTS_MET) <= 1
    assert came.attempts == REQUESTS + came.faults


class Forgetful(httpx.BaseTransport):
    """Sends again, and closes nothing that it does not return."""

    def __init__(self, inner):
        self.inner = inner

    def handle_request(self, request):
        for _ in range(20):
            try:
                response = self.inner.handle_request(request)
            except httpx.TransportError:
                continue
            if response.status_code == 200:
                return response
        raise AssertionError

    def close(self):
        self.inner.close()


@contextmanager
def forgetful(policy, limit, url):
    inner = httpx.HTTPTransport(limits=httpx.Limits(max_connections=limit))
    with httpx.Client(transport=Forgetful(inner), timeout=0.05) as client:
        yield Client(lambda: client.get(url).status_code, lambda: in_pool(inner))


def test_catches_a_transport_that_closes_no_discarded_response(server):
    leaking = Transport(name="forgetful", module="httpx", open=forgetful)
    told = list(soak(leaking, server, 50).leaks())
    assert any(words.endswith("are busy, with no request using them") for words in told)


def test_catches_a_client_that_is_not_closed(server):
    kept = []

    @contextmanager
    def unclosed(policy, limit, url):
        inner = httpx.HTTPTransport()
        kept.append(inner)
        client = httpx.Client(transport=Forgetful(inner))
        yield Client(lambda: client.get(url).status_code, lambda: in_pool(inner))

    came = soak(
        Transport(name="", module="httpx", open=unclosed), server, 20, within=0.05
    )
    kept[0].close()
    told = " ".join(came.leaks())
    assert "file descriptors are left open" in told
    assert "the server still sees" in told


def test_catches_a_task_that_is_left(server):
    @asynccontextmanager
    async def careless(policy, limit, url):
        left = asyncio.create_task(asyncio.sleep(3600))
        yield Client(partial(answered, left), lambda: Pool(0, 0))

    came = soak(Transport(name="", module="httpx", aopen=careless), server, 20)
    assert "1 threads or tasks are left" in list(came.leaks())


async def answered(_task):
    return 200


def test_catches_an_error_that_comes_out(server):
    @contextmanager
    def impatient(policy, limit, url):
        yield Client(lambda: 503, lambda: Pool(0, 0))

    came = soak(Transport(name="", module="httpx", open=impatient), server, 20)
    assert next(came.leaks()).startswith("requests failed, first with RuntimeError(")
