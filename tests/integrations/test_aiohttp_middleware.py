"""Other middlewares around the aiohttp retry middleware."""

import asyncio
import gc
import weakref

import aiohttp
import pytest

from retrykit import StopReason, state_of
from retrykit.integrations.aiohttp import RetryMiddleware
from tests._support.aiohttp_sessions import virtual_time
from tests._support.fault_proxy import proxy, refused
from tests._support.scripted_server import answer, close, reset, serve


async def reads(request, handler):
    response = await handler(request)
    assert response.status
    return response


async def reads_and_ignores_errors(request, handler):
    response = await handler(request)
    for name in ("status", "headers"):
        try:
            getattr(response, name)
        except aiohttp.ClientError as error:
            assert state_of(error).attempt == 2
    return response


async def reads_private_attributes(request, handler):
    response = await handler(request)
    for name in ("_cookies", "_cookies", "status"):
        with pytest.raises(aiohttp.ClientConnectionError):
            getattr(response, name)
    return response


async def closes(request, handler):
    response = await handler(request)
    response.close()
    return response


def seen_by(url, *around, take=lambda error: error):
    """Return the error of a request, or a value taken from it, and the sleeps."""

    async def main():
        with virtual_time() as clock:
            inner = RetryMiddleware(schedule=[1], max_attempts=2)
            async with aiohttp.ClientSession(middlewares=[*around, inner]) as client:
                try:
                    await client.get(url)
                except aiohttp.ClientError as error:
                    return take(error), clock.sleeps

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (close(), aiohttp.ServerDisconnectedError),
        (reset(), aiohttp.ClientOSError),
    ],
    ids=["closed", "reset"],
)
class TestABrokenConnection:
    def test_sends_no_more_requests_because_of_a_reader(self, step, kind):
        with serve(step) as server:
            error, sleeps = seen_by(server.url, reads)
        assert (type(error), sleeps) == (aiohttp.ClientConnectionError, [1])
        assert isinstance(error.__cause__, kind)
        assert str(error) == str(error.__cause__)
        assert state_of(error).failures[-1].error is error.__cause__
        assert state_of(error).attempt == len(server.seen) == 2

    @pytest.mark.parametrize(
        "around", [reads_and_ignores_errors, closes], ids=["reads", "closes"]
    )
    def test_raises_the_error_itself(self, step, kind, around):
        with serve(step) as server:
            error, sleeps = seen_by(server.url, around)
        assert isinstance(error, kind)
        assert (state_of(error).attempt, sleeps, len(server.seen)) == (2, [1], 2)

    def test_can_be_read_twice(self, step, kind):
        with serve(step) as server:
            error, sleeps = seen_by(server.url, reads_private_attributes)
        assert isinstance(error, aiohttp.ClientConnectionError)
        assert not isinstance(error, kind)
        assert (sleeps, len(server.seen)) == ([1], 2)

    def test_is_a_failure_for_another_retry_middleware(self, step, kind):
        outer = RetryMiddleware(schedule=[8], max_attempts=2)
        with serve(step) as server:
            error, sleeps = seen_by(server.url, outer)
        state = state_of(error)
        assert isinstance(error, kind)
        assert (state.attempt, state.stop_reason) == (1, StopReason.NESTED)
        assert (sleeps, len(server.seen)) == ([1], 2)

    @pytest.mark.parametrize(
        "around",
        [reads, reads_and_ignores_errors, closes],
        ids=["reads", "reads and ignores errors", "closes"],
    )
    def test_is_freed_without_garbage_collection(self, step, kind, around):
        gc.collect()
        gc.disable()
        try:
            with serve(step) as server:
                reference, _ = seen_by(server.url, around, take=weakref.ref)
                assert reference() is None
        finally:
            gc.enable()


def test_a_connection_that_cannot_be_opened_is_raised_at_once():
    caught = []

    async def listening(request, handler):
        try:
            return await handler(request)
        except aiohttp.ClientConnectorError as error:
            caught.append(error)
            raise

    with serve() as server, proxy(server.port, refused()) as faults:
        error, sleeps = seen_by(f"http://127.0.0.1:{faults.port}", listening)
    assert (caught, sleeps) == ([error], [1])
    assert state_of(error).attempt == 2


def test_a_reader_sees_the_responses():
    with serve(answer(503), answer(404)) as server:
        assert seen_by(server.url, reads) is None
    assert len(server.seen) == 2


class SystemFault:
    """A middleware inside the retry middleware, whose code fails."""

    def __init__(self, *errors):
        self.errors = [*errors]

    async def __call__(self, request, handler):
        raise self.errors.pop(0) if len(self.errors) > 1 else self.errors[0]


async def error_of_a_request(*inside, **settings):
    """Return the error of a request, with middlewares inside of that of retrykit."""
    retrying = RetryMiddleware(schedule=[1, 1], **settings)
    async with aiohttp.ClientSession(middlewares=[retrying, *inside]) as client:
        try:
            await client.get("http://127.0.0.1:1/")
        except OSError as error:
            return error


@pytest.mark.parametrize(
    "fault",
    [
        OSError("no space"),
        OSError(28, "no space"),
        ConnectionResetError("hung up"),
        FileNotFoundError(2, "no such file", "key.pem"),
        TimeoutError(110, "timed out"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("on", [OSError, ValueError])
def test_an_error_of_the_system_keeps_its_history(fault, on):
    """aiohttp would raise a ClientOSError from it."""
    with virtual_time() as clock:
        error = asyncio.run(error_of_a_request(SystemFault(fault), on=on))
    assert type(error) is aiohttp.ClientOSError
    assert (error.args, error.errno) == (fault.args, fault.errno)
    assert error.__cause__ is fault
    state = state_of(error)
    assert state.errors[-1] is fault
    assert (state.attempt, len(clock.sleeps)) == ((3, 2) if on is OSError else (1, 0))


def test_a_timeout_of_the_code_inside_is_raised_as_it_is():
    with virtual_time():
        error = asyncio.run(error_of_a_request(SystemFault(TimeoutError())))
    assert type(error) is TimeoutError
    assert state_of(error).attempt == 1


def test_another_retry_middleware_retries_an_error_of_the_system():
    fault = ConnectionResetError("hung up")
    inner = RetryMiddleware(schedule=[1], on=OSError)
    with virtual_time() as clock:
        error = asyncio.run(error_of_a_request(inner, SystemFault(fault)))
    assert error.__cause__ is fault
    # The inner one has retried it, so the outer one does not.
    assert clock.sleeps == [1.0]
    assert state_of(error).stop_reason is StopReason.NESTED
