"""Whether a transport leaks: ``python -m benchmarks.soak``.

Thousands of requests go through each transport, from many threads or tasks at
once, to a server that fails every fifth of them. Then everything is counted that
could be left over. What is left over is said, and makes the exit code 1.
"""

import argparse
import asyncio
import gc
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import final

from benchmarks.faulty import Faulty
from benchmarks.table import markdown
from benchmarks.transports import Client, Pool, Transport, installed
from retrykit import Policy
from retrykit.schedules import constant

__all__ = ["EVERY", "WORKERS", "Soaked", "soak"]

WORKERS = 16
"""How many threads or tasks send requests, and how many connections there may be."""

EVERY = 5
"""Each request of that number fails."""

_POLICY = Policy(schedule=constant(0), max_attempts=12, max_elapsed=None)

_NONE = Pool(0, 0)

_FEW = 2000
"""So many requests at least, before what grows is told from what is cached."""


@final
@dataclass(kw_only=True)
class Soaked:
    """What came of a soak, and what was left over.

    Attributes:
        name: Of the transport.
        requests: How many were asked for.
        attempts: How many requests the server saw.
        faults: How many of them it failed.
        errors: What came out instead of an answer; a transport is left alone
            after the first.
        pool: The connections in the pool, when all is done.
        accepted: How many connections were made.
        files: The open file descriptors before, at rest, and after the client was
            closed; zeros where they cannot be counted.
        left: The threads or tasks that the client left behind.
        open: The connections that the server still sees, after that.
        forgotten: What the collector had to close, as Python warns.
        growth: Blocks of memory that each request leaves behind, once warm.
    """

    name: str
    requests: int
    attempts: int = 0
    faults: int = 0
    errors: list[str] = field(default_factory=list)
    pool: Pool = _NONE
    accepted: int = 0
    files: list[int] = field(default_factory=list)
    left: int = 0
    open: int = 0
    forgotten: list[str] = field(default_factory=list)
    growth: float = 0.0

    def leaks(self) -> Iterator[str]:
        """Yield what is wrong, in words; nothing if all is well."""
        before, _, after = self.files
        wrong = {
            f"errors came out, first {''.join(self.errors[:1])}": self.errors,
            f"{self.attempts} attempts for {self.requests} requests with "
            f"{self.faults} faults": not self.errors
            and self.attempts != self.requests + self.faults,
            f"{self.pool.busy} connections are in use, with nobody using them": (
                self.pool.busy
            ),
            f"{sum(self.pool)} connections in a pool of {WORKERS}": (
                sum(self.pool) > WORKERS
            ),
            f"{self.accepted} connections were made, more than {WORKERS} and one "
            "after each fault": self.accepted > WORKERS + self.faults,
            f"{after - before} file descriptors are left open": after > before,
            f"{self.left} threads or tasks are left": self.left,
            f"the server still sees {self.open} connections": self.open,
            f"the collector closed {len(self.forgotten)}, first "
            f"{''.join(self.forgotten[:1])}": self.forgotten,
            f"each request leaves {self.growth:.2f} blocks of memory": (
                self.requests >= _FEW and self.growth > 1 / 2
            ),
        }
        return (told for told, holds in wrong.items() if holds)


def soak(
    transport: Transport, server: Faulty, requests: int, within: float = 2.0
) -> Soaked:
    """Send requests through a transport, and count what is left over.

    Args:
        transport: What is soaked.
        server: Fails some of them, and tells what it sees.
        requests: How many. Count, >= 5.
        within: How long files and connections may need to be closed, in seconds.
    """
    came = Soaked(name=transport.name, requests=requests)
    start = server.counts()
    threads = threading.active_count()
    came.files.append(_files())
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        if transport.open is not None:
            with transport.open(_POLICY, WORKERS, server.url) as client:
                _threads(came, client)
            came.left = max(0, threading.active_count() - threads)
        else:
            asyncio.run(_tasks(came, transport, server.url))
        came.files.append(_closed(came.files[0], within))
        end = server.settled(within)
        gc.collect()
    came.forgotten = [str(each.message) for each in warned]
    came.attempts = end.requests - start.requests
    came.faults = end.faults - start.faults
    came.accepted = end.accepted - start.accepted
    came.open = end.open - start.open
    return came


