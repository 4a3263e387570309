"""An HTTP/1.1 server on 127.0.0.1 that answers requests by a script.

    with serve(answer(503, [("Retry-After", "2")]), reset(), answer()) as server:
        fetch(server.url)

Each request takes the next step; the last step is repeated. A step may also be a
function that returns a step for the request. It uses bare sockets, because no library
produces exact faults.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus

from tests._support.socket_server import SocketServer

__all__ = ["Seen", "Server", "Step", "serve"]
__all__ += ["answer", "close", "cut", "cut_in_head", "drop_after", "garbage"]
__all__ += ["hang", "redirect", "reset", "reset_in_body", "slow"]

FULL = b"0123456789" * 10
"""The whole body of an answer that is cut short."""


@dataclass(frozen=True)
class Seen:
    """A request, recorded when it was read completely.

    Connections are numbered from 1; values of a repeated header are joined.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    at: float


@dataclass(frozen=True)
class Step:
    """The bytes to send, and the state of the connection after that.

    The end is "kept", "closed" (FIN), "reset" (RST) or "hanging". With a pause, in
    seconds, the bytes are sent in eight pieces with the pause before each.
    """

    head: bytes = b""
    body: bytes = b""
    end: str = "closed"
    pause: float = 0.0

    def take(self, connection, method):
        """Answer a request, and return whether the connection is kept."""
        # In one piece: bytes that are sent before a reset arrive before it.
        data = self.head + (b"" if method == "HEAD" else self.body)
        size = max(1, -(-len(data) // 8)) if self.pause else len(data) or 1
        for start in range(0, len(data), size):
            connection.pause(self.pause)
            connection.send(data[start : start + size])
        if self.end == "hanging":
            connection.drain()
        elif self.end == "reset":
            connection.reset()
        return self.end == "kept"


def answer(status=200, headers=(), body=b"ok", *, chunked=False, close=False):
    """Answer; headers are pairs, so that a header can be repeated."""
    body = b"" if status in {204, 304} else body
    fields = list(headers)
    if chunked:
        fields.append(("Transfer-Encoding", "chunked"))
    elif status not in {204, 304}:
        fields.append(("Content-Length", str(len(body))))
    if close:
        fields.append(("Connection", "close"))
    return Step(
        _head(status, fields),
        _chunks(body) + b"0\r\n\r\n" if chunked else body,
        "closed" if close else "kept",
    )


def drop_after(step):
    """Answer as if the connection were kept, and close it.

    Most clients notice before they use it again. For one that does not, `close()` as
    the next step has the same effect every time.
    """
    return replace(step, end="closed")


def close():
    """Read the request, and close the connection without an answer."""
    return Step()


def reset():
    """Read the request, and reset the connection without an answer."""
    return Step(end="reset")


def cut(after, *, chunked=False):
    """Close the connection after so many of the 100 bytes of the body."""
    if chunked:
        # The chunk is complete; the last chunk is missing.
        return replace(answer(chunked=True), body=_chunks(FULL[:after]), end="closed")
    return replace(answer(body=FULL), body=FULL[:after], end="closed")


def reset_in_body(after, *, chunked=False):
    """Reset the connection after so many of the 100 bytes of the body."""
    return replace(cut(after, chunked=chunked), end="reset")


def cut_in_head(after):
    """Close the connection after so many bytes of the head."""
    return Step(answer(body=FULL).head[:after])


def hang():
    """Read the request, and send nothing until the client closes."""
    return Step(end="hanging")


def slow(pause, step):
    """Send a step in eight pieces, with a pause in seconds before each."""
    return replace(step, pause=pause)


def garbage():
    """Send bytes that are not HTTP, and close the connection."""
    return Step(b"\x16\x03 no HTTP at all\r\n\r\n\x00\xff")


def redirect(to):
    """Redirect the client to a path or a URL."""
    return answer(302, [("Location", to)], b"")


class Server(SocketServer):
    """The server that `serve` returns, with the requests that it has seen."""

    def __init__(self, steps, now):
        super().__init__()
        self.url = f"http://127.0.0.1:{self.port}"
        self.seen = []
        self._steps = steps
        self._now = now
        self._lock = threading.Lock()

    def handler_for(self, connection):
        return lambda: self._talk(connection)

    def _talk(self, connection):
        with connection.sock.makefile("rb") as stream:
            while request := _read(connection, stream):
                seen, step = self._record(
                    Seen(*request, connection.number, self._now())
                )
                while not isinstance(step, Step):
                    step = step(seen)
                if not step.take(connection, seen.method):
                    return

    def _record(self, seen):
        with self._lock:
            step = self._steps[min(len(self.seen), len(self._steps) - 1)]
            self.seen.append(seen)
        return seen, step


def serve(
    *steps: Step | Callable[[Seen], Step], now: Callable[[], float] = time.monotonic
) -> Server:
    """Return a server that listens; a context manager."""
    server = Server(steps or (answer(),), now)
    server.listen()
    return server


def _head(status, fields):
    lines = [f"HTTP/1.1 {status} {_phrase(status)}"]
    lines += [f"{name}: {value}" for name, value in fields]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _phrase(status):
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unheard Of"


def _chunks(body):
    """Return a body as chunks of at most seven bytes, without the last one."""
    parts = (body[start : start + 7] for start in range(0, len(body), 7))
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


def _read(connection, stream):
    """Return the parts of a request; None if the client closed before its end."""
    first = stream.readline()
    headers = _fields(stream)
    if headers is None:
        return None
    method, path, _ = first.decode("latin-1").split()
    if headers.get("expect", "").lower() == "100-continue":
        connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = _body(headers, stream)
    return None if body is None else (method, path, headers, body)


def _fields(stream):
    headers = {}
    while text := stream.readline().decode("latin-1"):
        if text == "\r\n":
            return headers
        name, _, value = text.partition(":")
        name, value = name.lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return None


def _body(headers, stream):
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return _unchunked(stream)
    size = int(headers.get("content-length", 0))
    body = stream.read(size)
    return body if len(body) == size else None


def _unchunked(stream):
    parts = []
    while size := stream.readline():
        length = int(size.partition(b";")[0], 16)
        if not length:
            return None if _fields(stream) is None else b"".join(parts)
        parts.append(stream.read(length + 2)[:-2])
    return None
