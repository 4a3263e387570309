"""Serving jobs in a process whose database does not answer when it is told to stop."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from dbos import DBOS

from retrykit import Policy
from retrykit.integrations import dbos as durable
from tests._support.dbos_jobs import settings, skip_if_unusable

SERVING = """
import asyncio, signal, sys, threading, time
from pathlib import Path
from retrykit import Policy
from retrykit.integrations import dbos as durable
from tests._support.dbos_jobs import settings

def wait():
    print("started", flush=True)
    sys.stdin.readline()

@durable.job(Policy(), name="sync")
def block():
    wait()

@durable.job(Policy(), name="async")
async def sleep():
    await asyncio.to_thread(wait)

def tell():
    while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        time.sleep(0.01)
    print("handles signals", flush=True)

threading.Thread(target=tell).start()
durable.serve(settings(Path(sys.argv[1])), polling=0.01, grace="1s")
print("returned")
"""


@durable.job(Policy(), name="sync")
def block() -> None: ...


@durable.job(Policy(), name="async")
async def sleep() -> None: ...


@pytest.fixture
def database(tmp_path):
    """A database with a connection that can lock it for other programs."""
    skip_if_unusable()
    durable.connect(settings(tmp_path))
    yield sqlite3.connect(tmp_path / "jobs.sqlite", timeout=20, isolation_level=None)
    DBOS.destroy()


@pytest.fixture
def serving(tmp_path, database):
    """Starts a process that serves jobs; ends it, should it still run."""
    with contextlib.ExitStack() as running, contextlib.closing(database):

        def start():
            command = [sys.executable, "-c", SERVING, str(tmp_path)]
            process = subprocess.Popen(  # noqa: S603  a fixed command
                command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )  # fmt: skip
            running.callback(process.communicate)
            running.callback(process.kill)
            assert process.stdout.readline() == "handles signals\n"
            return process

        yield start


def lock(database):
    database.execute("BEGIN EXCLUSIVE")


def stop(process):
    """Tell a process to stop, and return what it prints until its end."""
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate("\n", timeout=30)
    assert process.returncode == 0
    return out, err


@pytest.mark.parametrize("job", [block, sleep], ids=["sync", "async"])
def test_a_worker_ends_that_cannot_record_an_outcome(database, serving, job):
    job.start_as("job")
    process = serving()
    assert process.stdout.readline() == "started\n"
    lock(database)
    out, err = stop(process)
    assert "not ended, to be repeated: job:1" in err
    assert not out, "the interpreter would wait for the database"


def test_a_worker_ends_that_waits_for_jobs(database, serving):
    process = serving()
    while not database.execute("SELECT 1 FROM queues").fetchall():
        time.sleep(0.05)
    lock(database)
    stop(process)


def test_a_worker_ends_that_has_not_started_yet(database, serving):
    lock(database)
    out, err = stop(serving())
    assert "not ended, to be repeated: nothing" in err
    assert not out
