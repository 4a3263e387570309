"""An upload that must not be sent twice, and one that may be.

The service writes each upload down, and then its connection breaks: the client
cannot know whether it was taken. A POST is not sent again, and the error says so;
with an ``Idempotency-Key``, by which the service knows it again, it is. A body that
can be read only once is never sent half.

Prints, where ``...`` is another text elsewhere::

    A POST
      RemoteProtocolError: Server disconnected without sending a response.
      retrykit: gave up after 1 attempt: POST is retried only with an ...
      sent 1 time, stored 1 time
    A POST with an Idempotency-Key
      201, succeeded after 3 attempts in ...
      sent 3 times, stored 1 time
    A PUT of a stream
      RemoteProtocolError: Server disconnected without sending a response.
      retrykit: gave up after 1 attempt: its body is a stream that cannot be ...
      sent 1 time, stored 1 time
    A PUT of a file
      201, succeeded after 3 attempts in ...
      sent 3 times, stored 1 time
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from uuid import uuid4

import httpx

from retrykit import state_of
from retrykit.integrations.httpx import RetryTransport

ORDER = b"one house, blue"


class Store:
    """What the service has: what was sent, and what it has stored by key."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.stored: dict[str, bytes] = {}

    def take(self, key: str, body: bytes) -> bool:
        """Store an upload, and return whether its sender will hear of it."""
        self.sent.append(body)
        self.stored[key] = body
        return len(self.sent) > 2


def upload(title: str, method: str, **request: Any) -> None:
    """Upload something, and print what came of it."""
    print(title)
    store = Store()
    transport = RetryTransport(schedule=["10ms", "20ms", "40ms"])
    with service(store) as url, httpx.Client(transport=transport) as client:
        try:
            response = client.request(method, url, **request)
        except httpx.TransportError as error:
            print(f"  {type(error).__name__}: {error}")
            print(" ", *error.__notes__)
        else:
            state = state_of(response)
            assert state is not None
            print(f"  {response.status_code}, {state.describe()}")
    assert set(store.sent) == set(store.stored.values()) == {ORDER}
    print(f"  sent {times(store.sent)}, stored {times(store.stored)}")


def times(things: Any) -> str:
    """Return how many there are, in words."""
    return f"{len(things)} time{'' if len(things) == 1 else 's'}"


@contextmanager
def service(store: Store) -> Iterator[str]:
    """Serve uploads, and give the URL."""

    class Uploads(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            key = self.headers.get("Idempotency-Key", str(uuid4()))
            self.close_connection = True
            if store.take(key, self.body()):
                self.send_response(201)
                self.send_header("Content-Length", "0")
                self.end_headers()

        def do_PUT(self) -> None:
            # What is put in one place twice is there once.
            self.close_connection = True
            if store.take(self.path, self.body()):
                self.send_response(201)
                self.send_header("Content-Length", "0")
                self.end_headers()

        def body(self) -> bytes:
            if "Content-Length" in self.headers:
                return self.rfile.read(int(self.headers["Content-Length"]))
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            return b"".join(pieces)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Uploads) as server:
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def main() -> None:
    """Upload in four ways."""
    upload("A POST", "POST", content=ORDER)
    key = {"Idempotency-Key": str(uuid4())}
    upload("A POST with an Idempotency-Key", "POST", content=ORDER, headers=key)
    upload("A PUT of a stream", "PUT", content=iter([ORDER[:5], ORDER[5:]]))
    upload("A PUT of a file", "PUT", content=io.BytesIO(ORDER))


if __name__ == "__main__":
    main()
