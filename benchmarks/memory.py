"""What a call in flight keeps in memory while it waits to be retried.

``python -m benchmarks.memory NAME`` prints the bytes for one contender, in a
process of its own so that nobody pays for another's caches. tracemalloc counts
them: it is exact to the byte and sees no noise of the allocator, as the size
of the process would. The asyncio task and its timer are part of the figure.
"""

import asyncio
import gc
import logging
import subprocess
import sys
import tracemalloc

from benchmarks.calls import Row
from benchmarks.contenders import ASLEEP, CONTENDERS, Contender

__all__ = ["CALLS", "measure"]

CALLS = 10_000
"""How many calls wait at once."""


def measure(contenders: list[Contender]) -> Row:
    """Return the row about memory, in bytes for each call in flight."""
    figures: list[float | None] = []
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
    """Return the bytes for each of many calls that wait after one failure.

    Raises:
        RuntimeError: Not every call waits.
    """
    attempts = 0

    @contender.amake(ASLEEP)
    async def fetch(_number: int) -> None:
        nonlocal attempts
        attempts += 1
        raise ConnectionError

    async def all_asleep(number: int) -> list[asyncio.Task[None]]:
        tasks = [asyncio.ensure_future(fetch(1)) for _ in range(number)]
        for _ in range(10):
            await asyncio.sleep(0)
        return tasks

    # What is made once for all calls is made by the first.
    tasks = await all_asleep(1)
    gc.collect()
    tracemalloc.start()
    tasks += await all_asleep(CALLS)
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    if attempts != len(tasks) or any(task.done() for task in tasks):
        msg = f"{contender.name} must wait in every call, {attempts} attempts made"
        raise RuntimeError(msg)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return taken / CALLS


if __name__ == "__main__":
    logging.getLogger().addHandler(logging.NullHandler())
    (chosen,) = (c for c in CONTENDERS if c.name == sys.argv[1])
    print(asyncio.run(weigh(chosen)))
