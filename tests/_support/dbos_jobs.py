"""Jobs on DBOS in this process, with a file of the tests' own."""

import contextlib
import sqlite3

import pytest
from dbos import DBOS

from retrykit import ConfigError
from retrykit.integrations import dbos as durable
from retrykit.integrations.dbos.lifecycle import check_sqlite

__all__ = ["changed", "ended", "launched", "read", "settings", "usable"]


def settings(folder, **other):
    """Settings of DBOS with a database in a folder."""
    database = f"sqlite:///{folder / 'jobs.sqlite'}"
    quick = {
        "log_level": "CRITICAL",
        "notification_listener_polling_interval_sec": 0.01,
    }
    return durable.config("tests", database=database, **quick | other)


def usable():
    """Skip where DBOS cannot use the SQLite of this Python."""
    try:
        check_sqlite()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def launched(tmp_path_factory):
    """A process that attempts jobs, until the module is over: the database."""
    usable()
    folder = tmp_path_factory.mktemp("dbos")
    durable.listen(settings(folder), polling=0.01)
    yield folder / "jobs.sqlite"
    DBOS.destroy()


def ended(job_id):
    """Wait until a job has ended, and return the report of it."""
    while (report := durable.status(job_id)).status not in {"succeeded", "dead"}:
        with contextlib.suppress(Exception):
            attempt = DBOS.retrieve_workflow(report.engine_id)
            attempt.get_result(polling_interval_sec=0.01)
    return report


def changed(database, statement, *values):
    """Change by hand what DBOS has kept."""
    with contextlib.closing(sqlite3.connect(database, timeout=10)) as opened, opened:
        opened.execute(statement, values)


def read(database, query, *values):
    """Return the first column of what DBOS has kept."""
    with contextlib.closing(sqlite3.connect(database, timeout=10)) as opened:
        return [row[0] for row in opened.execute(query, values)]
