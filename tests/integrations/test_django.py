"""Transactions of Django on PostgreSQL, MariaDB and SQLite."""

import contextlib
import functools
import sqlite3
import threading
import time

import django
import psycopg
import pymysql
import pytest
from django import conf
from django.db import connections, utils
from django.db.transaction import TransactionManagementError, atomic, set_rollback

from retrykit import ConfigError, retry, state_of
from retrykit.integrations import (
    psycopg as for_psycopg,
    pymysql as for_pymysql,
    sqlalchemy as for_sqlalchemy,
    sqlite3 as for_sqlite3,
)
from retrykit.integrations.django import CommitUnknown, transaction, transient
from tests._support.sql_servers import CommitProxy, mariadb, postgres

__all__ = ["mariadb", "postgres"]

SOON = {"schedule": [0.01] * 100}
ADD = "UPDATE counters SET n = n + 1 WHERE id = 1"
COUNT = "SELECT n FROM counters WHERE id = 1"
TABLE = "CREATE TABLE counters (id int PRIMARY KEY, n int)"


@pytest.fixture(scope="module")
def servers(postgres, mariadb, tmp_path_factory):
    """Return functions that execute a statement beside Django, by the database."""
    path = tmp_path_factory.mktemp("sqlite") / "counters.sqlite"
    opened = {
        "postgres": lambda: psycopg.connect(postgres.url, autocommit=True),
        "mariadb": lambda: pymysql.connect(
            host="127.0.0.1",
            port=mariadb.port,
            user="root",
            database="mysql",
            autocommit=True,
        ),
        "sqlite": lambda: sqlite3.connect(path, isolation_level=None, timeout=0),
    }

    def execute(database, statement):
        with contextlib.closing(opened[database]()) as connection:
            cursor = connection.cursor()
            cursor.execute(statement)
            return [*map(tuple, cursor.fetchall())] if cursor.description else []

    for database in opened:
        execute(database, TABLE)
        execute(database, "INSERT INTO counters VALUES (1, 0), (2, 0)")
    execute("mariadb", "CREATE USER app")
    execute("mariadb", "GRANT ALL ON mysql.* TO app")
    execute.open = opened
    execute.path = path
    return execute


@pytest.fixture(params=["postgres", "mariadb", "sqlite"])
def database(request):
    return request.param


@pytest.fixture
def execute(servers):
    for name in servers.open:
        servers(name, "UPDATE counters SET n = 0")
    return servers


@pytest.fixture
def connect(execute, postgres, mariadb):
    """Return a function that adds a database to Django's, and returns its alias."""
    pymysql.install_as_MySQLdb()
    if not conf.settings.configured:
        conf.settings.configure(ALLOWED_HOSTS=["*"])
        django.setup()
    added = []

    def connect(database, port=None, **more):
        settings = {
            "postgres": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": "postgres",
                "USER": "retrykit",
                "HOST": "127.0.0.1",
                "PORT": port or postgres.port,
            },
            "mariadb": {
                "ENGINE": "django.db.backends.mysql",
                "NAME": "mysql",
                "USER": "app",
                "HOST": "127.0.0.1",
                "PORT": port or mariadb.port,
            },
            "sqlite": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": execute.path,
                "OPTIONS": {"timeout": 0},
            },
        }[database]
        alias = f"{database}-{len(added)}"
        every = connections.configure_settings({"default": {}, alias: settings | more})
        connections.settings[alias] = every[alias]
        added.append(alias)
        return alias

    yield connect
    for alias in added:
        connections[alias].close()
        with contextlib.suppress(AttributeError):
            connections[alias].close_pool()
        del connections[alias], connections.settings[alias]


@pytest.fixture
def alias(database, connect):
    return connect(database)


def run(alias, statement):
    with connections[alias].cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else None


def wrapped(error, kind=utils.OperationalError):
    """Return an error as Django raises it for one of a driver."""
    found = kind(*error.args)
    found.__cause__ = error
    return found


def busy():
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    return error


