"""The httpx integration, beyond the tests of all HTTP clients."""

import asyncio
import gc
import json
import threading
import weakref

import httpx
import pytest

from retrykit import (
    AsArgument,
    Policy,
    RetryError,
    StopReason,
    aretry,
    retry,
    state_of,
)
from retrykit.errors import ConfigError
from retrykit.events import RetryScheduled
from retrykit.integrations import httpx as retries
from retrykit.integrations._http import transport
from retrykit.integrations.httpx import AsyncRetryTransport, RetryTransport
from retrykit.integrations.logging import observer
from retrykit.testing import record, virtual_time
from tests._support.optional_trio import trio
from tests._support.scripted_server import answer, close, hang, redirect, serve

QUICK = Policy(schedule=[0, 0])


def client(policy=QUICK, **given):
    return httpx.Client(transport=RetryTransport(policy, **given))


def test_returns_the_last_response_like_the_client():
    with serve(answer(503, [("X-Left", "0")], b"busy")) as server, client() as http:
        response = http.get(server.url)
    assert (response.status_code, response.text) == (503, "busy")
    assert response.headers["x-left"] == "0"
    assert response.elapsed
    state = state_of(response)
    assert [failure.result.status_code for failure in state.failures] == [503] * 3
    assert state.failures[-1].result is response
    assert state.stop_reason is StopReason.SCHEDULE_ENDED


def test_a_response_without_a_retry_has_a_state():
    with serve() as server, client() as http:
        assert state_of(http.get(server.url)).attempt == 1


class TestAPolicyInTheRequestExtensions:
    """It is in the extensions of the request."""

    @pytest.mark.parametrize(
        ("policy", "attempts"),
        [(None, 1), (Policy(schedule=[0]), 2), (Policy(schedule=[0] * 4), 5)],
        ids=["none", "less", "more"],
    )
    def test_replaces_the_policy_of_the_client(self, policy, attempts):
        with serve(answer(503)) as server, client() as http:
            response = http.get(server.url, extensions={"retry": policy})
            assert len(server.seen) == state_of(response).attempt == attempts
            assert state_of(http.get(server.url)).attempt == 3

    def test_gets_the_defaults_of_the_client(self):
        with serve(answer(503, [("Retry-After", "7")]), answer()) as server:
            with virtual_time() as clock, client() as http:
                exact = Policy(schedule=[1], hint_jitter=0)
                http.get(server.url, extensions={"retry": exact})
        assert clock.sleeps == [7.0]

    def test_applies_after_a_redirect(self):
        steps = redirect("/x"), answer(503)
        with serve(*steps) as server, client() as http:
            given = {"extensions": {"retry": None}, "follow_redirects": True}
            assert http.get(server.url, **given).status_code == 503
        assert len(server.seen) == 2

    def test_applies_to_an_async_client(self):
        async def get(url):
            async with httpx.AsyncClient(transport=AsyncRetryTransport(QUICK)) as http:
                return await http.get(url, extensions={"retry": None})

        with serve(answer(503)) as server:
            assert state_of(asyncio.run(get(server.url))).attempt == 1

    def test_is_rejected_if_a_transport_cannot_follow_it(self):
        policy = Policy(raises="group")
        with client() as http, pytest.raises(ConfigError, match="raises must be"):
            http.get("http://127.0.0.1/", extensions={"retry": policy})


def test_only_a_decorator_keeps_cookies_of_rejected_responses():
    steps = answer(503, [("Set-Cookie", "node=7")]), answer()
    with serve(*steps) as server, client() as http:
        http.get(server.url)
        assert http.cookies == {}
    with serve(*steps) as server, httpx.Client() as http:
        retries.policy(QUICK).call(http.get, server.url)
        assert dict(http.cookies) == {"node": "7"}
    assert server.seen[1].headers["cookie"] == "node=7"


def test_a_response_of_another_transport_has_no_state():
    with serve() as server, httpx.Client() as http:
        assert state_of(http.get(server.url)) is None


