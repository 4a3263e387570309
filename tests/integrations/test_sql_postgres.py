"""Transactions on PostgreSQL with every driver, sync and async."""

import asyncio
import threading
from functools import partial

import asyncpg
import psycopg
import psycopg_pool
import pytest
from sqlalchemy import create_engine, exc, text
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, sessionmaker

from retrykit import retry, state_of
from retrykit.integrations import (
    asyncpg as for_asyncpg,
    psycopg as for_psycopg,
    sqlalchemy as for_sqlalchemy,
)
from retrykit.integrations.psycopg import CommitUnknown
from tests._support.sql_drivers import POSTGRES
from tests._support.sql_servers import CommitProxy, postgres

__all__ = ["postgres"]

# Waits too short to matter, and long enough for the others to go on.
SOON = {"schedule": [0.01] * 100}
COUNT = "SELECT n FROM counters WHERE id = 1"
SERIALIZABLE = "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"


@pytest.fixture(scope="module")
def admin(postgres):
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE counters (id int PRIMARY KEY, n int)")
        yield connection


@pytest.fixture(autouse=True)
def counters(admin):
    admin.execute("TRUNCATE counters")
    admin.execute("INSERT INTO counters VALUES (1, 0), (2, 0)")


@pytest.fixture(params=POSTGRES, ids=lambda kind: kind.name)
def kind(request):
    return request.param


@pytest.fixture
def driver(kind, postgres, admin):
    with kind(postgres.port) as driver:
        yield driver


def total(admin):
    return admin.execute("SELECT n FROM counters ORDER BY id").fetchall()


def barrier(driver, parties=2):
    return (asyncio.Barrier if driver.awaited else threading.Barrier)(parties)


def test_two_transactions_that_conflict_both_commit(driver, admin):
    """Each reads what the other writes: one of them fails under SERIALIZABLE."""
    both_have_read = barrier(driver)
    attempts = []

    @driver.transaction(**SOON)
    def copy(source, target):
        attempts.append(source)
        yield SERIALIZABLE
        [(n,)] = yield f"SELECT n FROM counters WHERE id = {source}"
        if attempts.count(source) == 1:
            yield both_have_read.wait
        yield f"UPDATE counters SET n = {n + 1} WHERE id = {target}"

    driver.call_at_once(lambda: copy(1, 2), lambda: copy(2, 1))
    assert len(attempts) > 2
    # One after the other: 0 + 1, then 1 + 1.
    assert sorted(total(admin)) == [(1,), (2,)]


def test_a_counter_stays_right(driver, admin):
    all_have_read = barrier(driver, 8)
    attempts = []

    @driver.transaction(**SOON)
    def increment(number):
        attempts.append(number)
        yield SERIALIZABLE
        [(n,)] = yield COUNT
        if attempts.count(number) == 1:
            yield all_have_read.wait
        yield f"UPDATE counters SET n = {n + 1} WHERE id = 1"

    driver.call_at_once(*(partial(increment, number) for number in range(8)))
    assert total(admin)[0] == (8,)
    # Of the first attempts, one has committed.
    assert len(attempts) >= 15


def test_a_deadlock_is_resolved(driver, admin):
    admin.execute("ALTER ROLE retrykit SET deadlock_timeout = '10ms'")
    both_have_locked = barrier(driver)
    attempts = []

    @driver.transaction(**SOON)
    def lock(first, second):
        attempts.append(first)
        yield f"UPDATE counters SET n = n + 1 WHERE id = {first}"
        if attempts.count(first) == 1:
            yield both_have_locked.wait
        yield f"UPDATE counters SET n = n + 1 WHERE id = {second}"

    driver.call_at_once(lambda: lock(1, 2), lambda: lock(2, 1))
    assert len(attempts) > 2
    assert total(admin) == [(2,), (2,)]


def test_a_connection_lost_in_a_transaction_is_replaced(driver, admin):
    attempts = []

    @driver.transaction(**SOON)
    def increment():
        yield "UPDATE counters SET n = n + 1 WHERE id = 1"
        [(pid,)] = yield "SELECT pg_backend_pid()"
        attempts.append(pid)
        if len(attempts) == 1:
            yield lambda: admin.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        yield "SELECT 1"

    driver.call(increment)
    assert len({*attempts}) == 2
    assert total(admin)[0] == (1,)


def test_a_connection_lost_before_commit_arrives_is_an_unknown_commit(driver, admin):
    """The driver notices it only by the missing answer to COMMIT."""
    attempts = []

    @driver.transaction(**SOON)
    def increment():
        yield "UPDATE counters SET n = n + 1 WHERE id = 1"
        [(pid,)] = yield "SELECT pg_backend_pid()"
        attempts.append(pid)
        yield lambda: admin.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    with pytest.raises(CommitUnknown):
        driver.call(increment)
    assert len(attempts) == 1
    assert total(admin)[0] == (0,)


