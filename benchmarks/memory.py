"""Memory of a call that waits for its retry.

``python -m benchmarks.memory NAME`` prints the bytes for one contender, including the
asyncio task and its timer. Each is measured in a separate process, so that none counts
the caches of another, and by tracemalloc, since the size of a process includes noise
of the allocator.
"""

import asyncio
import gc
import subprocess
import sys
import tracemalloc

from benchmarks.calls import Row
from benchmarks.contenders import ASLEEP, CONTENDERS, Contender

__all__ = ["CALLS", "measure"]

CALLS = 10_000
"""Calls that wait at the same time."""


def measure(contenders: list[Contender]) -> Row:
    """Return the row about memory, in bytes per call."""
    figures = []
    for contender in contenders:
        done = subprocess.run(  # noqa: S603  this interpreter, and this module
            [sys.executable, "-m", "benchmarks.memory", contender.name],
            check=True,
            capture_output=True,
            text=True,
        )
        figures.append(float(done.stdout))
    return Row(f"memory, each of {CALLS:,} calls waiting to retry", figures, "B")


async def weigh(contender: Contender) -> float:
    """Return the bytes per call that waits after one failure.

    Raises:
        RuntimeError: Not every call waits.
    """
    attempts = 0

    @contender.amake(ASLEEP)
    async def fetch(number: int) -> None:
        nonlocal attempts
        if number:
            attempts += 1
            raise ConnectionError

    async def all_asleep(number: int) -> list[asyncio.Task[None]]:
        tasks = [asyncio.ensure_future(fetch(1)) for _ in range(number)]
        for _ in range(10):
            await asyncio.sleep(0)
        return tasks

    # The first calls create what all calls share.
    await fetch(0)
    tasks = await all_asleep(1)
    gc.collect()
    tracemalloc.start()
    tasks += await all_asleep(CALLS)
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    if attempts != len(tasks) or any(task.done() for task in tasks):
        msg = f"{contender.name} must wait in every call, got {attempts} attempts"
        raise RuntimeError(msg)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return taken / CALLS


if __name__ == "__main__":
    (chosen,) = (c for c in CONTENDERS if c.name == sys.argv[1])
    print(asyncio.run(weigh(chosen)))
