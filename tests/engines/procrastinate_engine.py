"""Procrastinate on a private PostgreSQL server."""

import json

import psycopg

from tests._support.postgres_server import PostgresServer
from tests.engines.engine import Engine

__all__ = ["Procrastinate"]


class Procrastinate(Engine):
    """Procrastinate on PostgreSQL.

    Attributes:
        grace: How long attempts may take to end when a worker is stopped, in seconds.
    """

    name = "procrastinate"
    module, app = "tests.engines.procrastinate_app", "APP"
    grace = 60.0

    def start(self):
        self.server = PostgresServer(self.folder)
        self.server.start()
        self.request("schema")

    def stop(self):
        self.server.stop()

    def restart(self):
        self.server.stop()
        self.server.start()

    def environ(self):
        return {
            "RETRYKIT_ENGINE_DATABASE": self.server.url,
            "RETRYKIT_ENGINE_GRACE": str(self.grace),
        }

    def change_envelope(self, job, change):
        with psycopg.connect(self.server.url) as database:
            [[row_id, envelope]] = database.execute(
                "SELECT row_id, envelope FROM retrykit_jobs"
                " WHERE envelope ->> 'job' = %s",
                [job],
            ).fetchall()
            database.execute(
                "UPDATE retrykit_jobs SET envelope = %s WHERE row_id = %s",
                [json.dumps(change(envelope)), row_id],
            )
