"""Transient errors of confluent-kafka.

Needs the extra ``confluent-kafka``. librdkafka retries by itself, so only
its transactions raise errors that their caller should retry::

    from retrykit import retry
    from retrykit.integrations import confluent_kafka as retries

    @retry(retries.policy(max_attempts=4))
    def commit(producer):
        producer.commit_transaction(10)
"""

from typing import Any, Final

from retrykit._internal.extras import needs
from retrykit.integrations._transient import TransientErrors

with needs("confluent-kafka"):
    from confluent_kafka import KafkaError, KafkaException

__all__ = ["policy", "transient"]


class _Transient(TransientErrors):
    """Condition that matches retriable errors of confluent-kafka.

    A ``KafkaException`` is judged by its ``KafkaError``. A fatal one is never
    transient: its client can no longer be used.
    """

    def __call__(self, error: Any, /) -> bool:
        if isinstance(error, KafkaException) and error.args:
            error = error.args[0]
        if not isinstance(error, KafkaError):
            return False
        return error.retriable() and not error.fatal()


transient: Final = _Transient()
"""Condition for `on`: matches retriable errors of confluent-kafka."""

policy: Final = transient.policy
"""Returns a policy with `transient` filled in."""
