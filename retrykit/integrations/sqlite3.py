"""Retries for the standard library's sqlite3.

The unit of retry is the transaction::

    from retrykit.integrations import sqlite3 as retries

    @retries.transaction(lambda: sqlite3.connect("bank.db"), max_attempts=5)
    def transfer(connection, source, target, amount):
        connection.execute(WITHDRAW, [amount, source])
        connection.execute(DEPOSIT, [amount, target])

    transfer(1, 2, 100)

`transient` also matches the errors of aiosqlite, which raises sqlite3's own.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final, TypeVar, Unpack, cast

from retrykit._core.policy import Policy
from retrykit._core.setting_types import PolicySettings
from retrykit._internal.validation import user_facing
from retrykit.integrations import _sql
from retrykit.integrations._sql import (
    Commit,
    Decorator,
    SqlErrors,
    Verdict,
    check_factory,
    judge_sqlite,
)

__all__ = ["policy", "transaction", "transient"]

C = TypeVar("C", bound=sqlite3.Connection)


class _Transient(SqlErrors):
    """Condition that matches transient errors of sqlite3.

    They are the errors of a database that another connection has locked.
    """

    def judge(self, error: object, /) -> Verdict:
        if not isinstance(error, sqlite3.Error):
            return None
        return judge_sqlite(getattr(error, "sqlite_errorcode", None))


transient: Final = _Transient()
"""Condition for `on`: matches transient errors."""

policy: Final = transient.policy
"""Returns a policy with `transient` filled in."""


@user_facing
def transaction(
    factory: Callable[[], C],
    policy: Policy | None = None,
    /,
    **changes: Unpack[PolicySettings],
) -> Decorator[C]:
    """Return a decorator that calls a function in a new transaction for each attempt.

    The function takes the connection first; its callers do not pass it. The
    transaction begins with ``BEGIN IMMEDIATE``, which takes the write lock. It is
    committed when the function returns, and rolled back when it raises.

    >>> @transaction(lambda: sqlite3.connect(":memory:"), max_attempts=5)
    ... def answer(connection, number):
    ...     return connection.execute("SELECT ?", [number]).fetchone()
    >>> answer(42)
    (42,)

    Args:
        factory: Returns a new connection, which is closed after the attempt. Its
            *timeout* is the time that SQLite itself waits for a lock.
        policy: As in `policy`.
        **changes: Settings of `Policy`.

    Raises:
        ConfigError: An argument is invalid, or the function cannot be decorated; or a
            call is made within a transaction of *factory*.
    """
    rule = "a function that returns a new connection"
    check_factory(factory, rule, usable=callable(factory))
    settings = transient.policy(policy, **changes)
    # COMMIT is a local call, so its outcome is always known.
    decorator = _sql.transaction(
        transient, factory, settings, idempotent=True, begin=_begin
    )
    return cast("Decorator[C]", decorator)


@contextmanager
def _begin(factory: Any, _: Commit) -> Iterator[Any]:
    # A connection rolls back when it is closed. In autocommit mode its method commit()
    # would do nothing.
    with closing(factory()) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
