"""A worker of Procrastinate in this process, stopped by signals."""

import asyncio
import logging
import os
import signal
import threading

import pytest
from procrastinate import App

from retrykit import ConfigError
from retrykit.integrations import procrastinate as durable
from tests._support import procrastinate_jobs
from tests._support.procrastinate_jobs import HOURLY, MemoryConnector, prepared_app

kind = procrastinate_jobs.kind


@pytest.fixture
def exits(monkeypatch):
    """Functions that are called instead of ending this process."""
    exits = []

    def end(status):
        assert status == 0
        for each in exits:
            each()

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(logging, "shutdown", lambda: None)
    return exits


def stopping_job(app, kind, number=signal.SIGTERM, wait=0.0):
    """Start a job that stops its worker, and then waits; return the event it sets."""
    ended = threading.Event()
    may_end = threading.Event()

    def attempt():
        os.kill(os.getpid(), number)
        may_end.wait(wait)
        ended.set()

    async def aattempt():
        os.kill(os.getpid(), number)
        await asyncio.sleep(wait)
        ended.set()

    function = aattempt if kind == "async" else attempt
    durable.task(app, HOURLY, name="stops", max_killed=1)(function).start_as("host")
    return ended, may_end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_running_attempt_ends(kind, number):
    app = prepared_app()
    before = signal.getsignal(number)
    ended, _ = stopping_job(app, kind, number, wait=0.2)
    durable.serve(app, grace="9s", name="one")
    assert ended.is_set()
    assert durable.status(app, "host").status == "succeeded"
    assert signal.getsignal(number) in {before, signal.SIG_DFL}


def test_an_attempt_that_outlasts_the_grace_is_put_back(kind, exits, caplog):
    app = prepared_app()
    ended, may_end = stopping_job(app, kind, wait=30)
    statuses = []
    exits += [lambda: statuses.append(app.connector.jobs[1]["status"]), may_end.set]
    durable.serve(app, grace=0.01)
    assert statuses == ["todo"]
    assert ended.is_set() == (kind == "sync")
    assert "attempts are cut off after 0.01 s" in caplog.text
    assert app.connector.stored.get(1, {"killed": 0})["killed"] == 0


def test_ends_even_if_the_database_is_unavailable(exits):
    app = prepared_app()
    _, may_end = stopping_job(app, "sync", wait=30)
    ended = []
    exits.append(may_end.set)

    async def fail(*_unused, **_settings):
        raise ConnectionError

    app.connector.list_jobs_all = app.connector.update_heartbeat_run = fail
    exits.append(lambda: ended.append(0))
    durable.serve(app, grace=0)
    assert ended == [0]


def test_a_stopping_worker_sends_heartbeats():
    app = prepared_app()
    app.worker_defaults["update_heartbeat_interval"] = 0.05
    stopping_job(app, "sync", wait=0.5)
    beats = []
    beat = app.connector.update_heartbeat_run

    async def count(worker_id):
        beats.append(worker_id)
        await beat(worker_id)

    app.connector.update_heartbeat_run = count
    durable.serve(app)
    assert len(beats) >= 3


def test_a_worker_that_ends_by_itself_is_an_error():
    app = prepared_app()
    app.worker_defaults["update_heartbeat_interval"] = 0.01

    async def fail(_worker_id):
        raise ConnectionError

    app.connector.update_heartbeat_run = fail
    with pytest.raises(RuntimeError, match="ended without a signal"):
        durable.serve(app, listen_notify=False)


def test_an_error_of_the_worker_is_raised():
    app = prepared_app()

    async def fail(**_settings):
        raise ConnectionError("refused")

    app.connector.prune_stalled_workers_all = fail
    with pytest.raises(ConnectionError, match="refused"):
        durable.serve(app)


def test_imports_the_tasks_of_the_app():
    app = prepared_app()
    app.import_paths = ["tests.nowhere"]
    with pytest.raises(ModuleNotFoundError):
        durable.serve(app)


def test_rejects_an_app_that_was_not_prepared():
    app = App(connector=MemoryConnector())
    with pytest.raises(ConfigError, match="call prepare"):
        durable.serve(app)
