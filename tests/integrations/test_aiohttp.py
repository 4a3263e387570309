"""The aiohttp middleware, against servers with real faults."""

import asyncio
import functools
import gc
import weakref

import aiohttp
import pytest

from retrykit import AttemptTimeout, StopReason, aretry, state_of
from retrykit.integrations.aiohttp import RetryMiddleware, policy
from tests._support.aiohttp_sessions import fetch, fetch_error, session, virtual_time
from tests._support.fault_proxy import proxy, refused, reset_at_once, through
from tests._support.scripted_server import (
    answer,
    close,
    cut,
    cut_in_head,
    drop_after,
    garbage,
    hang,
    redirect,
    reset,
    reset_in_body,
    serve,
)


class TestRetriedRequests:
    def test_until_a_response_is_good(self):
        with serve(answer(503), close(), answer()) as server:
            status, body, state, sleeps = fetch(server.url)
        assert (status, body, sleeps, len(server.seen)) == (200, b"ok", [1, 2], 3)
        assert state.stop_reason is StopReason.SUCCEEDED
        assert state.failures[0].result.status == 503
        assert isinstance(state.failures[1].error, aiohttp.ServerDisconnectedError)

    @pytest.mark.parametrize(
        "step",
        [
            *(
                pytest.param(answer(status), id=str(status))
                for status in (408, 425, 429, 500, 502, 503, 504)
            ),
            pytest.param(close(), id="closed without a word"),
            pytest.param(reset(), id="reset"),
            pytest.param(cut_in_head(10), id="cut in the head"),
            pytest.param(answer(503, chunked=True), id="chunked"),
            pytest.param(answer(503, body=b"x" * 999_999), id="a body nobody reads"),
        ],
    )
    def test_after_each_transient_fault(self, step):
        with serve(step, answer()) as server:
            status, _, state, sleeps = fetch(server.url)
            assert server.wait_for_open()
        assert (status, state.attempt, sleeps) == (200, 2, [1])

    def test_after_a_response_whose_connection_is_dropped(self):
        with serve(drop_after(answer(503)), answer()) as server:
            status, _, _, sleeps = fetch(server.url)
        assert status == 200
        # It may be used once more before the client notices.
        assert sleeps in ([1], [1, 2])

    @pytest.mark.parametrize(
        "plans",
        [[refused(), refused()], [reset_at_once()]],
        ids=["refused", "reset at once"],
    )
    def test_after_failed_connections(self, plans):
        async def listening(request, handler):
            try:
                return await handler(request)
            except aiohttp.ClientOSError:
                faults.listen()
                raise

        with serve() as server, proxy(server.port, *plans, through()) as faults:
            url = f"http://127.0.0.1:{faults.port}"
            status, _, state, _ = fetch(url, "GET", listening)
        assert (status, state.attempt) == (200, len(plans) + 1)

    @pytest.mark.parametrize(
        "step", [answer(404), answer(501), answer(304)], ids=["404", "501", "304"]
    )
    def test_not_after_another_status(self, step):
        with serve(step) as server:
            *_, state, sleeps = fetch(server.url)
        assert (state.attempt, sleeps, len(server.seen)) == (1, [], 1)

    @pytest.mark.parametrize(
        "step",
        [cut(5), cut(5, chunked=True), reset_in_body(5)],
        ids=["cut", "cut in chunks", "reset"],
    )
    def test_not_after_a_truncated_body(self, step):
        async def main():
            async with session() as client, client.get(server.url) as response:
                with pytest.raises(aiohttp.ClientPayloadError):
                    await response.read()
                return state_of(response).attempt

        with serve(step, answer()) as server:
            assert asyncio.run(main()) == len(server.seen) == 1

    def test_not_after_a_response_that_is_not_http(self):
        with serve(garbage()) as server:
            error, _ = fetch_error(server.url, kind=aiohttp.ClientResponseError)
        assert (state_of(error).attempt, len(server.seen)) == (1, 1)

    def test_the_handshake_of_a_websocket(self):
        async def main():
            with (
                virtual_time(),
                pytest.raises(aiohttp.WSServerHandshakeError) as caught,
            ):
                async with session() as client:
                    await client.ws_connect(server.url)
            return caught.value.status

        with serve(answer(503), answer(404)) as server:
            assert asyncio.run(main()) == 404
        assert len(server.seen) == 2


