"""A server that fails by plan, in a process of its own.

What is open in the process that measures is then its own. It answers thousands of
requests in a second; every so many it does the next of `FAULTS` instead.
``python -m benchmarks.faulty N`` prints its port, then its counts for each line that
it reads, and ends when its input does.
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

__all__ = ["FAULTS", "Counts", "Faulty", "obey"]

_ABORT = struct.pack("ii", 1, 0)


def _answer(status: str, body: bytes, *fields: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(lines).encode("ascii") + body


_GOOD = _answer("200 OK", b"ok")

_BUSY = "503 Service Unavailable"

FAULTS = {
    "503": _answer(_BUSY, b""),
    "503 with a body": _answer(_BUSY, b"busy" * 4096),
    "429, Retry-After: 0": _answer("429 Too Many Requests", b"no", "Retry-After: 0"),
    "reset": None,
    "closed": b"",
    "cut in the status line": _GOOD[:8],
}
"""What is sent in place of an answer, by its name; None resets the connection.

The connection is kept after whole answers only. A head that is cut later is whole to
Python's own HTTP client, and so to all who stand on it.
"""

_WHOLE = frozenset(list(FAULTS)[:3])


@final
class Counts(NamedTuple):
    """What a server has seen so far.

    Attributes:
        requests: How many requests came, those that failed included.
        faults: How many of them failed.
        accepted: How many connections were made.
        open: How many connections are open now.
    """

    requests: int = 0
    faults: int = 0
    accepted: int = 0
    open: int = 0


@final
class Faulty:
    """A running server, for the process that measures it; to be used by `with`.

    Attributes:
        url: Where it is.

    Args:
        every: Each request of that number fails. Count, >= 1; 0 is none.
        module: What is run: this one, or another that talks as it does.
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
        """Return what it has seen so far."""
        assert self._process.stdin is not None  # noqa: S101  it is a pipe
        print(file=self._process.stdin, flush=True)
        return Counts(*json.loads(self._read()))

    def settled(self, within: float) -> Counts:
        """Return its counts when no connection is open, or after that many seconds."""
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
        # Its input ends, and so does it.
        self._process.communicate(timeout=10)


@final
class _Line(asyncio.Protocol):
    """One connection; requests have no bodies."""

    counts = Counts()
    every = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  it is TCP
        self._transport = transport
        self._data = b""
        counts = _Line.counts
        _Line.counts = counts._replace(
            accepted=counts.accepted + 1, open=counts.open + 1
        )

    def data_received(self, data: bytes) -> None:
        *requests, self._data = (self._data + data).split(b"\r\n\r\n")
        for _ in requests:
            self._serve()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  asyncio's
        _Line.counts = _Line.counts._replace(open=_Line.counts.open - 1)

    def _serve(self) -> None:
        counts = _Line.counts
        number = counts.requests + 1
        fails = bool(self.every) and number % self.every == 0
        _Line.counts = counts._replace(requests=number, faults=counts.faults + fails)
        if fails:
            self._fail(list(FAULTS)[counts.faults % len(FAULTS)])
        else:
            self._transport.write(_GOOD)

    def _fail(self, fault: str) -> None:
        sent = FAULTS[fault]
        if sent is None:
            sock = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
            self._transport.abort()
            return
        self._transport.write(sent)
        if fault not in _WHOLE:
            self._transport.close()


def obey(counts: Callable[[], Counts], end: Callable[[], object]) -> None:
    """Print the counts for each line of the input; call *end* where that ends."""

    def listen() -> None:
        for _ in sys.stdin:
            print(json.dumps(counts()), flush=True)
        end()

    threading.Thread(target=listen, daemon=True).start()


async def _serve() -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    server = await loop.create_server(_Line, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)

    def end() -> None:
        loop.call_soon_threadsafe(ended.set)

    obey(lambda: _Line.counts, end)
    await ended.wait()
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faulty")
    parser.add_argument("every", type=int)
    _Line.every = parser.parse_args().every
    asyncio.run(_serve())
