"""Reserves ports for test servers, which may be restarted on the same port."""

import contextlib
import secrets
import socket

__all__ = ["free_port", "reserved_port"]

# Below the ephemeral ports, which systems assign to clients and to port 0.
_FIRST, _COUNT = 20_000, 6_000


def free_port():
    """Return a port that is reserved until this process ends."""
    port, guard = _reserve()
    guard.detach()
    return port


@contextlib.contextmanager
def reserved_port():
    """Yield a port that is reserved until the block ends."""
    port, guard = _reserve()
    with guard:
        yield port


def _reserve():
    """Return a free port, and a socket that reserves it.

    The socket is bound to another port, which other processes of these tests check,
    so that the reserved one stays free for its server.
    """
    while True:
        port = _FIRST + secrets.randbelow(_COUNT)
        with contextlib.suppress(OSError):
            socket.create_server(("127.0.0.1", port)).close()
            return port, socket.create_server(("127.0.0.1", port + _COUNT))
