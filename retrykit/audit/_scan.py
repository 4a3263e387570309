"""Reading of many files, in several processes."""

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from retrykit.audit._files import SourceFile
from retrykit.audit._findings import Problem
from retrykit.audit._reading import Reading, read_file

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

__all__ = ["Progress", "scan"]

Progress = Callable[[int, int], object]
"""Is told how many files have been read, and how many there are."""

Read = Callable[[SourceFile], Reading]

_FEW: Final = 300
"""Files for which processes are not worth their start."""
_CHUNK: Final = 40
"""Files that a process reads at a time."""


def _say_nothing(_done: int, _all: int) -> None:
    return


def scan(
    files: Sequence[SourceFile],
    processes: int = 1,
    progress: Progress = _say_nothing,
    read: Read = read_file,
) -> list[Reading]:
    """Return what files contain, in their order.

    Args:
        files: The files.
        processes: How many processes read. Count, >= 1. A few files are read by this
            one; so are all where there are no other processes, such as in a browser.
        progress: Called in this thread after each part.
        read: Reads a file, and raises nothing.
    """
    found: list[Reading] = []
    if processes > 1 and len(files) >= _FEW and sys.platform != "emscripten":
        try:
            for each in _read_parallel(files, processes, read):
                found += each
                progress(len(found), len(files))
        except (ImportError, NotImplementedError, OSError):
            # Some platforms have no semaphores or no processes.
            pass
        else:
            return found
    for file in files[len(found) :]:
        found.append(read(file))
        if len(found) % _CHUNK == 0 or len(found) == len(files):
            progress(len(found), len(files))
    return found


def _read_parallel(
    files: Sequence[SourceFile], processes: int, read: Read
) -> Iterator[list[Reading]]:
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415  late

    chunks = [files[each : each + _CHUNK] for each in range(0, len(files), _CHUNK)]
    while chunks:
        pool = _start(processes)
        try:
            futures = [pool.submit(_read_chunk, chunk, read) for chunk in chunks]
            for future in futures:
                yield future.result()
                chunks.pop(0)
        except BrokenProcessPool:
            yield [*_read_apart(chunks.pop(0), read)]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _read_apart(files: Sequence[SourceFile], read: Read) -> Iterator[Reading]:
    """Read files one by one, so that one that ends its process is found."""
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415  late

    pool = _start(1)
    try:
        for file in files:
            try:
                yield from pool.submit(_read_chunk, [file], read).result()
            except BrokenProcessPool:
                reason = "ends the process that reads it"
                yield Reading(None, 0, (Problem(file.path, 0, reason),))
                pool.shutdown()
                pool = _start(1)
    finally:
        pool.shutdown()


def _start(processes: int) -> "ProcessPoolExecutor":
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415  late

    return ProcessPoolExecutor(processes, initializer=_prepare)


def _prepare() -> None:
    # Trees have no cycles: to look for some takes a third of the time.
    gc.disable()
    gc.freeze()


def _read_chunk(files: Sequence[SourceFile], read: Read) -> list[Reading]:
    """Read files, in a process of the pool."""
    found = [read(file) for file in files]
    gc.collect()
    return found