CAUSES = {
    "a conflict of PostgreSQL": (psycopg.errors.SerializationFailure(), True),
    "a lost connection of PostgreSQL": (psycopg.OperationalError("lost"), True),
    "a read-only PostgreSQL": (psycopg.errors.ReadOnlySqlTransaction(), True),
    "a deadlock of MySQL": (pymysql.OperationalError(1213, "Deadlock"), True),
    "a read-only MySQL": (pymysql.OperationalError(1290, "with --read-only"), True),
    "another option of MySQL": (pymysql.OperationalError(1290, "--skip-x"), False),
    "a lock of SQLite": (busy(), True),
    "a unique key": (psycopg.errors.UniqueViolation(), False),
    "nothing": (None, False),
}


@pytest.mark.parametrize(("cause", "expected"), CAUSES.values(), ids=CAUSES)
def test_an_error_of_django_is_judged_by_its_cause(cause, expected):
    error = utils.OperationalError("failed")
    error.__cause__ = cause
    assert transient(error) is expected
    assert for_sqlalchemy.transient(error) is expected
    # The condition of another driver has nothing to say of it.
    of = {"psycopg": for_psycopg, "pymysql": for_pymysql, "sqlite3": for_sqlite3}
    driver = type(cause).__module__.partition(".")[0]
    for name, module in of.items():
        assert module.transient(error) is (expected and name == driver)


@pytest.mark.parametrize(
    ("error", "expected"),
    {
        "closed, by psycopg2": (
            utils.InterfaceError("connection already closed"),
            True,
        ),
        "closed, by MySQL": (utils.InterfaceError("(0, '')"), True),
        "another": (utils.InterfaceError("cursor is not open"), False),
        "a closed connection that was not of Django": (OSError("lost"), False),
        "a mistake": (ValueError("connection already closed"), False),
    }.values(),
)
def test_a_closed_connection_is_transient(error, expected):
    assert transient(error) is expected


def test_an_error_after_the_transaction_was_aborted_is_not_retried():
    error = TransactionManagementError("aborted")
    error.__cause__ = wrapped(psycopg.errors.DeadlockDetected())
    assert not transient(error)
    assert "retried as a whole" in error.__notes__[0]


def test_a_transaction_is_committed(alias, database, execute):
    @transaction(using=alias)
    def add(n, *, more=0):
        run(alias, f"UPDATE counters SET n = n + {n + more} WHERE id = 1")  # noqa: S608
        return n

    assert add(2, more=3) == 2
    assert execute(database, COUNT) == [(5,)]


def test_a_transaction_of_a_method_is_committed(alias):
    class Service:
        @transaction(using=alias)
        def add(self):
            run(alias, ADD)
            return self

    service = Service()
    assert service.add() is service


def test_an_error_rolls_back_what_the_attempt_has_done(alias, database, execute):
    errors = [utils.OperationalError("x"), ValueError("no")]

    @transaction(using=alias, on=utils.OperationalError, schedule=[0])
    def add():
        run(alias, ADD)
        raise errors.pop(0)

    with pytest.raises(ValueError, match="no"):
        add()
    assert execute(database, COUNT) == [(0,)]


def test_a_lock_is_waited_for(alias, database, execute):
    """Another connection holds the lock until the first attempt has failed."""
    with contextlib.closing(execute.open[database]()) as holder:
        holder.cursor().execute("BEGIN IMMEDIATE" if database == "sqlite" else "BEGIN")
        holder.cursor().execute(ADD)

        def release(_event):
            holder.cursor().execute("COMMIT")

        once = {"attempt_failed": release}

        @transaction(using=alias, schedule=[0], observers=once)
        def add():
            if database == "postgres":
                run(alias, "SET LOCAL lock_timeout = '10ms'")
            if database == "mariadb":
                run(alias, "SET innodb_lock_wait_timeout = 0")
            run(alias, ADD)

        add()
    assert execute(database, COUNT) == [(2,)]


