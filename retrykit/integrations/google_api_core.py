"""Retries for Google Cloud clients, which are built on google-api-core.

Needs the extra ``google-api-core``. Many methods retry by themselves, for
minutes: switch that off, or each attempt is many requests::

    from google.cloud import storage

    from retrykit import retry
    from retrykit.integrations import google_api_core as retries

    bucket = storage.Client().bucket("orders")

    @retry(retries.policy(max_attempts=4))
    def load(name):
        return bucket.blob(name).download_as_bytes(retry=None)
"""

from datetime import timedelta
from typing import Any, Final

from retrykit._internal.connection_errors import is_certificate_error
from retrykit._internal.durations import Duration
from retrykit._internal.extras import needs
from retrykit._own_retries import OWN_RETRIES, OwnRetries
from retrykit.errors import GiveUp, RetryAfter
from retrykit.hints import Hint
from retrykit.integrations._http.policy import (
    retry_after as _header,
)
from retrykit.integrations._sdk import read_retry_delay
from retrykit.integrations._transient import TransientErrors

with needs("google-api-core"):
    from google.api_core.exceptions import DeadlineExceeded, GoogleAPICallError
    from google.api_core.retry import if_transient_error
    from google.auth.exceptions import TransportError

    from retrykit.integrations.requests import transient as _of_requests

__all__ = ["policy", "retry_after", "transient"]


def retry_after(error: Any, /) -> Duration | RetryAfter | GiveUp | None:
    """Return the delay in an error's ``RetryInfo``, or else in its ``Retry-After``.

    None if the error has neither.

    Source:
        "google.rpc.RetryInfo", Google APIs.
    """
    details = error.details if isinstance(error, GoogleAPICallError) else ()
    delays = (_read_retry_info(each) for each in details)
    return next((delay for delay in delays if delay is not None), _header(error))


def _read_retry_info(detail: Any) -> Duration | None:
    """Return the delay in an error's detail; None if it has none."""
    if isinstance(detail, dict):
        # From a JSON response. The others are gRPC messages.
        return read_retry_delay(detail)
    delay = getattr(detail, "retry_delay", None)
    return None if delay is None else timedelta(0, delay.seconds, delay.nanos / 1_000)


class _Transient(TransientErrors):
    """Condition that matches transient errors of google-api-core.

    It matches the errors that the library's own ``if_transient_error`` matches:
    responses with the status 429, 500 or 503, their gRPC codes, and failed and broken
    connections. It also matches the statuses 408, 502 and 504, which Cloud Storage
    lists, and transient errors of requests, such as timeouts. A rejected certificate is
    permanent, and so are gRPC's ``DeadlineExceeded``, which is the caller's own
    timeout, and ``RetryError``, since the library has already retried the call.

    Source:
        "google.api_core.retry", google-api-core; "Retry strategy", Cloud Storage.
    """

    hint: Hint | None = staticmethod(retry_after)
    own_retries: OwnRetries | None = OWN_RETRIES["google-api-core"]

    def __call__(self, error: Any, /) -> bool:
        if isinstance(error, GoogleAPICallError):
            late = isinstance(error, DeadlineExceeded)
            listed = error.code in _STATUSES and not late
            return listed or if_transient_error(error)
        if isinstance(error, TransportError):
            return not is_certificate_error(error)
        return isinstance(error, Exception) and _of_requests(error)


_STATUSES = frozenset({408, 502, 504})

transient: Final = _Transient()
"""Condition for `on`: matches transient errors."""

policy: Final = transient.policy
"""Returns a policy with `transient` and `retry_after` filled in."""
