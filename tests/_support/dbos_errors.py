"""Invalid settings of jobs on DBOS, by the message of their error."""

import atexit
import contextlib
import shutil
import sqlite3
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from dbos import DBOS, DBOSConfig

from retrykit import ConfigError, Policy
from retrykit.durable import Job
from retrykit.durable._json_payloads import as_json
from retrykit.integrations import dbos as durable
from retrykit.integrations.dbos import _job_functions as jobs
from retrykit.integrations.dbos._job_functions import find_job
from retrykit.integrations.dbos._lifecycle import check_sqlite
from retrykit.integrations.dbos._settings import _launched, mark_launched
from tests._support.dbos_jobs import execute, settings

__all__ = ["ERRORS", "USABLE"]

FOLDER = Path(tempfile.mkdtemp(prefix="retrykit-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
LOCK = FOLDER / "jobs.sqlite.held.lock"
SETTINGS = settings(FOLDER)
NOON = datetime(2026, 11, 23, 12)  # noqa: DTZ001  naive, to be rejected

KNOWN = ", ".join(map(repr, DBOSConfig.__annotations__))
ID = "executor_id must be an id that no other process has"
LAUNCHED = "DBOS must be created by listen(...) or connect(...), and only"
VERSION = "pinned, or a deploy would abandon running attempts"


@durable.job(Policy(on=ConnectionError), name="verify")
def verify() -> None:
    """Do nothing."""


def listen(**changes):
    durable.listen(SETTINGS | changes)


def serve_in_another_thread():
    with ThreadPoolExecutor(1, thread_name_prefix="other") as threads:
        threads.submit(durable.serve, SETTINGS).result()


@contextlib.contextmanager
def connected(job_id="waiting"):
    """Connect without running jobs, and start one, which waits forever."""
    durable.connect(SETTINGS)
    try:
        yield verify.start_as(job_id)
    finally:
        DBOS.destroy()


def call_on_waiting(function, *arguments):
    with connected():
        function("waiting", *arguments)


def status_of_unknown_job():
    with connected():
        durable.status("nobody")


def listen_while_locked():
    with contextlib.closing(sqlite3.connect(LOCK, isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        listen(executor_id="held")


def listen_after_own_dbos():
    DBOS(config=SETTINGS)
    try:
        listen(executor_id="another")
    finally:
        DBOS.destroy()


def kill_twice():
    with connected("stopped"):
        with contextlib.suppress(ConfigError):
            durable.kill("stopped")
        durable.kill("stopped")


def connect_without_a_database():
    url = f"sqlite:///{FOLDER}/none.sqlite"
    try:
        durable.connect(
            SETTINGS | {"system_database_url": url, "run_migrations": False}
        )
    finally:
        DBOS.destroy()


def requeue_corrupt_job():
    corrupt = (
        "UPDATE workflow_input SET inputs = '{}' WHERE workflow_uuid = 'corrupt:1'"
    )
    with connected("corrupt"):
        with contextlib.suppress(ConfigError):
            durable.kill("corrupt")
        execute(FOLDER / "jobs.sqlite", corrupt)
        durable.requeue("corrupt")


def listen_without_jobs():
    known = dict(jobs._jobs)  # noqa: SLF001  of all test modules
    jobs._jobs.clear()  # noqa: SLF001
    try:
        listen()
    finally:
        jobs._jobs.update(known)  # noqa: SLF001


def status_before_launch():
    launched = _launched.is_set()
    _launched.clear()
    try:
        durable.status("waiting")
    finally:
        if launched:
            mark_launched()


ERRORS = {
    "envelope must be that of the attempt verify-7:2, with which it is stored, got "
    "'verify-8:1'": lambda: jobs.check_own(
        Job(int, Policy()).envelope("verify-8"), "verify-7:2"
    ),
    "concurrency must be an integer >= 1, got 0": (
        lambda: durable.listen(SETTINGS, concurrency=0)
    ),
    "polling must be a finite number >= 0, got -1": lambda: durable.listen(
        SETTINGS, polling=-1
    ),
    "polling must be a duration > 0, got 0": (
        lambda: durable.listen(SETTINGS, polling=0)
    ),
    f"{ID}, and that stays the same after a restart, got 'local'; pass config(..., "
    "executor=...), such as the instance id of your platform": (
        lambda: listen(executor_id="local")
    ),
    f"application_version must be {VERSION}, got None; pass "
    "retrykit.integrations.dbos.config(...)": lambda: listen(application_version=None),
    f"{ID}, got 'held'; another one has locked {LOCK}: end it, or write "
    "executor='another'": (listen_while_locked),
    "sqlite must be >= 3.42, for DBOS on Python 3.12 or later, got '3.40.1'; use "
    "Postgres, Python 3.11, or a Python with a newer SQLite": (
        lambda: check_sqlite((3, 13), (3, 40, 1))
    ),
    "name must be the name of one function only, got 'verify'": (
        lambda: durable.job(Policy(), name="verify")(len)
    ),
    "job must be the name of a job that this process has imported, got 'verfy'; did "
    "you mean verify?": lambda: find_job("verfy"),
    f"when must be an aware datetime, got {NOON!r}; write datetime.now(UTC)": (
        lambda: durable.retry_at("waiting", NOON)
    ),
    f"before must be an aware datetime, got {NOON!r}; write datetime.now(UTC)": (
        lambda: durable.delete_finished(NOON)
    ),
    "before must be a datetime, got '1d'": lambda: durable.delete_finished("1d"),
    "settings must be a dict, got 'tests'; pass "
    "retrykit.integrations.dbos.config(...)": (lambda: durable.listen("tests")),
    "settings must be a dict, got 'test'; pass "
    "retrykit.integrations.dbos.config(...)": (lambda: durable.connect("test")),
    f"settings must be one of {KNOWN}, got 'polling'; polling is an argument of "
    "listen(...)": lambda: durable.config("tests", polling=1),
    f"settings must be one of {KNOWN}, got 'exectuor_id'; did you mean executor_id?": (
        lambda: durable.config("tests", exectuor_id="one")
    ),
    "database must be the URL of a SQLite file or a Postgres database, got "
    "'jobs.sqlite'; write sqlite:////folder/jobs.sqlite": (
        lambda: durable.config("tests", database="jobs.sqlite")
    ),
    "jobs must be imported before listen(...), or due jobs would be marked as dead, "
    "got None; import the modules that define them": listen_without_jobs,
    "serve must be called in the main thread, which handles signals, got "
    "'thread other_0'; in another one, call listen(...) and DBOS.destroy(...)": (
        serve_in_another_thread
    ),
    "grace must be a finite number >= 0, got -1": (
        lambda: durable.serve(SETTINGS, grace=-1)
    ),
    "DBOS must be launched by connect(...) or listen(...) first, got None; call "
    "connect(config(...)) when this process starts": status_before_launch,
    "args must be encodable as UTF-8, got '\\udcff'; for a file name, pass "
    "os.fsencode(name).hex()": lambda: as_json("args", "\udcff"),
    "job_id must be a printable string, got 'a\\nb'": (
        lambda: Job(len, Policy(), "verify").envelope("a\nb")
    ),
}

# Only after a launch; without, the error is about SQLite.
LAUNCHES = {
    f"{LAUNCHED} once, got 'executor single'; leave out DBOS(config=...) and "
    "DBOS.launch()": listen_after_own_dbos,
    "job_id must be the id of a job that was started, got 'nobody'": (
        status_of_unknown_job
    ),
    "job_id must be the id of an unfinished job, got 'stopped'; it is dead": kill_twice,
    "database must be one that a worker or connect(...) has prepared for this version "
    f"of DBOS, got 'sqlite:///{FOLDER}/none.sqlite'; check its path and name": (
        connect_without_a_database
    ),
    "job_id must be the id of a dead job, got 'waiting'; it is waiting": (
        lambda: call_on_waiting(durable.requeue)
    ),
    "job_id must be the id of a job whose arguments can be read, got 'corrupt'; its "
    "input is {'args': (), 'kwargs': {}}": requeue_corrupt_job,
    "job_id must be the id of a waiting job, got 'waiting'; it is due": (
        lambda: call_on_waiting(durable.retry_at, NOON.replace(tzinfo=UTC))
    ),
}

try:
    check_sqlite()
except ConfigError:
    USABLE = False
else:
    USABLE = True
    ERRORS |= LAUNCHES
