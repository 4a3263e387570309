"""Retries for Azure's SDKs, which are built on azure-core.

Needs the extra ``azure-core``. Clients retry three times by themselves,
or more often if requests fail in different ways: switch that off, or each attempt is
four requests or more::

    from azure.storage.blob import BlobClient

    from retrykit import retry
    from retrykit.integrations import azure_core as retries

    blob = BlobClient.from_blob_url(url, retry_total=0)

    @retry(retries.policy(max_attempts=4))
    def load():
        return blob.download_blob().readall()
"""

from typing import Any, Final

from retrykit._internal.connection_errors import is_certificate_error
from retrykit._internal.extras import needs
from retrykit._own_retries import OWN_RETRIES, OwnRetries
from retrykit.hints import Hint, first_of, milliseconds, retry_after as _retry_after
from retrykit.hints._retry_after_header import header_values
from retrykit.integrations._transient import TransientErrors

with needs("azure-core"):
    from azure.core.exceptions import (
        ClientAuthenticationError,
        HttpResponseError,
        IncompleteReadError,
        ServiceRequestError,
        ServiceResponseError,
    )

__all__ = ["policy", "retry_after", "transient"]

retry_after: Final = first_of(
    _retry_after(),
    milliseconds("retry-after-ms"),
    milliseconds("x-ms-retry-after-ms"),
)
"""Hint that reads ``Retry-After``, or a header of Azure in milliseconds."""


class _Transient(TransientErrors):
    """Condition that matches transient errors of azure-core.

    It matches what azure-core's own policy retries: failed connections and lost
    responses, but neither a rejected certificate nor an invalid URL; bodies that are
    cut short; responses with the status 408, 429, 500, 502, 503 or 504, or another
    status with a ``Retry-After``. Failed authentication is permanent.

    Source:
        "RetryPolicy" and "Azure Core Library Exceptions", azure-core.
    """

    hint: Hint | None = staticmethod(retry_after)
    own_retries: OwnRetries | None = OWN_RETRIES["azure"]

    def __call__(self, error: Any, /) -> bool:
        if isinstance(error, ClientAuthenticationError):
            return False
        if isinstance(error, _BROKEN) or _is_broken_body(error):
            # The errors of requests and aiohttp for an invalid URL are ValueErrors.
            inner = error.inner_exception
            return not (isinstance(inner, ValueError) or is_certificate_error(inner))
        if not isinstance(error, HttpResponseError):
            return False
        requested = header_values(error, "retry-after") != []
        return requested or error.status_code in _STATUSES


def _is_broken_body(error: Any) -> bool:
    """Return whether an error is about a broken body; truncation has its own type."""
    without_status = type(error) is HttpResponseError and error.status_code is None
    return without_status and error.inner_exception is not None


_BROKEN = (ServiceRequestError, ServiceResponseError, IncompleteReadError)
_STATUSES = frozenset({408, 429, 500, 502, 503, 504})

transient: Final = _Transient()
"""Condition for `on`: matches transient errors."""

policy: Final = transient.policy
"""Returns a policy with `transient` and `retry_after` filled in."""
