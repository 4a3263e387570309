"""Transactions on MariaDB with PyMySQL, and with SQLAlchemy on it."""

import threading
from contextlib import nullcontext

import pymysql
import pytest

from retrykit.integrations.pymysql import CommitUnknown, transaction
from tests._support.sql_drivers import MARIADB
from tests._support.sql_servers import CommitProxy, mariadb

__all__ = ["mariadb"]

SOON = {"schedule": [0.01] * 100}


@pytest.fixture(params=MARIADB, ids=lambda kind: kind.name)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def admin(mariadb):
    settings = {"host": "127.0.0.1", "user": "root", "database": "mysql"}

    def execute(statement):
        with pymysql.connect(port=mariadb.port, **settings) as connection:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                connection.commit()
                return list(cursor.fetchall())

    execute("CREATE TABLE counters (id int PRIMARY KEY, n int)")
    return execute


@pytest.fixture(autouse=True)
def counters(admin):
    admin("REPLACE INTO counters VALUES (1, 0), (2, 0)")


@pytest.fixture
def driver(kind, mariadb, admin):
    with kind(mariadb.port) as driver:
        yield driver


def total(admin):
    return admin("SELECT n FROM counters ORDER BY id")


def record(errors):
    """Return observers that note the numbers of the errors."""

    def observe(event):
        errors.append(getattr(event.failure.error, "orig", event.failure.error).args[0])

    return {"attempt_failed": observe}


def test_a_deadlock_is_resolved(driver, admin):
    both_have_locked = threading.Barrier(2)
    attempts, errors = [], []

    @driver.transaction(**SOON, observers=record(errors))
    def lock(first, second):
        attempts.append(first)
        yield f"UPDATE counters SET n = n + 1 WHERE id = {first}"
        if attempts.count(first) == 1:
            yield both_have_locked.wait
        yield f"UPDATE counters SET n = n + 1 WHERE id = {second}"

    driver.call_at_once(lambda: lock(1, 2), lambda: lock(2, 1))
    assert set(errors) == {1213}
    assert total(admin) == [(2,), (2,)]


def test_a_lock_that_is_not_released_in_time_rolls_back_all(driver, admin):
    """The server itself rolls back only the statement."""
    holder = pymysql.connect(
        host="127.0.0.1", user="root", database="mysql", port=driver.port
    )
    errors = []

    @driver.transaction(**SOON, observers=record(errors))
    def both():
        yield "SET innodb_lock_wait_timeout = 0"
        yield "UPDATE counters SET n = n + 1 WHERE id = 1"
        try:
            yield "UPDATE counters SET n = n + 1 WHERE id = 2"
        finally:
            holder.rollback()

    with holder, holder.cursor() as cursor:
        cursor.execute("SELECT * FROM counters WHERE id = 2 FOR UPDATE")
        driver.call(both)
    assert errors == [1205]
    assert total(admin) == [(1,), (1,)]


def test_a_snapshot_conflict_is_retried(driver, admin):
    errors = []

    @driver.transaction(**SOON, observers=record(errors))
    def increment():
        yield "SET innodb_snapshot_isolation = 1"
        [(n,)] = yield "SELECT n FROM counters WHERE id = 1"
        if not errors:
            yield lambda: admin("UPDATE counters SET n = 5 WHERE id = 1")
        yield f"UPDATE counters SET n = {n + 1} WHERE id = 1"

    driver.call(increment)
    assert errors == [1020]
    assert total(admin)[0] == (6,)


def test_a_transaction_survives_a_restart_of_the_server(driver, mariadb, admin):
    restarts = []

    @driver.transaction(schedule=[0.01] * 3)
    def increment():
        yield "UPDATE counters SET n = n + 1 WHERE id = 1"
        if not restarts:
            restarts.append(mariadb.restart())
        yield "UPDATE counters SET n = n + 1 WHERE id = 2"

    driver.call(increment)
    assert total(admin) == [(1,), (1,)]


def test_a_server_that_refuses_connections_is_tried_again(driver, mariadb, admin):
    mariadb.stop()
    errors = []

    @driver.transaction(schedule=[0, 0], observers=record(errors))
    def increment():
        yield "UPDATE counters SET n = n + 1 WHERE id = 1"

    try:
        with pytest.raises(Exception, match="Can't connect"):
            driver.call(increment)
    finally:
        mariadb.start()
    assert errors == [2003] * 3


def test_a_killed_connection_is_replaced(driver, admin):
    errors = []

    @driver.transaction(**SOON, observers=record(errors))
    def increment():
        yield "UPDATE counters SET n = n + 1 WHERE id = 1"
        [(number,)] = yield "SELECT connection_id()"
        if not errors:
            yield lambda: admin(f"KILL {number}")
        yield "SELECT 1"

    driver.call(increment)
    assert len(errors) == 1
    assert total(admin)[0] == (1,)


def increment():
    yield "UPDATE counters SET n = n + 1 WHERE id = 1"


@pytest.mark.parametrize("forward", [True, False], ids=["committed", "not committed"])
def test_an_unknown_commit_is_not_retried(kind, mariadb, admin, forward):
    with (
        CommitProxy(mariadb.port, forward=forward) as proxy,
        kind(proxy.port) as driver,
    ):
        call = driver.transaction(on=Exception, **SOON)(increment)
        with pytest.raises(CommitUnknown) as caught:
            driver.call(call)
    assert driver.retries.transient(caught.value.__cause__)
    assert total(admin)[0] == (int(forward),)


def test_an_unknown_commit_is_retried_if_declared_idempotent(kind, mariadb, admin):
    with CommitProxy(mariadb.port) as proxy, kind(proxy.port) as driver:
        driver.call(driver.transaction(idempotent=True, **SOON)(increment))
    assert total(admin)[0] == (2,)


def test_rolls_back_in_autocommit_mode(mariadb, admin):
    settings = {"host": "127.0.0.1", "user": "root", "database": "mysql"}

    @transaction(
        lambda: pymysql.connect(port=mariadb.port, autocommit=True, **settings)
    )
    def fail(connection):
        with connection.cursor() as cursor:
            cursor.execute("UPDATE counters SET n = n + 1")
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert total(admin)[0] == (0,)


def test_a_shared_connection_is_rolled_back(mariadb, admin):
    settings = {"host": "127.0.0.1", "user": "root", "database": "mysql"}
    with pymysql.connect(port=mariadb.port, **settings) as shared:

        @transaction(lambda: nullcontext(shared))
        def fail(connection):
            with connection.cursor() as cursor:
                cursor.execute("UPDATE counters SET n = n + 1")
            raise KeyError

        with pytest.raises(KeyError):
            fail()
        # Or this would wait for its lock.
        admin("UPDATE counters SET n = 5")


def test_other_errors_roll_back_and_are_not_retried(driver, admin):
    attempts = []

    @driver.transaction(**SOON)
    def fail():
        attempts.append(1)
        yield "UPDATE counters SET n = n + 1 WHERE id = 1"
        yield "INSERT INTO counters VALUES (1, 0)"

    with pytest.raises(Exception, match="Duplicate entry") as caught:
        driver.call(fail)
    assert not driver.retries.transient(caught.value)
    assert attempts == [1]
    assert total(admin)[0] == (0,)
