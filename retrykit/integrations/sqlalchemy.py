"""Retries for SQLAlchemy 2, sync and async.

Needs the extra ``sqlalchemy``. The unit of retry is the transaction::

    from retrykit.integrations import sqlalchemy as retries

    Session = sessionmaker(create_engine("postgresql+psycopg:///bank"))

    @retries.transaction(Session, max_attempts=5)
    def transfer(session, source, target, amount):
        session.get(Account, source).balance -= amount
        session.get(Account, target).balance += amount

    transfer(1, 2, 100)

An error is judged by the driver's error that it wraps, from psycopg, psycopg2, asyncpg
or pg8000; sqlite3 or aiosqlite; PyMySQL, mysqlclient, aiomysql, asyncmy, or MariaDB's
and MySQL's own drivers.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from typing import Any, Final, Protocol, TypeVar, Unpack, overload

from retrykit._core.policy import Policy
from retrykit._core.setting_types import PolicySettings
from retrykit._internal.extras import needs
from retrykit._internal.validation import user_facing
from retrykit.integrations import _sql
from retrykit.integrations._sql import (
    AsyncDecorator,
    Commit,
    CommitUnknown,
    Decorator,
    SqlErrors,
    Verdict,
    check_factory,
    judge_driver,
    note_aborted,
)

with needs("sqlalchemy"):
    from sqlalchemy.exc import DBAPIError, PendingRollbackError, TimeoutError as Full

__all__ = ["CommitUnknown", "policy", "transaction", "transient"]

C_co = TypeVar("C_co", covariant=True)
C = TypeVar("C")


class _Transient(SqlErrors):
    """Condition that matches transient errors of SQLAlchemy, and of its drivers.

    They are lost and failed connections, serialization failures, deadlocks, locks that
    are not available, a primary that has become read-only, a row that another
    transaction has changed first (`StaleDataError`), and a pool or server without a
    free connection.
    """

    def judge(self, error: object, /) -> Verdict:
        if isinstance(error, PendingRollbackError):
            note_aborted(error)
        # A connection of the pool did not become free.
        if isinstance(error, Full) or _is_stale(error):
            return "undone"
        if not isinstance(error, DBAPIError):
            return judge_driver(error, error)
        return (
            "lost" if error.connection_invalidated else judge_driver(error.orig, error)
        )


def _is_stale(error: object) -> bool:
    # By its name: the ORM need not be imported.
    names = {(each.__module__, each.__name__) for each in type(error).__mro__}
    return ("sqlalchemy.orm.exc", "StaleDataError") in names


transient: Final = _Transient()
"""Condition for `on`: matches transient errors."""

policy: Final = transient.policy
"""Returns a policy with `transient` filled in."""


class Begins(Protocol[C_co]):
    """A sessionmaker or an Engine."""

    def begin(self) -> AbstractContextManager[C_co]:
        """Return a context manager that makes its block a transaction."""
        ...


class AsyncBegins(Protocol[C_co]):
    """An async_sessionmaker or an AsyncEngine."""

    def begin(self) -> AbstractAsyncContextManager[C_co]:
        """Return an async context manager that makes its block a transaction."""
        ...


@overload
def transaction(
    factory: Begins[C],
    policy: Policy | None = None,
    /,
    *,
    idempotent: bool = False,
    **changes: Unpack[PolicySettings],
) -> Decorator[C]: ...
@overload
def transaction(
    factory: AsyncBegins[C],
    policy: Policy | None = None,
    /,
    *,
    idempotent: bool = False,
    **changes: Unpack[PolicySettings],
) -> AsyncDecorator[C]: ...
@user_facing
def transaction(
    factory: Any,
    policy: Policy | None = None,
    /,
    *,
    idempotent: bool = False,
    **changes: Unpack[PolicySettings],
) -> Any:
    """Return a decorator that calls a function in a new transaction for each attempt.

    The function takes the session first; its callers do not pass it. The transaction is
    committed when the function returns, and rolled back when it raises. On SQLite it
    begins with ``BEGIN IMMEDIATE``, which takes the write lock. If the connection is
    lost during COMMIT, `CommitUnknown` is raised, unless *idempotent* is True.

    >>> from sqlalchemy import create_engine, text
    >>> @transaction(create_engine("sqlite://"), max_attempts=5)
    ... def answer(connection, number):
    ...     return connection.scalar(text("SELECT :number"), {"number": number})
    >>> answer(42)
    42

    Args:
        factory: A sessionmaker of one database, or an Engine: the function then takes a
            Connection. For async functions, an async_sessionmaker or an AsyncEngine.
        policy: As in `policy`.
        idempotent: Whether to retry a transaction that may have been committed.
        **changes: Settings of `Policy`.

    Raises:
        ConfigError: An argument is invalid, or the function cannot be decorated; or a
            call is made within a transaction of *factory*.
    """
    rule = "a sessionmaker, an Engine, or an async one"
    check_factory(factory, rule, usable=hasattr(factory, "begin"))
    # The module itself may need a library that is not installed.
    awaited = type(factory).__module__.startswith("sqlalchemy.ext.asyncio")
    engine = _engine_of(factory)
    return _sql.transaction(
        transient,
        factory,
        transient.policy(policy, **changes),
        idempotent=idempotent,
        database=getattr(engine, "sync_engine", engine),
        begin=None if awaited else _begin,
        abegin=_abegin if awaited else None,
    )


def _begin_sqlite(opened: Any) -> None:
    """Begin the transaction of a Session or a Connection on SQLite.

    The SQLite driver itself begins a transaction only at the first change: others could
    write between earlier reads and this change.
    """
    engine = opened.bind if hasattr(opened, "bind") else opened.engine
    if engine is None or engine.dialect.name != "sqlite":
        return
    connection = opened.connection() if hasattr(opened, "bind") else opened
    if not connection.connection.driver_connection.in_transaction:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


@contextmanager
def _begin(factory: Any, commit: Commit) -> Iterator[Any]:
    try:
        with factory.begin() as session:
            _begin_sqlite(session)
            yield session
            # A session sends its changes with COMMIT, unless they are sent earlier.
            if hasattr(session, "flush"):
                session.flush()
            commit.sent = True
    except Exception as error:
        if transient.judge(error) == "read-only":
            # All connections of the pool lead to the same server.
            _engine_of(factory).dispose()
        raise


@asynccontextmanager
async def _abegin(factory: Any, commit: Commit) -> AsyncIterator[Any]:
    try:
        async with factory.begin() as session:
            await session.run_sync(_begin_sqlite)
            yield session
            if hasattr(session, "flush"):
                await session.flush()
            commit.sent = True
    except Exception as error:
        if transient.judge(error) == "read-only":
            await _engine_of(factory).dispose()
        raise


def _engine_of(factory: Any) -> Any:
    """Return the engine that a sessionmaker is bound to, or else *factory* itself."""
    return getattr(factory, "kw", {}).get("bind", factory)
