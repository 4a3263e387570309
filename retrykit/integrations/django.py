"""Retries for Django's databases: PostgreSQL, MySQL, MariaDB and SQLite.

Needs the extra ``django``. The unit of retry is the transaction::

    from retrykit.integrations import django as retries

    @retries.transaction(max_attempts=5)
    def transfer(source, target, amount):
        Account.objects.filter(id=source).update(balance=F("balance") - amount)
        Account.objects.filter(id=target).update(balance=F("balance") + amount)

    transfer(1, 2, 100)

Django's errors are judged by their cause, an error of psycopg, psycopg2, mysqlclient,
PyMySQL or sqlite3. Errors about a closed connection may have no known cause, and are
judged by their text.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FunctionType
from typing import Any, Final, ParamSpec, TypeVar, Unpack

from retrykit._core.policy import Policy
from retrykit._core.setting_types import PolicySettings
from retrykit._internal.extras import needs
from retrykit._internal.validation import invalid_setting
from retrykit.errors import GiveUp
from retrykit.integrations import _sql
from retrykit.integrations._sql import (
    Commit,
    CommitUnknown,
    SqlErrors,
    Verdict,
    judge_driver,
    note_aborted,
)

with needs("django"):
    from django.db import DEFAULT_DB_ALIAS, InterfaceError, connections
    from django.db.transaction import TransactionManagementError, atomic
    from django.db.utils import Error

__all__ = ["CommitUnknown", "policy", "transaction", "transient"]

P = ParamSpec("P")
R = TypeVar("R")


class _Transient(SqlErrors):
    """Condition that matches transient errors of Django's databases.

    They are lost and failed connections, serialization failures, deadlocks, locks that
    are not available, a primary that has become read-only, and a server without a free
    connection.
    """

    def judge(self, error: object, /) -> Verdict:
        if isinstance(error, TransactionManagementError):
            note_aborted(error)
            return None
        if not isinstance(error, Error):
            return None
        verdict = judge_driver(error.__cause__, error)
        # The connection was already closed, and nothing was sent.
        closed = isinstance(error, InterfaceError) and "(0, '')" in str(error)
        closed = closed or "connection already closed" in str(error)
        return "undone" if verdict is None and closed else verdict


transient: Final = _Transient()
"""Condition for `on`: matches transient errors."""

policy: Final = transient.policy
"""Returns a policy with `transient` filled in."""


def transaction(
    policy: Policy | None = None,
    /,
    *,
    using: str = DEFAULT_DB_ALIAS,
    idempotent: bool = False,
    **changes: Unpack[PolicySettings],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that calls a function in a new transaction for each attempt.

    The transaction is committed when the function returns, and rolled back when it
    raises. Within the transaction, ``atomic`` makes savepoints. On SQLite, unless the
    option ``transaction_mode`` is set, it begins with ``BEGIN IMMEDIATE``, which takes
    the write lock. If the connection is lost during COMMIT, `CommitUnknown` is raised,
    unless *idempotent* is True. ``on_commit`` functions run once, after the last
    attempt; if one raises an error, the transaction is not repeated.

    In a Django ``TestCase``, which is itself a transaction, each attempt is a
    savepoint.

    Args:
        policy: As in `policy`.
        using: The alias of the database.
        idempotent: Whether to retry a transaction that may have been committed.
        **changes: Settings of `Policy`.

    Raises:
        ConfigError: An argument is invalid, or the decorated object is not a function;
            or, in a call, the database is already in a transaction or not in autocommit
            mode.
    """
    if isinstance(policy, FunctionType):
        rule = "a Policy or None"
        raise invalid_setting("policy", rule, policy, "write @transaction() above it")
    if not isinstance(using, str):
        raise invalid_setting(
            "using", "the alias of a database", using, code="other-library"
        )
    decorate = _sql.transaction(
        transient,
        using,
        transient.policy(policy, **changes),
        idempotent=idempotent,
        database=("django", using),
        begin=_begin,
        passed=False,
    )

    def checked(fn: Callable[P, R]) -> Callable[P, R]:
        if not isinstance(fn, FunctionType):
            raise invalid_setting("fn", "a function", fn, code="not-retryable")
        decorated: Callable[P, R] = decorate(fn)
        return decorated

    return checked


@contextmanager
def _begin(alias: Any, commit: Commit) -> Iterator[Any]:
    connection: Any = connections[alias]
    outermost = _check_idle(connection)
    committed: list[bool] = []
    block: Any = atomic(using=alias)
    try:
        with _immediate(connection), block:
            if outermost:
                # The first of these functions: others may fail after COMMIT.
                connection.on_commit(lambda: committed.append(True))
            yield connection
            _check_not_aborted(connection)
            commit.sent = not connection.needs_rollback
    except Exception as error:
        if committed:
            raise GiveUp(error) from error
        if outermost and transient.judge(error) in {"lost", "read-only"}:
            _discard(connection)
        raise


def _check_idle(connection: Any) -> bool:
    """Return whether a transaction can begin; False in a Django ``TestCase``.

    In a ``TestCase``, which is itself a transaction, only a savepoint can begin.

    Raises:
        ConfigError: The database is in another transaction, or not in autocommit mode.
    """
    if connection.in_atomic_block:
        blocks = getattr(connection, "atomic_blocks", [])
        if not (blocks and getattr(blocks[-1], "_from_testcase", False)):
            rule = "a database that is in no transaction"
            suggestion = "call the function outside atomic() and ATOMIC_REQUESTS"
            raise invalid_setting(
                "using", rule, connection.alias, suggestion, code="other-library"
            )
        return False
    if not connection.get_autocommit():
        rule = "a database in autocommit mode"
        raise invalid_setting("using", rule, connection.alias, code="other-library")
    return True


@contextmanager
def _immediate(connection: Any) -> Iterator[None]:
    """Make SQLite transactions in the block begin with the write lock.

    Without the lock, others could write between a transaction's reads and its first
    change.
    """
    if getattr(connection, "transaction_mode", "") is not None:
        yield
        return
    connection.transaction_mode = "IMMEDIATE"
    try:
        yield
    finally:
        connection.transaction_mode = None


def _check_not_aborted(connection: Any) -> None:
    """Raise an error if COMMIT would roll back, which PostgreSQL does not report."""
    info = getattr(connection.connection, "info", None)
    if getattr(info, "transaction_status", None) == _IN_ERROR:
        msg = "the function has caught an error that has aborted its transaction"
        raise TransactionManagementError(msg)


_IN_ERROR = 3  # PQTRANS_INERROR, of psycopg and psycopg2


def _discard(connection: Any) -> None:
    """Throw a connection away, and the connections of its pool, if it has one."""
    with suppress(Exception):
        # Otherwise the pool gives it out again.
        connection.connection.close()
    with suppress(Exception):
        connection.close()
    with suppress(Exception):
        # None without a pool.
        connection.pool.drain()
