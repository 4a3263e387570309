"""Processes that attempt jobs, and others that only start them and ask.

DBOS recovers attempts, and takes what is in its queues, in every process that
launches it. So both begin here, before it is launched, and never by
``DBOS.launch()``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote
from uuid import uuid4

from dbos import DBOS, DBOSConfig, error

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import check_instance, check_integer, invalid_setting
from retrykit.integrations.dbos.jobs import check_jobs
from retrykit.integrations.dbos.settings import QUEUE, SQLITE, launched
from retrykit.integrations.dbos.sqlite import check_sqlite, locked

__all__ = ["connect", "listen"]

_SUGGESTION: Final = "pass retrykit.integrations.dbos.config(...)"


def listen(
    settings: Mapping[str, Any], *, concurrency: int = 20, polling: Duration = 1.0
) -> None:
    """Launch DBOS in a process that attempts the jobs that are due.

    It has imported all jobs before. Any number of such processes share the jobs
    of a database. What waits is attempted by whoever is free; but an attempt in
    whose middle a process was killed is made again by the process that comes
    back with its executor id, or after `take_over`. Before a process ends,
    ``DBOS.destroy(workflow_completion_timeout_sec=60)`` lets attempts end.

    Args:
        settings: What `config` returned.
        concurrency: How many attempts a process makes at the same time. Count,
            >= 1. DBOS keeps it in the database: the process that has come last
            says it for all.
        polling: How often is looked which jobs are due. A duration, > 0, kept
            in the database, too.

    Raises:
        ConfigError: DBOS is set up so that jobs would be lost or attempted
            twice; the error says which setting to change.
    """
    check_instance("settings", settings, dict, _SUGGESTION)
    check_jobs()
    check_integer("concurrency", concurrency, at_least=1)
    interval = parse_duration("polling", polling)
    if not interval:
        raise invalid_setting("polling", "a duration > 0", polling)
    executor = settings.get("executor_id")
    if executor in {None, "", "local"}:
        rule = "an id that no other process has, and this one after a restart, too"
        suggestion = "pass config(..., executor=...) what your platform numbers it by"
        raise invalid_setting("executor_id", rule, executor, suggestion)
    if not settings.get("application_version"):
        rule = "pinned, or a deploy leaves attempts behind that were in their middle"
        raise invalid_setting("application_version", rule, None, _SUGGESTION)
    _be_alone(str(settings.get("system_database_url")), str(executor))
    _make(settings)
    DBOS.launch()
    # Or what another program has launched on this database would take the jobs, and
    # leave them: DBOS gives what waits to the version that it takes for the latest.
    DBOS.set_latest_application_version(settings["application_version"])
    DBOS.register_queue(
        QUEUE,
        worker_concurrency=concurrency,
        polling_interval_sec=interval,
        on_conflict="always_update",
    )


def connect(settings: Mapping[str, Any]) -> None:
    """Launch DBOS in a process that starts jobs and asks about them.

    It attempts none, and takes nothing from the queues of DBOS.

    Args:
        settings: What `config` returned; it needs no executor.

    Raises:
        ConfigError: DBOS is there already, launched or with other settings.
    """
    check_instance("settings", settings, dict, _SUGGESTION)
    # Of its own, or it would recover the attempts that another process makes.
    _make({**settings, "executor_id": f"connected-{uuid4()}"})
    DBOS.listen_queues([])
    DBOS.launch()


def _make(settings: Mapping[str, Any]) -> None:
    """Make DBOS, which there is once in a process.

    Raises:
        ConfigError: It is there already.
    """
    if str(settings.get("system_database_url")).startswith(SQLITE):
        check_sqlite()
    DBOS(config=cast("DBOSConfig", settings))
    if DBOS.executor_id != settings["executor_id"] or _made_before():
        rule = "made and launched by listen(...) or connect(...), and only once"
        suggestion = "leave out DBOS(config=...) and DBOS.launch()"
        raise invalid_setting("DBOS", rule, f"executor {DBOS.executor_id}", suggestion)
    # Before that is so: an attempt that is recovered enqueues the next one at once.
    launched()


def _made_before() -> bool:
    try:
        DBOS.get_latest_application_version()
    except error.DBOSException:
        return False
    return True


def _be_alone(database: str, executor: str) -> None:
    """Check that no other process has this id, on a database in a file.

    Raises:
        ConfigError: Another one has it.
    """
    if not database.startswith(SQLITE):
        return
    file = Path(database.removeprefix(SQLITE).partition("?")[0])
    path = file.with_name(f"{file.name}.{quote(executor, safe='')}.lock")
    if not locked(path):
        rule = "an id that no other process has"
        suggestion = f"one has locked {path}: end it, or write executor='another'"
        raise invalid_setting("executor_id", rule, executor, suggestion)
