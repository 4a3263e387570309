"""Reading of many source files, in one process or several."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from retrykit._internal.processes import Progress, Work
from retrykit.audit._files import SourceFile
from retrykit.audit._findings import Problem
from retrykit.audit._reading import Reading, read_file

__all__ = ["Progress", "scan", "without_collection"]

Read = Callable[[SourceFile], Reading]

_FEW: Final = 300
"""Below this number of files, starting processes does not pay."""
_CHUNK: Final = 40
"""The number of files that a process reads at a time."""


def _say_nothing(_done: int, _all: int) -> None:
    return


def scan(
    files: Sequence[SourceFile],
    processes: int = 1,
    progress: Progress = _say_nothing,
    read: Read = read_file,
) -> list[Reading]:
    """Return the facts about files, in the order of the files.

    Args:
        files: The files.
        processes: How many processes read files. Count, >= 1. A few files are read by
            the calling process.
        progress: Called in this thread after each part.
        read: Reads a file; it must not raise an error.
    """
    work = Work(read, _ended, chunk=_CHUNK, few=_FEW, prepare=gc.disable)
    return work.map(files, processes, progress)


def _ended(file: SourceFile) -> Reading:
    reason = "ends the process that reads it"
    return Reading(None, 0, (Problem(file.path, 0, reason),))


@contextmanager
def without_collection() -> Iterator[None]:
    """Pause garbage collection in the block.

    Syntax trees have no cycles, and looking for cycles takes a third of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