def _threads(came: Soaked, client: Client) -> None:
    def work(turns: Iterator[None]) -> None:
        for _ in turns:
            if came.errors:
                return
            try:
                _check(client.get())
            except Exception as error:  # noqa: BLE001  all that comes out is told
                came.errors.append(repr(error))

    blocks = []
    for turns in _stages(came.requests):
        with ThreadPoolExecutor(WORKERS) as workers:
            list(workers.map(work, repeat(turns, WORKERS)))
        blocks.append(_blocks())
    _rest(came, client, blocks)


async def _tasks(came: Soaked, transport: Transport, url: str) -> None:
    async def work(client: Client, turns: Iterator[None]) -> None:
        for _ in turns:
            if came.errors:
                return
            try:
                _check(await client.get())
            except Exception as error:  # noqa: BLE001  all that comes out is told
                came.errors.append(repr(error))

    assert transport.aopen is not None  # noqa: S101  it has one of the two
    blocks = []
    async with transport.aopen(_POLICY, WORKERS, url) as client:
        for turns in _stages(came.requests):
            await asyncio.gather(*(work(client, turns) for _ in range(WORKERS)))
            blocks.append(_blocks())
        _rest(came, client, blocks)
    came.left = len(asyncio.all_tasks()) - 1


def _stages(requests: int) -> Iterator[Iterator[None]]:
    """Yield the turns of a fifth of the requests, to get warm, and of the rest."""
    warm = requests // 5
    yield repeat(None, warm)
    yield repeat(None, requests - warm)


def _check(status: int) -> None:
    if status != 200:  # noqa: PLR2004  OK
        msg = f"status {status}"
        raise RuntimeError(msg)


def _rest(came: Soaked, client: Client, blocks: list[int]) -> None:
    came.pool = client.pool()
    came.files.append(_files())
    warm, done = blocks
    came.growth = (done - warm) / (came.requests - came.requests // 5)


def _blocks() -> int:
    gc.collect()
    return sys.getallocatedblocks()


_OPEN = Path("/dev/fd")


def _files() -> int:
    # One of them is the folder itself, each time.
    return sum(1 for _ in _OPEN.iterdir()) if _OPEN.is_dir() else 0


def _closed(before: int, within: float) -> int:
    """Return how many are open when they are no more than before, or in the end."""
    # A client may close in a thread of its own, as that of gRPC does.
    end = time.monotonic() + within
    while (now := _files()) > before and time.monotonic() < end:
        time.sleep(0.01)
    return now


_HEADS = "transport", "requests", "attempts", "faults", "errors", "connections made"
_MORE = "idle / busy / limit", "files before / open / after", "threads or tasks left"
_LAST = "open at the server", "left to the collector", "blocks a request"


def _row(came: Soaked) -> list[str]:
    numbers = came.requests, came.attempts, came.faults, len(came.errors), came.accepted
    return [
        came.name,
        *(f"{number:,}" for number in numbers),
        f"{came.pool.idle} / {came.pool.busy} / {WORKERS}",
        " / ".join(map(str, came.files)),
        *map(str, (came.left, came.open, len(came.forgotten))),
        f"{came.growth:.3f}",
    ]


def main() -> int:
    """Print a line for each transport; return 1 if one of them leaks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak")
    parser.add_argument("--requests", type=int, default=10_000)
    requests = parser.parse_args().requests
    came = []
    for transport in installed():
        print(f"soaking {transport.name}", file=sys.stderr)
        with Faulty(EVERY, transport.server) as server:
            came.append(soak(transport, server, requests))
    print(markdown([*_HEADS, *_MORE, *_LAST], [_row(each) for each in came]))
    leaks = [f"{each.name}: {told}" for each in came for told in each.leaks()]
    for told in leaks:
        print(told, file=sys.stderr)
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main())