def test_the_name_of_a_call_is_method_and_host():
    with serve(answer(503)) as server, client() as http:
        response = http.get(f"{server.url}/token/secret?key=secret")
    assert state_of(response).name == "GET 127.0.0.1"


def test_raises_the_clients_own_error_with_its_state():
    with serve(close()) as server, client() as http:
        with pytest.raises(httpx.RemoteProtocolError) as caught:
            http.get(server.url)
    state = state_of(caught.value)
    assert state.errors[-1] is caught.value
    assert caught.value.request.url == server.url
    assert "gave up after 3 attempts" in caught.value.__notes__[0]


def test_a_pool_of_one_connection_is_enough():
    limits = httpx.Limits(max_connections=1)
    inner = httpx.HTTPTransport(limits=limits)
    with serve(answer(503, body=b"x" * 100_000), answer()) as server:
        with client(transport=inner) as http:
            assert http.get(server.url, timeout=1).status_code == 200


def test_an_async_pool_of_one_connection_serves_others_during_a_delay():
    async def main(url):
        limits = httpx.Limits(max_connections=1)
        inner = httpx.AsyncHTTPTransport(limits=limits)
        policy = QUICK.replace(schedule=[3])
        transport = AsyncRetryTransport(policy, inner)
        async with httpx.AsyncClient(transport=transport, timeout=1) as http:
            return await asyncio.gather(*(http.get(url) for _ in range(3)))

    busy = answer(503, body=b"x" * 100_000)
    with serve(busy, busy, busy, answer()) as server, virtual_time() as clock:
        responses = asyncio.run(main(server.url))
    assert [each.status_code for each in responses] == [200] * 3
    assert clock.now() >= 3


def test_nested_retries_of_errors_do_not_multiply():
    with serve(close()) as server, client() as http:

        @retry(retries.policy(QUICK))
        def fetch():
            return http.get(server.url).text

        with pytest.raises(httpx.RemoteProtocolError) as caught:
            fetch()
    assert len(server.seen) == 3
    assert state_of(caught.value).stop_reason is StopReason.NESTED


def test_nested_retries_of_statuses_do_not_multiply():
    with serve(answer(503)) as server, client() as http:

        @retry(retries.policy(QUICK))
        def fetch():
            return http.get(server.url).raise_for_status()

        with pytest.raises(httpx.HTTPStatusError) as caught:
            fetch()
    assert len(server.seen) == 3
    assert state_of(caught.value).nested_state.name == "GET 127.0.0.1"


def test_the_error_about_a_response_has_its_state():
    with serve(answer(503)) as server, client() as http:
        response = http.get(server.url)
    with pytest.raises(httpx.HTTPStatusError) as caught:
        response.raise_for_status()
    assert state_of(caught.value) == state_of(response)


def test_no_secret_of_a_response_is_logged():
    class VerboseRepr(httpx.Response):
        def __repr__(self):
            return "token=secret"

    inner = httpx.MockTransport(lambda _: VerboseRepr(503))
    with client(transport=inner) as http:
        state = state_of(http.get("http://127.0.0.1/"))
    events = state.failures[-1].describe()
    assert events.endswith("VerboseRepr with status 503")
    assert "token" not in json.dumps(state.to_dict())


def test_the_log_shows_the_status(caplog):
    policy = QUICK.replace(observers=[observer()])
    with serve(answer(503)) as server, client(policy) as http:
        http.post(server.url)
    [line] = caplog.messages
    place = server.url.removeprefix("http://")
    assert line.startswith(f"POST {place} gave up after 1 attempt in ")
    assert line.endswith("max_attempts=1 reached; status 503")


def test_nested_retries_of_responses_do_not_multiply():
    with serve(answer(503)) as server, client() as http:
        fetch = retry(retries.policy(QUICK))(lambda: http.get(server.url))
        with pytest.raises(RetryError) as caught:
            fetch()
    assert len(server.seen) == 3
    assert caught.value.state.stop_reason is StopReason.NESTED


def test_nested_retries_multiply_if_the_policy_says_so():
    with serve(answer(503)) as server, client() as http:
        policy = retries.policy(QUICK, nested="retry")
        with pytest.raises(RetryError):
            policy.call(http.get, server.url)
    assert len(server.seen) == 9