def test_a_conflict_is_retried_with_all_that_was_read(connect, execute):
    alias, reads = connect("postgres"), []

    @transaction(using=alias, schedule=[0])
    def double():
        run(alias, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        [[n]] = run(alias, COUNT)
        reads.append(n)
        if len(reads) == 1:
            execute("postgres", ADD)
        run(alias, f"UPDATE counters SET n = {n + 5} WHERE id = 1")  # noqa: S608

    double()
    assert reads == [0, 1]
    assert execute("postgres", COUNT) == [(6,)]


def test_sqlite_takes_the_lock_for_writing_before_it_reads(connect, execute):
    alias = connect("sqlite")

    @transaction(using=alias)
    def look():
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            execute("sqlite", ADD)

    look()
    assert connections[alias].transaction_mode is None
    execute("sqlite", ADD)


def test_a_mode_of_sqlite_that_is_set_is_kept(connect):
    alias = connect("sqlite", OPTIONS={"timeout": 0, "transaction_mode": "EXCLUSIVE"})

    @transaction(using=alias)
    def look():
        return connections[alias].transaction_mode

    assert look() == "EXCLUSIVE"


def test_an_error_in_a_savepoint_can_be_survived(alias, database, execute):
    @transaction(using=alias)
    def add():
        run(alias, ADD)
        with pytest.raises(utils.IntegrityError), atomic(using=alias):
            run(alias, ADD)
            run(alias, "INSERT INTO counters VALUES (2, 0)")

    add()
    assert execute(database, COUNT) == [(1,)]


def test_an_error_that_postgresql_would_hide_at_commit_is_raised(connect, execute):
    alias = connect("postgres")

    @transaction(using=alias)
    def add():
        run(alias, ADD)
        with pytest.raises(utils.IntegrityError):
            run(alias, "INSERT INTO counters VALUES (2, 0)")

    with pytest.raises(TransactionManagementError, match="has caught an error"):
        add()
    assert execute("postgres", COUNT) == [(0,)]


def test_a_rollback_that_the_function_asks_for_is_no_error(alias, database, execute):
    @transaction(using=alias)
    def add():
        run(alias, ADD)
        set_rollback(True, using=alias)
        return "nothing changed"

    assert add() == "nothing changed"
    assert execute(database, COUNT) == [(0,)]


def test_transactions_of_two_databases_may_be_within_each_other(connect, execute):
    first, second = connect("postgres"), connect("mariadb")

    @transaction(using=second)
    def inner():
        run(second, ADD)

    @transaction(using=first)
    def outer():
        run(first, ADD)
        inner()

    outer()
    assert execute("postgres", COUNT) == [(1,)]
    assert execute("mariadb", COUNT) == [(1,)]


def test_a_transaction_of_the_same_database_is_rejected(alias):
    @transaction(using=alias)
    def inner(): ...

    @transaction(using=alias)
    def outer():
        inner()

    with pytest.raises(ConfigError, match="fn must be called outside the transaction"):
        outer()
    with pytest.raises(ConfigError, match="using must be a database that is in no tr"):
        with atomic(using=alias):
            inner()
    connections[alias].set_autocommit(False)
    with pytest.raises(ConfigError, match="using must be a database in autocommit"):
        inner()
    connections[alias].rollback()
    connections[alias].set_autocommit(True)


def test_in_a_test_of_django_each_attempt_is_a_savepoint(alias, database, execute):
    attempts = []

    @transaction(using=alias, on=ValueError, schedule=[0])
    def add():
        run(alias, ADD)
        attempts.append(run(alias, COUNT))
        if len(attempts) == 1:
            raise ValueError

    block = atomic(using=alias)
    block._from_testcase = True  # noqa: SLF001  as django.test does
    with block:
        add()
        assert [tuple(rows[0]) for rows in attempts] == [(1,), (1,)]
        assert connections[alias].run_on_commit == []
        set_rollback(True, using=alias)
    assert execute(database, COUNT) == [(0,)]


@pytest.mark.parametrize("forward", [True, False], ids=["committed", "not committed"])
@pytest.mark.parametrize("name", ["postgres", "mariadb"])
def test_a_commit_without_an_answer_is_unknown(
    name, forward, connect, execute, postgres, mariadb
):
    port = {"postgres": postgres, "mariadb": mariadb}[name].port
    with CommitProxy(port, forward=forward) as proxy:
        alias = connect(name, proxy.port)
        attempts = []

        @transaction(using=alias, **SOON)
        def add():
            attempts.append(1)
            run(alias, ADD)

        with pytest.raises(CommitUnknown) as caught:
            # Nor does a call around it.
            retry(on=Exception, schedule=[0])(add)()
        assert isinstance(caught.value.__cause__, utils.Error)
        assert len(attempts) == 1
        add()
    assert execute(name, COUNT) == [(1 + forward,)]


@pytest.mark.parametrize("name", ["postgres", "mariadb"])
def test_an_idempotent_transaction_is_retried_after_an_unknown_commit(
    name, connect, execute, postgres, mariadb
):
    port = {"postgres": postgres, "mariadb": mariadb}[name].port
    with CommitProxy(port) as proxy:
        alias = connect(name, proxy.port)

        @transaction(using=alias, idempotent=True, **SOON)
        def add():
            run(alias, ADD)

        add()
    assert execute(name, COUNT) == [(2,)]


KILL = {
    "postgres": ("SELECT pg_backend_pid()", "SELECT pg_terminate_backend({})"),
    "mariadb": ("SELECT connection_id()", "KILL {}"),
}


@pytest.mark.parametrize("name", KILL)
def test_a_connection_that_is_lost_is_replaced(name, connect, execute):
    alias, (ask, kill) = connect(name), KILL[name]
    identities = []

    @transaction(using=alias, **SOON)
    def add():
        run(alias, ADD)
        identities.extend(run(alias, ask))
        if len(identities) == 1:
            execute(name, kill.format(*identities[0]))
        run(alias, ADD)

    add()
    assert len({*identities}) == 2
    assert execute(name, COUNT) == [(2,)]


@pytest.mark.parametrize("pool", [False, {"min_size": 3, "max_size": 3}])
def test_a_postgresql_that_is_no_longer_the_primary_is_left(pool, connect, execute):
    """The setting is that of a connection from its beginning."""
    execute("postgres", "ALTER DATABASE postgres SET default_transaction_read_only = 1")
    alias = connect("postgres", OPTIONS={"pool": pool} if pool else {})
    run(alias, COUNT)
    # All connections of the pool have the setting.
    while pool and connections[alias].pool.get_stats()["pool_available"] < 2:
        time.sleep(0.01)
    end = "BEGIN READ WRITE; ALTER DATABASE postgres RESET ALL; COMMIT"
    execute("postgres", end)
    errors = []

    @transaction(
        using=alias,
        schedule=[0],
        observers={"attempt_failed": lambda event: errors.append(event.failure.error)},
    )
    def add():
        run(alias, ADD)

    add()
    assert [type(each.__cause__) for each in errors] == [
        psycopg.errors.ReadOnlySqlTransaction
    ]
    assert execute("postgres", COUNT) == [(1,)]


def test_a_mariadb_that_is_no_longer_the_primary_is_left(connect, execute):
    alias, identities = connect("mariadb"), []
    execute("mariadb", "SET GLOBAL read_only = 1")

    def promote(_event):
        execute("mariadb", "SET GLOBAL read_only = 0")

    @transaction(using=alias, observers={"attempt_failed": promote}, schedule=[0])
    def add():
        identities.extend(run(alias, "SELECT connection_id()"))
        run(alias, ADD)

    add()
    assert len({*identities}) == 2


def test_a_failing_function_of_on_commit_does_not_repeat_the_transaction(
    alias, database, execute
):
    def hook():
        raise wrapped(psycopg.errors.LockNotAvailable("of another query"))

    calls = []

    @transaction(using=alias, **SOON)
    def add():
        run(alias, ADD)
        connections[alias].on_commit(functools.partial(calls.append, 1))
        connections[alias].on_commit(hook)

    with pytest.raises(utils.OperationalError, match="of another query") as caught:
        add()
    assert state_of(caught.value).attempt == 1
    assert calls == [1]
    assert execute(database, COUNT) == [(1,)]


def test_calls_of_threads_have_connections_of_their_own(connect, execute):
    alias = connect("postgres")

    @transaction(using=alias, **SOON)
    def add():
        run(alias, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        run(alias, COUNT)
        run(alias, ADD)

    def work():
        for _ in range(5):
            add()
        connections[alias].close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert execute("postgres", COUNT) == [(20,)]


def test_a_setting_that_is_wrong_is_rejected():
    def fn(): ...

    async def coroutine(): ...

    for decorate, text in [
        (lambda: transaction(fn), "policy must be a Policy or None, got <function"),
        (lambda: transaction(using=None), "using must be the alias of a database"),
        (lambda: transaction()(print), "fn must be a function, got <built-in"),
        (lambda: transaction()(coroutine), "fn must be a sync function"),
    ]:
        with pytest.raises(ConfigError, match=text):
            decorate()
