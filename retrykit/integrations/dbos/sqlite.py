"""The database in a file: whether it works here, and for whom.

It knows nothing of jobs.
"""

import sqlite3
import sys
from pathlib import Path

from retrykit._internal.validation import invalid_setting

__all__ = ["check_sqlite", "locked"]

_held: dict[Path, sqlite3.Connection] = {}


def check_sqlite(
    python: tuple[int, ...] = sys.version_info[:2],
    sqlite: tuple[int, ...] = sqlite3.sqlite_version_info,
) -> None:
    """Check that DBOS can use the SQLite that there is.

    From Python 3.12 on it asks for the time in a way that SQLite knows since
    3.42, and fails with another error where it does not.

    Args:
        python: The version of Python.
        sqlite: The version of SQLite.

    Raises:
        ConfigError: It cannot.
    """
    if python >= (3, 12) and sqlite < (3, 42):
        version = ".".join(map(str, sqlite))
        suggestion = "use Postgres, Python 3.11, or a Python with a newer SQLite"
        raise invalid_setting(
            "sqlite", ">= 3.42, for DBOS on Python 3.12", version, suggestion
        )


def locked(path: Path) -> bool:
    """Lock a file for this process, and return whether it has it now.

    The lock is the system's, and gone when the process is, however it ends.
    """
    path = path.absolute()
    if path in _held:
        return True
    # SQLite locks files on every system that Python runs on.
    lock = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        lock.close()
        return False
    _held[path] = lock
    return True
