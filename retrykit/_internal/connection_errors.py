"""Errors of Python about failed and lost connections, and rejected certificates."""

import errno
import socket
import ssl

__all__ = ["is_certificate_error", "is_connection_error", "is_unreachable"]

_LOST = (
    *(ConnectionError, TimeoutError, socket.gaierror),
    # Other errors of TLS, such as a rejected certificate, are not transient.
    *(ssl.SSLEOFError, ssl.SSLZeroReturnError),
)
_UNREACHABLE = frozenset(
    {errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH}
)


def is_connection_error(error: object) -> bool:
    """Return whether an error is about a failed or lost connection, or a timeout.

    >>> is_connection_error(ConnectionResetError()), is_connection_error(OSError())
    (True, False)
    """
    if isinstance(error, _LOST):
        return True
    return is_unreachable(error)


def is_unreachable(error: object) -> bool:
    """Return whether an error means that no host could be reached.

    Also true for the error of asyncio after all addresses of a host have failed.

    >>> is_unreachable(OSError(errno.ENETUNREACH, "Network is unreachable"))
    True
    """
    if type(error) is OSError and error.errno is None:
        # The errors of all addresses of a host, from asyncio.
        return str(error).startswith("Multiple exceptions: ")
    return isinstance(error, OSError) and error.errno in _UNREACHABLE


def is_certificate_error(error: BaseException | None) -> bool:
    """Return whether an error was caused by a rejected certificate.

    Clients report it as a failed connection, but it is not transient.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False
