"""Hedged requests, through every HTTP client: what is sent, and what is left."""

import asyncio
import io
import threading
from contextlib import asynccontextmanager

import aiohttp
import httpx
import httpx2
import pytest

from retrykit import AsArgument, ConfigError, Hedge, Policy, StopReason, observe, retry
from retrykit.events import AttemptFailed, HedgeStarted, Succeeded
from retrykit.integrations import (
    aiohttp as for_aiohttp,
    httpx as for_httpx,
    httpx2 as for_httpx2,
)
from retrykit.testing import disable_retries, virtual_time
from tests._support.http_clients import CLIENTS, NO_FILES
from tests._support.scripted_server import answer, hang, reset, serve

AT_ONCE = Policy(max_attempts=1, hedge=Hedge(0, extra=9))
LATE = Policy(max_attempts=1, hedge=Hedge("1h", extra=9), hint_jitter=0)
SOON = Policy(max_attempts=1, hedge=Hedge("10ms", extra=9))
KEY = {"Idempotency-Key": "8e03978e"}
IN_THREADS = ["httpx", "httpx2", "requests", "urllib3"]
IN_TASKS = [name for name in CLIENTS if name not in IN_THREADS]


def request(name, server, policy, method="GET", headers=None, body=None, times=1):
    """Return the results of requests in a transport."""
    make = body or (lambda: None)
    return CLIENTS[name]("transport", policy, times, server.url, method, headers, make)


def no_threads():
    """Return whether the threads of sends end."""
    for thread in threading.enumerate():
        if thread.name.startswith("hedge-"):
            thread.join(10)
    return not [x for x in threading.enumerate() if x.name.startswith("hedge-")]


class Meeting:
    """Steps that answer once two requests have arrived."""

    def __init__(self, *steps):
        self._barrier = threading.Barrier(2)
        self.steps = [self._after(step) for step in steps]

    def _after(self, step):
        def wait(_):
            self._barrier.wait(10)
            return step

        return wait