def increment():
    yield "UPDATE counters SET n = n + 1 WHERE id = 1"


@pytest.mark.parametrize("forward", [True, False], ids=["committed", "not committed"])
def test_an_unknown_commit_is_not_retried(kind, postgres, admin, forward):
    with (
        CommitProxy(postgres.port, forward=forward) as proxy,
        kind(proxy.port) as driver,
    ):
        call = driver.transaction(on=Exception, **SOON)(increment)
        with pytest.raises(CommitUnknown, match="lost during COMMIT") as caught:
            driver.call(call)
    assert driver.retries.transient(caught.value.__cause__)
    assert state_of(caught.value).attempt == 1
    assert total(admin)[0] == (int(forward),)


def test_an_unknown_commit_is_retried_if_declared_idempotent(kind, postgres, admin):
    with CommitProxy(postgres.port) as proxy, kind(proxy.port) as driver:
        call = driver.transaction(idempotent=True, **SOON)(increment)
        driver.call(call)
    # The first attempt was committed, too.
    assert total(admin)[0] == (2,)


def test_a_conflict_at_commit_is_retried(driver, admin):
    """PostgreSQL has rolled it back, so it is no unknown commit."""
    attempts = []

    def write_after():
        with psycopg.connect(admin.info.dsn) as other:
            other.execute(SERIALIZABLE)
            other.execute("SELECT n FROM counters WHERE id = 1")
            other.execute("UPDATE counters SET n = 7 WHERE id = 2")

    @driver.transaction(**SOON)
    def copy():
        attempts.append(1)
        yield SERIALIZABLE
        [(n,)] = yield "SELECT n FROM counters WHERE id = 2"
        yield f"UPDATE counters SET n = {n + 1} WHERE id = 1"
        if len(attempts) == 1:
            yield write_after

    driver.call(copy)
    assert len(attempts) == 2
    assert total(admin) == [(8,), (7,)]


def test_other_errors_roll_back_and_are_not_retried(driver, admin):
    attempts = []

    @driver.transaction(**SOON)
    def fail():
        attempts.append(1)
        yield "UPDATE counters SET n = n + 1 WHERE id = 1"
        yield "INSERT INTO counters VALUES (1, 0)"

    with pytest.raises(Exception, match="duplicate key"):
        driver.call(fail)
    assert attempts == [1]
    assert total(admin)[0] == (0,)


def test_a_deferred_constraint_fails_at_commit_and_is_raised(driver, admin):
    admin.execute(
        "CREATE TABLE IF NOT EXISTS rows (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)"
    )

    @driver.transaction(**SOON)
    def fail():
        yield "INSERT INTO rows VALUES (1), (1)"

    with pytest.raises(Exception, match="duplicate key") as caught:
        driver.call(fail)
    assert not isinstance(caught.value, CommitUnknown)


def test_an_aborted_transaction_is_not_retried_and_says_so(driver):
    @driver.transaction(**SOON)
    def fail():
        try:
            yield "SELECT 1 / 0"
        finally:
            yield "SELECT 1"

    with pytest.raises(Exception, match="current transaction is aborted") as caught:
        driver.call(fail)
    assert "transactions are retried as a whole" in caught.value.__notes__[0]
    assert state_of(caught.value).attempt == 1


def test_a_plain_retry_inside_of_a_transaction_fails_at_once(postgres, admin):
    """The retried statement finds the transaction aborted."""

    @retry(for_psycopg.policy(**SOON))
    def lock(connection):
        return connection.execute("SELECT * FROM counters FOR UPDATE NOWAIT")

    with psycopg.connect(postgres.url) as holder, psycopg.connect(postgres.url) as mine:
        lock(holder)
        with pytest.raises(psycopg.errors.InFailedSqlTransaction) as caught:
            lock(mine)
    assert "transactions are retried as a whole" in "".join(caught.value.__notes__)
    assert state_of(caught.value).attempt == 2


@pytest.mark.parametrize(
    "kind", POSTGRES[:2], ids=lambda kind: kind.name, indirect=True
)
@pytest.mark.parametrize(
    "statement",
    ["SELECT 1 / 0", "SELECT pg_terminate_backend(pg_backend_pid())"],
    ids=["failed", "lost"],
)
def test_psycopg_does_not_hide_that_nothing_was_committed(driver, admin, statement):
    @driver.transaction(**SOON)
    def swallow():
        yield "UPDATE counters SET n = n + 1 WHERE id = 1"
        try:
            yield statement
        except psycopg.Error:
            return

    with pytest.raises(psycopg.errors.InFailedSqlTransaction, match="has caught"):
        driver.call(swallow)
    assert total(admin)[0] == (0,)


