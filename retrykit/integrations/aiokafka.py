"""Transient errors of aiokafka.

Needs the extra ``aiokafka``. aiokafka retries a request by itself until
``request_timeout_ms``::

    from retrykit import aretry
    from retrykit.integrations import aiokafka as retries

    @aretry(retries.policy(max_attempts=4))
    async def send(producer, order):
        await producer.send_and_wait("orders", order)

A message whose reply was lost may have been written, and then is written twice, even by
a producer with ``enable_idempotence``, which recognizes only its own retries.
"""

from typing import Any, Final

from retrykit._internal.extras import needs
from retrykit.integrations._transient import TransientErrors

with needs("aiokafka"):
    from aiokafka.errors import KafkaError

__all__ = ["policy", "transient"]


class _Transient(TransientErrors):
    """Condition that matches errors of aiokafka whose class is ``retriable``."""

    def __call__(self, error: Any, /) -> bool:
        return isinstance(error, KafkaError) and error.retriable


transient: Final = _Transient()
"""Condition for `on`: matches retriable errors of aiokafka."""

policy: Final = transient.policy
"""Returns a policy with `transient` filled in."""
