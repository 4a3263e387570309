"""A port for a server of the tests' own, which may go away and come back."""

import contextlib
import secrets
import socket

__all__ = ["free_port", "reserved_port"]

# Below those that systems give to whoever connects somewhere, or asks for any.
_FIRST, _COUNT = 20_000, 6_000


def free_port():
    """Return a port that is reserved for as long as this process runs."""
    port, guard = _reserve()
    guard.detach()
    return port


@contextlib.contextmanager
def reserved_port():
    """Give a port that is reserved until the block ends."""
    port, guard = _reserve()
    with guard:
        yield port


def _reserve():
    """Return a port on which nothing listens, and nothing will by chance.

    No other process of these tests gets it meanwhile: another port is taken, which
    stands for it while no server has it.
    """
    while True:
        port = _FIRST + secrets.randbelow(_COUNT)
        with contextlib.suppress(OSError):
            socket.create_server(("127.0.0.1", port)).close()
            return port, socket.create_server(("127.0.0.1", port + _COUNT))
