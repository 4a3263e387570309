"""Settings of DBOS under which no job is lost and none is attempted twice."""

from threading import Event
from typing import Any, Final, cast

from dbos import DBOSConfig, DBOSPortableJSONSerializer

from retrykit._internal.validation import check_choice, did_you_mean, invalid_setting
from retrykit.durable import Capabilities

__all__ = ["CAPABILITIES", "QUEUE", "SQLITE", "check_launched", "config", "launched"]

CAPABILITIES: Final = Capabilities(
    engine="dbos",
    max_hop=None,
    # It looks once a second whose delay is over, and then waits for the queue.
    granularity=2.2,
    min_delay=0.0,
    at_least_once=True,
    async_ok=True,
)
"""What DBOS does for a job that waits."""

QUEUE: Final = "retrykit"
"""The queue of DBOS that all jobs go through."""

SQLITE: Final = "sqlite:///"
"""What the URL of a database in a file begins with."""

_VERSION: Final = "retrykit-1"

_launched: Final = Event()


def config(
    name: str,
    *,
    database: str | None = None,
    executor: str | None = None,
    **settings: Any,
) -> DBOSConfig:
    """Return settings for `listen` and `connect`.

    >>> settings = config("hostnames")
    >>> settings["system_database_url"], settings["application_version"]
    ('sqlite:///hostnames.sqlite', 'retrykit-1')

    They pin what DBOS goes by when it recovers attempts in whose middle a process
    was killed: the id of the executor, and the version of the application, which
    would be a hash of the source of its workflows, so that a deploy would leave
    them behind. Jobs that wait go on under any version: the one that has listened
    last. What DBOS keeps is JSON; workflows of your own whose values are
    none need another ``serializer``.

    Args:
        name: What the application is called: 3 characters at least, of a-z, 0-9,
            ``-`` and ``_``. Jobs belong to it: another one needs another
            database, or ``dbos_system_schema``.
        database: The URL of the database; by default a file of SQLite, of that
            name, in the current folder.
        executor: The id of this process: no other has it at the same time, and
            this one has it again after a restart. On SQLite it is ``single`` by
            default; elsewhere a process that attempts jobs needs one.
        **settings: Other settings of DBOS.

    Raises:
        ConfigError: A setting is none of DBOS's, or *database* none that it can use.
    """
    for setting in settings:
        check_choice(
            "settings", setting, [*DBOSConfig.__annotations__], _elsewhere(setting)
        )
    database = database or f"{SQLITE}{name}.sqlite"
    if not database.startswith((SQLITE, "postgresql")):
        rule = "the URL of a file of SQLite or of a Postgres database"
        raise invalid_setting(
            "database", rule, database, "write sqlite:////folder/jobs.sqlite"
        )
    pinned = {
        "name": name,
        "system_database_url": database,
        "application_version": _VERSION,
        "serializer": DBOSPortableJSONSerializer(),
    }
    if executor is None and database.startswith(SQLITE):
        executor = "single"
    if executor is not None:
        pinned["executor_id"] = executor
    return cast("DBOSConfig", pinned | settings)


def launched() -> None:
    """Note that this process has launched DBOS as jobs need it."""
    _launched.set()


def check_launched() -> None:
    """Check that this process has launched DBOS as jobs need it.

    Raises:
        ConfigError: It has not, or not by `listen` or `connect`.
    """
    if not _launched.is_set():
        rule = "launched by connect(...) or listen(...) before"
        suggestion = "call connect(config(...)) where this process begins"
        raise invalid_setting("DBOS", rule, None, suggestion)


def _elsewhere(setting: str) -> str:
    if setting in {"concurrency", "polling"}:
        return f"{setting} is an argument of listen(...)"
    return did_you_mean(setting, DBOSConfig.__annotations__)
