"""Transactions on SQLite, and what the transactions of all drivers share."""

import contextvars
import inspect
import pickle
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from retrykit import Policy, RetryAfter, policy_of, retry, state_of
from retrykit.errors import ConfigError
from retrykit.integrations import sqlite3 as retries
from retrykit.integrations._sql import _around, transaction
from retrykit.integrations.sqlite3 import transient

SOON = Policy(schedule=[0.001] * 1000)
INCREMENT = "UPDATE counters SET n = n + 1"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "counters.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE counters (n int)")
        connection.execute("INSERT INTO counters VALUES (0)")
        connection.commit()
    return path


@pytest.fixture
def connect(path):
    return lambda: sqlite3.connect(path, timeout=0)


def total(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT n FROM counters").fetchone()[0]


def test_commits_at_the_end_of_the_function(connect, path):
    @retries.transaction(connect)
    def add(connection, number, *, times=1):
        connection.execute("UPDATE counters SET n = n + ?", [number * times])
        assert total(path) == 0
        return "added"

    assert add(2, times=3) == "added"
    assert total(path) == 6


def test_begins_anew_in_a_new_connection(connect, path):
    seen = []

    @retries.transaction(connect, SOON, on=ConnectionError)
    def increment(connection):
        connection.execute(INCREMENT)
        seen.append(connection)
        if len(seen) == 1:
            raise ConnectionError

    increment()
    assert seen[0] is not seen[1]
    assert total(path) == 1
    for each in seen:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            each.execute(INCREMENT)


def test_holds_the_lock_for_writing_from_the_beginning(connect):
    @retries.transaction(connect, max_attempts=1)
    def read(connection):
        with closing(connect()) as other:
            other.execute("BEGIN IMMEDIATE")

    with pytest.raises(sqlite3.OperationalError, match="locked"):
        read()


def test_rolls_back_on_an_error_and_raises_it(connect, path):
    @retries.transaction(connect, SOON)
    def fail(connection):
        connection.execute(INCREMENT)
        raise KeyError("other")

    with pytest.raises(KeyError, match="other") as caught:
        fail()
    assert state_of(caught.value).attempt == 1
    assert total(path) == 0


def test_a_function_can_ask_for_another_attempt(connect, path):
    asked = []

    @retries.transaction(connect, SOON)
    def increment(connection):
        connection.execute(INCREMENT)
        if not asked:
            asked.append(True)
            raise RetryAfter(0)

    increment()
    assert total(path) == 1


PROCESS = """
import sqlite3, sys
from retrykit.integrations import sqlite3 as retries

def tell(event):
    print("locked", flush=True)

@retries.transaction(
    lambda: sqlite3.connect(sys.argv[1], timeout=0),
    schedule=[0.001] * 10_000, observers={"retry_scheduled": tell},
)
def increment(connection):
    [(n,)] = connection.execute("SELECT n FROM counters")
    connection.execute("UPDATE counters SET n = ?", [n + 1])

for _ in range(20):
    increment()
"""


def test_two_processes_write_in_turn(path):
    with closing(sqlite3.connect(path)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        writers = [
            subprocess.Popen(  # noqa: S603  this interpreter, and code from above
                [sys.executable, "-c", PROCESS, path], stdout=subprocess.PIPE, text=True
            )
            for _ in range(2)
        ]
        # Both have failed.
        assert {each.stdout.readline() for each in writers} == {"locked\n"}
    for each in writers:
        each.communicate(timeout=60)
        assert each.returncode == 0
    assert total(path) == 40


def test_eight_threads_write_in_turn(connect, path):
    @retries.transaction(connect, SOON)
    def increment(connection):
        [(n,)] = connection.execute("SELECT n FROM counters")
        connection.execute("UPDATE counters SET n = ?", [n + 1])

    threads = [threading.Thread(target=increment) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert total(path) == 8


@pytest.mark.skipif(sys.version_info < (3, 12), reason="has no autocommit")
def test_commits_in_autocommit_mode(path):
    @retries.transaction(lambda: sqlite3.connect(path, autocommit=True))
    def increment(connection):
        connection.execute(INCREMENT)
        assert total(path) == 0

    increment()
    assert total(path) == 1


def raised(path, statements, uri=False):
    """Return the error of the last statement, while another connection is writing."""
    with (
        closing(sqlite3.connect(path, timeout=0, uri=uri)) as other,
        closing(sqlite3.connect(path, timeout=0, uri=uri)) as connection,
    ):
        for statement in statements[0]:
            connection.execute(statement)
        for statement in statements[1]:
            other.execute(statement)
        with pytest.raises(sqlite3.Error) as caught:
            connection.execute(statements[2])
    return caught.value


def test_a_locked_database_is_transient(path):
    error = raised(path, ([], ["BEGIN IMMEDIATE"], "BEGIN IMMEDIATE"))
    assert error.sqlite_errorname == "SQLITE_BUSY"
    assert transient(error)


def test_an_outdated_snapshot_is_transient(path):
    before = ["BEGIN", "SELECT * FROM counters"]
    error = raised(path, (before, ["BEGIN", INCREMENT, "COMMIT"], INCREMENT))
    assert error.sqlite_errorname == "SQLITE_BUSY_SNAPSHOT"
    assert transient(error)


def test_a_lock_in_a_shared_cache_is_transient():
    shared = "file:shared?mode=memory&cache=shared"
    setup = ["CREATE TABLE counters (n int)", "BEGIN IMMEDIATE", INCREMENT]
    error = raised(shared, ([], setup, "SELECT * FROM counters"), uri=True)
    assert error.sqlite_errorname == "SQLITE_LOCKED_SHAREDCACHE"
    assert transient(error)


def test_a_lock_within_a_connection_is_not_transient(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO counters VALUES (1)")
        reading = connection.execute("SELECT * FROM counters")
        next(reading)
        with pytest.raises(sqlite3.OperationalError) as caught:
            connection.execute("DROP TABLE counters")
        reading.close()
    assert caught.value.sqlite_errorname == "SQLITE_LOCKED"
    assert not transient(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        raised(":memory:", ([], [], "SELECT * FROM missing")),
        raised(":memory:", ([], [], "PRAGMA journal_mode = '")),
        sqlite3.OperationalError("database is locked"),
        sqlite3.ProgrammingError("closed"),
        OSError("database is locked"),
        None,
    ],
    ids=repr,
)
def test_other_errors_are_not_transient(error):
    assert not transient(error)


def test_transient_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(transient)) is transient  # noqa: S301
    assert repr(retries.policy()) == "Policy(on=transient)"


def test_the_signature_has_no_connection(connect):
    @retries.transaction(connect, max_attempts=7)
    def transfer(connection, source: int, *, amount: int = 1) -> bool:
        """Transfer an amount."""

    assert (
        str(inspect.signature(transfer)) == "(source: int, *, amount: int = 1) -> bool"
    )
    assert transfer.__doc__ == "Transfer an amount."
    assert policy_of(transfer).max_attempts == 7
    assert policy_of(transfer).on is transient


def test_an_open_connection_is_rejected():
    with closing(sqlite3.connect(":memory:")) as connection:
        with pytest.raises(ConfigError, match="factory must be a function"):
            retries.transaction(connection)


def test_a_generator_function_is_rejected(connect):
    def rows(connection):
        yield connection

    with pytest.raises(ConfigError, match="not a generator function"):
        retries.transaction(connect)(rows)


def test_a_transaction_in_another_of_its_factory_is_rejected(connect, path):
    @retries.transaction(connect)
    def inner(connection):
        connection.execute(INCREMENT)

    @retries.transaction(connect, on=Exception, schedule=[0])
    def outer(connection):
        inner()

    with pytest.raises(
        ConfigError, match="fn must be called outside the transaction of"
    ):
        outer()
    inner()
    assert total(path) == 1


def test_a_transaction_in_one_of_another_factory_is_allowed(connect, path):
    @retries.transaction(connect)
    def inner(connection):
        connection.execute(INCREMENT)

    @retries.transaction(lambda: sqlite3.connect(":memory:"))
    def outer(connection):
        inner()

    outer()
    assert total(path) == 1


def test_a_context_that_outlives_its_transaction_can_begin_another(connect, path):
    """A task of asyncio gets the context in which it is created."""
    contexts = []

    @retries.transaction(connect)
    def increment(connection):
        connection.execute(INCREMENT)
        contexts.append(contextvars.copy_context())

    increment()
    contexts[0].run(increment)
    assert total(path) == 2
    assert _around.get() == ()


def test_an_error_of_an_earlier_transaction_does_not_block_the_next(connect, path):
    @retries.transaction(connect, SOON)
    def fail(connection, error):
        if error:
            raise error
        connection.execute(INCREMENT)

    with pytest.raises(KeyboardInterrupt):
        fail(KeyboardInterrupt())
    fail(None)
    assert total(path) == 1


def test_plain_retries_work_around_a_whole_transaction(connect, path):
    attempts = []

    @retry(retries.policy(SOON))
    def increment():
        with closing(connect()) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(INCREMENT)
            attempts.append(1)
            if len(attempts) == 1:
                with closing(connect()) as other:
                    other.execute("BEGIN IMMEDIATE")

    increment()
    assert len(attempts) == 2
    assert total(path) == 1


def test_an_async_transaction_cannot_be_cancelled_in_its_commit():
    async def transfer(connection): ...

    settings = {"idempotent": False, "begin": None, "abegin": print}
    policy = Policy(attempt_timeout=5)
    with pytest.raises(ConfigError, match="attempt_timeout must be None"):
        transaction(transient, None, policy, **settings)(transfer)
    settings["idempotent"] = True
    decorated = transaction(transient, None, policy, **settings)(transfer)
    assert inspect.iscoroutinefunction(decorated)
