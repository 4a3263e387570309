"""Failed and broken connections, and rejected certificates."""

import errno
import socket
import ssl

import pytest

from retrykit._internal.connection_errors import (
    is_certificate_error,
    is_connection_error,
    is_unreachable,
)


@pytest.mark.parametrize(
    ("error", "connection", "unreachable"),
    [
        (ConnectionRefusedError(), True, False),
        (TimeoutError(), True, False),
        (socket.gaierror(), True, False),
        (ssl.SSLEOFError(), True, False),
        (ssl.SSLError(), False, False),
        (OSError(errno.EHOSTUNREACH, "No route to host"), True, True),
        (OSError("Multiple exceptions: [Errno 111], [Errno 111]"), True, True),
        (OSError("other"), False, False),
        (OSError(errno.ENOSPC, "No space left on device"), False, False),
        (ValueError(), False, False),
    ],
    ids=repr,
)
def test_a_failed_connection_is_told_by_its_error(error, connection, unreachable):
    assert is_connection_error(error) is connection
    assert is_unreachable(error) is unreachable


def test_a_rejected_certificate_is_found_among_the_causes():
    error, rejected = OSError(), ssl.SSLCertVerificationError()
    assert not is_certificate_error(error)
    error.__context__ = rejected
    assert is_certificate_error(error)


def test_a_cycle_of_causes_has_no_certificate():
    error, other = OSError(), OSError()
    error.__cause__, other.__cause__ = other, error
    assert not is_certificate_error(error)
