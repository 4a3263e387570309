"""Which errors of SQL databases are transient, by their drivers."""

import asyncio
import pickle
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import aiosqlite
import asyncpg
import psycopg
import psycopg_pool
import pymysql
import pytest
import sqlalchemy
from sqlalchemy import create_engine, exc, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import QueuePool

from retrykit import ConfigError, Policy
from retrykit.integrations import (
    asyncpg as for_asyncpg,
    psycopg as for_psycopg,
    pymysql as for_pymysql,
    sqlalchemy as for_sqlalchemy,
    sqlite3 as for_sqlite3,
)
from tests._support.ports import free_port

TRANSIENT_STATES = ["08000", "08003", "08006", "08P01", "40001", "40003", "40P01"]
TRANSIENT_STATES += ["25006", "53300", "55P03", "57P01", "57P02", "57P03", "57P05"]
OTHER_STATES = ["23505", "23P01", "25P02", "25P03", "40002", "42601", "53100", "53200"]
OTHER_STATES += ["57014", "57P04", "58030", "XX000"]
TRANSIENT_NUMBERS = [1020, 1040, 1053, 1203, 1205, 1213, 1927, 2002, 2003, 2006, 2013]
TRANSIENT_NUMBERS += [1836, 2055, 3101, 3572, 4031]
OTHER_NUMBERS = [0, 1045, 1047, 1062, 1064, 1290, 1317, 1969, 2005, 3024]


def is_transient(retries, error):
    """Return whether an error is transient, alone and as SQLAlchemy wraps it."""
    wrapped = exc.DBAPIError("SELECT 1", {}, error)
    found = retries.transient(error)
    assert for_sqlalchemy.transient(wrapped) is found
    return found


def asyncpg_error(state):
    """Return the error for a message of the server."""
    fields = {"S": "ERROR", "C": state, "M": "failed"}
    return asyncpg.PostgresError.new(fields)


def psycopg_error(state):
    return psycopg.errors.lookup(state)("failed")


@pytest.mark.parametrize(
    ("retries", "build"),
    [(for_psycopg, psycopg_error), (for_asyncpg, asyncpg_error)],
    ids=["psycopg", "asyncpg"],
)
@pytest.mark.parametrize("state", TRANSIENT_STATES + OTHER_STATES)
def test_the_sqlstate_of_postgresql_decides(retries, build, state):
    assert is_transient(retries, build(state)) is (state in TRANSIENT_STATES)


@pytest.mark.parametrize("number", TRANSIENT_NUMBERS + OTHER_NUMBERS)
def test_the_number_of_mysql_decides(number):
    error = pymysql.OperationalError(number, "failed")
    assert is_transient(for_pymysql, error) is (number in TRANSIENT_NUMBERS)


READ_ONLY = {
    "MySQL": (1290, "The MySQL server is running with the --read-only option", True),
    "super": (1290, "running with the --super-read-only option so it cannot", True),
    "InnoDB": (1290, "running with the --innodb_read_only option so it", True),
    "another option": (1290, "running with the --secure-file-priv option", False),
    "Galera": (1047, "WSREP has not yet prepared node for application use", True),
    "an unknown command": (1047, "Unknown command", False),
}


@pytest.mark.parametrize(
    ("number", "text", "transient"), READ_ONLY.values(), ids=READ_ONLY
)
def test_a_number_of_several_meanings_is_read_with_its_text(number, text, transient):
    error = pymysql.OperationalError(number, text)
    assert is_transient(for_pymysql, error) is transient


def driver_error(module, *args, kind="OperationalError", **attributes):
    """Return an error of a driver that is not installed."""
    base = type(kind, (Exception,), {"__module__": module})
    error = type("Derived", (base,), {"__module__": module})(*args)
    vars(error).update(attributes)
    return error


