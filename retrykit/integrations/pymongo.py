"""Transient errors of PyMongo, sync and async.

Needs the extra ``pymongo``. PyMongo repeats a read or a write once by itself,
unless ``retryReads`` and ``retryWrites`` are off::

    from pymongo import MongoClient

    from retrykit import retry
    from retrykit.integrations import pymongo as retries

    client = MongoClient(retryReads=False, retryWrites=False)

    @retry(retries.policy(max_attempts=4))
    def rename(user, name):
        client.shop.users.update_one({"_id": user}, {"$set": {"name": name}})

An operation whose reply was lost may have been executed: retry only operations that can
be repeated. PyMongo's ``session.with_transaction`` repeats a transaction, and needs no
policy around it.
"""

import math
from typing import Any, Final

from retrykit._internal.connection_errors import is_certificate_error
from retrykit._internal.extras import needs
from retrykit._own_retries import OWN_RETRIES, OwnRetries
from retrykit.hints import Hint
from retrykit.integrations._transient import TransientErrors

with needs("pymongo"):
    from pymongo.errors import (
        ClientBulkWriteException,
        ConnectionFailure,
        OperationFailure,
        PyMongoError,
    )

__all__ = ["policy", "retry_after", "transient"]


def retry_after(error: Any, /) -> float | None:
    """Return the shortest delay that an overloaded server requests, in seconds.

    It is the ``baseBackoffMS`` of an error; None if the error has none.

    Source:
        "Client backpressure", MongoDB.
    """
    details = getattr(_unwrap(error), "details", None)
    base = details.get("baseBackoffMS") if isinstance(details, dict) else None
    if isinstance(base, bool) or not isinstance(base, int | float):
        return None
    return base / 1000 if 0 < base < math.inf else None


def _unwrap(error: Any) -> Any:
    """Return the error that ended a bulk write, or the error itself."""
    bulk = isinstance(error, ClientBulkWriteException)
    return error.error if bulk and error.error is not None else error


class _Transient(TransientErrors):
    """Condition that matches transient errors of PyMongo.

    They are failed and lost connections, timeouts of server selection, of the pool and
    of the network, a server that is no longer the primary, errors whose labels say that
    the operation or its transaction can be repeated, and server errors that MongoDB
    lists as retryable; but not a commit with an unknown result, or a rejected
    certificate.
    """

    hint: Hint | None = staticmethod(retry_after)
    own_retries: OwnRetries | None = OWN_RETRIES["pymongo"]

    def __call__(self, error: Any, /) -> bool:
        error = _unwrap(error)
        if not isinstance(error, PyMongoError) or error.has_error_label(_UNKNOWN):
            return False
        if isinstance(error, ConnectionFailure):
            return not is_certificate_error(error)
        if isinstance(error, OperationFailure) and error.code in _RETRYABLE_CODES:
            return True
        return any(map(error.has_error_label, _RETRYABLE_LABELS))


_UNKNOWN = "UnknownTransactionCommitResult"
_RETRYABLE_LABELS = (
    *("TransientTransactionError", "RetryableWriteError", "RetryableError"),
)
# HostUnreachable, HostNotFound, NetworkTimeout, ShutdownInProgress,
# ReadConcernMajorityNotAvailableYet, PrimarySteppedDown, ExceededTimeLimit,
# SocketException, NotWritablePrimary, InterruptedAtShutdown,
# InterruptedDueToReplStateChange, NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary.
_RETRYABLE_CODES = frozenset(
    {6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}
)

transient: Final = _Transient()
"""Condition for `on`: matches transient errors of PyMongo."""

policy: Final = transient.policy
"""Returns a policy with `transient` and `retry_after` filled in."""
