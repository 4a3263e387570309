"""A client of an HTTP API, and the tests that its author writes for it.

The tests talk to a real server on a free port, and wait for nothing: the
fixtures come with retrykit. A test runner would find them; here `main` calls it.

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
    """The service asks to come back later."""


class RefusedError(Exception):
    """The service will not answer this, now or later."""


POLICY = Policy(
    on=(BusyError, ConnectionError, TimeoutError),
    schedule=exponential("1s", factor=2).cap("1m"),
    max_attempts=6,
    max_elapsed="5m",
)


class Shop:
    """What a shop's API knows of its goods."""

    def __init__(self, port: int) -> None:
        self.port = port

    @retry(POLICY)
    def price(self, article: str) -> int:
        """Return the price of an article, in cents."""
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=5)) as line:
            line.request("GET", f"/{article}")
            answer = line.getresponse()
            body = answer.read()
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise BusyError(answer.status)
        if answer.status != HTTPStatus.OK:
            raise RefusedError(answer.status)
        cents: int = json.loads(body)["cents"]
        return cents


# ---- its tests ----

Serve = Callable[[ScriptedFunction], Shop]


@pytest.fixture(name="serve")
def serve_on_a_free_port() -> Iterator[Serve]:
    """Return what starts a server whose answers are on a script."""
    servers = []

    def serve(statuses: ScriptedFunction) -> Shop:
        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response_only(statuses(self.path))
                self.end_headers()
                self.wfile.write(b'{"cents": 250}')

        servers.append(HTTPServer(("127.0.0.1", 0), Answer))
        Thread(target=servers[-1].serve_forever, args=[0.01]).start()
        return Shop(servers[-1].server_port)

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_waits_longer_each_time(serve: Serve, retry_clock: FakeClock) -> None:
    """It has the price after two delays, and no time has passed."""
    shop = serve(ScriptedFunction([503, 500, 200]))
    assert shop.price("tea") == 250
    assert retry_clock.sleeps == [1.0, 2.0]


def test_does_not_ask_again_what_is_refused(
    serve: Serve, retry_events: Recording
) -> None:
    """A 404 stays one."""
    shop = serve(ScriptedFunction([404]))
    with pytest.raises(RefusedError):
        shop.price("gold")
    retry_events.assert_attempts(shop.price, 1)
    retry_events.assert_gave_up(shop.price, StopReason.NOT_RETRYABLE)


@pytest.mark.retry_time(start=1_000)
def test_gives_up_in_the_end(serve: Serve) -> None:
    """The error has the history of the call."""
    statuses = ScriptedFunction([503, ...])
    with pytest.raises(BusyError) as caught:
        serve(statuses).price("tea")
    assert statuses.times == [1000.0, 1001.0, 1003.0, 1007.0, 1015.0, 1031.0]
    state = state_of(caught.value)
    assert state is not None
    assert state.stop_reason is StopReason.ATTEMPTS


@pytest.mark.usefixtures("no_retries")
def test_asks_once_where_the_rest_of_a_suite_is_in_a_hurry(serve: Serve) -> None:
    """The first error passes through."""
    statuses = ScriptedFunction([503, 200])
    with pytest.raises(BusyError):
        serve(statuses).price("tea")
    assert [call.args for call in statuses.calls] == [("/tea",)]


def test_customers_do_not_come_back_together(retry_clock: FakeClock) -> None:
    """A hundred tasks side by side, each with a chance of its own."""
    customers = [AsyncScriptedFunction([BusyError, "served"]) for _ in range(100)]

    async def open_the_doors() -> None:
        policy = POLICY.replace(schedule=exponential("1m").full_jitter())
        await asyncio.gather(*(aretry(policy)(customer)() for customer in customers))

    asyncio.run(open_the_doors())
    came_back = [customer.times[1] for customer in customers]
    assert len(set(came_back)) == 100
    assert max(came_back) == retry_clock.now() <= 60


def main() -> None:
    """Run the tests, whatever the settings of the project around them."""
    settings = ["-o", "addopts=", "-p", "no:cacheprovider", "--noconftest"]
    plugins = ["--disable-plugin-autoload", "-p", "retrykit.testing.pytest_plugin"]
    command = ["-m", "pytest", "-q", *settings, *plugins]
    environ = os.environ | {"PYTEST_ADDOPTS": "--color=no"}
    subprocess.run([sys.executable, *command, __file__], check=False, env=environ)  # noqa: S603


if __name__ == "__main__":
    main()
