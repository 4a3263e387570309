"""Errors of the standard library that mean a failed or broken connection."""

import errno
import socket
import ssl

__all__ = ["is_connection_error"]

_LOST = (
    *(ConnectionError, TimeoutError, socket.gaierror),
    # Other errors of TLS, such as a rejected certificate, are not transient.
    *(ssl.SSLEOFError, ssl.SSLZeroReturnError),
)
_UNREACHABLE = frozenset(
    {errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH}
)


def is_connection_error(error: object) -> bool:
    """Return whether a connection failed, was lost, or exceeded a timeout.

    >>> is_connection_error(ConnectionResetError()), is_connection_error(OSError())
    (True, False)
    """
    if isinstance(error, _LOST):
        return True
    return isinstance(error, OSError) and error.errno in _UNREACHABLE
