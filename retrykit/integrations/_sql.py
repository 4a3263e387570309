"""Parts that the SQL integrations share: error codes, transactions, unknown commits."""

import functools
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    contextmanager,
)
from contextvars import ContextVar
from inspect import Parameter, Signature, signature
from types import FunctionType
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, final

from retrykit._core.decorators import retry
from retrykit._core.drivers import check_retryable
from retrykit._core.policy import Policy
from retrykit._internal.connection_errors import is_connection_error
from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.tracebacks import add_note_once
from retrykit._internal.validation import check_instance, invalid_setting, user_facing
from retrykit.errors import CommitUnknown, GiveUp
from retrykit.integrations._transient import TransientErrors

__all__ = ["AsyncDecorator", "Commit", "CommitUnknown", "Decorator", "SqlErrors"]
__all__ += ["Verdict", "check_factory", "judge_driver", "judge_mysql", "judge_sqlite"]
__all__ += ["judge_sqlstate", "note_aborted", "transaction"]

C_co = TypeVar("C_co", covariant=True)
P = ParamSpec("P")
R = TypeVar("R")

Verdict = Literal["lost", "undone", "read-only"] | None
"""What a transient error means for its statement; None if it is not transient.

"lost": the connection was lost or could not be made, so a COMMIT may have succeeded.
"undone": the database has rolled the statement back, or never began it.
"read-only": the server is no longer the primary, or not ready. A new connection may
lead to a primary that is ready; this connection is not to be used again.
"""


class SqlErrors(TransientErrors):
    """Condition that matches the transient errors of a database driver."""

    def __call__(self, error: Any, /) -> bool:
        """Return whether an error is transient, or Django's with a transient cause."""
        return self.judge(error) is not None or (
            _is_of_django(error) and self.judge(error.__cause__) is not None
        )

    @abstractmethod
    def judge(self, error: object, /) -> Verdict:
        """Return what an error means for its statement."""


def judge_sqlstate(error: BaseException, sqlstate: str) -> Verdict:
    """Return what a PostgreSQL SQLSTATE means for its statement.

    The error gets a note if an earlier error has aborted its transaction.

    Source:
        "PostgreSQL Documentation", appendix A, "PostgreSQL Error Codes", and section
        13.5, "Serialization Failure Handling".
    """
    if sqlstate == _IN_FAILED_TRANSACTION:
        note_aborted(error)
    if sqlstate in _UNDONE_STATES:
        return "undone"
    if sqlstate == _READ_ONLY_TRANSACTION:
        return "read-only"
    # Class 08 is "Connection Exception".
    return "lost" if sqlstate in _LOST_STATES or sqlstate[:2] == "08" else None


_IN_FAILED_TRANSACTION = "25P02"
_READ_ONLY_TRANSACTION = "25006"
_UNDONE_STATES = {
    "40001",  # serialization_failure
    "40P01",  # deadlock_detected
    "53300",  # too_many_connections
    "55P03",  # lock_not_available
}
_LOST_STATES = {
    "40003",  # statement_completion_unknown
    "57P01",  # admin_shutdown
    "57P02",  # crash_shutdown
    "57P03",  # cannot_connect_now
    "57P05",  # idle_session_timeout
}


def judge_mysql(number: object, text: object = "") -> Verdict:
    """Return what a MySQL or MariaDB error number means for its statement.

    Args:
        number: The error number.
        text: The message, for numbers with several meanings.

    Source:
        "MySQL Error Message Reference", chapters 2 and 3; "MariaDB Error Code
        Reference".
    """
    if number in _UNDONE_NUMBERS:
        return "undone"
    # 1290 names an option of the server, and 1047 an unknown command or Galera.
    reason = _READ_ONLY_NUMBERS.get(number)
    if reason is not None and reason in str(text).lower().replace("_", "-"):
        return "read-only"
    return "lost" if number in _LOST_NUMBERS else None


_UNDONE_NUMBERS = {
    1020,  # ER_CHECKREAD: a snapshot conflict of MariaDB
    1040,  # ER_CON_COUNT_ERROR: too many connections
    1203,  # ER_TOO_MANY_USER_CONNECTIONS
    1205,  # ER_LOCK_WAIT_TIMEOUT
    1213,  # ER_LOCK_DEADLOCK
    3101,  # ER_TRANSACTION_ROLLBACK_DURING_COMMIT: a conflict in a replication group
    3572,  # ER_LOCK_NOWAIT
}
_READ_ONLY_NUMBERS: dict[object, str] = {
    1047: "wsrep",  # ER_UNKNOWN_COM_ERROR: the node is not ready
    1290: "read-only",  # ER_OPTION_PREVENTS_STATEMENT
    1836: "",  # ER_READ_ONLY_MODE
}
_LOST_NUMBERS = {
    1053,  # ER_SERVER_SHUTDOWN
    1927,  # ER_CONNECTION_KILLED, of MariaDB
    2002,  # CR_CONNECTION_ERROR
    2003,  # CR_CONN_HOST_ERROR
    2006,  # CR_SERVER_GONE_ERROR
    2013,  # CR_SERVER_LOST
    2055,  # CR_SERVER_LOST_EXTENDED
    4031,  # ER_CLIENT_INTERACTION_TIMEOUT
}


