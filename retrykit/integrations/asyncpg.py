"""Retries for asyncpg.

Needs the extra ``asyncpg``. The unit of retry is the transaction::

    from retrykit.integrations import asyncpg as retries

    async def main():
        async with asyncpg.create_pool("postgresql:///bank") as pool:

            @retries.transaction(pool, max_attempts=5)
            async def transfer(connection, source, target, amount):
                await connection.execute(WITHDRAW, amount, source)
                await connection.execute(DEPOSIT, amount, target)

            await transfer(1, 2, 100)
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Protocol, TypeVar, Unpack, cast

from retrykit._core.policy import Policy
from retrykit._core.setting_types import PolicySettings
from retrykit._internal.connection_errors import is_connection_error
from retrykit._internal.extras import needs
from retrykit._internal.validation import user_facing
from retrykit.integrations import _sql
from retrykit.integrations._sql import (
    AsyncDecorator,
    Commit,
    CommitUnknown,
    SqlErrors,
    Verdict,
    check_factory,
    judge_sqlstate,
)

with needs("asyncpg"):
    import asyncpg

__all__ = ["CommitUnknown", "policy", "transaction", "transient"]

C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)


class _Transient(SqlErrors):
    """Condition that matches transient errors of asyncpg.

    They are lost and failed connections, timeouts, serialization failures, deadlocks,
    locks that are not available, a primary that has become read-only, and a server
    without a free connection.
    """

    def judge(self, error: object, /) -> Verdict:
        if isinstance(error, asyncpg.PostgresError):
            return judge_sqlstate(error, error.sqlstate)
        # It has no class of its own, and nothing was sent.
        if isinstance(error, asyncpg.InterfaceError):
            return "undone" if "connection is closed" in str(error) else None
        return "lost" if is_connection_error(error) else None


transient: Final = _Transient()
"""Condition for `on`: matches transient errors."""

policy: Final = transient.policy
"""Returns a policy with `transient` filled in."""


class Pool(Protocol[C_co]):
    """A connection pool."""

    def acquire(self) -> AbstractAsyncContextManager[C_co]:
        """Return a context manager that provides a connection."""
        ...


@user_facing
def transaction(
    factory: Pool[C],
    policy: Policy | None = None,
    /,
    *,
    idempotent: bool = False,
    **changes: Unpack[PolicySettings],
) -> AsyncDecorator[C]:
    """Return a decorator that calls a function in a new transaction for each attempt.

    The async function takes the connection first; its callers do not pass it. The
    transaction is committed when the function returns, and rolled back when it raises.
    If the connection is lost during COMMIT, `CommitUnknown` is raised, unless
    *idempotent* is True.

    Args:
        factory: A pool.
        policy: As in `policy`.
        idempotent: Whether to retry a transaction that may have been committed.
        **changes: Settings of `Policy`.

    Raises:
        ConfigError: An argument is invalid, or the function cannot be decorated; or a
            call is made within a transaction of *factory*.
    """
    settings = transient.policy(policy, **changes)
    check_factory(factory, "a pool", usable=hasattr(factory, "acquire"))
    decorator = _sql.transaction(
        transient, factory, settings, idempotent=idempotent, abegin=_abegin
    )
    return cast("AsyncDecorator[C]", decorator)


@asynccontextmanager
async def _abegin(pool: Any, commit: Commit) -> AsyncIterator[Any]:
    try:
        async with pool.acquire() as connection, connection.transaction():
            yield connection
            commit.sent = True
    except asyncpg.PostgresError as error:
        if transient.judge(error) == "read-only":
            # The pool opens new connections instead of all that it has.
            await pool.expire_connections()
        raise
