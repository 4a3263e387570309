"""A real HTTP service that fails several times, and a client that retries.

The service refuses one connection, drops another, lets a third time out, answers 503,
and then answers hello. A sync client and an async one call it under the same policy.
In the end the service stays down, and the history of the call is read from its error.

Prints, where ``...`` differs from run to run::

    A service that recovers, with a sync client
      attempt 1: ConnectionRefusedError(...)
                 next attempt in ... ms
      attempt 2: RemoteDisconnected('Remote end closed connection without response')
                 next attempt in ... ms
      attempt 3: TimeoutError('timed out')
                 next attempt in ... ms
      attempt 4: StatusError(503, 'Service Unavailable')
                 next attempt in ... ms
      attempt 5: succeeded, ... ms after the first began
    The service answers: hello

    The same, with an async client
      attempt 1: ConnectionRefusedError(...)
                 next attempt in ... ms
      attempt 2: ConnectionResetError('closed without a response')
                 next attempt in ... ms
      attempt 3: TimeoutError()
                 next attempt in ... ms
      attempt 4: StatusError(503, 'Service Unavailable')
                 next attempt in ... ms
      attempt 5: succeeded, ... ms after the first began
    The service answers: hello

    A service that stays down
      attempt 1: ConnectionRefusedError(...)
                 next attempt in ... ms
      attempt 2: RemoteDisconnected('Remote end closed connection without response')
                 next attempt in ... ms
      attempt 3: TimeoutError('timed out')
                 next attempt in ... ms
      attempt 4: StatusError(503, 'Service Unavailable')
                 next attempt in ... ms
      attempt 5: StatusError(503, 'Service Unavailable')
                 no further attempt
    The history of StatusError(503, 'Service Unavailable')
      attempt  error                     took  next after
            1  ConnectionRefusedError  ... ms  ... ms
            2  RemoteDisconnected      ... ms  ... ms
            3  TimeoutError            ... ms  ... ms
            4  StatusError             ... ms  ... ms
            5  StatusError             ... ms        none
      stop reason: attempts
      note: retrykit: gave up after 5 attempts in ...: max_attempts=5 reached
"""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from itertools import chain, repeat
from socketserver import TCPServer
from threading import Thread

from retrykit import Policy, aretry, observe, retry, state_of
from retrykit.events import AttemptFailed, Event, GaveUp, RetryScheduled, Succeeded
from retrykit.schedules import exponential

HOST = "127.0.0.1"
TIMEOUT = 0.3


class StatusError(Exception):
    """The service answered with an error status."""


def print_event(event: Event) -> None:
    """Print the events of a call; an observer."""
    match event:
        case AttemptFailed(_, failure):
            print(f"  attempt {failure.attempt}: {failure.error!r}")
        case RetryScheduled(_, delay):
            print(f"             next attempt in {delay * 1000:.0f} ms")
        case GaveUp():
            print("             no further attempt")
        case Succeeded(state):
            after = f"{state.elapsed * 1000:.0f} ms after the first began"
            print(f"  attempt {state.attempt}: succeeded, {after}")


POLICY = Policy(
    schedule=exponential("20ms").jitter(0.5),
    max_attempts=5,
    on=(OSError, StatusError),
    observers=[print_event],
)


@retry(POLICY)
def fetch(port: int) -> str:
    """Return the response of the service."""
    with closing(HTTPConnection(HOST, port, timeout=TIMEOUT)) as connection:
        connection.request("GET", "/")
        with connection.getresponse() as response:
            if response.status != HTTPStatus.OK:
                raise StatusError(response.status, response.reason)
            return response.read().decode()


@aretry(POLICY)
async def afetch(port: int) -> str:
    """Return the response of the service; other tasks run meanwhile."""
    async with asyncio.timeout(TIMEOUT):
        reader, writer = await asyncio.open_connection(HOST, port)
        with closing(writer):
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        await writer.wait_closed()
    if not head:
        msg = "closed without a response"
        raise ConnectionResetError(msg)
    _version, status, reason = head.decode().splitlines()[0].split(maxsplit=2)
    if int(status) != HTTPStatus.OK:
        raise StatusError(int(status), reason)
    return body.decode()


class FlakyService(TCPServer):
    """An HTTP service on a free port that fails as scripted.

    Its port refuses connections until `open_port`, an observer, sees that the client
    will retry; so nothing depends on timing.

    Args:
        *script: The outcome of each request: ``"drop"``, ``"hang"``, or a status.
            The last one is repeated.
    """

    def __init__(self, *script: str | int) -> None:
        super().__init__((HOST, 0), Handler, bind_and_activate=False)
        self.script: Iterator[str | int] = chain(script, repeat(script[-1]))
        self.thread = Thread(target=self.serve_forever, args=[0.01])
        self.server_bind()
        self.port = self.server_address[1]

    def open_port(self, event: Event) -> None:
        """Accept connections once the first retry is scheduled."""
        if isinstance(event, RetryScheduled) and event.state.attempt == 1:
            self.server_activate()
            self.thread.start()

    def server_close(self) -> None:
        """Stop the service, and close the port."""
        if self.thread.is_alive():
            self.shutdown()
            self.thread.join()
        super().server_close()


class Handler(BaseHTTPRequestHandler):
    """Handles each request as the script says."""

    server: FlakyService

    def do_GET(self) -> None:
        """Drop the connection, hang, or answer."""
        outcome = next(self.server.script)
        if outcome == "hang":
            self.rfile.read(1)  # returns when the client closes the connection
        elif isinstance(outcome, int):
            self.send_response_only(outcome)
            self.end_headers()
            self.wfile.write(b"hello")


def print_history(error: Exception) -> None:
    """Print the history of the call that raised an error."""
    state = state_of(error)
    if state is None:  # not raised by a retried call
        raise error
    print(f"The history of {error!r}")
    print("  attempt  error                     took  next after")
    for failure in state.failures:
        kind = type(failure.error).__name__
        took = f"{failure.duration * 1000:.0f} ms"
        delay = "none" if failure.delay is None else f"{failure.delay * 1000:.0f} ms"
        print(f"  {failure.attempt:>7}  {kind:22}  {took:>6}  {delay:>10}")
    print(f"  stop reason: {state.stop_reason}")
    print(f"  note: {error.__notes__[-1]}")


def main() -> None:
    """Call three services."""
    print("A service that recovers, with a sync client")
    with FlakyService("drop", "hang", 503, 200) as service, observe(service.open_port):
        print(f"The service answers: {fetch(service.port)}\n")

    print("The same, with an async client")
    with FlakyService("drop", "hang", 503, 200) as service, observe(service.open_port):
        print(f"The service answers: {asyncio.run(afetch(service.port))}\n")

    print("A service that stays down")
    with FlakyService("drop", "hang", 503) as service, observe(service.open_port):
        try:
            fetch(service.port)
        except StatusError as error:
            print_history(error)


if __name__ == "__main__":
    main()