@pytest.mark.parametrize("name", CLIENTS)
class TestEachClient:
    def test_a_request_that_is_slow_is_sent_again_and_the_first_answer_counts(
        self, name
    ):
        go = threading.Event()

        def late(_):
            go.wait(10)
            return answer(body=b"late")

        events = []
        with serve(late, answer(body=b"quick")) as server, observe(events.append):
            [one] = request(name, server, SOON)
            go.set()
            assert (one.status, one.body) == (200, b"quick")
            assert (one.state.attempt, one.state.hedges) == (1, 1)
            del one
            assert server.wait_for_open(0, 10)
        assert [e.number for e in events if isinstance(e, HedgeStarted)] == [2]
        assert [type(e) for e in events if isinstance(e, Succeeded)] == [Succeeded]
        assert not [e for e in events if isinstance(e, AttemptFailed)]
        assert no_threads()

    def test_connections_of_the_others_are_free_for_the_next_requests(self, name):
        with serve(answer(body=b"x" * 100_000)) as server:
            results = request(name, server, AT_ONCE, times=5)
            assert {(x.status, len(x.body)) for x in results} == {(200, 100_000)}
            del results
            assert server.wait_for_open(0, 10)
        assert no_threads()

    def test_a_post_is_sent_once(self, name):
        with serve(answer()) as server:
            [one] = request(name, server, AT_ONCE, "POST", body=lambda: b"order")
        assert (one.status, len(server.seen), one.state.hedges) == (200, 1, 0)

    def test_a_post_with_a_key_is_hedged(self, name):
        meeting = Meeting(answer(), answer())
        with serve(*meeting.steps) as server:
            [one] = request(name, server, AT_ONCE, "POST", KEY, lambda: b"order")
        assert (one.status, one.state.hedges) == (200, 1)
        assert [(x.method, x.body) for x in server.seen] == [("POST", b"order")] * 2

    def test_a_stream_is_sent_once(self, name):
        with serve(answer()) as server:
            [one] = request(name, server, AT_ONCE, "PUT", body=lambda: iter([b"once"]))
        assert (one.status, len(server.seen), one.state.hedges) == (200, 1, 0)

    def test_a_file_is_sent_once_per_attempt(self, name):
        if name in NO_FILES:
            pytest.skip("for it, a file is a stream")
        policy = AT_ONCE.replace(max_attempts=2, schedule=[0])
        with serve(answer(503), answer()) as server:
            [one] = request(name, server, policy, "PUT", body=lambda: io.BytesIO(b"f"))
        assert [x.body for x in server.seen] == [b"f"] * 2
        assert (one.status, one.state.attempt, one.state.hedges) == (200, 2, 0)

    def test_a_request_that_expects_an_agreement_is_sent_once(self, name):
        headers = {"Expect": "100-continue"}
        with serve(answer()) as server:
            [one] = request(name, server, AT_ONCE, "PUT", headers, lambda: b"large")
        assert (one.status, len(server.seen)) == (200, 1)

    @pytest.mark.parametrize("first", [answer(503), reset()], ids=["503", "reset"])
    def test_a_failure_is_followed_by_the_next_send_at_once(self, name, first):
        with serve(first, answer()) as server:
            [one] = request(name, server, LATE)
        assert (one.status, one.state.attempt, one.state.hedges) == (200, 1, 1)

    def test_a_response_that_is_not_retried_ends_the_attempt(self, name):
        with serve(answer(404)) as server:
            [one] = request(name, server, LATE)
        assert (one.status, len(server.seen), one.state.hedges) == (404, 1, 0)

    def test_if_all_fail_the_last_response_counts(self, name):
        with serve(answer(502), answer(503, body=b"last")) as server:
            [one] = request(name, server, LATE)
            assert (one.status, one.body) == (503, b"last")
            assert (one.state.attempt, one.state.hedges) == (1, 1)
            del one
            assert server.wait_for_open(0, 10)

    def test_if_all_fail_the_attempt_is_retried_and_hedged_again(self, name):
        policy = LATE.replace(max_attempts=2, schedule=[1])
        with virtual_time() as clock, serve(*[answer(503)] * 3, answer()) as server:
            [one] = request(name, server, policy)
        assert (one.status, len(server.seen), clock.sleeps) == (200, 4, [1.0])
        assert (one.state.attempt, one.state.hedges) == (2, 2)

    def test_retry_after_postpones_the_next_send(self, name):
        busy = answer(503, [("Retry-After", "5")])
        with virtual_time() as clock, serve(busy, answer(), now=clock.now) as server:
            [one] = request(name, server, LATE)
        assert (one.status, one.state.attempt, one.state.hedges) == (200, 1, 1)
        assert server.seen[1].at - server.seen[0].at == pytest.approx(5)

    def test_retry_after_that_is_too_long_for_a_retry_forbids_it(self, name):
        policy = LATE.replace(hint_cap="1m", max_attempts=2)
        busy = answer(503, [("Retry-After", "3600")])
        with virtual_time() as clock, serve(busy, answer()) as server:
            [one] = request(name, server, policy)
        assert (one.status, len(server.seen), clock.sleeps) == (503, 1, [])
        assert one.state.stop_reason is StopReason.HINT

    def test_each_send_has_the_timeouts_of_the_client(self, name):
        with serve(hang()) as server:
            fetch = CLIENTS[name]
            settings = SOON, 1, server.url, "GET", None, lambda: None, 0.2
            [one] = fetch("transport", *settings)
            assert isinstance(one.error, Exception)
            assert (len(server.seen), one.state.hedges) == (2, 1)
            del one
            assert server.wait_for_open(0, 10)
        assert no_threads()


