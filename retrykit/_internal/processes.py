"""Parallel work: one function called for many items, in one process or several."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

__all__ = ["Progress", "Work", "count_processors"]

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

Progress = Callable[[int, int], object]
"""Takes the number of items that are done, and the number of all items."""


def count_processors() -> int:
    """Return the number of processors that this process may use."""
    # Not all platforms tell which ones.
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


class Work(Generic[ItemT, ResultT]):
    """A function to be called for many items, in this process or in several.

    Args:
        function: Raises nothing, and can be pickled, as can its items and results.
        failed: Returns the result for an item that ends the process.
        chunk: How many items a process is given at a time.
        few: With fewer items than this, no processes are started.
        prepare: Called at the start of each process.
    """

    def __init__(
        self,
        function: Callable[[ItemT], ResultT],
        failed: Callable[[ItemT], ResultT],
        *,
        chunk: int,
        few: int,
        prepare: Callable[[], object] | None = None,
    ) -> None:
        self._function, self._failed = function, failed
        self._chunk, self._few, self._prepare = chunk, few, prepare

    def map(
        self, items: Sequence[ItemT], processes: int, progress: Progress
    ) -> list[ResultT]:
        """Return the results for some items, in their order.

        Args:
            items: The items.
            processes: How many processes work. Count, >= 1. Where no others can be
                started, such as in a browser, this one does all the work.
            progress: Called in this thread after each part, with the number of items
                that are done, and the number of all items.
        """
        found: list[ResultT] = []
        many = processes > 1 and len(items) >= self._few
        if many and sys.platform != "emscripten":
            try:
                for part in self._in_parallel(items, processes):
                    found += part
                    progress(len(found), len(items))
            except (ImportError, NotImplementedError, OSError):
                # Some platforms have no semaphores or no processes.
                pass
            else:
                return found
        for start in range(len(found), len(items), self._chunk):
            found += _call(self._function, items[start : start + self._chunk])
            progress(len(found), len(items))
        return found

    def _in_parallel(
        self, items: Sequence[ItemT], processes: int
    ) -> Iterator[list[ResultT]]:
        from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415  late

        starts = range(0, len(items), self._chunk)
        chunks = [items[each : each + self._chunk] for each in starts]
        while chunks:
            pool = self._start(processes)
            try:
                futures = [pool.submit(_call, self._function, x) for x in chunks]
                for future in futures:
                    yield future.result()
                    chunks.pop(0)
            except BrokenProcessPool:
                yield [*self._one_by_one(chunks.pop(0))]
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _one_by_one(self, items: Sequence[ItemT]) -> Iterator[ResultT]:
        """Yield the results of a part in which an item may have crashed its process."""
        from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415  late

        pool = self._start(1)
        try:
            for item in items:
                try:
                    yield from pool.submit(_call, self._function, [item]).result()
                except BrokenProcessPool:
                    yield self._failed(item)
                    pool.shutdown()
                    pool = self._start(1)
        finally:
            pool.shutdown()

    def _start(self, processes: int) -> "ProcessPoolExecutor":
        from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415  late

        return ProcessPoolExecutor(processes, initializer=self._prepare)


def _call(
    function: Callable[[ItemT], ResultT], items: Sequence[ItemT]
) -> list[ResultT]:
    return [function(item) for item in items]
