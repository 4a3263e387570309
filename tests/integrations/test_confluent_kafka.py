"""Transient errors of confluent-kafka, without a broker."""

import logging

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.error import ProduceError

from retrykit import state_of
from retrykit.integrations import confluent_kafka as retries
from tests._support.ports import reserved_port

QUICK = retries.policy(schedule=[0, 0])


@pytest.fixture
def make_producer():
    """Make producers for a broker that cannot be reached."""
    with reserved_port() as port:
        servers = {"bootstrap.servers": f"127.0.0.1:{port}"}
        logger = logging.getLogger("tests.librdkafka")
        logger.setLevel(logging.CRITICAL)
        yield lambda settings: Producer(servers | settings, logger=logger)


def test_a_transaction_that_cannot_begin_yet_is_retried(make_producer):
    producer = make_producer({"transactional.id": "tests"})
    with pytest.raises(KafkaException, match="retry call to resume") as caught:
        QUICK.call(lambda: producer.init_transactions(0.05))
    assert state_of(caught.value).attempt == 3


def test_a_message_that_librdkafka_has_given_up_is_not_transient(make_producer):
    producer = make_producer({"message.timeout.ms": 50})
    failed = []
    producer.produce("orders", b"1", on_delivery=lambda error, _: failed.append(error))
    producer.flush(10)
    [error] = failed
    assert error.code() == KafkaError._MSG_TIMED_OUT  # noqa: SLF001  public
    assert not retries.transient(error)


def test_metadata_that_librdkafka_could_not_get_is_not_transient(make_producer):
    with pytest.raises(KafkaException) as caught:
        QUICK.call(lambda: make_producer({}).list_topics(timeout=0.05))
    assert state_of(caught.value).attempt == 1


RETRIABLE = KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE, retriable=True)


@pytest.mark.parametrize("kind", [KafkaException, ProduceError])
def test_an_exception_is_judged_by_its_error(kind):
    assert retries.transient(kind(RETRIABLE))
    assert retries.transient(RETRIABLE)


@pytest.mark.parametrize(
    "error",
    [
        KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)),
        KafkaException(KafkaError(KafkaError._FENCED, fatal=True, retriable=True)),  # noqa: SLF001
        KafkaException(KafkaError(KafkaError.INVALID_TXN_STATE, txn_requires_abort=1)),
        KafkaException("text"),
        KafkaException(),
        BufferError("Local: Queue full"),
        None,
    ],
    ids=["denied", "fatal", "abort", "text", "empty", "queue full", "None"],
)
def test_other_errors_are_not_transient(error):
    assert not retries.transient(error)
