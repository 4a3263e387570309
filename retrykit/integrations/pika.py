"""Transient errors of pika.

Needs the extra ``pika``. pika does not reopen a lost connection: open it in the retried
function::

    import pika

    from retrykit import retry
    from retrykit.integrations import pika as retries

    @retry(retries.policy(max_attempts=4))
    def publish(body):
        with pika.BlockingConnection(pika.ConnectionParameters()) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.basic_publish("", "orders", body, mandatory=True)

A message whose confirmation was lost may have been queued, and then is queued twice.
"""

from typing import Any, Final

from retrykit._internal.connection_errors import is_connection_error
from retrykit._internal.extras import needs
from retrykit.integrations._transient import TransientErrors

with needs("pika"):
    from pika.exceptions import (
        AMQPConnectionError,
        AuthenticationError,
        ConnectionClosed,
        ConnectionOpenAborted,
        ConnectionWrongStateError,
        IncompatibleProtocolError,
        NackError,
        NoFreeChannels,
        ProbableAccessDeniedError,
        ProbableAuthenticationError,
    )

__all__ = ["policy", "transient"]


class _Transient(TransientErrors):
    """Condition that matches transient errors of pika.

    They are failed and lost connections, timeouts, a connection that the broker closed
    with 320, CONNECTION_FORCED, as it does when it shuts down, and a message that it
    rejected; but not a failed login, a channel that the broker closed, or a connection
    that is used after its end.

    Source:
        "AMQP: Advanced Message Queuing Protocol", version 0-9-1, reply codes, 2008.
    """

    def __call__(self, error: Any, /) -> bool:
        if isinstance(error, ConnectionClosed):
            return error.reply_code == _CONNECTION_FORCED
        if isinstance(error, _OPENING):
            # Their text is the repr of the reason, and their class is a guess.
            return any(reason in str(error) for reason in _LOST)
        if isinstance(error, _PERMANENT):
            return False
        return isinstance(error, _TRANSIENT) or is_connection_error(error)


_CONNECTION_FORCED = 320
_LOST = ("StreamLostError", f"ConnectionClosedByBroker: ({_CONNECTION_FORCED})")
_TRANSIENT = (AMQPConnectionError, NackError)
# Errors for a connection that was lost or closed before it was open.
_OPENING = (
    *(IncompatibleProtocolError, ProbableAccessDeniedError),
    ProbableAuthenticationError,
)
# These are also connection errors of pika.
_PERMANENT = (
    *(AuthenticationError, ConnectionOpenAborted, ConnectionWrongStateError),
    NoFreeChannels,
)

transient: Final = _Transient()
"""Condition for `on`: matches transient errors of pika."""

policy: Final = transient.policy
"""Returns a policy with `transient` filled in."""
