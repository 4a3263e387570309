"""A short soak test: a few hundred requests leave nothing behind.

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
def test_a_transport_leaves_nothing_behind(transport, servers, caplog):
    # A captured log record of urllib3 would keep its connection pool alive.
    caplog.set_level(logging.ERROR, logger="urllib3")
    result = soak(transport, servers(transport.server), REQUESTS)
    assert list(result.leaks()) == []
    assert result.errors == []
    assert abs(result.faults - FAULTS_MET) <= 1
    assert result.attempts == REQUESTS + result.faults


class LeakyTransport(httpx.BaseTransport):
    """Retries, but does not close rejected responses."""

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
def leaky_transport(policy, limit, url):
    inner = httpx.HTTPTransport(limits=httpx.Limits(max_connections=limit))
    with httpx.Client(transport=LeakyTransport(inner), timeout=0.05) as client:
        yield Client(lambda: client.get(url).status_code, lambda: in_pool(inner))


def test_detects_a_transport_that_closes_no_rejected_response(server):
    leaking = Transport(name="forgetful", module="httpx", open=leaky_transport)
    leaks = list(soak(leaking, server, 50, within=0.05).leaks())
    assert any(
        words.endswith("are busy, with no request using them") for words in leaks
    )


def test_detects_a_client_that_is_not_closed(server):
    transports = []

    @contextmanager
    def unclosed(policy, limit, url):
        inner = httpx.HTTPTransport()
        transports.append(inner)
        client = httpx.Client(transport=LeakyTransport(inner))
        yield Client(lambda: client.get(url).status_code, lambda: in_pool(inner))

    result = soak(
        Transport(name="", module="httpx", open=unclosed), server, 20, within=0.05
    )
    transports[0].close()
    leaks = " ".join(result.leaks())
    assert "file descriptors are left open" in leaks
    assert "the server still sees" in leaks


def test_detects_a_task_that_is_left_behind(server):
    @asynccontextmanager
    async def leaves_a_task(policy, limit, url):
        task = asyncio.create_task(asyncio.sleep(3600))
        yield Client(partial(respond, task), lambda: Pool(0, 0))

    leaking = Transport(name="", module="httpx", aopen=leaves_a_task)
    result = soak(leaking, server, 20, within=0.05)
    assert "1 threads or tasks are left" in list(result.leaks())


async def respond(_task):
    return 200


def test_reports_an_error_of_a_request(server):
    @contextmanager
    def fails(policy, limit, url):
        yield Client(lambda: 503, lambda: Pool(0, 0))

    result = soak(Transport(name="", module="httpx", open=fails), server, 20)
    assert next(result.leaks()).startswith("requests failed, first with RuntimeError(")
