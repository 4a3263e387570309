"""Turns of attempts whose worker was killed: each worker repeats one at a time.

One of the jobs may have killed the worker, for example by using up the memory. All
attempts that ran at that time are delivered again. If they were repeated together, that
job would kill the next worker as well, and so on, until all the jobs are dead.
"""

import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from retrykit.schedules._randomness import call_random, new_seed, uniform_between

__all__ = ["draw_turn_delay", "take_turn"]

# In seconds.
_SHORTEST, _LONGEST = 5.0, 15.0


def draw_turn_delay() -> float:
    """Return the seconds after which an attempt tries again to get its turn.

    The delay is random, or waiting attempts would always try at the same time.
    """
    random = call_random(seed=new_seed(), retry=1)
    return uniform_between(_SHORTEST, _LONGEST, random)


@contextmanager
def take_turn(worker: str) -> Iterator[bool]:
    """Take the turn of a worker until the block ends; yield whether it was free.

    The operating system frees the turn if the process is killed. Without a usable
    folder for temporary files there are no turns, and True is yielded.

    Args:
        worker: The name of the worker, which all processes of its pool share.
    """
    try:
        turn = _open(worker)
    except (OSError, sqlite3.Error):
        # Without a folder for temporary files, attempts are repeated at once.
        yield True
        return
    with closing(turn):
        yield _lock(turn)


def _open(worker: str) -> sqlite3.Connection:
    user = getattr(os, "getuid", int)()
    name = hashlib.sha256(worker.encode()).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"retrykit-{user}-{name}.turn"
    # SQLite locks files on every platform.
    return sqlite3.connect(path, timeout=0, isolation_level=None)


def _lock(turn: sqlite3.Connection) -> bool:
    try:
        turn.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        return error.sqlite_errorcode != sqlite3.SQLITE_BUSY
    return True
