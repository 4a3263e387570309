"""Retry an upload only if it is safe to send it twice.

The service stores each upload, and then the connection breaks, so the client cannot
tell whether the upload arrived. A POST is not sent again, and its error says why. With
an ``Idempotency-Key``, which lets the service recognize a duplicate, it is sent again.
A stream, which can be read only once, is not.

Prints, where ``...`` stands for the rest of a line::

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
    """The requests that the service has received, and the uploads by their key."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.stored: dict[str, bytes] = {}

    def save(self, key: str, body: bytes) -> bool:
        """Store an upload; return False for the first two, whose connection breaks."""
        self.received.append(body)
        self.stored[key] = body
        return len(self.received) > 2


def upload(title: str, method: str, **request: Any) -> None:
    """Upload an order, and print the outcome."""
    print(title)
    store = Store()
    transport = RetryTransport(schedule=["10ms", "20ms", "40ms"])
    with serve(store) as url, httpx.Client(transport=transport) as client:
        try:
            response = client.request(method, url, **request)
        except httpx.TransportError as error:
            print(f"  {type(error).__name__}: {error}")
            print(" ", *error.__notes__)
        else:
            state = state_of(response)
            assert state is not None
            print(f"  {response.status_code}, {state.describe()}")
    assert set(store.received) == set(store.stored.values()) == {ORDER}
    sent, stored = len(store.received), len(store.stored)
    print(f"  sent {format_times(sent)}, stored {format_times(stored)}")


def format_times(count: int) -> str:
    """Return a count as text, such as ``1 time``."""
    return f"{count} time{'' if count == 1 else 's'}"


@contextmanager
def serve(store: Store) -> Iterator[str]:
    """Serve uploads in a thread, and yield the URL."""

    class Uploads(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            key = self.headers.get("Idempotency-Key", str(uuid4()))
            self.save(key)

        def do_PUT(self) -> None:
            # PUT is idempotent: a second one replaces the first.
            self.save(self.path)

        def save(self, key: str) -> None:
            self.close_connection = True
            if store.save(key, self.read_body()):
                self.send_response(201)
                self.send_header("Content-Length", "0")
                self.end_headers()

        def read_body(self) -> bytes:
            if "Content-Length" in self.headers:
                return self.rfile.read(int(self.headers["Content-Length"]))
            chunks = []
            while size := int(self.rfile.readline(), 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            return b"".join(chunks)

        def log_message(self, *_: object) -> None:
            """Keep requests out of the output."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Uploads) as server:
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def main() -> None:
    """Upload the order in four ways."""
    upload("A POST", "POST", content=ORDER)
    key = {"Idempotency-Key": str(uuid4())}
    upload("A POST with an Idempotency-Key", "POST", content=ORDER, headers=key)
    upload("A PUT of a stream", "PUT", content=iter([ORDER[:5], ORDER[5:]]))
    upload("A PUT of a file", "PUT", content=io.BytesIO(ORDER))


if __name__ == "__main__":
    main()