def judge_sqlite(code: object) -> Verdict:
    """Return what an extended SQLite result code means for its statement.

    Source:
        "Result and Error Codes", sqlite.org/rescode.html.
    """
    primary = code & 0xFF if isinstance(code, int) else None
    # Another SQLITE_LOCKED is a conflict within one connection, and stays.
    transient = primary in _BUSY_CODES or code == _LOCKED_SHAREDCACHE
    return "undone" if transient else None


_BUSY_CODES = {5, 15}  # SQLITE_BUSY, and SQLITE_PROTOCOL: a race for a lock of the WAL
_LOCKED_SHAREDCACHE = 262


def judge_driver(error: object, raised: object) -> Verdict:
    """Return what a driver's error means for its statement.

    The driver need not be installed.

    Args:
        error: The error of the driver.
        raised: The error that wraps *error*, or *error* itself; it gets the notes.
    """
    if not isinstance(error, Exception) or not isinstance(raised, Exception):
        return None
    driver = type(error).__module__.partition(".")[0]
    if driver == "sqlite3":
        return judge_sqlite(getattr(error, "sqlite_errorcode", None))
    number = error.args[0] if error.args else None
    if driver in _MYSQL:
        return judge_mysql(getattr(error, "errno", number), error)
    # pg8000 has a dict of the fields of the server's message.
    state = number.get("C") if isinstance(number, dict) else None
    state = getattr(error, "sqlstate", getattr(error, "pgcode", state))
    if isinstance(state, str):
        return judge_sqlstate(raised, state)
    # libpq has no code for what it notices itself.
    libpq = driver in {"psycopg", "psycopg2"}
    if libpq and "OperationalError" in {x.__name__ for x in type(error).__mro__}:
        return "lost"
    return "lost" if is_connection_error(error) else None


_MYSQL = {"MySQLdb", "aiomysql", "asyncmy", "mariadb", "mysql", "pymysql"}


def _is_of_django(error: object) -> bool:
    """Return whether an error is Django's, which wraps the errors of drivers."""
    return type(error).__module__ == "django.db.utils"


def note_aborted(error: BaseException) -> None:
    """Add a note to the error of a statement in a transaction that was aborted before.

    The note says that the transaction is retried as a whole.
    """
    text = "transactions are retried as a whole: an earlier error has aborted this one"
    add_note_once(error, f"{text}, and is to leave a function under @transaction")


class Decorator(Protocol[C_co]):
    """Decorator of a function whose first parameter is a connection."""

    def __call__(self, fn: Callable[Concatenate[C_co, P], R], /) -> Callable[P, R]:
        """Return a function without the connection parameter."""
        ...


class AsyncDecorator(Protocol[C_co]):
    """Decorator of an async function whose first parameter is a connection."""

    def __call__(
        self, fn: Callable[Concatenate[C_co, P], Coroutine[Any, Any, R]], /
    ) -> Callable[P, Coroutine[Any, Any, R]]:
        """Return an async function without the connection parameter."""
        ...


@final
class Commit:
    """The COMMIT of an attempt.

    Attributes:
        sent: Whether it may have reached the database.
    """

    __slots__ = ("sent",)

    def __init__(self) -> None:
        self.sent = False


def check_factory(factory: object, rule: str, *, usable: bool) -> None:
    """Raise an error if an argument, such as an open connection, makes no new ones.

    Args:
        factory: The user's argument.
        rule: A phrase for the factories that are accepted, for the error.
        usable: Whether the argument has the interface of a factory.

    Raises:
        ConfigError: It does not have the interface, or is an open connection.
    """
    if not usable or hasattr(factory, "commit"):
        suggestion = "each attempt opens a new connection with it"
        raise invalid_setting("factory", rule, factory, suggestion)