def test_a_rollback_of_psycopg_ends_the_function_without_a_result(postgres, admin):
    @for_psycopg.transaction(lambda: psycopg.connect(postgres.url))
    def increment(connection):
        connection.execute("UPDATE counters SET n = n + 1")
        raise psycopg.Rollback

    assert increment() is None
    assert total(admin)[0] == (0,)


def test_a_pool_of_psycopg_replaces_a_lost_connection(postgres, admin):
    with psycopg_pool.ConnectionPool(postgres.url, min_size=1, open=True) as pool:

        @for_psycopg.transaction(pool, **SOON)
        def increment(connection):
            connection.execute("UPDATE counters SET n = n + 1")
            return connection.info.backend_pid

        first = increment()
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
        assert increment() != first
    assert total(admin)[0] == (2,)


def test_an_async_pool_of_psycopg_gives_the_connections(postgres, admin):
    async def main():
        pool = psycopg_pool.AsyncConnectionPool(postgres.url, min_size=1, open=False)
        async with pool:

            @for_psycopg.transaction(pool)
            async def increment(connection):
                await connection.execute("UPDATE counters SET n = n + 1")

            await increment()

    asyncio.run(main())
    assert total(admin)[0] == (1,)


class Base(DeclarativeBase):
    pass


class Counter(Base):
    __tablename__ = "counters"
    id: Mapped[int] = mapped_column(primary_key=True)
    n: Mapped[int]


def sqlalchemy_url(port, driver="psycopg"):
    return f"postgresql+{driver}://retrykit@127.0.0.1:{port}/postgres"


def test_pending_changes_of_a_session_are_sent_before_commit(postgres, admin):
    """A connection that is lost while they are sent is no unknown commit."""
    engine = create_engine(sqlalchemy_url(postgres.port))
    attempts = []

    @for_sqlalchemy.transaction(sessionmaker(engine), **SOON)
    def increment(session):
        session.get(Counter, 1).n += 1
        attempts.append(session.scalar(text("SELECT pg_backend_pid()")))
        session.get(Counter, 2).n += 1
        if len(attempts) == 1:
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", attempts)

    increment()
    assert len(attempts) == 2
    assert total(admin) == [(1,), (1,)]
    engine.dispose()


def test_pending_changes_of_an_async_session_are_sent_before_commit(postgres, admin):
    attempts = []

    async def main():
        engine = create_async_engine(sqlalchemy_url(postgres.port, "asyncpg"))

        @for_sqlalchemy.transaction(async_sessionmaker(engine), **SOON)
        async def increment(session):
            counter = await session.get(Counter, 1)
            attempts.append(await session.scalar(text("SELECT pg_backend_pid()")))
            counter.n += 1
            if len(attempts) == 1:
                admin.execute("SELECT pg_terminate_backend(%s, 5000)", attempts)

        await increment()
        await engine.dispose()

    asyncio.run(main())
    assert len(attempts) == 2
    assert total(admin)[0] == (1,)


def test_a_session_that_was_rolled_back_is_not_retried(postgres):
    engine = create_engine(sqlalchemy_url(postgres.port))

    @for_sqlalchemy.transaction(sessionmaker(engine), **SOON)
    def fail(session):
        session.add(Counter(id=1, n=0))
        try:
            session.flush()
        except exc.IntegrityError:
            session.add(Counter(id=3, n=0))

    with pytest.raises(exc.PendingRollbackError) as caught:
        fail()
    assert "transactions are retried as a whole" in caught.value.__notes__[0]
    engine.dispose()


def test_an_engine_gives_connections(postgres, admin):
    engine = create_engine(sqlalchemy_url(postgres.port))

    @for_sqlalchemy.transaction(engine)
    def increment(connection):
        connection.execute(text("UPDATE counters SET n = n + 1"))

    async def main():
        awaited = create_async_engine(sqlalchemy_url(postgres.port, "asyncpg"))

        @for_sqlalchemy.transaction(awaited)
        async def increment(connection):
            await connection.execute(text("UPDATE counters SET n = n + 1"))

        await increment()
        await awaited.dispose()

    increment()
    asyncio.run(main())
    assert total(admin)[0] == (2,)
    engine.dispose()


