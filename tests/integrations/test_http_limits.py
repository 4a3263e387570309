"""Requests of HTTP clients under the limits of their policy."""

import asyncio

import httpx
import pytest

from retrykit import CircuitOpenError, state_of
from retrykit.integrations.httpx import AsyncRetryTransport, RetryTransport, policy
from retrykit.limits import CircuitBreaker

pytestmark = pytest.mark.usefixtures("clock")


class Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The body of a response, and how often it was closed."""

    def __init__(self):
        self.closed = 0

    def __iter__(self):
        yield b"busy"

    async def __aiter__(self):
        yield b"busy"

    def close(self):
        self.closed += 1

    async def aclose(self):
        self.closed += 1


def get(settings, answer):
    with httpx.Client(
        transport=RetryTransport(settings, transport=httpx.MockTransport(answer))
    ) as client:
        return client.get("http://api.example/")


def aget(settings, answer):
    async def main():
        transport = AsyncRetryTransport(settings, transport=httpx.MockTransport(answer))
        async with httpx.AsyncClient(transport=transport) as client:
            return await client.get("http://api.example/")

    return asyncio.run(main())


@pytest.fixture(params=[get, aget], ids=["sync", "async"])
def send(request):
    return request.param


def test_a_request_that_is_refused_at_once_is_not_sent(send):
    breaker, sent = CircuitBreaker(name="api"), []
    breaker.isolate()
    with pytest.raises(CircuitOpenError) as caught:
        send(policy(admission=[breaker]), sent.append)
    assert sent == []
    assert state_of(caught.value).stop_reason == "refused"


def test_responses_that_open_the_breaker_end_the_request_with_the_last_one(send):
    breaker = CircuitBreaker(consecutive_failures=2)
    bodies = [Body(), Body()]
    left = iter(bodies)
    response = send(
        policy(schedule=[1, 1, 1], admission=[breaker]),
        lambda _: httpx.Response(503, stream=next(left)),
    )
    assert response.text == "busy"
    assert state_of(response).stop_reason == "refused"
    assert [body.closed for body in bodies] == [1, 1]


def test_a_response_can_be_read_when_the_retry_is_refused_after_the_delay(send):
    breaker, sent = CircuitBreaker(), []

    def answer(request):
        sent.append(request)
        return httpx.Response(503, stream=Body())

    def isolate(event):
        # During the delay, as another caller would.
        breaker.isolate()

    settings = policy(
        schedule=[1], admission=[breaker], observers={"retry_scheduled": isolate}
    )
    response = send(settings, answer)
    assert len(sent) == 1
    assert response.text == "busy"
    assert state_of(response).stop_reason == "refused"


def test_a_response_that_is_replaced_is_closed_once_a_limit_allows_the_retry(send):
    bodies = [Body(), Body()]
    answers = iter([(503, bodies[0]), (200, bodies[1])])

    def answer(_):
        status, stream = next(answers)
        assert bodies[0].closed == (status == 200)
        return httpx.Response(status, stream=stream)

    response = send(policy(schedule=[1], admission=[CircuitBreaker()]), answer)
    assert response.status_code == 200
    assert [body.closed for body in bodies] == [1, 1]
