"""Transient errors of PyMongo, from servers that fail or cannot be reached."""

import asyncio
import ssl

import pytest
from pymongo import AsyncMongoClient, MongoClient, errors

from retrykit import state_of
from retrykit.integrations import pymongo as retries
from retrykit.testing import virtual_time
from tests._support.mongo_server import RESET, MongoServer
from tests._support.ports import reserved_port

QUICK = retries.policy(schedule=[0, 0])
SETTINGS = {"serverSelectionTimeoutMS": 2000, "heartbeatFrequencyMS": 500}
# What the linter says.
NO_RETRIES = eval(retries.transient.own_retries.text, {"MongoClient": dict})  # noqa: S307


@pytest.fixture
def server():
    with MongoServer() as server:
        yield server


@pytest.fixture
def connect(server):
    """Connect a client, and close it after the test."""
    clients = []

    def connect(**settings):
        settings = SETTINGS | {"replicaSet": "tests"} | settings
        clients.append(MongoClient("127.0.0.1", server.port, **settings))
        return clients[-1].shop

    yield connect
    for client in clients:
        client.close()


STEPPED_DOWN = {"ok": 0, "errmsg": "stepped down", "code": 189}
UNREACHABLE = {"ok": 0, "errmsg": "no route", "code": 6, "codeName": "HostUnreachable"}
BUSY = {"ok": 0, "errmsg": "conflict", "code": 112}
OVERLOADED = {"ok": 0, "errmsg": "overloaded", "code": 462}
DUPLICATE = {"writeErrors": [{"index": 0, "code": 11000, "errmsg": "duplicate"}]}


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (RESET, errors.AutoReconnect),
        (STEPPED_DOWN, errors.NotPrimaryError),
        (UNREACHABLE, errors.OperationFailure),
        (BUSY | {"errorLabels": ["RetryableWriteError"]}, errors.OperationFailure),
        (OVERLOADED | {"errorLabels": ["RetryableError"]}, errors.OperationFailure),
    ],
    ids=["reset", "stepped down", "code", "label", "overloaded"],
)
def test_a_transient_error_is_retried(server, connect, reply, error):
    shop = connect(**NO_RETRIES)
    server.replies["insert"] = [reply]
    failures = []
    observers = {"attempt_failed": lambda event: failures.append(event.failure.error)}
    insert = QUICK.replace(observers=observers).call
    assert insert(lambda: shop.orders.insert_one({"_id": 1})).inserted_id == 1
    assert [type(each) for each in failures] == [error]
    assert server.commands == ["insert", "insert"]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (BUSY, errors.OperationFailure),
        (OVERLOADED, errors.OperationFailure),
        (DUPLICATE, errors.DuplicateKeyError),
        ({"ok": 0, "errmsg": "too slow", "code": 50}, errors.ExecutionTimeout),
    ],
    ids=["conflict without label", "overload without label", "duplicate", "too slow"],
)
def test_a_permanent_error_is_not_retried(server, connect, reply, error):
    shop = connect(**NO_RETRIES)
    server.replies["insert"] = [reply]
    with pytest.raises(error) as caught:
        QUICK.call(lambda: shop.orders.insert_one({"_id": 1}))
    assert state_of(caught.value).attempt == 1
    assert server.commands == ["insert"]


@pytest.mark.parametrize(
    ("settings", "inserts"), [({}, 6), (NO_RETRIES, 3)], ids=["on", "off"]
)
def test_retries_of_pymongo_multiply_attempts(server, connect, settings, inserts):
    shop = connect(**settings)
    server.replies["insert"] = [BUSY | {"errorLabels": ["RetryableWriteError"]}] * 9
    with pytest.raises(errors.OperationFailure) as caught:
        QUICK.call(lambda: shop.orders.insert_one({"_id": 1}))
    assert state_of(caught.value).attempt == 3
    assert server.commands == ["insert"] * inserts


def test_a_commit_with_an_unknown_result_is_not_retried(server, connect):
    shop = connect()
    # PyMongo itself repeats a commit once, also if its retries are off.
    server.replies["commitTransaction"] = [RESET] * 2

    def order():
        with shop.client.start_session() as session, session.start_transaction():
            shop.orders.insert_one({"_id": 1}, session=session)

    with pytest.raises(errors.AutoReconnect) as caught:
        QUICK.call(order)
    assert caught.value.has_error_label("UnknownTransactionCommitResult")
    assert state_of(caught.value).attempt == 1
    assert server.commands == ["insert", *["commitTransaction"] * 2]


UNREPLICATED = {"writeConcernError": {"code": 64, "errmsg": "too slow"}}
CONFLICT = BUSY | {"errorLabels": ["TransientTransactionError"]}


