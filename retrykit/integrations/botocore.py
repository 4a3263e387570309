"""Retries for the AWS SDK: boto3, botocore and what is built on them.

Needs the extra ``botocore``. Clients make up to three requests by themselves, DynamoDB
clients four, and more before botocore 1.44 or in the mode ``legacy``: switch that off,
or each attempt is that many requests::

    import boto3
    from botocore.config import Config

    from retrykit import retry
    from retrykit.integrations import botocore as retries

    once = Config(retries={"total_max_attempts": 1})
    table = boto3.resource("dynamodb", config=once).Table("orders")

    @retry(retries.policy(max_attempts=4))
    def load(order):
        return table.get_item(Key={"id": order})["Item"]
"""

from typing import Any, Final

from retrykit._internal.connection_errors import is_certificate_error
from retrykit._internal.extras import needs
from retrykit._own_retries import OWN_RETRIES, OwnRetries
from retrykit._throttling import throttling
from retrykit.hints import Hint, first_of, milliseconds, retry_after as _retry_after
from retrykit.integrations._sdk import field
from retrykit.integrations._transient import TransientErrors

with needs("botocore"):
    from botocore.exceptions import (
        ClientError,
        ConnectionError as _ConnectionError,
        HTTPClientError,
        IncompleteReadError,
    )

__all__ = ["policy", "retry_after", "throttling", "transient"]

retry_after: Final = first_of(milliseconds("x-amz-retry-after"), _retry_after())
"""Hint that reads ``x-amz-retry-after`` or ``Retry-After`` of a response."""


class _Transient(TransientErrors):
    """Condition that matches transient errors of botocore.

    It matches what the retry mode ``standard`` retries: timeouts, failed and broken
    connections, but not a rejected certificate; responses with an error code for
    throttling or a transient error, or the status 429, 500, 502, 503 or 504. It also
    matches the status 509, which the mode ``legacy`` retries, and truncated bodies. An
    error of boto3, such as ``S3UploadFailedError``, is judged by its ``__context__``.

    Source:
        "Retries", Boto3 documentation; "Retry behavior", AWS SDKs and Tools Reference
        Guide.
    """

    hint: Hint | None = staticmethod(retry_after)
    own_retries: OwnRetries | None = OWN_RETRIES["botocore"]

    def __call__(self, error: Any, /) -> bool:
        if type(error).__module__ == "boto3.exceptions":
            # Such as S3UploadFailedError, raised in the handler of the client's error.
            error = error.__context__
        if isinstance(error, ClientError):
            code = field(error.response, "Error", "Code")
            status = field(error.response, "ResponseMetadata", "HTTPStatusCode")
            return code in _CODES or status in _STATUSES
        return isinstance(error, _BROKEN) and not is_certificate_error(error)


_BROKEN = (_ConnectionError, HTTPClientError, IncompleteReadError)
_STATUSES = frozenset({429, 500, 502, 503, 504, 509})
_CODES = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "IDPCommunicationError",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeout",
        "RequestTimeoutException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)

transient: Final = _Transient()
"""Condition for `on`: matches transient errors."""

policy: Final = transient.policy
"""Returns a policy with `transient` and `retry_after` filled in."""
