"""DBOS on SQLite and on PostgreSQL."""

import contextlib
import json
import sqlite3

import psycopg

from tests._support.postgres_server import PostgresServer
from tests.engines.engine import Engine

__all__ = ["GRACE", "VERSION", "DbosOnPostgres", "DbosOnSqlite"]

GRACE = "RETRYKIT_ENGINE_GRACE"
VERSION = "RETRYKIT_ENGINE_VERSION"

_READ = """
    SELECT workflow_uuid, i.inputs
    FROM {schema}workflow_input i JOIN {schema}workflow_status USING (workflow_uuid)
    WHERE status = 'DELAYED' AND workflow_uuid LIKE '{job}:%'
"""
_WRITE = (
    "UPDATE {schema}workflow_input SET inputs = {mark} WHERE workflow_uuid = {mark}"
)


class Dbos(Engine):
    """Base class of the two."""

    module, app = "tests.engines.dbos_app", "SETTINGS"
    granularity = 2.5

    def __init__(self, *args):
        super().__init__(*args)
        self.version = self.grace = None

    def environ(self):
        own = {VERSION: self.version, GRACE: self.grace}
        given = {name: value for name, value in own.items() if value is not None}
        return {"RETRYKIT_ENGINE_DATABASE": self.url} | given

    def change_envelope(self, job, change):
        with contextlib.closing(self.connect()) as database, database:
            cursor = database.cursor()
            cursor.execute(_READ.format(schema=self.schema, job=job))
            [[place, text]] = cursor.fetchall()
            inputs = json.loads(text)
            inputs["positionalArgs"][1] = change(inputs["positionalArgs"][1])
            write = _WRITE.format(schema=self.schema, mark=self.mark)
            cursor.execute(write, [json.dumps(inputs), place])


class DbosOnSqlite(Dbos):
    """DBOS on a SQLite file."""

    name = "dbos-sqlite"
    schema, mark = "", "?"

    @property
    def url(self):
        return f"sqlite:///{self.folder / 'jobs.sqlite'}"

    def connect(self):
        return sqlite3.connect(self.folder / "jobs.sqlite")


class DbosOnPostgres(Dbos):
    """DBOS on a PostgreSQL server."""

    name = "dbos-postgres"
    schema, mark = "dbos.", "%s"

    def start(self):
        self.server = PostgresServer(self.folder)
        self.server.start()

    def stop(self):
        self.server.stop()

    def restart(self):
        self.server.stop()
        self.server.start()

    @property
    def url(self):
        return self.server.url

    def connect(self):
        return psycopg.connect(self.url)
