# pyright: reportUnnecessaryTypeIgnoreComment=true
"""Types of transactions of SQL databases; checked, never run."""

import sqlite3
from typing import assert_type

import asyncpg
import psycopg
import pymysql
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from sqlalchemy import Connection, create_engine
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker
from sqlalchemy.orm import Session, sessionmaker

from retrykit import Policy
from retrykit.integrations import (
    asyncpg as for_asyncpg,
    psycopg as for_psycopg,
    pymysql as for_pymysql,
    sqlalchemy as for_sqlalchemy,
    sqlite3 as for_sqlite3,
)

POLICY = Policy(max_attempts=4)
URL = "postgresql:///bank"


@for_sqlalchemy.transaction(sessionmaker[Session](), POLICY, idempotent=True)
def transfer(session: Session, source: int, *, amount: int = 1) -> bool:
    return session.in_transaction() and source > amount


assert_type(transfer(1, amount=2), bool)
transfer(1, 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
transfer(Session(), 1)  # type: ignore[call-arg,arg-type]  # pyright: ignore[reportCallIssue]


@for_sqlalchemy.transaction(async_sessionmaker[AsyncSession](), max_attempts=5)
async def transfer_awaited(session: AsyncSession, source: int) -> bool:
    return session.in_transaction() and source > 1


@for_sqlalchemy.transaction(create_engine("sqlite://"))
def execute(connection: Connection) -> bool:
    return connection.closed


@for_psycopg.transaction(ConnectionPool(URL))
def execute_in_a_pool(connection: psycopg.Connection) -> bool:
    return connection.closed


@for_psycopg.transaction(lambda: psycopg.connect(URL))
def execute_in_psycopg(connection: psycopg.Connection, number: int) -> bool:
    return connection.closed and number > 1


@for_psycopg.transaction(AsyncConnectionPool(URL))
async def execute_in_an_async_pool(connection: psycopg.AsyncConnection) -> bool:
    return connection.closed


@for_psycopg.transaction(lambda: psycopg.AsyncConnection.connect(URL))
async def await_psycopg(connection: psycopg.AsyncConnection, number: int) -> bool:
    return connection.closed and number > 1


@for_sqlite3.transaction(lambda: sqlite3.connect("bank.db"), max_elapsed="1m")
def execute_in_sqlite(connection: sqlite3.Connection, number: int) -> bool:
    return connection.in_transaction and number > 1


@for_pymysql.transaction(lambda: pymysql.connect(database="bank"))
def execute_in_mysql(connection: "pymysql.Connection", number: int) -> bool:
    return connection.open and number > 1


assert_type(execute(), bool)
assert_type(execute_in_a_pool(), bool)
assert_type(execute_in_psycopg(1), bool)
assert_type(execute_in_sqlite(1), bool)
assert_type(execute_in_mysql(1), bool)
for_sqlite3.transaction("bank.db")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def main(pool: "asyncpg.Pool[asyncpg.Record]") -> None:
    @for_asyncpg.transaction(pool)
    async def fetch(
        connection: "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]", number: int
    ) -> bool:
        return connection.is_closed() and number > 1

    assert_type(await fetch(1), bool)
    assert_type(await transfer_awaited(1), bool)
    assert_type(await execute_in_an_async_pool(), bool)
    assert_type(await await_psycopg(1), bool)
