"""Transient errors of aiokafka, without a broker."""

import asyncio

import pytest
from aiokafka import AIOKafkaProducer, errors

from retrykit import state_of
from retrykit.integrations import aiokafka as retries
from tests._support.ports import reserved_port


def test_a_broker_that_cannot_be_reached_is_retried():
    async def start(port):
        producer = AIOKafkaProducer(bootstrap_servers=f"127.0.0.1:{port}")
        try:
            await retries.policy(schedule=[0, 0]).acall(producer.start)
        finally:
            await producer.stop()

    with reserved_port() as port:
        with pytest.raises(errors.KafkaConnectionError) as caught:
            asyncio.run(start(port))
    assert state_of(caught.value).attempt == 3


TRANSIENT = [
    *(errors.NodeNotReadyError(), errors.NotLeaderForPartitionError()),
    *(errors.RequestTimedOutError(), errors.GroupCoordinatorNotAvailableError()),
]
OTHERS = [
    *(errors.ProducerFenced(), errors.TopicAuthorizationFailedError()),
    *(errors.MessageSizeTooLargeError(), errors.IllegalOperation()),
    *(ConnectionError(), None),
]


@pytest.mark.parametrize("error", TRANSIENT + OTHERS, ids=repr)
def test_errors_are_judged_by_aiokafka(error):
    assert retries.transient(error) is (error in TRANSIENT)
