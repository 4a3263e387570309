"""Retries for psycopg 3.

Needs the extra ``psycopg``. The unit of retry is the transaction::

    from psycopg_pool import ConnectionPool
    from retrykit.integrations import psycopg as retries

    pool = ConnectionPool("dbname=bank")

    @retries.transaction(pool, max_attempts=5)
    def transfer(connection, source, target, amount):
        connection.execute(WITHDRAW, [amount, source])
        connection.execute(DEPOSIT, [amount, target])

    transfer(1, 2, 100)
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
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
from retrykit._internal.introspection import is_awaitable
from retrykit._internal.validation import invalid_setting, user_facing
from retrykit.integrations import _sql
from retrykit.integrations._sql import (
    AsyncDecorator,
    Commit,
    CommitUnknown,
    Decorator,
    SqlErrors,
    Verdict,
    check_factory,
    judge_sqlstate,
)

with needs("psycopg"):
    import psycopg
    from psycopg.errors import InFailedSqlTransaction
    from psycopg.pq import TransactionStatus

__all__ = ["CommitUnknown", "policy", "transaction", "transient"]

C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)


class _Transient(SqlErrors):
    """Condition that matches transient errors of psycopg.

    They are lost and failed connections, serialization failures, deadlocks, locks that
    are not available, a primary that has become read-only, and a pool or server without
    a free connection.
    """

    def judge(self, error: object, /) -> Verdict:
        if not isinstance(error, psycopg.Error):
            return None
        if error.sqlstate is not None:
            return judge_sqlstate(error, error.sqlstate)
        # A pool that was closed stays closed. Its package need not be installed.
        closed = type(error).__name__ == "PoolClosed"
        return "lost" if isinstance(error, _NO_ANSWER) and not closed else None


_NO_ANSWER = psycopg.OperationalError

transient: Final = _Transient()
"""Condition for `on`: matches transient errors."""

policy: Final = transient.policy
"""Returns a policy with `transient` filled in."""


class Pool(Protocol[C_co]):
    """A ``ConnectionPool``."""

    def connection(self) -> AbstractContextManager[C_co]:
        """Return a context manager that provides a connection."""
        ...


class AsyncPool(Protocol[C_co]):
    """An ``AsyncConnectionPool``."""

    def connection(self) -> AbstractAsyncContextManager[C_co]:
        """Return an async context manager that provides a connection."""
        ...


Connect = Callable[[], AbstractContextManager[C]]
AsyncConnect = Callable[
    [],
    AbstractAsyncContextManager[C] | Awaitable[AbstractAsyncContextManager[C]],
]


@overload
def transaction(
    factory: Pool[C] | Connect[C],
    policy: Policy | None = None,
    /,
    *,
    idempotent: bool = False,
    **changes: Unpack[PolicySettings],
) -> Decorator[C]: ...
@overload
def transaction(
    factory: AsyncPool[C] | AsyncConnect[C],
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

    The function takes the connection first; its callers do not pass it. The transaction
    is committed when the function returns, and rolled back when it raises. If the
    connection is lost during COMMIT, `CommitUnknown` is raised, unless *idempotent* is
    True.

    Args:
        factory: A pool of ``psycopg_pool``, or a function that returns a new
            connection, such as ``lambda: psycopg.connect(url)``. For async functions,
            an ``AsyncConnectionPool``, or ``lambda: AsyncConnection.connect(url)``.
        policy: As in `policy`.
        idempotent: Whether to retry a transaction that may have been committed.
        **changes: Settings of `Policy`.

    Raises:
        ConfigError: An argument is invalid, or the function cannot be decorated; or a
            call is made within a transaction of *factory*, or gets a connection that is
            already in one.
    """
    usable = callable(factory) or hasattr(factory, "connection")
    rule = "a pool, or a function that returns a new connection"
    check_factory(factory, rule, usable=usable)
    return _sql.transaction(
        transient,
        factory,
        transient.policy(policy, **changes),
        idempotent=idempotent,
        begin=_begin,
        abegin=_abegin,
    )


@contextmanager
def _begin(factory: Any, commit: Commit) -> Iterator[Any]:
    connect = getattr(factory, "connection", factory)
    with connect() as connection:
        _check_idle(connection)
        try:
            with connection.transaction():
                yield connection
                _check_not_aborted(connection)
                commit.sent = True
        except psycopg.Error as error:
            if transient.judge(error) == "read-only":
                # Other connections of a pool lead to the same server.
                connection.close()
                if hasattr(factory, "drain"):
                    factory.drain()
            raise


@asynccontextmanager
async def _abegin(factory: Any, commit: Commit) -> AsyncIterator[Any]:
    connected = getattr(factory, "connection", factory)()
    if is_awaitable(connected):
        connected = await connected
    async with connected as connection:
        _check_idle(connection)
        try:
            async with connection.transaction():
                yield connection
                _check_not_aborted(connection)
                commit.sent = True
        except psycopg.Error as error:
            if transient.judge(error) == "read-only":
                await connection.close()
                if hasattr(factory, "drain"):
                    await factory.drain()
            raise


def _check_idle(connection: Any) -> None:
    """Raise a ConfigError if a connection is already in a transaction.

    Only a savepoint could begin in it.
    """
    if connection.info.transaction_status == TransactionStatus.INTRANS:
        rule = "a pool or a function whose connections are in no transaction"
        raise invalid_setting("factory", rule, connection, code="other-library")


def _check_not_aborted(connection: Any) -> None:
    """Raise an error if COMMIT would roll back, which psycopg does not report."""
    if connection.info.transaction_status != TransactionStatus.INTRANS:
        msg = "the function has caught an error that has aborted its transaction"
        raise InFailedSqlTransaction(msg)
