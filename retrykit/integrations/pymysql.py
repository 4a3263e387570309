"""Retries for PyMySQL, on MySQL and MariaDB.

Needs the extra ``pymysql``. The unit of retry is the transaction::

    from retrykit.integrations import pymysql as retries

    @retries.transaction(lambda: pymysql.connect(database="bank"), max_attempts=5)
    def transfer(connection, source, target, amount):
        with connection.cursor() as cursor:
            cursor.execute(WITHDRAW, [amount, source])
            cursor.execute(DEPOSIT, [amount, target])

    transfer(1, 2, 100)
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Final, TypeVar, Unpack, cast

from retrykit._core.policy import Policy
from retrykit._core.setting_types import PolicySettings
from retrykit._internal.extras import needs
from retrykit._internal.validation import user_facing
from retrykit.integrations import _sql
from retrykit.integrations._sql import (
    Commit,
    CommitUnknown,
    Decorator,
    SqlErrors,
    Verdict,
    check_factory,
    judge_mysql,
)

with needs("pymysql"):
    import pymysql

__all__ = ["CommitUnknown", "policy", "transaction", "transient"]

C = TypeVar("C")


class _Transient(SqlErrors):
    """Condition that matches transient errors of PyMySQL.

    They are lost and failed connections, deadlocks, conflicts, locks that are not
    available in time, a primary that has become read-only, and a server without a free
    connection.
    """

    def judge(self, error: object, /) -> Verdict:
        if not isinstance(error, pymysql.Error) or not error.args:
            return None
        # The connection was already closed, and nothing was sent.
        if isinstance(error, pymysql.InterfaceError):
            return "undone" if error.args[0] == 0 else None
        return judge_mysql(error.args[0], error)


transient: Final = _Transient()
"""Condition for `on`: matches transient errors."""

policy: Final = transient.policy
"""Returns a policy with `transient` filled in."""


@user_facing
def transaction(
    factory: Callable[[], AbstractContextManager[C]],
    policy: Policy | None = None,
    /,
    *,
    idempotent: bool = False,
    **changes: Unpack[PolicySettings],
) -> Decorator[C]:
    """Return a decorator that calls a function in a new transaction for each attempt.

    The function takes the connection first; its callers do not pass it. The transaction
    is committed when the function returns, and rolled back when it raises. If the
    connection is lost during COMMIT, `CommitUnknown` is raised, unless *idempotent* is
    True.

    Args:
        factory: Returns a new connection, or another context manager that provides one.
        policy: As in `policy`.
        idempotent: Whether to retry a transaction that may have been committed.
        **changes: Settings of `Policy`.

    Raises:
        ConfigError: An argument is invalid, or the function cannot be decorated; or a
            call is made within a transaction of *factory*.
    """
    rule = "a function that returns a new connection"
    check_factory(factory, rule, usable=callable(factory))
    settings = transient.policy(policy, **changes)
    decorator = _sql.transaction(
        transient, factory, settings, idempotent=idempotent, begin=_begin
    )
    return cast("Decorator[C]", decorator)


@contextmanager
def _begin(factory: Any, commit: Commit) -> Iterator[Any]:
    with factory() as connection:
        connection.begin()
        try:
            yield connection
            commit.sent = True
            connection.commit()
        except Exception:
            # An error of a lost connection must not replace the original error.
            with suppress(pymysql.Error):
                connection.rollback()
            raise
