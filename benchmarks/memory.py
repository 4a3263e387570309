"""Memory of a call that waits for its retry.

``python -m benchmarks.memory NAME STATE`` prints the bytes for one contender in a state
of the logs, including the asyncio task and its timer. Each is measured in a separate
process, so that none counts the caches of another, and by tracemalloc, since the size
of a process includes noise of the allocator.
"""

import asyncio
import gc
import random
import subprocess
import sys
import tracemalloc

from benchmarks.calls import Row
from benchmarks.contenders import ASLEEP, CONTENDERS, Contender, State, in_state

__all__ = ["CALLS", "measure"]

CALLS = 2_000
"""Calls that wait at the same time."""


def measure(contenders: list[Contender], state: State) -> Row:
    """Return the row about memory, in bytes per call.

    Args:
        contenders: The libraries to measure.
        state: The state of the logs.
    """
    figures = []
    for contender in contenders:
        done = subprocess.run(  # noqa: S603  this interpreter, and this module
            [sys.executable, "-m", "benchmarks.memory", contender.name, state],
            check=True,
            capture_output=True,
            text=True,
        )
        figures.append(float(done.stdout))
    return Row("memory of a waiting call", figures, "B")


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
    # Full jitter may draw any delay, and these are long.
    random.seed(1)
    with in_state(sys.argv[2]):
        weight = asyncio.run(weigh(chosen))
    print(weight)
