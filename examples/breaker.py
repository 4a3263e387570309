"""A circuit breaker in a policy, which opens when a real HTTP service fails, and heals.

The service answers 503 for a while. The first call retries until the breaker opens, and
ends there: it does not wait for a retry that would be refused. Calls while it is open
fail at once, without a request. When its time is over, one attempt goes through as a
probe: the first still fails, and the breaker stays open for longer; the second
succeeds.

Prints::

    closed -> open: 3 calls in a row failed
    call 1: 503 Service Unavailable, attempts: 3
    call 2: refused without a request, for 4 s more
    open -> half-open: its time is over
    half-open -> open: 1 of 1 probe failed
    call 3: 503 Service Unavailable, attempts: 1
    call 4: refused without a request, for 9 s more
    open -> half-open: its time is over
    half-open -> closed: 1 of 1 probe succeeded
    call 5: hello
    call 6: hello
    The service saw 6 requests.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from itertools import chain, repeat
from socketserver import TCPServer
from threading import Thread

from retrykit import CircuitOpenError, retry, state_of
from retrykit.limits import CircuitBreaker, CircuitChange
from retrykit.testing import virtual_time


class StatusError(Exception):
    """The service answered with an error status."""


def print_change(change: CircuitChange) -> None:
    """Print a change of the breaker; an observer."""
    print(f"{change.old} -> {change.new}: {change.reason}")


breaker = CircuitBreaker(
    name="service",
    consecutive_failures=3,
    open_for=["5s", "10s", "30s"],
    observers=[print_change],
)


@retry(schedule=["1s", "1s", "1s"], on=(OSError, StatusError), admission=[breaker])
def fetch(port: int) -> str:
    """Return the response of the service."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        connection.request("GET", "/")
        with connection.getresponse() as response:
            if response.status != HTTPStatus.OK:
                msg = f"{response.status} {response.reason}"
                raise StatusError(msg)
            return response.read().decode()


class Service(TCPServer):
    """An HTTP service on a free port that fails four times, and then works."""

    def __init__(self) -> None:
        self.statuses: Iterator[int] = chain([503] * 4, repeat(200))
        self.requests = 0
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    """Answers with the next status."""

    server: Service

    def do_GET(self) -> None:
        """Answer."""
        self.server.requests += 1
        self.send_response_only(next(self.server.statuses))
        self.end_headers()
        self.wfile.write(b"hello")


@contextmanager
def running_service() -> Iterator[Service]:
    """Run the service in a thread."""
    with Service() as service:
        thread = Thread(target=service.serve_forever, args=[0.01])
        thread.start()
        try:
            yield service
        finally:
            service.shutdown()
            thread.join()


def main() -> None:
    """Call the service; between calls, time passes without waiting."""
    with running_service() as service, virtual_time() as clock:
        for number, wait in enumerate([0, 1, 5, 1, 9, 1], start=1):
            clock.advance(wait)
            try:
                text = fetch(service.server_address[1])
            except StatusError as error:
                history = state_of(error)
                text = f"{error}, attempts: {history.attempt if history else 0}"
            except CircuitOpenError as error:
                text = f"refused without a request, for {error.retry_in:g} s more"
            print(f"call {number}: {text}")
        print(f"The service saw {service.requests} requests.")


if __name__ == "__main__":
    main()