class TestOutcomes:
    def test_the_last_response_can_be_read(self):
        with serve(answer(502), answer(503, body=b"busy")) as server:
            status, body, state, sleeps = fetch(server.url)
        assert (status, body, sleeps, len(server.seen)) == (503, b"busy", [1, 2], 3)
        assert state.stop_reason is StopReason.ATTEMPTS

    @pytest.mark.parametrize(
        ("step", "kind"),
        [
            (close(), aiohttp.ServerDisconnectedError),
            (reset(), aiohttp.ClientOSError),
        ],
        ids=["closed", "reset"],
    )
    def test_the_last_error_after_no_more_requests_than_attempts(self, step, kind):
        with serve(step) as server:
            error, sleeps = fetch_error(server.url, kind=kind)
        assert (state_of(error).attempt, sleeps, len(server.seen)) == (3, [1, 2], 3)
        assert error.__notes__ == [
            "retrykit: gave up after 3 attempts in 3 s: max_attempts=3 reached"
        ]

    def test_the_error_for_its_status_with_the_response(self):
        with serve(answer(503)) as server:
            error, sleeps = fetch_error(
                server.url, raise_for_status=True, kind=aiohttp.ClientResponseError
            )
        assert (error.status, error.response.status, sleeps) == (503, 503, [1, 2])
        assert state_of(error).failures[-1].result is error.response
        assert state_of(error).attempt == len(server.seen) == 3

    def test_a_released_good_response_is_freed(self):
        with serve() as server:
            assert fetch(server.url, raise_for_status=True)[0] == 200

    @pytest.mark.parametrize(
        "step", [answer(404), close(), reset()], ids=["status", "closed", "reset"]
    )
    def test_the_last_error_is_freed_without_garbage_collection(self, step):
        async def main():
            with virtual_time():
                async with session() as client:
                    try:
                        response = await client.get(server.url)
                    except aiohttp.ClientError as error:
                        return weakref.ref(error)
                    await response.read()
                    return weakref.ref(response)

        gc.collect()
        gc.disable()
        try:
            with serve(step) as server:
                assert asyncio.run(main())() is None
        finally:
            gc.enable()

    def test_a_response_for_each_hop_of_a_redirect(self):
        async def main():
            with virtual_time():
                async with session() as client, client.get(server.url) as response:
                    hops = [*response.history, response]
                    return [state_of(hop).attempt for hop in hops]

        steps = answer(503), redirect("/there"), answer(503), answer(503), answer()
        with serve(*steps) as server:
            assert asyncio.run(main()) == [2, 3]

    def test_a_redirect_loop_raises_the_clients_own_error(self):
        with serve(redirect("/")) as server:
            error, sleeps = fetch_error(server.url, kind=aiohttp.TooManyRedirects)
        assert (len(error.history), sleeps, len(server.seen)) == (10, [], 10)


class TestTime:
    def fetch_error(self, *steps, **settings):
        """Return the error of a request, and the number of requests sent."""

        async def main():
            with pytest.raises(TimeoutError) as caught:
                async with session(**settings) as client:
                    await client.get(server.url)
            return caught.value

        with serve(*steps) as server:
            error = asyncio.run(main())
            assert server.wait_for_open()
        return error, len(server.seen)

    def in_virtual_time(self, main):
        with (
            virtual_time() as clock,
            asyncio.Runner(loop_factory=clock.new_event_loop) as runner,
        ):
            return runner.run(main()), clock.sleeps

    def test_an_attempt_that_takes_too_long_is_ended(self):
        error, sent = self.fetch_error(hang(), attempt_timeout=0.2, schedule=[0, 0])
        assert isinstance(error, AttemptTimeout)
        assert sent == 3
        state = state_of(error)
        assert state.stop_reason is StopReason.ATTEMPTS
        assert all(failure.duration >= 0.2 for failure in state.failures)

    def test_a_socket_timeout_is_retried(self):
        timeout = aiohttp.ClientTimeout(sock_read=0.05)
        error, sent = self.fetch_error(hang(), timeout=timeout, schedule=[0, 0])
        assert isinstance(error, aiohttp.SocketTimeoutError)
        assert sent == 3

    def test_the_total_ends_an_attempt_and_the_call(self):
        timeout = aiohttp.ClientTimeout(total=0.3)
        error, sent = self.fetch_error(hang(), timeout=timeout)
        assert sent == 1
        assert state_of(error).stop_reason is StopReason.GAVE_UP

    def test_the_total_ends_a_delay(self):
        async def main():
            with pytest.raises(TimeoutError) as caught:
                async with session(timeout=aiohttp.ClientTimeout(total=2)) as client:
                    await client.get(server.url)
            return caught.value, asyncio.get_running_loop().time()

        with serve(answer(503)) as server:
            (error, end), sleeps = self.in_virtual_time(main)
            assert server.wait_for_open()
        assert (end, sleeps, len(server.seen)) == (2.0, [1, 2], 2)
        state = state_of(error.__cause__)
        assert (state.attempt, state.stop_reason) == (2, StopReason.CANCELLED)

    def cancelled_after(self, wait, server):
        async def main():
            async with session(schedule=[60]) as client:
                call = asyncio.ensure_future(client.get(server.url))
                await wait()
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                return asyncio.get_running_loop().time()

        return main

    def test_a_call_cancelled_in_a_delay_ends_at_once(self):
        second = functools.partial(asyncio.sleep, 1)
        with serve(answer(503)) as server:
            assert self.in_virtual_time(self.cancelled_after(second, server))[0] == 1.0
            assert server.wait_for_open()
        assert len(server.seen) == 1

    def test_a_call_cancelled_in_an_attempt_ends_at_once(self):
        async def request():
            while not server.seen:  # noqa: ASYNC110  by a thread
                await asyncio.sleep(0.01)

        with serve(hang()) as server:
            asyncio.run(self.cancelled_after(request, server)())
            assert server.wait_for_open()
        assert len(server.seen) == 1