@pytest.mark.parametrize("name", IN_TASKS)
class TestTasks:
    def test_the_connection_of_the_one_that_is_slow_is_closed_at_once(self, name):
        with serve(hang(), answer()) as server:
            [one] = request(name, server, SOON)
            assert (one.status, server.wait_for_open(0, 10)) == (200, True)

    def test_each_send_has_the_attempt_timeout(self, name):
        policy = SOON.replace(attempt_timeout=0.1)
        with serve(hang()) as server:
            [one] = request(name, server, policy)
            assert isinstance(one.error, Exception)
            assert (len(server.seen), one.state.hedges) == (2, 1)
            assert server.wait_for_open(0, 10)


@pytest.mark.parametrize("name", IN_THREADS)
def test_each_send_in_a_thread_has_the_attempt_timeout(name):
    with serve(hang()) as server:
        [one] = request(name, server, SOON.replace(attempt_timeout=AsArgument(0.1)))
        assert isinstance(one.error, Exception)
        assert (len(server.seen), one.state.hedges) == (2, 1)
    assert no_threads()


class Aiohttp:
    """Requests by aiohttp, of which two run at once at most."""

    @staticmethod
    @asynccontextmanager
    async def client():
        async with aiohttp.ClientSession(
            middlewares=[for_aiohttp.RetryMiddleware(AT_ONCE)],
            connector=aiohttp.TCPConnector(limit=2),
        ) as session:

            async def get(url):
                async with session.get(url) as response:
                    return await response.read()

            yield get


class Httpx2:
    """Requests by httpx2, of which two run at once at most.

    The pool of httpx itself may lose a connection if a request is cancelled early:
    https://github.com/encode/httpcore/issues/1093.
    """

    @staticmethod
    @asynccontextmanager
    async def client():
        limits = httpx2.Limits(max_connections=2)
        inner = httpx2.AsyncHTTPTransport(limits=limits)
        transport = for_httpx2.AsyncRetryTransport(AT_ONCE, inner)
        async with httpx2.AsyncClient(transport=transport, timeout=20) as client:

            async def get(url):
                return (await client.get(url)).content

            yield get


@pytest.mark.parametrize("kind", [Aiohttp, Httpx2], ids=["aiohttp", "httpx2"])
class TestCancelled:
    def test_nothing_is_left(self, kind):
        both = threading.Barrier(3)

        def meet(_):
            both.wait(10)
            return hang()

        async def main(server):
            async with kind.client() as get:
                task = asyncio.create_task(get(server.url))
                await asyncio.to_thread(both.wait, 10)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert asyncio.all_tasks() == {asyncio.current_task()}
                assert await asyncio.to_thread(server.wait_for_open, 0, 10)
                # Both connections can be used again.
                return await asyncio.wait_for(get(server.url), 10)

        with serve(meet, meet, answer()) as server:
            assert asyncio.run(main(server)) == b"ok"

    def test_the_response_of_the_other_send_gives_its_connection_back(self, kind):
        async def main(url):
            async with kind.client() as get:
                return [await get(url) for _ in range(5)]

        with serve(answer(body=b"x" * 100_000)) as server:
            assert asyncio.run(main(server.url)) == [b"x" * 100_000] * 5


def test_threads_give_their_connections_back():
    inner = httpx.HTTPTransport(limits=httpx.Limits(max_connections=2))
    transport = for_httpx.RetryTransport(AT_ONCE, inner)
    with serve(answer(body=b"x" * 100_000)) as server:
        with httpx.Client(transport=transport, timeout=10) as client:
            for _ in range(5):
                assert client.get(server.url).status_code == 200
    assert no_threads()


def test_the_only_connection_is_free_for_the_next_send():
    inner = httpx.HTTPTransport(limits=httpx.Limits(max_connections=1))
    transport = for_httpx.RetryTransport(LATE, inner)
    with serve(answer(503, body=b"x" * 100_000), answer()) as server:
        with httpx.Client(transport=transport, timeout=10) as client:
            assert client.get(server.url).status_code == 200


