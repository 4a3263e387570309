"""A client of an HTTP API, and its tests.

The tests talk to a real server on a free port, and wait for nothing: retrykit's pytest
plugin provides the fixtures. Here `main` calls pytest.

Prints::

    .....                                                                    [100%]
    5 passed in ...
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from retrykit import Policy, StopReason, aretry, retry, state_of
from retrykit.schedules import exponential
from retrykit.testing import (
    AsyncScriptedFunction,
    FakeClock,
    Recording,
    ScriptedFunction,
)

# ---- the client ----


class BusyError(Exception):
    """The service is overloaded."""


class RejectedError(Exception):
    """The service will never answer this request."""


POLICY = Policy(
    on=(BusyError, ConnectionError, TimeoutError),
    schedule=exponential("1s", factor=2).cap("1m"),
    max_attempts=6,
    max_elapsed="5m",
)


class Shop:
    """Client of a shop's API."""

    def __init__(self, port: int) -> None:
        self.port = port

    @retry(POLICY)
    def price(self, article: str) -> int:
        """Return the price of an article, in cents."""
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=5)) as connection:
            connection.request("GET", f"/{article}")
            response = connection.getresponse()
            body = response.read()
        if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise BusyError(response.status)
        if response.status != HTTPStatus.OK:
            raise RejectedError(response.status)
        cents: int = json.loads(body)["cents"]
        return cents


# ---- its tests ----

Serve = Callable[[ScriptedFunction], Shop]


@pytest.fixture(name="serve")
def serve_on_a_free_port() -> Iterator[Serve]:
    """Start servers that respond with the statuses of a scripted function."""
    servers = []

    def serve(statuses: ScriptedFunction) -> Shop:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response_only(statuses(self.path))
                self.end_headers()
                self.wfile.write(b'{"cents": 250}')

        servers.append(HTTPServer(("127.0.0.1", 0), Handler))
        Thread(target=servers[-1].serve_forever, args=[0.01]).start()
        return Shop(servers[-1].server_port)

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_waits_longer_each_time(serve: Serve, retry_clock: FakeClock) -> None:
    """The delays grow, and take no real time."""
    shop = serve(ScriptedFunction([503, 500, 200]))
    assert shop.price("tea") == 250
    assert retry_clock.sleeps == [1.0, 2.0]


def test_does_not_retry_a_404(serve: Serve, retry_events: Recording) -> None:
    """The call has one attempt, and the reason is recorded."""
    shop = serve(ScriptedFunction([404]))
    with pytest.raises(RejectedError):
        shop.price("gold")
    retry_events.assert_attempts(shop.price, 1)
    retry_events.assert_gave_up(shop.price, StopReason.NOT_RETRYABLE)


@pytest.mark.retry_time(start=1_000)
def test_gives_up_after_six_attempts(serve: Serve) -> None:
    """The error has the state of the call."""
    statuses = ScriptedFunction([503, ...])
    with pytest.raises(BusyError) as caught:
        serve(statuses).price("tea")
    assert statuses.times == [1000.0, 1001.0, 1003.0, 1007.0, 1015.0, 1031.0]
    state = state_of(caught.value)
    assert state is not None
    assert state.stop_reason is StopReason.ATTEMPTS


@pytest.mark.usefixtures("no_retries")
def test_raises_the_first_error_without_retries(serve: Serve) -> None:
    """A fixture switches retries off."""
    statuses = ScriptedFunction([503, 200])
    with pytest.raises(BusyError):
        serve(statuses).price("tea")
    assert [call.args for call in statuses.calls] == [("/tea",)]


def test_jitter_spreads_retries_out(retry_clock: FakeClock) -> None:
    """A hundred concurrent tasks retry at different times."""
    customers = [AsyncScriptedFunction([BusyError, "served"]) for _ in range(100)]

    async def call_all() -> None:
        policy = POLICY.replace(schedule=exponential("1m").full_jitter())
        await asyncio.gather(*(aretry(policy)(customer)() for customer in customers))

    asyncio.run(call_all())
    retried_at = [customer.times[1] for customer in customers]
    assert len(set(retried_at)) == 100
    assert max(retried_at) == retry_clock.now() <= 60


def main() -> None:
    """Run the tests, regardless of pytest's settings in the project."""
    settings = ["-o", "addopts=", "-p", "no:cacheprovider", "--noconftest"]
    plugins = ["--disable-plugin-autoload", "-p", "retrykit.testing.pytest_plugin"]
    command = ["-m", "pytest", "-q", *settings, *plugins]
    environ = os.environ | {"PYTEST_ADDOPTS": "--color=no"}
    subprocess.run([sys.executable, *command, __file__], check=False, env=environ)  # noqa: S603


if __name__ == "__main__":
    main()
