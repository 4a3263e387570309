"""A client of bare sockets, which tells one end of a connection from another."""

import contextlib
import os
import socket
import threading

__all__ = ["GET", "connected", "ending", "left_clean", "talk"]

GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


@contextlib.contextmanager
def connected(port, sent=GET):
    """Give a socket that has sent something, and waits 5 s for an answer."""
    with socket.create_connection(("127.0.0.1", port), 5) as sock:
        sock.sendall(sent)
        yield sock


def ending(sock):
    """Return what comes until the connection ends, and how it does."""
    data = b""
    while True:
        try:
            more = sock.recv(65536)
        except ConnectionResetError:
            return data, "RST"
        if not more:
            return data, "FIN"
        data += more


def talk(port, sent=GET):
    """Return that of a connection of its own."""
    with connected(port, sent) as sock:
        return ending(sock)


@contextlib.contextmanager
def left_clean():
    """Fail if threads or open files are left that were not there before."""
    threads, files = set(threading.enumerate()), _files()
    yield
    assert set(threading.enumerate()) <= threads
    assert _files() <= files


def _files():
    return len(os.listdir("/dev/fd"))  # noqa: PTH208  their number is enough