class StaleConnections:
    """Pools whose connections lead to a server that was a primary before.

    A connection keeps the setting of the database that it began with.
    """

    READ_ONLY = "ALTER DATABASE postgres SET default_transaction_read_only = 1"
    RESET = "BEGIN READ WRITE; ALTER DATABASE postgres RESET ALL; COMMIT"

    def __init__(self, admin, schedule):
        self._admin = admin
        self.errors = []
        self.settings = {
            "schedule": schedule,
            "observers": {"attempt_failed": self.errors.append},
        }

    def __enter__(self):
        self._admin.execute(self.READ_ONLY)
        return self

    def __exit__(self, *_):
        self._admin.execute(self.RESET)

    @property
    def promoted(self):
        self._admin.execute(self.RESET)
        return self.settings


ADD = "UPDATE counters SET n = n + 1 WHERE id = 1"


@pytest.fixture
def stale(admin):
    with StaleConnections(admin, [0]) as stale:
        yield stale


def test_a_pool_of_psycopg_leaves_a_server_that_is_no_primary(stale, postgres, admin):
    with psycopg_pool.ConnectionPool(postgres.url, min_size=3, open=True) as pool:
        pool.wait()

        @for_psycopg.transaction(pool, **stale.promoted)
        def increment(connection):
            connection.execute(ADD)

        increment()
    assert len(stale.errors) == 1
    assert total(admin)[0] == (1,)


def test_an_async_pool_leaves_a_server_that_is_no_primary(stale, postgres, admin):
    async def main():
        pool = psycopg_pool.AsyncConnectionPool(postgres.url, min_size=3, open=False)
        async with pool:
            await pool.wait()

            @for_psycopg.transaction(pool, **stale.promoted)
            async def increment(connection):
                await connection.execute(ADD)

            await increment()

    asyncio.run(main())
    assert len(stale.errors) == 1
    assert total(admin)[0] == (1,)


def test_a_pool_of_asyncpg_leaves_a_server_that_is_no_primary(stale, postgres, admin):
    async def main():
        async with asyncpg.create_pool(postgres.url, min_size=3) as pool:

            @for_asyncpg.transaction(pool, **stale.promoted)
            async def increment(connection):
                await connection.execute(ADD)

            await increment()

    asyncio.run(main())
    assert len(stale.errors) == 1
    assert total(admin)[0] == (1,)


def test_an_engine_leaves_a_server_that_is_no_primary(stale, postgres, admin):
    engine = create_engine(sqlalchemy_url(postgres.port))
    with engine.connect(), engine.connect(), engine.connect():
        pass

    @for_sqlalchemy.transaction(sessionmaker(engine), **stale.promoted)
    def increment(session):
        session.execute(text(ADD))

    increment()
    assert len(stale.errors) == 1
    assert total(admin)[0] == (1,)
    engine.dispose()


def test_an_async_engine_leaves_a_server_that_is_no_primary(stale, postgres, admin):
    async def main():
        engine = create_async_engine(sqlalchemy_url(postgres.port, "asyncpg"))
        async with engine.connect(), engine.connect(), engine.connect():
            pass

        @for_sqlalchemy.transaction(engine, **stale.promoted)
        async def increment(connection):
            await connection.execute(text(ADD))

        await increment()
        await engine.dispose()

    asyncio.run(main())
    assert len(stale.errors) == 1
    assert total(admin)[0] == (1,)


def test_a_new_connection_of_each_attempt_reaches_the_primary(driver, admin):
    with StaleConnections(admin, [0]) as stale:

        def promote(_event):
            admin.execute(stale.RESET)

        @driver.transaction(schedule=[0], observers={"attempt_failed": promote})
        def increment():
            yield ADD

        driver.call(increment)
    assert total(admin)[0] == (1,)


class Versioned(Base):
    __tablename__ = "versioned"
    id: Mapped[int] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column()
    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012  of SQLAlchemy
    n: Mapped[int]


def test_a_row_that_another_transaction_has_changed_first_is_read_again(
    postgres, admin
):
    admin.execute("CREATE TABLE versioned (id int PRIMARY KEY, version int, n int)")
    admin.execute("INSERT INTO versioned VALUES (1, 1, 0)")
    engine = create_engine(sqlalchemy_url(postgres.port))
    found = []

    @for_sqlalchemy.transaction(sessionmaker(engine), schedule=[0])
    def increment(session):
        row = session.get(Versioned, 1)
        found.append(row.n)
        if len(found) == 1:
            admin.execute("UPDATE versioned SET n = 7, version = 2")
        row.n += 1

    increment()
    assert found == [0, 7]
    assert admin.execute("SELECT n FROM versioned").fetchall() == [(8,)]
    engine.dispose()
