"""What came of a request of urllib3, and whether it is worth another attempt."""

import ssl
from typing import Any, Final, final

import urllib3
from urllib3.exceptions import (
    EmptyPoolError,
    IncompleteRead,
    InvalidChunkLength,
    MaxRetryError,
    ProtocolError,
    ProxyError,
    SSLError,
    TimeoutError as _TimeoutError,
)

from retrykit.integrations._http.policy import (
    Transient,
    refuses_certificate,
    transient_status,
)

__all__ = ["transient"]


@final
class _Transient(Transient):
    """Whether what came of a request is worth another attempt.

    Of errors: connections that fail, break or are reset, answers that are cut
    short, timeouts of every kind; not a certificate that is not accepted. A
    ``MaxRetryError`` is judged by its reason. Of responses: the statuses 408,
    425, 429, 500, 502, 503 and 504, and 413 with a ``Retry-After``.
    """

    def __call__(self, outcome: Any, /) -> bool:
        if isinstance(outcome, urllib3.BaseHTTPResponse):
            return transient_status(outcome.status, outcome.headers)
        reason = _reason(outcome)
        return isinstance(reason, _PASSING) and not refuses_certificate(reason)

    def release(self, response: urllib3.BaseHTTPResponse, /) -> None:
        """Close a response, and give its connection back."""
        response.close()
        response.release_conn()


# What is raised for a proxy and for TLS has the error of the connection in it; a
# certificate that urllib3 itself does not accept is told by a text, or a ValueError.
_PASSING = (
    _TimeoutError,
    EmptyPoolError,
    ProtocolError,
    IncompleteRead,
    InvalidChunkLength,
    ConnectionError,
    TimeoutError,
    ssl.SSLError,
)


def _reason(error: Any) -> Any:
    """Return the error that others stand around."""
    while True:
        if isinstance(error, MaxRetryError):
            error = error.reason
        elif isinstance(error, ProxyError):
            error = error.original_error
        elif isinstance(error, SSLError):
            error = error.args[0] if error.args else None
        else:
            return error


transient: Final = _Transient()
"""The condition of errors and responses: for `on`, and for `on_result`."""
