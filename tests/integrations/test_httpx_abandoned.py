"""A response is closed if its call ends before the caller gets it."""

import asyncio

import httpx
import pytest

from retrykit import AsArgument, Policy
from retrykit.budgets import TokenBucket
from retrykit.integrations.httpx import AsyncRetryTransport, RetryTransport
from tests._support.scripted_server import answer, serve

BIG = b"x" * 100_000
ALONE = httpx.Limits(max_connections=1)


class Slow:
    """An async condition that takes an hour the first time."""

    def __init__(self):
        self.running = asyncio.Event()

    async def __call__(self, response):
        if not self.running.is_set():
            self.running.set()
            await asyncio.sleep(3600)
        return response.status_code == 503


def test_a_condition_that_raises_leaves_no_response_open():
    def failing_condition(response):
        raise LookupError("wrong")

    policy = Policy(schedule=[0], on_result=failing_condition)
    transport = RetryTransport(policy, httpx.HTTPTransport(limits=ALONE))
    with serve(answer(200, body=BIG)) as server:
        with httpx.Client(transport=transport, timeout=2) as client:
            for _ in range(2):
                with pytest.raises(LookupError):
                    client.get(server.url)


def test_a_cancellation_during_the_condition_leaves_no_response_open():
    async def main(url):
        inner = httpx.AsyncHTTPTransport(limits=ALONE)
        condition = Slow()
        transport = AsyncRetryTransport(Policy(on_result=condition), inner)
        async with httpx.AsyncClient(transport=transport, timeout=5) as client:
            request = asyncio.create_task(client.get(url))
            await condition.running.wait()
            request.cancel()
            with pytest.raises(asyncio.CancelledError):
                await request
            return (await client.get(url)).status_code

    with serve(answer(200, body=BIG)) as server:
        assert asyncio.run(main(server.url)) == 200


def test_an_async_condition_is_rejected_in_a_sync_transport():
    with pytest.raises(ValueError, match="on_result"):
        RetryTransport(on_result=Slow().__call__)


def test_an_attempt_without_remaining_time_raises_the_clients_error():
    policy = Policy(max_attempts=1, max_elapsed=0, attempt_timeout=AsArgument("5s"))
    transport = RetryTransport(policy)
    slow = answer(200)
    with serve(slow) as server, httpx.Client(transport=transport) as client:
        try:
            assert client.get(server.url).status_code == 200
        except httpx.TimeoutException as error:
            assert "in progress" not in str(error)


def test_a_request_keeps_the_timeouts_of_its_caller():
    policy = Policy(attempt_timeout=AsArgument(9))
    inner = httpx.MockTransport(lambda _: httpx.Response(200))
    request = httpx.Request("GET", "http://127.0.0.1/", extensions={"timeout": {}})
    RetryTransport(policy, inner).handle_request(request)
    assert request.extensions == {"timeout": {}}


def test_a_call_with_a_budget_returns_the_retried_response():
    budget = TokenBucket(50)
    transport = RetryTransport(Policy(schedule=[0], budget=budget))
    with serve(answer(503), answer()) as server:
        with httpx.Client(transport=transport) as client:
            assert client.get(server.url).text == "ok"
