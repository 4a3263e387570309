"""A port for a server of the tests' own, which may go away and come back."""

import contextlib
import secrets
import socket

__all__ = ["free_port"]

# Below those that systems give to whoever connects somewhere, or asks for any.
_FIRST, _COUNT = 20_000, 12_000


def free_port():
    """Return a port on which nothing listens, and nothing will by chance."""
    while True:
        port = _FIRST + secrets.randbelow(_COUNT)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
