"""Processes that run jobs, and processes that only start and query them.

Both launch DBOS with a function of this module: ``DBOS.launch()`` alone would recover
attempts and run queued jobs in any process.
"""

import sqlite3
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote
from uuid import uuid4

from dbos import DBOS, DBOSConfig, error

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.redaction import redact_urls
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    invalid_setting,
    user_facing,
)
from retrykit.durable._dead_job_logs import log_dead_jobs_on_one_line
from retrykit.integrations.dbos._job_functions import check_jobs
from retrykit.integrations.dbos._killed_attempts import running_attempts, stopping
from retrykit.integrations.dbos._settings import QUEUE, SQLITE, mark_launched

__all__ = ["check_sqlite", "connect", "disconnect", "listen", "try_lock"]

_SUGGESTION: Final = "pass retrykit.integrations.dbos.config(...)"


@user_facing
def listen(
    settings: Mapping[str, Any], *, concurrency: int = 20, polling: Duration = 1.0
) -> None:
    """Launch DBOS in a process that runs due jobs.

    Import all jobs first. Any number of such processes can share the jobs of a
    database. If one is killed during an attempt, the attempt is repeated by the process
    that starts with its executor id, or after `take_over` by any other. Before a
    process ends, ``DBOS.destroy(workflow_completion_timeout_sec=60)`` lets attempts
    finish.

    Args:
        settings: The result of `config`.
        concurrency: Maximum number of simultaneous attempts of a process. Count,
            >= 1. Stored in the database: the last process to start sets it for all.
        polling: Time between polls of the queue. A duration, > 0, stored like
            *concurrency*.

    Raises:
        ConfigError: With these settings, jobs would be lost or attempted twice; no job
            was imported; DBOS was created already; or another argument is invalid.
    """
    check_instance("settings", settings, dict, _SUGGESTION)
    check_jobs()
    check_integer("concurrency", concurrency, at_least=1)
    interval = parse_duration("polling", polling)
    if not interval:
        raise invalid_setting("polling", "a duration > 0", polling, code="out-of-range")
    executor = settings.get("executor_id")
    if executor in {None, "", "local"}:
        rule = (
            "an id that no other process has, and that stays the same after a restart"
        )
        suggestion = (
            "pass config(..., executor=...), such as the instance id of your platform"
        )
        raise invalid_setting(
            "executor_id", rule, executor, suggestion, code="other-library"
        )
    if not settings.get("application_version"):
        rule = "pinned, or a deploy would abandon running attempts"
        raise invalid_setting(
            "application_version", rule, None, _SUGGESTION, code="other-library"
        )
    _check_exclusive(str(settings.get("system_database_url")), str(executor))
    _create(settings)
    stopping.clear()
    running_attempts.clear()
    DBOS.launch()
    # DBOS gives waiting jobs to the latest version. Otherwise that could be the version
    # of another program on this database, which would not run them.
    DBOS.set_latest_application_version(settings["application_version"])
    DBOS.register_queue(
        QUEUE,
        worker_concurrency=concurrency,
        polling_interval_sec=interval,
        on_conflict="always_update",
    )


@user_facing
def connect(settings: Mapping[str, Any]) -> None:
    """Launch DBOS in a process that starts and queries jobs, but runs none.

    It creates the database and its tables if there are none, unless the settings have
    ``run_migrations=False``, for a process that only queries jobs.

    Raises:
        ConfigError: *settings* is not a dict; DBOS was created or launched already;
            SQLite is too old for it; or there is no such database, and it may not be
            created.
    """
    check_instance("settings", settings, dict, _SUGGESTION)
    # A unique id: it would recover the attempts of a process with the same one.
    _create({**settings, "executor_id": f"connected-{uuid4()}"})
    DBOS.listen_queues([])
    try:
        DBOS.launch()
    except error.DBOSInitializationError as unusable:
        # It may not create or migrate the database.
        rule = "one that a worker or connect(...) has prepared for this version of DBOS"
        database = str(settings["system_database_url"])
        shown = database if database.startswith(SQLITE) else redact_urls(database)
        suggestion = "check its path and name"
        raise invalid_setting(
            "database", rule, shown, suggestion, code="other-library"
        ) from unusable


def disconnect() -> None:
    """Close what `connect` has opened; the end of the process would close it, too."""
    DBOS.destroy()


def _create(settings: Mapping[str, Any]) -> None:
    """Create DBOS.

    Raises:
        ConfigError: DBOS was created or launched before, or cannot use SQLite.
    """
    if str(settings.get("system_database_url")).startswith(SQLITE):
        check_sqlite()
    DBOS(config=cast("DBOSConfig", settings))
    log_dead_jobs_on_one_line("dbos")
    if DBOS.executor_id != settings["executor_id"] or _is_launched():
        rule = "created by listen(...) or connect(...), and only once"
        suggestion = "leave out DBOS(config=...) and DBOS.launch()"
        raise invalid_setting(
            "DBOS",
            rule,
            f"executor {DBOS.executor_id}",
            suggestion,
            code="other-library",
        )
    # Before the launch: a recovered attempt may enqueue the next one at once.
    mark_launched()


def _is_launched() -> bool:
    try:
        DBOS.get_latest_application_version()
    except error.DBOSException:
        return False
    return True


def _check_exclusive(database: str, executor: str) -> None:
    """Raise an error if another process has this executor id on a SQLite database."""
    if not database.startswith(SQLITE):
        return
    file = Path(database.removeprefix(SQLITE).partition("?")[0])
    path = file.with_name(f"{file.name}.{quote(executor, safe='')}.lock")
    if not try_lock(path):
        rule = "an id that no other process has"
        suggestion = (
            f"another one has locked {path}: end it, or write executor='another'"
        )
        raise invalid_setting(
            "executor_id", rule, executor, suggestion, code="other-library"
        )


_locks: dict[Path, sqlite3.Connection] = {}


def check_sqlite(
    python: tuple[int, ...] = sys.version_info[:2],
    sqlite: tuple[int, ...] = sqlite3.sqlite_version_info,
) -> None:
    """Raise an error unless DBOS can use the installed SQLite.

    On Python 3.12 and later, DBOS calls a time function that SQLite has only since
    version 3.42.
    """
    if python >= (3, 12) and sqlite < (3, 42):
        version = ".".join(map(str, sqlite))
        suggestion = "use Postgres, Python 3.11, or a Python with a newer SQLite"
        raise invalid_setting(
            "sqlite",
            ">= 3.42, for DBOS on Python 3.12 or later",
            version,
            suggestion,
            code="other-library",
        )


def try_lock(path: Path) -> bool:
    """Lock a file for this process, and return whether that succeeded.

    The operating system releases the lock when the process ends.
    """
    path = path.absolute()
    if path in _locks:
        return True
    # SQLite locks files on every platform.
    lock = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        lock.close()
        return False
    _locks[path] = lock
    return True
