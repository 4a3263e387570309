"""Condition that matches transient errors of redis-py, and policies with it."""

from typing import Any, Final

from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ClusterDownError,
    ConnectionError as LostConnection,
    ReadOnlyError,
    ResponseError,
    SlotNotCoveredError,
    TimeoutError as CommandTimeout,
    TryAgainError,
    WatchError,
)

from retrykit._internal.connection_errors import is_certificate_error
from retrykit._own_retries import OWN_RETRIES, OwnRetries
from retrykit.integrations._transient import TransientErrors

__all__ = ["policy", "transient"]


class _Transient(TransientErrors):
    """Condition that matches transient errors of redis-py.

    They are failed and lost connections, an exhausted pool, timeouts, the replies
    ``LOADING``, ``READONLY``, ``CLUSTERDOWN``, ``MASTERDOWN``, ``TRYAGAIN`` and
    ``NOREPLICAS``, a slot that no node serves, and a transaction that another client's
    write has aborted; but not a wrong password or a rejected certificate.
    """

    own_retries: OwnRetries | None = OWN_RETRIES["redis"]

    def __call__(self, error: Any, /) -> bool:
        if isinstance(error, _TRANSIENT):
            permanent = isinstance(error, _PERMANENT) or is_certificate_error(error)
            return not permanent
        is_reply = isinstance(error, ResponseError)
        return is_reply and str(error).partition(" ")[0] in _REPLIES


_TRANSIENT = (
    *(LostConnection, CommandTimeout, ReadOnlyError, WatchError),
    *(ClusterDownError, SlotNotCoveredError, TryAgainError),
)
# Replies that have no class in redis-py, or none before redis-py 6.
_REPLIES = frozenset({"CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "NOREPLICAS"})
# These are also connection errors of redis-py.
_PERMANENT = (AuthenticationError, AuthorizationError)

transient: Final = _Transient()
"""Condition for `on`: matches transient errors of redis-py."""

policy: Final = transient.policy
"""Returns a policy with `transient` filled in."""
