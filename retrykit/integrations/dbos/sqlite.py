"""Checks of SQLite databases: its version, and a lock for each executor."""

import sqlite3
import sys
from pathlib import Path

from retrykit._internal.validation import invalid_setting

__all__ = ["check_sqlite", "try_lock"]

_locks: dict[Path, sqlite3.Connection] = {}


def check_sqlite(
    python: tuple[int, ...] = sys.version_info[:2],
    sqlite: tuple[int, ...] = sqlite3.sqlite_version_info,
) -> None:
    """Check that DBOS can use the installed SQLite.

    From Python 3.12 on, it uses a function for the time that SQLite has since 3.42.

    Args:
        python: The version of Python.
        sqlite: The version of SQLite.

    Raises:
        ConfigError: SQLite is too old.
    """
    if python >= (3, 12) and sqlite < (3, 42):
        version = ".".join(map(str, sqlite))
        suggestion = "use Postgres, Python 3.11, or a Python with a newer SQLite"
        raise invalid_setting(
            "sqlite", ">= 3.42, for DBOS on Python 3.12", version, suggestion
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