def test_a_redirect_loop_raises_the_clients_own_error():
    with serve(redirect("/again")) as server, virtual_time() as clock:
        transport = RetryTransport(Policy(schedule=[5]))
        with httpx.Client(transport=transport, max_redirects=4) as http:
            with pytest.raises(httpx.TooManyRedirects):
                http.get(server.url, follow_redirects=True)
    assert clock.sleeps == []
    assert len(server.seen) == 5


def test_a_streamed_response_is_left_unread():
    with serve(answer(503), answer(body=b"0123456789")) as server, client() as http:
        with http.stream("GET", server.url) as response:
            assert not response.is_closed
            assert b"".join(response.iter_bytes()) == b"0123456789"


def test_an_attempt_takes_no_longer_than_its_attempt_timeout():
    policy = QUICK.replace(attempt_timeout=AsArgument("50ms"), schedule=[0])
    with serve(hang()) as server, client(policy) as http:
        with pytest.raises(httpx.TimeoutException) as caught:
            http.get(server.url, timeout=60)
    assert state_of(caught.value).attempt == 2


def test_a_shorter_timeout_of_the_client_is_kept():
    seen = []

    def respond(request):
        seen.append(request.extensions["timeout"])
        return httpx.Response(200)

    policy = QUICK.replace(attempt_timeout=AsArgument(9))
    with client(policy, transport=httpx.MockTransport(respond)) as http:
        http.get("http://127.0.0.1/", timeout=httpx.Timeout(60, read=1))
    [timeout] = seen
    assert timeout["read"] == 1
    assert timeout["connect"] == pytest.approx(9, abs=0.1)


def test_a_timeout_as_an_argument_bounds_those_of_an_async_client():
    seen = []

    def respond(request):
        seen.append(request.extensions["timeout"])
        return httpx.Response(200)

    async def main():
        policy = QUICK.replace(attempt_timeout=AsArgument(9))
        transport = AsyncRetryTransport(policy, httpx.MockTransport(respond))
        async with httpx.AsyncClient(transport=transport) as http:
            await http.get("http://127.0.0.1/", timeout=httpx.Timeout(60, read=1))

    asyncio.run(main())
    [timeout] = seen
    assert timeout["read"] == 1
    assert timeout["connect"] == pytest.approx(9, abs=0.1)


@pytest.mark.parametrize(
    "run", [lambda main: asyncio.run(main()), trio.run], ids=["asyncio", "trio"]
)
def test_an_attempt_timeout_raises_the_clients_timeout_error(run):
    policy = QUICK.replace(attempt_timeout="50ms", schedule=[0])

    async def main():
        transport = AsyncRetryTransport(policy)
        async with httpx.AsyncClient(transport=transport, timeout=60) as http:
            await http.get(url)

    with serve(hang()) as server:
        url = server.url
        with pytest.raises(httpx.ReadTimeout) as caught:
            run(main)
    state = state_of(caught.value)
    assert state.attempt == 2
    assert caught.value.__notes__ == [f"retrykit: {state.describe()}"]
    # A traceback shows both errors, and the note once.
    assert not caught.value.__cause__.__dict__.get("__notes__")


def test_cancellation_is_raised_at_once():
    async def main(url):
        waiting = asyncio.Event()

        def look(event):
            if isinstance(event, RetryScheduled):
                waiting.set()

        transport = AsyncRetryTransport(Policy(schedule=[30], observers=[look]))
        async with httpx.AsyncClient(transport=transport) as http:
            task = asyncio.create_task(http.get(url))
            await waiting.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with serve(answer(503)) as server:
        asyncio.run(main(server.url))
    assert len(server.seen) == 1


def test_threads_share_one_client():
    steps = [answer(503), answer(200)] * 40
    states = []
    with serve(*steps) as server, client(QUICK.replace(schedule=[0] * 8)) as http:

        def fetch():
            states.append(state_of(http.get(server.url)))

        threads = [threading.Thread(target=fetch) for _ in range(16)]
        [each.start() for each in threads]
        [each.join() for each in threads]
    assert len(states) == 16
    assert {state.status for state in states} == {"succeeded"}
    assert sum(state.attempt for state in states) == len(server.seen)