DRIVER_ERRORS = [
    (True, driver_error("psycopg2.errors", "failed", pgcode="40001")),
    (False, driver_error("psycopg2.errors", "failed", pgcode="23505")),
    (True, driver_error("psycopg2", "server closed the connection", pgcode=None)),
    (False, driver_error("psycopg2", "closed", kind="InterfaceError", pgcode=None)),
    (True, driver_error("pg8000.exceptions", {"C": "40P01", "M": "deadlock"})),
    (False, driver_error("pg8000.exceptions", {"M": "no code"})),
    (True, driver_error("MySQLdb._exceptions", 1213, "Deadlock found")),
    (False, driver_error("MySQLdb._exceptions", 1062, "Duplicate entry")),
    (True, driver_error("asyncmy.errors", 1205, "Lock wait timeout exceeded")),
    (True, driver_error("mysql.connector.errors", 1213, "D", "40001", errno=1213)),
    (True, driver_error("mariadb", "Deadlock found", errno=1213, sqlstate="40001")),
    (False, driver_error("mariadb", "Duplicate entry", errno=1062, sqlstate="23000")),
    (False, driver_error("cx_Oracle", 1205)),
    (False, driver_error("cx_Oracle")),
    (False, driver_error("MySQLdb._exceptions")),
]


@pytest.mark.parametrize(("expected", "error"), DRIVER_ERRORS, ids=repr)
def test_sqlalchemy_knows_drivers_by_the_shape_of_their_errors(expected, error):
    wrapped = exc.OperationalError("SELECT 1", {}, error)
    assert for_sqlalchemy.transient(wrapped) is expected


def test_an_invalidated_connection_is_transient():
    lost = exc.DBAPIError("SELECT 1", {}, ValueError(), connection_invalidated=True)
    assert for_sqlalchemy.transient(lost)
    lost.connection_invalidated = False
    assert not for_sqlalchemy.transient(lost)


def test_a_full_pool_is_transient():
    engine = create_engine(
        "sqlite://", poolclass=QueuePool, pool_size=1, max_overflow=0, pool_timeout=0
    )
    with engine.connect(), pytest.raises(exc.TimeoutError) as caught:
        engine.connect()
    assert for_sqlalchemy.transient(caught.value)
    engine.dispose()


