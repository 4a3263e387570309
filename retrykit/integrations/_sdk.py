"""Functions that the integrations of SDKs share.

One code generator writes the SDKs of OpenAI and Anthropic, so they make the same
decisions about errors and responses. They differ if a service requests a long delay:
OpenAI's SDK (3.57) raises the error if the delay is above 120 s, Anthropic's (2.14)
waits, however long the delay is.
"""

import sys
from types import ModuleType
from typing import Any

from retrykit._internal.connection_errors import is_certificate_error

__all__ = ["connection_errors", "field", "is_transient_cause", "is_transient_response"]
__all__ += ["read_retry_delay"]


def connection_errors(sdk: ModuleType) -> tuple[type[Exception], ...]:
    """Return the transient errors of the HTTP client that an SDK uses.

    The client is httpx2, or httpx in older versions. While a response is streamed,
    Anthropic's SDK and older versions of OpenAI's raise the client's errors as they
    are.
    """
    http = sys.modules[sdk.DefaultHttpxClient.__base__.__module__.partition(".")[0]]
    return http.TimeoutException, http.NetworkError, http.RemoteProtocolError


def is_transient_cause(error: Exception, kinds: tuple[type[Exception], ...]) -> bool:
    """Return whether an SDK's connection error has a transient cause, or no cause.

    The SDK wraps any error of its HTTP client, even one about an invalid URL. Of system
    errors, all are transient except a rejected certificate.

    Args:
        error: The SDK's error.
        kinds: The transient errors of the HTTP client.
    """
    cause = error.__cause__
    known = cause is None or isinstance(cause, (*kinds, OSError))
    return known and not is_certificate_error(cause)


def is_transient_response(response: Any) -> bool:
    """Return whether a response is transient, by the rules of the SDKs.

    The requested delay is left to the hint and its limits. The header
    ``x-should-retry`` decides, if it is ``true`` or ``false``. Without it, the statuses
    408, 409 (a lock timeout), 429 and all from 500 on are transient.
    """
    should_retry = response.headers.get("x-should-retry")
    if should_retry in {"true", "false"}:
        return bool(should_retry == "true")
    status: int = response.status_code
    return status in _TRANSIENT or status >= _SERVER_ERROR


_TRANSIENT = frozenset({408, 409, 429})
_SERVER_ERROR = 500


def field(body: object, *path: str) -> object:
    """Return a field of a decoded JSON body; None if it is missing.

    >>> field({"error": {"type": "api_error"}}, "error", "type")
    'api_error'
    """
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body


def read_retry_delay(detail: object) -> str | None:
    """Return the delay in Google's ``RetryInfo``, as in JSON; None if there is none.

    >>> kind = "type.googleapis.com/google.rpc.RetryInfo"
    >>> read_retry_delay({"@type": kind, "retryDelay": "53s"})
    '53s'
    """
    if not isinstance(detail, dict):
        return None
    is_retry_info = str(detail.get("@type")).endswith("google.rpc.RetryInfo")
    delay = detail.get("retryDelay") if is_retry_info else None
    return delay if isinstance(delay, str) else None
