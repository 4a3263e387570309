"""Transactions of SQLAlchemy on SQLite, whose driver begins them late by itself."""

import asyncio
import sqlite3
import sys
from contextlib import closing

import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import sessionmaker

from retrykit.errors import ConfigError
from retrykit.integrations import sqlalchemy as retries

SELECT = text("SELECT n FROM counters")
UPDATE = text("UPDATE counters SET n = :n")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "counters.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE counters (n int)")
        connection.execute("INSERT INTO counters VALUES (0)")
        connection.commit()
    return path


def increment_elsewhere(path):
    with closing(sqlite3.connect(path, timeout=0)) as connection:
        connection.execute("UPDATE counters SET n = n + 1")
        connection.commit()


def is_locked(path):
    try:
        increment_elsewhere(path)
    except sqlite3.OperationalError:
        return True
    return False


def total(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT n FROM counters").fetchone()[0]


def begin_immediate(engine):
    """Let SQLAlchemy begin transactions itself, as its documentation shows."""

    @event.listens_for(engine, "connect")
    def _(connection, _record):
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def _(connection):
        connection.exec_driver_sql("BEGIN IMMEDIATE")


@pytest.fixture(params=["the driver", "listeners"])
def engine(request, path):
    """An engine whose transactions are begun by the driver, or by listeners."""
    engine = create_engine(f"sqlite:///{path}")
    if request.param == "listeners":
        begin_immediate(engine)
    yield engine
    engine.dispose()


def same(engine):
    return engine


@pytest.mark.parametrize("make", [sessionmaker, same])
def test_nobody_writes_between_a_read_and_a_write(engine, make, path):
    @retries.transaction(make(engine), max_attempts=1)
    def increment(connection):
        n = connection.scalar(SELECT)
        locked.append(is_locked(path))
        connection.execute(UPDATE, {"n": n + 1})

    locked = []
    increment()
    increment()
    assert locked == [True, True]
    assert not is_locked(path)


@pytest.mark.parametrize("make", [async_sessionmaker, same])
def test_nobody_writes_between_a_read_and_a_write_of_a_coroutine(make, path):
    async def main():
        engine = create_async_engine(f"sqlite+aiosqlite:///{path}")

        @retries.transaction(make(engine), max_attempts=1)
        async def increment(connection):
            n = await connection.scalar(SELECT)
            locked.append(is_locked(path))
            await connection.execute(UPDATE, {"n": n + 1})

        locked = []
        await increment()
        await increment()
        await engine.dispose()
        return locked

    assert asyncio.run(main()) == [True, True]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="autocommit is new in 3.12")
def test_a_driver_that_has_begun_by_itself_is_left_alone(path):
    engine = create_engine(f"sqlite:///{path}", connect_args={"autocommit": False})

    @retries.transaction(engine)
    def increment(connection):
        connection.execute(UPDATE, {"n": connection.scalar(SELECT) + 1})

    increment()
    assert total(path) == 1
    engine.dispose()


def test_sessions_of_several_databases_begin_as_they_do(path):
    engine = create_engine(f"sqlite:///{path}")

    @retries.transaction(sessionmaker(binds={}))
    def read(session):
        return session.scalar(SELECT, bind_arguments={"bind": engine})

    assert read() == 0
    engine.dispose()


def test_a_busy_database_is_retried(path):
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 0})
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    @retries.transaction(
        engine,
        schedule=[0],
        observers={"attempt_failed": lambda _: other.execute("COMMIT")},
    )
    def increment(connection):
        connection.execute(UPDATE, {"n": connection.scalar(SELECT) + 1})

    increment()
    assert total(path) == 1
    other.close()
    engine.dispose()


ENGINE = create_engine("sqlite://")
AWAITED = create_async_engine("sqlite+aiosqlite://")


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        (ENGINE, sessionmaker(ENGINE)),
        (sessionmaker(ENGINE), sessionmaker(ENGINE)),
    ],
    ids=["engine", "sessionmaker"],
)
def test_a_transaction_in_another_of_its_engine_is_rejected(outer, inner):
    @retries.transaction(inner)
    def within(connection): ...

    @retries.transaction(outer)
    def around(connection):
        within()

    with pytest.raises(ConfigError, match=r"outside the transaction of .*around"):
        around()


def test_a_transaction_in_another_of_its_async_engine_is_rejected():
    @retries.transaction(async_sessionmaker(AWAITED))
    async def within(connection): ...

    @retries.transaction(AWAITED)
    async def around(connection):
        await within()

    async def main():
        try:
            await around()
        finally:
            await AWAITED.dispose()

    with pytest.raises(ConfigError, match=r"outside the transaction of .*around"):
        asyncio.run(main())


def test_async_functions_need_an_async_factory():
    async def read(connection): ...

    for factory in ENGINE, sessionmaker(ENGINE):
        with pytest.raises(ConfigError, match="fn must be a sync function"):
            retries.transaction(factory)(read)


def test_sync_functions_need_a_sync_factory():
    def read(connection): ...

    for factory in AWAITED, async_sessionmaker(AWAITED):
        with pytest.raises(ConfigError, match="fn must be an async function"):
            retries.transaction(factory)(read)