@pytest.mark.parametrize(
    ("expected", "error"),
    [
        (True, psycopg_pool.PoolTimeout("no connection after 30 s")),
        (True, psycopg_pool.TooManyRequests("100 are waiting")),
        (False, psycopg_pool.PoolClosed("closed")),
        (True, psycopg.OperationalError("server closed the connection")),
        (False, psycopg.InterfaceError("the cursor is closed")),
        (False, psycopg.ProgrammingError("wrong")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_operational_error_of_psycopg_without_sqlstate_is_transient(expected, error):
    assert for_psycopg.transient(error) is expected


@pytest.mark.parametrize(
    ("expected", "error"),
    [
        (True, asyncpg.InterfaceError("connection is closed")),
        (True, asyncpg.exceptions.ConnectionDoesNotExistError("closed")),
        (False, asyncpg.InterfaceError("another operation is in progress")),
        (False, asyncpg.InternalClientError("failed")),
        (True, ConnectionResetError()),
        (True, TimeoutError()),
        (
            True,
            OSError("Multiple exceptions: [Errno 111] refused, [Errno 111] refused"),
        ),
        (False, FileNotFoundError(2, "no such file")),
        (False, OSError(28, "no space left on device")),
    ],
    ids=repr,
)
def test_lost_connections_of_asyncpg_are_transient(expected, error):
    assert for_asyncpg.transient(error) is expected


@pytest.mark.parametrize(
    ("expected", "error"),
    [
        (True, pymysql.InterfaceError(0, "")),
        (False, pymysql.InterfaceError("wrong")),
        (False, pymysql.OperationalError()),
        (False, pymysql.OperationalError("failed")),
    ],
    ids=repr,
)
def test_a_closed_connection_of_pymysql_is_transient(expected, error):
    assert for_pymysql.transient(error) is expected


MODULES = [for_asyncpg, for_psycopg, for_pymysql, for_sqlalchemy, for_sqlite3]


@pytest.mark.parametrize("retries", MODULES, ids=lambda module: module.__name__)
@pytest.mark.parametrize("foreign", [ValueError("40001"), None, 40001, object()])
def test_foreign_errors_are_not_transient(retries, foreign):
    assert not retries.transient(foreign)


@pytest.mark.parametrize("retries", MODULES, ids=lambda module: module.__name__)
def test_transient_is_pickled_by_its_name(retries):
    assert pickle.loads(pickle.dumps(retries.transient)) is retries.transient  # noqa: S301
    assert retries.policy(max_attempts=3) == Policy(
        max_attempts=3, on=retries.transient
    )


@pytest.mark.parametrize(
    ("retries", "open_one"),
    [
        (for_sqlalchemy, Session()),
        (for_sqlalchemy, scoped_session(sessionmaker())),
        (for_psycopg, psycopg.Connection.__new__(psycopg.Connection)),
        (for_pymysql, pymysql.Connection(defer_connect=True)),
    ],
    ids=["Session", "scoped_session", "psycopg", "PyMySQL"],
)
def test_an_open_connection_is_rejected(retries, open_one):
    with pytest.raises(
        ConfigError, match="each attempt opens a new connection with it"
    ):
        retries.transaction(open_one)


def refused():
    """Return the errors of connections to a port on which nobody listens, by module."""
    port = free_port()
    url = f"127.0.0.1:{port}/test"

    async def connect_async(url):
        async with create_async_engine(url).connect():
            pass

    yield for_psycopg, lambda: psycopg.connect(f"postgresql://{url}")
    yield for_pymysql, lambda: pymysql.connect(host="127.0.0.1", port=port)
    for host in ("127.0.0.1", "localhost"):
        to = f"postgresql://{host}:{port}/test"
        yield for_asyncpg, lambda to=to: asyncio.run(asyncpg.connect(to))
    for name in ("postgresql+psycopg", "mysql+pymysql"):
        engine = create_engine(f"{name}://{url}")
        yield for_sqlalchemy, engine.connect
    url = f"postgresql+asyncpg://{url}"
    yield for_sqlalchemy, lambda: asyncio.run(connect_async(url))


def test_a_refused_connection_is_transient():
    for retries, connect in refused():
        with pytest.raises(Exception, match=r"(?i)refused|connect") as caught:
            connect()
        assert retries.transient(caught.value), (retries, caught.value)


def test_a_locked_sqlite_is_transient_through_every_driver(tmp_path):
    path = tmp_path / "test.db"
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 0})

    async def lock():
        async with aiosqlite.connect(path, timeout=0) as connection:
            await connection.execute("BEGIN IMMEDIATE")

    async def lock_by_sqlalchemy():
        awaited = create_async_engine(
            f"sqlite+aiosqlite:///{path}", connect_args={"timeout": 0}
        )
        try:
            async with awaited.connect() as connection:
                await connection.execute(text("BEGIN IMMEDIATE"))
        finally:
            await awaited.dispose()

    with closing(sqlite3.connect(path)) as holder, engine.connect() as connection:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError) as caught:
            asyncio.run(lock())
        assert for_sqlite3.transient(caught.value)
        with pytest.raises(exc.OperationalError) as caught:
            asyncio.run(lock_by_sqlalchemy())
        assert for_sqlalchemy.transient(caught.value)
        with pytest.raises(exc.OperationalError) as caught:
            connection.execute(text("BEGIN IMMEDIATE"))
        assert for_sqlalchemy.transient(caught.value)
    engine.dispose()


def test_the_note_on_an_aborted_transaction_is_added_once():
    for retries, error in (
        (for_psycopg, psycopg.errors.InFailedSqlTransaction("aborted")),
        (for_asyncpg, asyncpg_error("25P02")),
        (for_sqlalchemy, sqlalchemy.exc.PendingRollbackError("rolled back")),
    ):
        assert not retries.transient(error)
        assert not retries.transient(error)
        [note] = error.__notes__
        assert "transactions are retried as a whole" in note


def test_the_code_of_the_docs_runs(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "transient_errors.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    [code] = [each for each in blocks if "import sqlalchemy as" in each]
    path = tmp_path / "bank.db"
    names = {}
    exec(code.replace("bank.db", str(path)), names)  # noqa: S102  under test
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT balance FROM accounts ORDER BY id")
        assert rows.fetchall() == [(400,), (100,)]
    names["engine"].dispose()
