"""Throttling errors of AWS clients: the condition that presets and limits share."""

from collections.abc import Mapping
from typing import Final

__all__ = ["throttling"]


def throttling(error: Exception) -> bool:
    """Return whether an error of an AWS client is a throttling error.

    A throttling error has an error code for throttling, or the status 429 and a code
    that the service's model does not have.

    >>> throttling(OSError("refused"))
    False

    Source:
        "Retry behavior", AWS SDKs and Tools Reference Guide, 2026.
    """
    response = getattr(error, "response", None)
    if not isinstance(response, Mapping):
        return False
    error_data, metadata = response.get("Error"), response.get("ResponseMetadata")
    if isinstance(error_data, Mapping) and error_data.get("Code") in _THROTTLING:
        return True
    # The class of an error whose code the model has is made by botocore's factory.
    modeled = type(error).__module__ == "botocore.errorfactory"
    status = metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None
    return status == _TOO_MANY_REQUESTS and not modeled


_TOO_MANY_REQUESTS: Final = 429
_THROTTLING: Final = {
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "LimitExceededException",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionInProgressException",
}
