"""Jobs on DBOS in this process, with a private SQLite file."""

import contextlib
import sqlite3
import time

import pytest
from dbos import DBOS

from retrykit import ConfigError
from retrykit.integrations import dbos as durable
from retrykit.integrations.dbos._lifecycle import check_sqlite

__all__ = [
    "execute",
    "launched",
    "read",
    "settings",
    "skip_if_unusable",
    "wait_until",
    "wait_until_ended",
]


def settings(folder, **other):
    """Return settings of DBOS with a database in a folder."""
    database = f"sqlite:///{folder / 'jobs.sqlite'}"
    quick = {
        "log_level": "CRITICAL",
        "notification_listener_polling_interval_sec": 0.01,
    }
    return durable.config("tests", database=database, **quick | other)


def skip_if_unusable():
    """Skip the test if DBOS cannot use this Python's SQLite."""
    try:
        check_sqlite()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def launched(tmp_path_factory):
    """Run jobs in this process until the module ends; return the database."""
    skip_if_unusable()
    folder = tmp_path_factory.mktemp("dbos")
    durable.listen(settings(folder), polling=0.01)
    yield folder / "jobs.sqlite"
    DBOS.destroy()


def wait_until(condition):
    """Wait until a function returns something true, for at most 20 seconds."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def wait_until_ended(job_id):
    """Wait until a job has ended, and return its report."""
    while (report := durable.status(job_id)).status not in {"succeeded", "dead"}:
        with contextlib.suppress(Exception):
            attempt = DBOS.retrieve_workflow(report.engine_id)
            attempt.get_result(polling_interval_sec=0.01)
    return report


def execute(database, statement, *values):
    """Change the database of DBOS by hand."""
    with contextlib.closing(sqlite3.connect(database, timeout=10)) as opened, opened:
        opened.execute(statement, values)


def read(database, query, *values):
    """Return the first column of a query to the database of DBOS."""
    with contextlib.closing(sqlite3.connect(database, timeout=10)) as opened:
        return [row[0] for row in opened.execute(query, values)]
