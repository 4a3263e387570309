"""A real HTTP service that fails on a script, and a client that gets through.

The service refuses a connection, drops one, lets one time out and answers one
with 503; only then does it say hello. The same policy carries a blocking client
and a coroutine through all of it. At last the service is down for good, and a
handler reads from the error what had happened.

Prints, where ``...`` is a number or a text that is another one elsewhere::

    A service that comes back, called by a thread
      attempt 1: ConnectionRefusedError(...)
                 next attempt in ... ms
      attempt 2: RemoteDisconnected('Remote end closed connection without response')
                 next attempt in ... ms
      attempt 3: TimeoutError('timed out')
                 next attempt in ... ms
      attempt 4: StatusError(503, 'Service Unavailable')
                 next attempt in ... ms
      attempt 5: succeeded, ... ms after the first began
    The service says: hello

    The same, awaited by a task
      attempt 1: ConnectionRefusedError(...)
                 next attempt in ... ms
      attempt 2: ConnectionResetError('closed without an answer')
                 next attempt in ... ms
      attempt 3: TimeoutError()
                 next attempt in ... ms
      attempt 4: StatusError(503, 'Service Unavailable')
                 next attempt in ... ms
      attempt 5: succeeded, ... ms after the first began
    The service says: hello

    A service that is down for good
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
    In the handler, from the error alone: StatusError(503, 'Service Unavailable')
      attempt  error                     took  delay after it
            1  ConnectionRefusedError  ... ms  ... ms
            2  RemoteDisconnected      ... ms  ... ms
            3  TimeoutError            ... ms  ... ms
            4  StatusError             ... ms  ... ms
            5  StatusError             ... ms            none
      stop reason: attempts
      note: retrykit: gave up after 5 attempts in ...: max attempts reached
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
from retrykit.schedules import exponential
from retrykit.state.events import (
    AttemptFailed,
    Event,
    GaveUp,
    RetryScheduled,
    Succeeded,
)

HOST = "127.0.0.1"
TIMEOUT = 0.3


class StatusError(Exception):
    """The service answered, but not with what it was asked for."""


def narrate(event: Event) -> None:
    """Print what happens in a call, as it happens."""
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
    observers=[narrate],
)


@retry(POLICY)
def fetch(port: int) -> str:
    """Return what the service says."""
    with closing(HTTPConnection(HOST, port, timeout=TIMEOUT)) as connection:
        connection.request("GET", "/")
        with connection.getresponse() as answer:
            if answer.status != HTTPStatus.OK:
                raise StatusError(answer.status, answer.reason)
            return answer.read().decode()


@aretry(POLICY)
async def afetch(port: int) -> str:
    """Return what the service says; other tasks run meanwhile."""
    async with asyncio.timeout(TIMEOUT):
        reader, writer = await asyncio.open_connection(HOST, port)
        with closing(writer):
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        await writer.wait_closed()
    if not head:
        msg = "closed without an answer"
        raise ConnectionResetError(msg)
    _version, status, reason = head.decode().splitlines()[0].split(maxsplit=2)
    if int(status) != HTTPStatus.OK:
        raise StatusError(int(status), reason)
    return body.decode()


class FlakyService(TCPServer):
    """An HTTP service on a free port that fails on a script.

    Its port refuses connections until a client has heard that and will come
    again: let it `listen` to the calls, and nothing depends on a timer. When
    its script is over, the last turn is repeated.

    Args:
        *script: What happens to one request after the other: ``"drop"``,
            ``"hang"``, or a status to answer with.
    """

    def __init__(self, *script: str | int) -> None:
        super().__init__((HOST, 0), Turn, bind_and_activate=False)
        self.script: Iterator[str | int] = chain(script, repeat(script[-1]))
        self.thread = Thread(target=self.serve_forever, args=[0.01])
        self.server_bind()
        self.port = self.server_address[1]

    def listen(self, event: Event) -> None:
        """Open the port once the first retry is scheduled."""
        if isinstance(event, RetryScheduled) and event.state.attempt == 1:
            self.server_activate()
            self.thread.start()

    def server_close(self) -> None:
        """Stop, and close the port."""
        if self.thread.is_alive():
            self.shutdown()
            self.thread.join()
        super().server_close()


class Turn(BaseHTTPRequestHandler):
    """One request, and what the script has for it."""

    server: FlakyService

    def do_GET(self) -> None:
        """Drop the connection, never answer, or answer."""
        turn = next(self.server.script)
        if turn == "hang":
            self.rfile.read(1)  # returns when the client has hung up
        elif isinstance(turn, int):
            self.send_response_only(turn)
            self.end_headers()
            self.wfile.write(b"hello")


def tell(error: Exception) -> None:
    """Print what is recorded of the call that gave up with this error."""
    state = state_of(error)
    if state is None:  # it came from elsewhere
        raise error
    print(f"In the handler, from the error alone: {error!r}")
    print("  attempt  error                     took  delay after it")
    for failure in state.failures:
        kind = type(failure.error).__name__
        took = f"{failure.duration * 1000:.0f} ms"
        delay = "none" if failure.delay is None else f"{failure.delay * 1000:.0f} ms"
        print(f"  {failure.attempt:>7}  {kind:22}  {took:>6}  {delay:>14}")
    print(f"  stop reason: {state.stop_reason}")
    print(f"  note: {error.__notes__[-1]}")


def main() -> None:
    """Call three services."""
    print("A service that comes back, called by a thread")
    with FlakyService("drop", "hang", 503, 200) as service, observe(service.listen):
        print(f"The service says: {fetch(service.port)}\n")

    print("The same, awaited by a task")
    with FlakyService("drop", "hang", 503, 200) as service, observe(service.listen):
        print(f"The service says: {asyncio.run(afetch(service.port))}\n")

    print("A service that is down for good")
    with FlakyService("drop", "hang", 503) as service, observe(service.listen):
        try:
            fetch(service.port)
        except StatusError as error:
            tell(error)


if __name__ == "__main__":
    main()