def test_a_transaction_that_conflicts_begins_anew(server, connect):
    shop = connect()
    server.replies["insert"] = [CONFLICT]

    def order():
        with shop.client.start_session() as session, session.start_transaction():
            shop.orders.insert_one({"_id": 1}, session=session)

    QUICK.call(order)
    assert server.commands == [
        *("insert", "abortTransaction", "insert", "commitTransaction")
    ]


def test_with_transaction_of_pymongo_needs_no_policy(server, connect):
    shop = connect()
    server.replies["insert"] = [CONFLICT]
    server.replies["commitTransaction"] = [UNREPLICATED] * 2
    with shop.client.start_session() as session:
        session.with_transaction(
            lambda session: shop.orders.insert_one({"_id": 1}, session=session)
        )
    commits = ["commitTransaction"] * 3
    assert server.commands == ["insert", "abortTransaction", "insert", *commits]


def test_the_asynchronous_client_is_retried(server):
    server.replies["insert"] = [RESET]

    async def insert():
        settings = SETTINGS | NO_RETRIES | {"replicaSet": "tests"}
        async with AsyncMongoClient("127.0.0.1", server.port, **settings) as client:
            orders = client.shop.orders
            return await QUICK.acall(lambda: orders.insert_one({"_id": 1}))

    assert asyncio.run(insert()).inserted_id == 1
    assert server.commands == ["insert", "insert"]


def test_a_server_that_cannot_be_reached_is_transient():
    settings = {"serverSelectionTimeoutMS": 50}
    with reserved_port() as port, MongoClient("127.0.0.1", port, **settings) as client:
        with pytest.raises(errors.ServerSelectionTimeoutError) as caught:
            client.shop.orders.find_one()
    assert retries.transient(caught.value)


@pytest.mark.parametrize(
    "error", [errors.NetworkTimeout(), errors.WaitQueueTimeoutError()], ids=repr
)
def test_timeouts_are_transient(error):
    assert retries.transient(error)


def test_an_unknown_commit_wins_over_every_other_sign():
    labels = {"UnknownTransactionCommitResult", "RetryableWriteError"}
    details = {"errorLabels": labels}
    assert not retries.transient(errors.NetworkTimeout("", details))
    assert not retries.transient(errors.OperationFailure("", 91, details))


def test_a_bulk_write_is_judged_by_the_error_that_ended_it():
    for ended_by in (errors.AutoReconnect(), errors.ConfigurationError(), None):
        error = errors.ClientBulkWriteException({"error": ended_by}, verbose=False)
        assert retries.transient(error) is retries.transient(ended_by)
    labels = {"errorLabels": ["RetryableWriteError"]}
    assert retries.transient(errors.ClientBulkWriteException(labels, verbose=False))


def test_a_rejected_certificate_is_not_transient():
    error = errors.AutoReconnect("certificate verify failed")
    error.__cause__ = ssl.SSLCertVerificationError("self-signed")
    assert not retries.transient(error)


@pytest.mark.parametrize(
    "error",
    [
        errors.PyMongoError(),
        errors.ConfigurationError(),
        errors.CursorNotFound("", 43),
        errors.WTimeoutError("", 64),
        errors.BulkWriteError({}),
        ConnectionError(),
        None,
    ],
    ids=repr,
)
def test_other_errors_are_not_transient(error):
    assert not retries.transient(error)


@pytest.mark.parametrize(
    ("base", "delay"),
    {
        "longer than the schedule": (2500, 2.5),
        "a float": (2500.5, 2.5005),
        "shorter": (10, 1),
        "zero": (0, 1),
        "negative": (-5, 1),
        "infinite": (float("inf"), 1),
        "not a number": (float("nan"), 1),
        "a text": ("2500", 1),
        "a boolean": (True, 1),
        "missing": (None, 1),
    }.values(),
)
def test_the_delay_of_an_overloaded_server_is_obeyed(server, connect, base, delay):
    shop = connect(**NO_RETRIES)
    labels = {"errorLabels": ["RetryableError", "SystemOverloadedError"]}
    server.replies["insert"] = [OVERLOADED | labels | {"baseBackoffMS": base}]
    policy = retries.policy(schedule=[1])
    with virtual_time(stall_timeout=0.02) as clock:
        policy.call(shop.orders.insert_one, {"_id": 1})
    assert delay <= clock.sleeps[0] <= delay * 1.1


def test_an_error_of_another_library_requests_no_delay():
    assert retries.retry_after(OSError("refused")) is None


def test_with_a_timeout_a_client_repeats_a_read_until_then(server, connect):
    shop = connect(timeoutMS=500)
    server.replies["find"] = [UNREACHABLE] * 100_000
    with pytest.raises(errors.PyMongoError):
        shop.orders.find_one()
    assert len(server.commands) > 2
    own = retries.transient.own_retries
    assert (own.count(shop.client), own.time_limit(shop.client)) == (None, 0.5)
