"""Serving jobs until a signal, in this process."""

import asyncio
import contextlib
import os
import signal
import sqlite3
import threading
import time

import pytest
from dbos import DBOS

from retrykit import ConfigError, Policy
from retrykit.integrations import dbos as durable
from retrykit.integrations.dbos import _serving as serving
from retrykit.integrations.dbos._killed_attempts import stopping
from retrykit.integrations.dbos._serving import _end_process, _received_signals
from tests._support.dbos_jobs import read, settings, skip_if_unusable

STARTED, MAY_END, CANCELLED = threading.Event(), threading.Event(), threading.Event()
STATUSES = "SELECT status FROM workflow_status"


class Ended(BaseException):
    """Takes the place of the end of the process."""


@durable.job(Policy(), name="served")
def blocks() -> None:
    STARTED.set()
    MAY_END.wait(20)


@durable.job(Policy(), name="aserved")
async def sleeps() -> None:
    STARTED.set()
    try:
        await asyncio.sleep(20)
    except asyncio.CancelledError:
        CANCELLED.set()
        raise


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    skip_if_unusable()
    for event in (STARTED, MAY_END, CANCELLED):
        event.clear()

    def end(status):
        raise Ended(status)

    monkeypatch.setattr(serving, "_end_process", end)
    before = {*threading.enumerate()}
    yield
    MAY_END.set()
    # Of a process that has ended there are none.
    for thread in {*threading.enumerate()} - before:
        thread.join(20)
    DBOS.destroy()


def serve(folder, job, *actions, first=int, **arguments):
    """Serve one job in this thread, while another one acts."""
    durable.connect(settings(folder))
    job.start_as("job")
    DBOS.destroy()
    first()
    acting = threading.Thread(target=lambda: [action() for action in actions])
    acting.start()
    try:
        durable.serve(settings(folder), polling=0.01, **arguments)
    finally:
        acting.join()


def started():
    assert STARTED.wait(20)


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def test_a_signal_while_it_starts_ends_it_afterwards(tmp_path):
    path = tmp_path / "jobs.sqlite"
    with contextlib.closing(sqlite3.connect(path, check_same_thread=False)) as database:

        def lock():
            database.execute("BEGIN EXCLUSIVE")

        def handled():
            while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
                time.sleep(0.01)

        # The main thread may notice it up to a second later.
        acts = handled, terminate, lambda: time.sleep(1.2), database.rollback
        serve(tmp_path, blocks, *acts, first=lock)
    assert not STARTED.is_set()


@pytest.mark.parametrize("send", [terminate, interrupt])
def test_lets_a_running_attempt_end(tmp_path, send):
    serve(tmp_path, blocks, started, send, lambda: time.sleep(0.5), MAY_END.set)
    assert read(tmp_path / "jobs.sqlite", STATUSES) == ["SUCCESS"]


def test_cancels_a_coroutine_after_the_grace(tmp_path):
    begun = time.monotonic()
    serve(tmp_path, sleeps, started, terminate, grace=0)
    assert time.monotonic() - begun < 15
    assert CANCELLED.is_set()
    assert read(tmp_path / "jobs.sqlite", STATUSES) == ["PENDING"], "to be repeated"


def test_ends_the_process_if_a_thread_has_not_ended_after_the_grace(tmp_path, caplog):
    with pytest.raises(Ended, match="0"):
        serve(tmp_path, blocks, started, terminate, grace="1ms")
    assert "not ended, to be repeated: job:1" in caplog.text
    assert stopping.is_set(), "no repetition begins"
    attributes = read(
        tmp_path / "jobs.sqlite", "SELECT attributes FROM workflow_status"
    )
    assert attributes == ['{"retrykit.begun":0}'], "the job is not to blame"
    assert read(tmp_path / "jobs.sqlite", STATUSES) == ["PENDING"], "to be repeated"


def test_a_second_signal_ends_the_process(tmp_path):
    with pytest.raises(Ended, match=str(128 + signal.SIGTERM)):
        serve(tmp_path, blocks, started, interrupt, lambda: time.sleep(0.5), terminate)


def test_restores_the_handlers(tmp_path):
    def handle(number, frame):
        """Do nothing."""

    before = signal.signal(signal.SIGTERM, handle)
    # Ignored, for example, in a background process of a shell.
    interrupted = signal.getsignal(signal.SIGINT)
    try:
        serve(tmp_path, blocks, started, terminate, MAY_END.set)
        assert signal.getsignal(signal.SIGTERM) is handle
        assert signal.getsignal(signal.SIGINT) is interrupted
    finally:
        signal.signal(signal.SIGTERM, before)


def test_restores_a_handler_that_python_did_not_install(monkeypatch):
    installed = []

    def install(number, handler):
        installed.append(handler)

    monkeypatch.setattr(signal, "signal", install)
    with _received_signals():
        pass
    assert installed[2:] == [signal.SIG_DFL, signal.SIG_DFL]


def test_ends_the_process_without_waiting(monkeypatch, capsys):
    monkeypatch.undo()
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr("logging.shutdown", lambda: ended.append("logs are written"))
    _end_process(3)
    assert ended == ["logs are written", 3]


def test_rejects_another_thread_and_invalid_arguments(tmp_path):
    errors = []

    def serve_in_thread():
        try:
            durable.serve(settings(tmp_path))
        except ConfigError as error:
            errors.append(error.message)

    thread = threading.Thread(target=serve_in_thread, name="helper")
    thread.start()
    thread.join()
    [error] = errors
    assert error == (
        "serve must be called in the main thread, which handles signals, got 'thread "
        "helper'; in another one, call listen(...) and DBOS.destroy(...)"
    )
    with pytest.raises(ConfigError, match="grace must be"):
        durable.serve(settings(tmp_path), grace=-1)
    with pytest.raises(ConfigError, match="concurrency must be"):
        durable.serve(settings(tmp_path), concurrency=0)