class TestOneRequest:
    """A request with another policy than its client has."""

    def send(self, extension, **settings):
        sent = []

        def handle(request):
            sent.append(request)
            return httpx.Response(503)

        transport = for_httpx.RetryTransport(
            transport=httpx.MockTransport(handle), **settings
        )
        with httpx.Client(transport=transport) as client:
            client.get("http://a.example", extensions={"retry": extension})
        return len(sent)

    def test_it_may_be_hedged(self, clock):
        assert self.send(LATE, max_attempts=1) == 2

    def test_without_a_policy_it_is_sent_once(self, clock):
        assert self.send(None, hedge=Hedge(0)) == 1


def test_requests_keep_what_their_sends_change():
    """The timeouts of an attempt are those of a copy, and so are its headers."""
    seen = []

    def handle(request):
        seen.append(request)
        return httpx.Response(503)

    policy = LATE.replace(attempt_timeout=AsArgument("9s"))
    transport = for_httpx.RetryTransport(policy, httpx.MockTransport(handle))
    extensions = {"timeout": {}, "trace": None}
    request = httpx.Request("PUT", "http://a.example", content=b"1", extensions={})
    request.extensions = extensions
    transport.handle_request(request)
    assert [x.read() for x in seen] == [b"1"] * 2
    assert request not in seen
    assert request.extensions is extensions


@pytest.mark.parametrize(
    ("hedge", "sent"),
    [(Hedge("1h", extra=9), 1), (Hedge("1h", extra=9, idempotent=True), 2)],
    ids=["for idempotent methods", "for all"],
)
@pytest.mark.parametrize("methods", [None, {"POST"}], ids=["all", "POST"])
def test_a_method_that_is_not_idempotent_is_hedged_by_a_promise(
    clock, methods, hedge, sent
):
    seen = []

    def handle(request):
        seen.append(request)
        return httpx.Response(503)

    transport = for_httpx.RetryTransport(
        LATE.replace(hedge=hedge), httpx.MockTransport(handle), methods=methods
    )
    with httpx.Client(transport=transport) as client:
        client.post("http://a.example", content=b"order")
    assert len(seen) == sent


def test_a_multipart_body_in_memory_is_hedged():
    meeting = Meeting(answer(), answer())
    transport = for_httpx.RetryTransport(AT_ONCE)
    with serve(*meeting.steps) as server, httpx.Client(transport=transport) as client:
        files = {"a": b"one", "b": ("name.txt", "two")}
        assert client.put(server.url, files=files).status_code == 200
    one, two = server.seen
    assert one.body == two.body
    assert b"two" in one.body


def test_until_the_quantile_is_known_a_request_is_sent_once(clock):
    hedge = Hedge(quantile=0.5, extra=9)
    sent = []

    def handle(request):
        sent.append(request)
        clock.sleep(1 if len(sent) <= 20 or len(sent) % 2 == 0 else 60)
        return httpx.Response(200)

    transport = for_httpx.RetryTransport(
        transport=httpx.MockTransport(handle), hedge=hedge
    )
    with httpx.Client(transport=transport) as client:
        for _ in range(20):
            client.get("http://a.example")
        assert (len(sent), hedge.current_delay) == (20, 1)
        begun = clock.now()
        client.get("http://a.example")
    assert (len(sent), clock.now() - begun) == (22, 2)


def test_a_function_around_a_client_still_needs_the_promise():
    with pytest.raises(ConfigError, match="idempotent=True"):
        retry(for_httpx.policy(hedge=Hedge(1)))(len)


def test_nothing_is_hedged_without_retries_in_tests(clock):
    sent = []
    transport = for_httpx.RetryTransport(
        AT_ONCE,
        httpx.MockTransport(
            lambda request: sent.append(request) or httpx.Response(200)
        ),
    )
    with disable_retries(), httpx.Client(transport=transport) as client:
        client.get("http://a.example")
    assert len(sent) == 1
