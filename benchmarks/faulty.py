"""HTTP server that fails as scripted, in a separate process.

So all files open in the measuring process belong to its client. Every N-th request gets
the next of `FAULTS`. ``python -m benchmarks.faulty N`` prints its port, then its counts
for each line that it reads, and stops at the end of its input.
"""

import argparse
import asyncio
import json
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self, final

__all__ = ["FAULTS", "Counts", "Faulty", "serve_counts"]

_ABORT = struct.pack("ii", 1, 0)


def _response(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode("ascii") + body


_OK = _response("200 OK", b"ok")

_BUSY = "503 Service Unavailable"

FAULTS = {
    "503": _response(_BUSY, b""),
    "503 with a body": _response(_BUSY, b"busy" * 4096),
    "429, Retry-After: 0": _response("429 Too Many Requests", b"no", "Retry-After: 0"),
    "reset": None,
    "closed": b"",
    "cut in the status line": _OK[:8],
}
"""The bytes sent in place of a response, by name; None resets the connection.

The connection stays open only after complete responses. There is no fault within the
headers, since Python's HTTP client takes truncated headers for complete ones.
"""

_COMPLETE = frozenset(list(FAULTS)[:3])


@final
class Counts(NamedTuple):
    """The counts of a server.

    Attributes:
        requests: Requests so far, including those that it failed.
        faults: Requests that it failed.
        accepted: Connections so far.
        open: Connections that are open now.
    """

    requests: int = 0
    faults: int = 0
    accepted: int = 0
    open: int = 0


@final
class Faulty:
    """A running server, as seen by the process that uses it; a context manager.

    Args:
        every: Each request whose number is a multiple of this one fails. Count, >= 0;
            with 0, the default, none fails.
        module: The module of the server: this one, or one with the same interface.

    Attributes:
        url: Its URL.
    """

    def __init__(self, every: int = 0, module: str = __name__) -> None:
        self._process = subprocess.Popen(  # noqa: S603  this interpreter, and our module
            [sys.executable, "-m", module, str(every)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = f"http://127.0.0.1:{self._read()}/"

    def counts(self) -> Counts:
        """Return its counts so far."""
        assert self._process.stdin is not None  # noqa: S101  it is a pipe
        print(file=self._process.stdin, flush=True)
        return Counts(*json.loads(self._read()))

    def settled(self, within: float) -> Counts:
        """Return its counts once no connection is open, or after a timeout."""
        end = time.monotonic() + within
        while (counts := self.counts()).open and time.monotonic() < end:
            time.sleep(0.01)
        return counts

    def _read(self) -> str:
        assert self._process.stdout is not None  # noqa: S101  it is a pipe
        line = self._process.stdout.readline()
        if not line:
            msg = f"the server ended with {self._process.wait()}"
            raise RuntimeError(msg)
        return line.strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # It stops at the end of its input.
        self._process.communicate(timeout=10)


@final
class _Connection(asyncio.Protocol):
    """One connection; requests have no body."""

    counts = Counts()
    every = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  it is TCP
        self._transport = transport
        self._data = b""
        counts = _Connection.counts
        _Connection.counts = counts._replace(
            accepted=counts.accepted + 1, open=counts.open + 1
        )

    def data_received(self, data: bytes) -> None:
        *requests, self._data = (self._data + data).split(b"\r\n\r\n")
        for _ in requests:
            self._respond()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  asyncio's
        _Connection.counts = _Connection.counts._replace(
            open=_Connection.counts.open - 1
        )

    def _respond(self) -> None:
        counts = _Connection.counts
        number = counts.requests + 1
        fails = bool(self.every) and number % self.every == 0
        _Connection.counts = counts._replace(
            requests=number, faults=counts.faults + fails
        )
        if fails:
            self._fail(list(FAULTS)[counts.faults % len(FAULTS)])
        else:
            self._transport.write(_OK)

    def _fail(self, fault: str) -> None:
        response = FAULTS[fault]
        if response is None:
            sock = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
            self._transport.abort()
            return
        self._transport.write(response)
        if fault not in _COMPLETE:
            self._transport.close()


def serve_counts(counts: Callable[[], Counts], end: Callable[[], object]) -> None:
    """Print the counts for each line of the input; call *end* at the end of input."""

    def listen() -> None:
        for _ in sys.stdin:
            print(json.dumps(counts()), flush=True)
        end()

    threading.Thread(target=listen, daemon=True).start()


async def _serve() -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    server = await loop.create_server(_Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)

    def end() -> None:
        loop.call_soon_threadsafe(ended.set)

    serve_counts(lambda: _Connection.counts, end)
    await ended.wait()
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faulty")
    parser.add_argument("every", type=int)
    _Connection.every = parser.parse_args().every
    asyncio.run(_serve())
