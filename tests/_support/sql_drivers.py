"""The drivers of SQL databases, sync and async, with one interface for tests.

The function of a transaction is written as a generator, which yields statements and
gets their rows. If it yields a function, that is called, and awaited if need be.
"""

import asyncio
import contextlib
import inspect
from concurrent.futures import ThreadPoolExecutor

import asyncpg
import psycopg
import pymysql
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import sessionmaker
from sqlalchemy.pool import NullPool

from retrykit.integrations import (
    asyncpg as for_asyncpg,
    psycopg as for_psycopg,
    pymysql as for_pymysql,
    sqlalchemy as for_sqlalchemy,
)

__all__ = ["MARIADB", "POSTGRES", "Driver"]


class Driver:
    """A driver, connected to a port of 127.0.0.1."""

    name = ""
    retries = None
    awaited = False

    def __init__(self, port):
        self.port = port
        self._stack = contextlib.ExitStack()
        if self.awaited:
            self.runner = self._stack.enter_context(asyncio.Runner())
        self.factory = self.connect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()

    def connect(self):
        """Return the factory of connections."""
        raise NotImplementedError

    def execute(self, connection, statement):
        """Return the rows of a statement, or a coroutine that does."""
        raise NotImplementedError

    def transaction(self, policy=None, /, **settings):
        """Return a decorator that makes a transaction of a generator function."""

        def decorate(body):
            def run(connection, *args):
                steps = _Steps(body(*args))
                while (step := steps.advance()) is not None:
                    with steps.failing():
                        steps.answer = (
                            step() if callable(step) else self.execute(connection, step)
                        )
                return steps.value

            async def arun(connection, *args):
                steps = _Steps(body(*args))
                while (step := steps.advance()) is not None:
                    with steps.failing():
                        answer = (
                            step() if callable(step) else self.execute(connection, step)
                        )
                        steps.answer = (
                            await answer if inspect.isawaitable(answer) else answer
                        )
                return steps.value

            decorator = self.retries.transaction(self.factory, policy, **settings)
            return decorator(arun if self.awaited else run)

        return decorate

    def call(self, fn, *args):
        return self.runner.run(fn(*args)) if self.awaited else fn(*args)

    def call_at_once(self, *calls):
        """Make calls on as many threads or tasks, and return their results."""

        async def gather():
            return await asyncio.gather(*(call() for call in calls))

        if self.awaited:
            return self.runner.run(gather())
        with ThreadPoolExecutor(len(calls)) as threads:
            return [each.result() for each in [threads.submit(x) for x in calls]]


class _Steps:
    """The steps of a generator, which also gets the errors of its statements."""

    def __init__(self, generator):
        self._generator = generator
        self._error = None
        self.answer = self.value = None

    def advance(self):
        """Return the next step, or None at the end."""
        error, self._error = self._error, None
        try:
            if error is None:
                return self._generator.send(self.answer)
            return self._generator.throw(error)
        except StopIteration as end:
            self.value = end.value
            return None
        finally:
            self.answer = None

    @contextlib.contextmanager
    def failing(self):
        try:
            yield
        except Exception as error:  # noqa: BLE001  the generator gets it
            self._error = error


class Psycopg(Driver):
    name = "psycopg"
    retries = for_psycopg

    def connect(self):
        url = f"postgresql://retrykit@127.0.0.1:{self.port}/postgres"
        return lambda: psycopg.connect(url)

    def execute(self, connection, statement):
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


class AsyncPsycopg(Driver):
    name = "psycopg, async"
    retries = for_psycopg
    awaited = True

    def connect(self):
        url = f"postgresql://retrykit@127.0.0.1:{self.port}/postgres"
        return lambda: psycopg.AsyncConnection.connect(url)

    async def execute(self, connection, statement):
        cursor = await connection.execute(statement)
        return await cursor.fetchall() if cursor.description else []


class Asyncpg(Driver):
    name = "asyncpg"
    retries = for_asyncpg
    awaited = True

    def connect(self):
        url = f"postgresql://retrykit@127.0.0.1:{self.port}/postgres"

        async def create():
            return await asyncpg.create_pool(url, min_size=0)

        pool = self.runner.run(create())
        self._stack.callback(lambda: self.runner.run(pool.close()))
        return pool

    async def execute(self, connection, statement):
        return [tuple(row) for row in await connection.fetch(statement)]


class SqlAlchemy(Driver):
    retries = for_sqlalchemy

    def connect(self):
        engine = create_engine(self.url.format(port=self.port), poolclass=NullPool)
        self._stack.callback(engine.dispose)
        return sessionmaker(engine)

    def execute(self, connection, statement):
        result = connection.execute(text(statement))
        return [tuple(row) for row in result] if result.returns_rows else []


class SqlAlchemyPsycopg(SqlAlchemy):
    name = "SQLAlchemy"
    url = "postgresql+psycopg://retrykit@127.0.0.1:{port}/postgres"


class AsyncSqlAlchemy(Driver):
    name = "SQLAlchemy, async"
    retries = for_sqlalchemy
    awaited = True

    def connect(self):
        url = f"postgresql+asyncpg://retrykit@127.0.0.1:{self.port}/postgres"
        engine = create_async_engine(url, poolclass=NullPool)
        self._stack.callback(lambda: self.runner.run(engine.dispose()))
        return async_sessionmaker(engine)

    async def execute(self, connection, statement):
        result = await connection.execute(text(statement))
        return [tuple(row) for row in result] if result.returns_rows else []


class PyMySql(Driver):
    name = "PyMySQL"
    retries = for_pymysql

    def connect(self):
        settings = {"host": "127.0.0.1", "user": "root", "database": "mysql"}
        return lambda: pymysql.connect(port=self.port, **settings)

    def execute(self, connection, statement):
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())


class SqlAlchemyPyMySql(SqlAlchemy):
    name = "SQLAlchemy"
    url = "mysql+pymysql://root@127.0.0.1:{port}/mysql"


POSTGRES = [Psycopg, AsyncPsycopg, Asyncpg, SqlAlchemyPsycopg, AsyncSqlAlchemy]
MARIADB = [PyMySql, SqlAlchemyPyMySql]
