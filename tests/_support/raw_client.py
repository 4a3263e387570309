"""A client of bare sockets, which distinguishes FIN from RST."""

import contextlib
import os
import socket
import threading

__all__ = ["GET", "connected", "exchange", "no_leaks", "read_to_end"]

GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


@contextlib.contextmanager
def connected(port, sent=GET):
    """Yield a socket that has sent a request; its timeout is 5 s."""
    with socket.create_connection(("127.0.0.1", port), 5) as sock:
        sock.sendall(sent)
        yield sock


def read_to_end(sock):
    """Return all bytes until the connection ends, and whether with FIN or RST."""
    data = b""
    while True:
        try:
            more = sock.recv(65536)
        except ConnectionResetError:
            return data, "RST"
        if not more:
            return data, "FIN"
        data += more


def exchange(port, sent=GET):
    """Send a request on a new connection; return the answer like `read_to_end`."""
    with connected(port, sent) as sock:
        return read_to_end(sock)


@contextlib.contextmanager
def no_leaks():
    """Fail if the block leaves threads or open files behind."""
    threads, files = set(threading.enumerate()), _files()
    yield
    assert set(threading.enumerate()) <= threads
    assert _files() <= files


def _files():
    return len(os.listdir("/dev/fd"))  # noqa: PTH208  only their number matters
