"""Transient errors of aio-pika.

Needs the extra ``aio-pika``. A robust connection is opened again in the
background, and until then its channels raise errors that are transient::

    import aio_pika

    from retrykit import aretry
    from retrykit.integrations import aio_pika as retries

    @aretry(retries.policy(max_attempts=8))
    async def publish(channel, body):
        message = aio_pika.Message(body)
        await channel.default_exchange.publish(message, "orders", timeout=10)

    async def main():
        connection = await aio_pika.connect_robust(reconnect_interval=1)
        async with connection, connection.channel() as channel:
            await publish(channel, b"order")

Open any other connection in the retried function. A message whose confirmation was lost
may have been queued, and then is queued twice.
"""

from typing import Any, Final

from retrykit._internal.connection_errors import (
    is_certificate_error,
    is_connection_error,
)
from retrykit._internal.extras import needs
from retrykit.integrations._transient import TransientErrors

with needs("aio-pika"):
    from aio_pika.exceptions import (
        AMQPConnectionError,
        AuthenticationError,
        ChannelInvalidStateError,
        ConnectionClosed,
        DeliveryError,
        IncompatibleProtocolError,
        ProbableAuthenticationError,
        PublishError,
    )

__all__ = ["policy", "transient"]


class _Transient(TransientErrors):
    """Condition that matches transient errors of aio-pika.

    They are failed and lost connections, timeouts, a connection that the broker closed
    with 320, CONNECTION_FORCED, as it does when it shuts down, a channel that is not
    open again yet, and a message that the broker rejected; but not a channel that the
    broker closed, a message that it returned, failed authentication, an incompatible
    protocol, or a rejected certificate.

    Source:
        "AMQP: Advanced Message Queuing Protocol", version 0-9-1, reply codes, 2008.
    """

    def __call__(self, error: Any, /) -> bool:
        if isinstance(error, ConnectionClosed):
            return error.args[:1] == (_CONNECTION_FORCED,)
        if isinstance(error, _PERMANENT) or is_certificate_error(error):
            return False
        return isinstance(error, _TRANSIENT) or is_connection_error(error)


_CONNECTION_FORCED = 320
_TRANSIENT = (AMQPConnectionError, ChannelInvalidStateError, DeliveryError)
_PERMANENT = (
    *(AuthenticationError, IncompatibleProtocolError, ProbableAuthenticationError),
    PublishError,
)

transient: Final = _Transient()
"""Condition for `on`: matches transient errors of aio-pika."""

policy: Final = transient.policy
"""Returns a policy with `transient` filled in."""