def transaction(  # noqa: PLR0913  the parts of a driver
    errors: SqlErrors,
    factory: object,
    policy: Policy,
    *,
    idempotent: bool,
    database: object = None,
    begin: Callable[[Any, Commit], AbstractContextManager[Any]] | None = None,
    abegin: Callable[[Any, Commit], AbstractAsyncContextManager[Any]] | None = None,
    passed: bool = True,
) -> Any:
    """Return a decorator that calls a function in a new transaction for each attempt.

    Args:
        errors: The transient errors of the driver.
        factory: Provides the connections.
        policy: The policy of the calls.
        idempotent: Whether a transaction that may have been committed may be repeated.
        database: The database, which nested transactions must not share; by default the
            factory.
        begin: Opens a connection of the factory, and begins a transaction in it, for a
            block. At the end of the block it sets `Commit.sent` and commits; if the
            block fails, it rolls back. None if the factory has no sync connections.
        abegin: Like *begin*, for async functions.
        passed: Whether a sync function gets the connection as its first argument; an
            async function always does.

    Raises:
        ConfigError: A setting is invalid, the function cannot be decorated, or it is
            called within a transaction of the same database.
        CommitUnknown: In a call, the connection was lost during COMMIT, and
            *idempotent* is False.
    """
    check_instance("idempotent", idempotent, bool)

    def decorate(fn: Any) -> Any:
        check_retryable(fn)
        rest = _signature_without_connection(fn) if passed else signature(fn)
        awaited = is_coroutine_function(fn)
        opened: Any = abegin if awaited else begin
        if opened is None:
            kind, made = ("a sync", "sync") if awaited else ("an async", "async")
            rule = f"{kind} function, since the factory makes {made} connections"
            raise invalid_setting("fn", rule, fn, code="async-mismatch")
        timeout = policy.attempt_timeout
        if isinstance(timeout, float) and not idempotent:
            rule = "None for a transaction, whose COMMIT it could cancel"
            suggestion = "use a timeout of the database, or write idempotent=True"
            raise invalid_setting(
                "attempt_timeout", rule, timeout, suggestion, code="not-here"
            )
        scope = functools.partial(_Scope, fn, factory if database is None else database)
        attempt = functools.partial(_attempt, scope, errors, idempotent)

        def run(*args: Any, **kwargs: Any) -> Any:
            with attempt() as commit, opened(factory, commit) as connection:
                return fn(*([connection] if passed else []), *args, **kwargs)

        async def arun(*args: Any, **kwargs: Any) -> Any:
            with attempt() as commit:
                async with opened(factory, commit) as connection:
                    return await fn(connection, *args, **kwargs)

        wrapper: Any = functools.update_wrapper(arun if awaited else run, fn)
        wrapper.__signature__ = rest
        return retry(policy)(wrapper)

    return user_facing(decorate)


def _signature_without_connection(fn: object) -> Signature:
    """Return the signature of a function without its first parameter, the connection.

    Raises:
        ConfigError: There is no such parameter, or the function is a method.
    """
    found = signature(fn) if isinstance(fn, FunctionType) else Signature()
    parameters = [*found.parameters.values()]
    for first in parameters[:1]:
        if first.kind in _POSITIONAL and first.name not in {"self", "cls"}:
            return found.replace(parameters=parameters[1:])
    rule = "a function whose first parameter is the connection"
    suggestion = "for a method, decorate a function that the method calls"
    raise invalid_setting("fn", rule, fn, suggestion, code="not-retryable")


_POSITIONAL = {Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD}


@contextmanager
def _attempt(
    new_scope: "Callable[[], _Scope]",
    errors: SqlErrors,
    idempotent: bool,  # noqa: FBT001  positional in a partial
) -> Iterator[Commit]:
    """Guard an attempt to make a transaction, and yield its COMMIT.

    Raises:
        ConfigError: The attempt is made within a transaction of the same database.
        GiveUp: The connection was lost after COMMIT was sent, and the transaction is
            not idempotent; its `cause` is a `CommitUnknown`.
    """
    scope = new_scope()
    for outer in _around.get():
        if outer.is_open and outer.database == scope.database:
            rule = f"called outside the transaction of {outer.fn.__qualname__}"
            suggestion = "call a plain function there, and pass it the connection"
            raise invalid_setting("fn", rule, scope.fn, suggestion, code="wrong-state")
    commit = Commit()
    token = _around.set((*_around.get(), scope))
    try:
        yield commit
    except Exception as error:
        if idempotent or not commit.sent or errors.judge(error) != "lost":
            raise
        text = "the connection was lost during COMMIT: look whether it was committed, "
        text += "or declare the transaction idempotent"
        unknown = CommitUnknown(text)
        unknown.__cause__ = error
        # No policy retries it, not even one for all errors.
        raise GiveUp(unknown) from error
    finally:
        scope.is_open = False
        _around.reset(token)


@final
class _Scope:
    """A transaction in a database; tasks that were started in it may outlive it."""

    __slots__ = ("database", "fn", "is_open")

    def __init__(self, fn: FunctionType, database: object) -> None:
        self.fn = fn
        self.database = database
        self.is_open = True


_around: ContextVar[tuple[_Scope, ...]]
_around = ContextVar("retrykit transactions", default=())