def test_a_released_response_is_freed():
    gc.disable()
    try:
        with serve(answer(503)) as server, RetryTransport(QUICK) as transport:
            # A client of httpx creates a reference cycle with each response.
            response = transport.handle_request(httpx.Request("GET", server.url))
            results = [each.result for each in state_of(response).failures]
            assert results[-1] is response
            references = [weakref.ref(result) for result in results]
            response.close()
            del response, results
        assert [each() for each in references] == [None] * 3
    finally:
        gc.enable()


def test_a_handled_error_is_freed():
    def refuse(_request):
        raise httpx.ConnectError("refused")

    gc.disable()
    try:
        references = []
        with RetryTransport(QUICK, httpx.MockTransport(refuse)) as transport:
            try:
                transport.handle_request(httpx.Request("GET", "http://127.0.0.1/"))
            except httpx.ConnectError as error:
                references += map(weakref.ref, state_of(error).errors)
        assert [each() for each in references] == [None] * 3
    finally:
        gc.enable()


def test_a_transport_is_entered_and_closed_with_its_client():
    events = []

    class Inner(httpx.MockTransport):
        def __enter__(self):
            events.append("entered")
            return self

        def __exit__(self, *_):
            events.append("left")

        def close(self):
            events.append("closed")

    inner = Inner(lambda _: httpx.Response(200))
    with client(transport=inner) as http:
        http.get("http://127.0.0.1/")
    client(transport=inner).close()
    assert events == ["entered", "left", "closed"]


def test_an_async_transport_is_closed_with_its_client():
    events = []

    class Inner(httpx.MockTransport):
        async def aclose(self):
            events.append("closed")

    async def main():
        transport = AsyncRetryTransport(QUICK, Inner(lambda _: httpx.Response(200)))
        await httpx.AsyncClient(transport=transport).aclose()

    asyncio.run(main())
    assert events == ["closed"]


def test_rejects_settings_that_a_transport_cannot_follow():
    with pytest.raises(ConfigError, match="raises must be 'last' in a client"):
        RetryTransport(raises="group")


def test_responses_rejected_by_on_result_are_closed():
    policy = Policy(schedule=[0], on_result=lambda answer: answer.status_code == 418)
    limits = httpx.Limits(max_connections=1)
    inner = httpx.HTTPTransport(limits=limits)
    with serve(answer(418, body=b"x" * 100_000), answer(503)) as server:
        with client(policy, transport=inner) as http:
            assert http.get(server.url, timeout=1).status_code == 503


def test_a_decorated_coroutine_closes_rejected_responses():
    opened = []

    async def main(url):
        async with httpx.AsyncClient() as http:

            @aretry(retries.policy(QUICK))
            async def fetch():
                request = http.build_request("GET", url)
                opened.append(await http.send(request, stream=True))
                return opened[-1]

            await (await fetch()).aclose()

    with serve(answer(503, body=b"x" * 100_000), answer()) as server:
        asyncio.run(main(server.url))
    assert [each.is_closed for each in opened] == [True, True]


def test_a_call_is_recorded_like_any_other():
    with serve(answer(503), answer()) as server, client() as http, record() as recorded:
        http.get(server.url)
    recorded.assert_attempts("GET 127.0.0.1", 2)


def test_calls_are_named_by_method_and_host_however_many_there_are(monkeypatch):
    """What is made for the requests to a host is kept for few of them."""
    monkeypatch.setattr(transport, "_MAX_DRIVERS", 2)
    answers = httpx.MockTransport(lambda _: httpx.Response(200))
    with httpx.Client(transport=RetryTransport(QUICK, transport=answers)) as http:
        for host in (*"abcabc", "a"):
            for method in ("GET", "HEAD"):
                response = http.request(method, f"http://{host}.example/{host}")
                assert state_of(response).name == f"{method} {host}.example"
