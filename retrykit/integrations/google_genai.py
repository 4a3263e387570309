"""Retries for Gemini's SDK, google-genai.

Needs the extra ``google-genai``. The client retries nothing by itself, unless it is
created with ``HttpRetryOptions``; but if aiohttp is installed, the SDK's async client
repeats a request once after a failed connection. Options for one attempt switch both
off::

    from google import genai

    from retrykit import retry
    from retrykit.integrations import google_genai as retries

    client = genai.Client(http_options={"retry_options": {"attempts": 1}})

    @retry(retries.policy(max_attempts=4, max_elapsed="3m"))
    def ask(question):
        model = "gemini-2.5-flash"
        return client.models.generate_content(model=model, contents=question).text

Requests of this API are POSTs. The service may have executed, and charged for, a
request whose answer was lost.
"""

from importlib import import_module
from typing import Any, Final

from retrykit._internal.connection_errors import (
    is_certificate_error,
    is_connection_error,
)
from retrykit._internal.durations import Duration
from retrykit._internal.extras import needs
from retrykit._own_retries import OWN_RETRIES, OwnRetries
from retrykit.errors import GiveUp, RetryAfter
from retrykit.hints import Hint
from retrykit.integrations._http.policy import retry_after as _header
from retrykit.integrations._sdk import field, read_retry_delay
from retrykit.integrations._transient import TransientErrors

with needs("google-genai"):
    from google.auth.exceptions import TransportError
    from google.genai.errors import APIError

__all__ = ["policy", "retry_after", "transient"]


def retry_after(error: Any, /) -> Duration | RetryAfter | GiveUp | None:
    """Return the ``retryDelay`` of an error, or else its ``Retry-After``, or None.

    Source:
        "google.rpc.RetryInfo", Google APIs.
    """
    body = error.details if isinstance(error, APIError) else None
    # The body of a response has the error in a field; the event of a stream does not.
    found = field(body, "error", "details") or field(body, "details")
    delays = map(read_retry_delay, found if isinstance(found, list) else ())
    return next((delay for delay in delays if delay is not None), _header(error))


class _Transient(TransientErrors):
    """Condition that matches transient errors of google-genai.

    They are responses with the status 408, 429, 500, 502, 503 or 504, which the SDK
    retries if it is told to; errors with such a code in a stream; and the transient
    errors of the HTTP client that it uses, which is httpx2, httpx, aiohttp or requests:
    failed and broken connections, and timeouts. A rejected certificate is permanent,
    and so are other errors of the API.

    Source:
        "Troubleshooting guide", Gemini API; ``HttpRetryOptions`` of the SDK.
    """

    hint: Hint | None = staticmethod(retry_after)
    own_retries: OwnRetries | None = OWN_RETRIES["google-genai"]

    def __call__(self, error: Any, /) -> bool:
        if isinstance(error, APIError):
            return error.code in _STATUSES
        if isinstance(error, TransportError):
            return not is_certificate_error(error)
        client = type(error).__module__.partition(".")[0]
        if client not in _CLIENTS:
            return is_connection_error(error)
        # The library is installed, since its error was raised.
        of_client = import_module(f"retrykit.integrations.{client}").transient
        return isinstance(error, Exception) and bool(of_client(error))


_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_CLIENTS = frozenset({"aiohttp", "httpx", "httpx2", "requests"})

transient: Final = _Transient()
"""Condition for `on`: matches transient errors."""

policy: Final = transient.policy
"""Returns a policy with `transient` and `retry_after` filled in."""
