"""Invalid transactions of SQL databases, by the message of their error."""

import sqlite3
from contextlib import nullcontext
from types import SimpleNamespace

from psycopg.pq import TransactionStatus

from retrykit.integrations import (
    asyncpg as for_asyncpg,
    django as for_django,
    psycopg as for_psycopg,
    pymysql as for_pymysql,
    sqlalchemy as for_sqlalchemy,
    sqlite3 as for_sqlite3,
)
from retrykit.integrations.django import _check_idle

__all__ = ["ERRORS"]


class Busy(SimpleNamespace):
    """A connection of psycopg that is in a transaction."""

    info = SimpleNamespace(transaction_status=TransactionStatus.INTRANS)

    def __repr__(self):
        return "<Connection>"


def transfer(connection): ...


async def transfer_awaited(connection): ...


def without_parameters(): ...


def with_keywords(*, connection): ...


def method(self, connection): ...


def connect():
    return sqlite3.connect(":memory:")


transfer_once = for_sqlite3.transaction(connect)(transfer)


@for_sqlite3.transaction(connect)
def transfer_twice(connection):
    transfer_once()


class Pool:
    """A pool of asyncpg."""

    acquire = print


def decorate(fn, retries=for_sqlite3, **settings):
    factory = Pool() if retries is for_asyncpg else connect
    return retries.transaction(factory, **settings)(fn)


OPEN = SimpleNamespace(commit=print, begin=print)


def first_parameter(fn):
    return (
        "fn must be a function whose first parameter is the connection, got "
        f"{fn!r}; for a method, decorate a function that the method calls"
    )


ERRORS = {
    "factory must be a sessionmaker, an Engine, or an async one, got "
    f"{OPEN!r}; each attempt opens a new connection with it": (
        lambda: for_sqlalchemy.transaction(OPEN)
    ),
    "factory must be a pool, or a function that returns a new connection, got 'bank'; "
    "each attempt opens a new connection with it": lambda: for_psycopg.transaction(
        "bank"
    ),
    "factory must be a pool, got 'bank'; each attempt opens a new connection with it": (
        lambda: for_asyncpg.transaction("bank")
    ),
    "factory must be a function that returns a new connection, got 'bank'; each "
    "attempt opens a new connection with it": lambda: for_pymysql.transaction("bank"),
    "factory must be a function that returns a new connection, got 'bank.db'; each "
    "attempt opens a new connection with it": lambda: for_sqlite3.transaction(
        "bank.db"
    ),
    first_parameter(without_parameters): lambda: decorate(without_parameters),
    first_parameter(with_keywords): lambda: decorate(with_keywords),
    first_parameter(method): lambda: decorate(method),
    first_parameter(len): lambda: decorate(len),
    f"fn must be a sync function, since the factory makes sync connections, got "
    f"{transfer_awaited!r}": (lambda: decorate(transfer_awaited)),
    f"fn must be an async function, since the factory makes async connections, got "
    f"{transfer!r}": (lambda: decorate(transfer, for_asyncpg)),
    "attempt_timeout must be None for a transaction, whose COMMIT it could cancel, got "
    "5.0; use a timeout of the database, or write idempotent=True": (
        lambda: decorate(transfer_awaited, for_asyncpg, attempt_timeout=5)
    ),
    "idempotent must be a bool, got 'yes'": (
        lambda: for_psycopg.transaction(connect, idempotent="yes")
    ),
    f"fn must be called outside the transaction of transfer_twice, got "
    f"{transfer!r}; call a plain function there, and pass it the connection": (
        transfer_twice
    ),
    "factory must be a pool or a function whose connections are in no transaction, "
    "got <Connection>": for_psycopg.transaction(lambda: nullcontext(Busy()))(transfer),
    f"policy must be a Policy or None, got {transfer!r}; write @transaction() above "
    "it": lambda: for_django.transaction(transfer),
    "using must be the alias of a database, got None": (
        lambda: for_django.transaction(using=None)
    ),
    "fn must be a function, got <built-in function print>": (
        lambda: for_django.transaction()(print)
    ),
    "using must be a database that is in no transaction, got 'bank'; call the function "
    "outside atomic() and ATOMIC_REQUESTS": lambda: _check_idle(
        SimpleNamespace(alias="bank", in_atomic_block=True, atomic_blocks=[])
    ),
    "using must be a database in autocommit mode, got 'bank'": lambda: _check_idle(
        SimpleNamespace(
            alias="bank", in_atomic_block=False, get_autocommit=lambda: False
        )
    ),
}
