"""Launching DBOS: executors, locks and rejected settings."""

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from dbos import DBOS

from retrykit import ConfigError, Policy
from retrykit.integrations import dbos as durable
from retrykit.integrations.dbos._lifecycle import check_sqlite, try_lock
from retrykit.integrations.dbos._settings import _launched
from tests._support.dbos_jobs import execute, read, settings, skip_if_unusable

LISTENING_PROCESS = """
from retrykit import Policy
from retrykit.integrations import dbos
from tests._support.dbos_jobs import settings
from pathlib import Path
dbos.job(Policy(), name="any")(int)
dbos.listen(settings(Path({folder!r})))
print("listens", flush=True)
input()
"""


@durable.job(Policy(on=ConnectionError), name="processed")
def does_nothing() -> None:
    """Do nothing."""


@durable.job(Policy(schedule=["1h"]), name="falls")
def fails() -> None:
    raise ConnectionError


@pytest.fixture(autouse=True)
def destroy_dbos():
    skip_if_unusable()
    yield
    DBOS.destroy()


def test_settings_pin_the_executor_and_the_version(tmp_path):
    pinned = settings(tmp_path)
    assert pinned["executor_id"] == "single"
    assert pinned["application_version"] == "retrykit-1"
    assert "executor_id" not in durable.config("tests", database="postgresql:///x")


def test_threads_share_a_connection_to_sqlite_by_default():
    assert durable.config("tests")["sys_db_pool_size"] == 1
    assert durable.config("tests", sys_db_pool_size=2)["sys_db_pool_size"] == 2
    assert "sys_db_pool_size" not in durable.config("t_1", database="postgresql:///x")


def test_settings_of_the_caller_win(tmp_path):
    config = settings(tmp_path, executor="two", application_version="9")
    assert (config["executor_id"], config["application_version"]) == ("two", "9")
    assert config["system_database_url"] == f"sqlite:///{tmp_path}/jobs.sqlite"


def test_an_interrupted_attempt_is_repeated_when_its_process_restarts(tmp_path):
    durable.connect(settings(tmp_path))
    fails.start_as("half")
    DBOS.destroy()
    execute(tmp_path / "jobs.sqlite", "UPDATE workflow_status SET status = 'PENDING',"
            " executor_id = 'single', application_version = 'retrykit-1'")  # fmt: skip
    _launched.clear()
    durable.listen(settings(tmp_path), polling=0.01)
    attempt = DBOS.retrieve_workflow("half:1")
    assert attempt.get_result(polling_interval_sec=0.01) == {"next": "half:2"}


def test_a_connected_process_runs_no_job(tmp_path):
    durable.connect(settings(tmp_path))
    job_id = does_nothing.start()
    assert durable.status(job_id).status == "waiting"
    assert DBOS.executor_id.startswith("connected-")
    with pytest.raises(Exception, match="listen_queues called"):
        DBOS.listen_queues([])


def test_a_process_can_listen_again_after_destroy(tmp_path):
    for job in ("first", "second"):
        durable.listen(settings(tmp_path), polling=0.01)
        fails.start_as(job)
        attempt = DBOS.retrieve_workflow(f"{job}:1")
        assert attempt.get_result(polling_interval_sec=0.01) == {"next": f"{job}:2"}
        DBOS.destroy()


def test_the_last_process_to_listen_sets_the_latest_version(tmp_path):
    for version in ("2", "retrykit-1"):
        durable.listen(settings(tmp_path, application_version=version))
        latest = DBOS.get_latest_application_version()
        DBOS.destroy()
        assert latest["version_name"] == version


def test_the_last_process_to_listen_sets_concurrency_and_polling(tmp_path):
    query = "SELECT worker_concurrency || ' ' || polling_interval_sec FROM queues"
    for concurrency, polling in ((3, 0.5), (7, 0.25)):
        durable.listen(settings(tmp_path), concurrency=concurrency, polling=polling)
        DBOS.destroy()
        assert read(tmp_path / "jobs.sqlite", query) == [f"{concurrency} {polling}"]


def test_a_database_is_locked_if_its_url_has_a_query(tmp_path):
    database = f"sqlite:///{tmp_path}/jobs.sqlite?timeout=9"
    durable.listen(settings(tmp_path) | {"system_database_url": database})
    assert (tmp_path / "jobs.sqlite.single.lock").exists()


@pytest.mark.parametrize("again", [durable.listen, durable.connect])
def test_a_second_launch_is_rejected(tmp_path, again):
    durable.listen(settings(tmp_path))
    with pytest.raises(ConfigError, match="leave out DBOS"):
        again(settings(tmp_path))


def test_rejects_a_dbos_that_was_created_elsewhere(tmp_path):
    DBOS(config=settings(tmp_path, executor="another"))
    with pytest.raises(ConfigError, match="got 'executor another'"):
        durable.listen(settings(tmp_path))


def test_a_second_process_is_rejected_while_the_first_lives(tmp_path):
    with subprocess.Popen(  # noqa: S603  a fixed command
        [sys.executable, "-c", LISTENING_PROCESS.format(folder=str(tmp_path))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[2],
    ) as first:  # fmt: skip
        assert first.stdout.readline() == "listens\n"
        with pytest.raises(ConfigError) as error:
            durable.listen(settings(tmp_path))
        assert error.value.message == (
            "executor_id must be an id that no other process has, got 'single'; "
            f"another one has locked {tmp_path}/jobs.sqlite.single.lock: end it, or "
            "write executor='another'"
        )
        durable.listen(settings(tmp_path, executor="a/b"))
        DBOS.destroy()
        first.kill()
    durable.listen(settings(tmp_path))


def test_a_process_keeps_its_lock_under_another_path(tmp_path):
    assert try_lock(tmp_path / "one.lock")
    with contextlib.chdir(tmp_path):
        assert try_lock(Path("one.lock"))


@pytest.mark.parametrize(
    ("python", "sqlite", "works"),
    [((3, 11), (3, 40), True), ((3, 12), (3, 41, 9), False), ((3, 12), (3, 42), True)],
    ids=["older Python", "older SQLite", "both new"],
)
def test_an_sqlite_too_old_for_dbos_is_rejected(python, sqlite, works):
    with contextlib.nullcontext() if works else pytest.raises(ConfigError):
        check_sqlite(python, sqlite)


def test_a_postgres_database_is_not_locked(tmp_path):
    unreachable = durable.config(
        "tests",
        database="postgresql://127.0.0.1:1/x",
        executor="one",
        log_level="CRITICAL",
    )
    with pytest.raises(Exception, match="Connection refused"):
        durable.listen(unreachable)
