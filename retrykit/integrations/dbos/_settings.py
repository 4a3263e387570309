"""Settings of DBOS with which no job is lost or attempted twice."""

from threading import Event
from typing import Any, Final, cast

from dbos import DBOSConfig, DBOSPortableJSONSerializer

from retrykit._internal.validation import (
    check_choice,
    did_you_mean,
    invalid_setting,
    user_facing,
)
from retrykit.durable import Capabilities

__all__ = ["CAPABILITIES", "QUEUE", "SQLITE", "check_launched", "config"]
__all__ += ["mark_launched"]

CAPABILITIES: Final = Capabilities(
    engine="dbos",
    max_hold=None,
    # Delays are checked once a second, and then the queue is polled.
    granularity=2.2,
    min_delay=0.0,
    at_least_once=True,
    supports_async=True,
)
"""Capabilities of DBOS for waiting jobs."""

QUEUE: Final = "retrykit"
"""The DBOS queue of all jobs."""

SQLITE: Final = "sqlite:///"
"""The prefix of the URLs of SQLite databases."""

_VERSION: Final = "retrykit-1"

_launched: Final = Event()


@user_facing
def config(
    name: str,
    *,
    database: str | None = None,
    executor: str | None = None,
    **settings: Any,
) -> DBOSConfig:
    """Return the settings for `listen` and `connect`.

    >>> settings = config("hostnames")
    >>> settings["system_database_url"], settings["application_version"]
    ('sqlite:///hostnames.sqlite', 'retrykit-1')

    The settings pin what DBOS needs to recover the attempts of a killed process: the
    executor id and the application version, which would otherwise be a hash of the
    workflows' source and change with a deploy. Waiting jobs continue under any version.
    DBOS stores JSON; if your own workflows have other values, set another
    ``serializer``. On SQLite, all threads of a process share one connection.

    Args:
        name: The name of the application: at least 3 characters of a-z, 0-9, ``-`` and
            ``_``. Each application needs its own database or ``dbos_system_schema``.
        database: The URL of the database; by default that of a SQLite file in the
            current folder, with *name* as its name.
        executor: The id of this process: unique, and the same after a restart. On
            SQLite ``single`` by default; elsewhere required to run jobs.
        **settings: Other settings of DBOS.

    Raises:
        ConfigError: DBOS has no such setting, or cannot use *database*.
    """
    for setting in settings:
        check_choice(
            "settings",
            setting,
            [*DBOSConfig.__annotations__],
            _suggest_setting(setting),
        )
    database = database or f"{SQLITE}{name}.sqlite"
    if not database.startswith((SQLITE, "postgresql")):
        rule = "the URL of a SQLite file or a Postgres database"
        raise invalid_setting(
            "database",
            rule,
            database,
            "write sqlite:////folder/jobs.sqlite",
            code="other-library",
        )
    pinned = {
        "name": name,
        "system_database_url": database,
        "application_version": _VERSION,
        "serializer": DBOSPortableJSONSerializer(),
    }
    if database.startswith(SQLITE):
        # Only one can write at a time, and the others would poll for the lock for up
        # to seconds. In the pool they take turns.
        pinned["sys_db_pool_size"] = 1
        executor = executor or "single"
    if executor is not None:
        pinned["executor_id"] = executor
    return cast("DBOSConfig", pinned | settings)


def mark_launched() -> None:
    """Record that this process has called `listen` or `connect`."""
    _launched.set()


def check_launched() -> None:
    """Raise an error unless this process has called `listen` or `connect`."""
    if not _launched.is_set():
        rule = "launched by connect(...) or listen(...) first"
        suggestion = "call connect(config(...)) when this process starts"
        raise invalid_setting("DBOS", rule, None, suggestion, code="other-library")


def _suggest_setting(setting: str) -> str:
    if setting in {"concurrency", "polling"}:
        return f"{setting} is an argument of listen(...)"
    return did_you_mean(setting, DBOSConfig.__annotations__)