class TestOuterCalls:
    @pytest.mark.parametrize(
        ("step", "ends"),
        [
            (answer(503), aiohttp.ClientResponseError),
            (close(), aiohttp.ServerDisconnectedError),
        ],
        ids=["status", "error"],
    )
    def test_do_not_retry_its_exhausted_error(self, step, ends):
        async def main():
            @aretry(policy(schedule=[8, 9], max_attempts=3))
            async def get():
                async with client.get(server.url) as response:
                    response.raise_for_status()

            with virtual_time() as clock:
                async with session() as client:
                    with pytest.raises(ends) as caught:
                        await get()
            return state_of(caught.value), clock.sleeps

        with serve(step) as server:
            state, sleeps = asyncio.run(main())
        assert (len(server.seen), sleeps) == (3, [1, 2])
        assert (state.attempt, state.stop_reason) == (1, StopReason.NESTED)
        assert state.nested_state.attempt == 3

    def test_do_not_retry_its_exhausted_response(self):
        async def main():
            with virtual_time() as clock:
                async with session() as client:
                    get = policy(schedule=[8, 9], raises="last").acall
                    with pytest.raises(Exception) as caught:
                        await get(client.get, server.url)
            return state_of(caught.value).stop_reason, clock.sleeps

        with serve(answer(503)) as server:
            assert asyncio.run(main()) == (StopReason.NESTED, [1, 2])

    @pytest.mark.parametrize(
        ("middlewares", "sent"),
        [([], 4), ([RetryMiddleware(max_attempts=1)], 2)],
        ids=["without", "with"],
    )
    def test_send_each_request_twice_without_the_middleware(self, middlewares, sent):
        """aiohttp itself repeats them, as the module's docstring says."""

        async def main():
            with virtual_time():
                async with aiohttp.ClientSession(middlewares=middlewares) as client:
                    get = policy(schedule=[1], max_attempts=2).acall
                    with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
                        await get(client.get, server.url)
            return state_of(caught.value)

        with serve(close()) as server:
            state = asyncio.run(main())
        assert (state.attempt, state.stop_reason) == (2, StopReason.ATTEMPTS)
        assert len(server.seen) == sent

    def test_run_concurrently_on_one_session(self):
        async def get(client, number):
            async with client.get(f"{server.url}/{number}") as response:
                return await response.text(), state_of(response).attempt

        async def main():
            with virtual_time(stall_timeout=60):
                async with session() as client:
                    return await asyncio.gather(*(get(client, n) for n in range(60)))

        met = set()

        def first_fails(seen):
            if seen.path in met:
                return answer(body=seen.path.encode())
            met.add(seen.path)
            return reset() if seen.path.endswith("5") else answer(503)

        with serve(first_fails) as server:
            assert asyncio.run(main()) == [(f"/{n}", 2) for n in range(60)]

    def test_have_their_traces_and_cookies(self):
        async def main():
            traces = aiohttp.TraceConfig()
            traced = []

            async def trace(client, context, params):
                traced.append(type(params).__name__)

            traces.on_request_start.append(trace)
            traces.on_request_headers_sent.append(trace)
            traces.on_request_end.append(trace)
            with virtual_time():
                async with session(trace_configs=[traces]) as client:
                    client.cookie_jar.update_cookies({"own": "1"})
                    await (
                        await client.get("http://localhost:" + str(server.port))
                    ).read()
                    return traced, {each.key for each in client.cookie_jar}

        first = answer(503, [("Set-Cookie", "lost=1")])
        with serve(first, answer(200, [("Set-Cookie", "kept=1")])) as server:
            traced, cookies = asyncio.run(main())
        sent = "TraceRequestHeadersSentParams"
        assert traced == [
            "TraceRequestStartParams",
            sent,
            sent,
            "TraceRequestEndParams",
        ]
        assert "kept" in cookies
        assert "lost" not in cookies
        assert [seen.headers["cookie"] for seen in server.seen] == ["own=1", "own=1"]
