"""Soak test for leaks in transports: ``python -m benchmarks.soak``.

Sends thousands of requests through each transport, from many threads or tasks at once,
to a server that fails every fifth of them. Then counts leaked connections, files,
threads, tasks and memory. Exits with 1 if there are any.
"""

import argparse
import asyncio
import gc
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
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

__all__ = ["EVERY", "WORKERS", "Report", "soak"]

WORKERS = 16
"""Threads or tasks that send requests, and the size of the connection pool."""

EVERY = 5
"""Each request whose number is a multiple of this one fails."""

# A request whose turn keeps coming with the faults may fail many times in a row.
_POLICY = Policy(schedule=constant(0), max_attempts=100)

_NONE = Pool(0, 0)

_FEW = 2000
"""With fewer requests, leaked memory cannot be told from caches."""


@final
@dataclass(kw_only=True)
class Report:
    """The counts of a soak test.

    Attributes:
        name: The name of the transport.
        requests: The number of requests.
        attempts: The requests that the server received.
        faults: The number of them that it failed.
        errors: Errors of requests; the test stops after the first.
        pool: The connections in the pool, after all requests.
        accepted: The connections that the server accepted.
        files: The open file descriptors before the test, after all requests, and
            after the client was closed; zeros where they cannot be counted.
        left: The threads or tasks that the client left behind.
        open: The connections that the server still sees, after that.
        forgotten: The warnings about resources that the garbage collector closed.
        growth: Blocks of memory that each request leaks, once warm.
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
        """Describe each leak or error."""
        before, _, after = self.files
        wrong = {
            f"requests failed, first with {''.join(self.errors[:1])}": self.errors,
            f"{self.attempts} attempts for {self.requests} requests with "
            f"{self.faults} faults": not self.errors
            and self.attempts != self.requests + self.faults,
            f"{self.pool.busy} connections are busy, with no request using them": (
                self.pool.busy
            ),
            f"{sum(self.pool)} connections in a pool of {WORKERS}": (
                sum(self.pool) > WORKERS
            ),
            f"{self.accepted} connections were made, more than {WORKERS} and one for "
            "each fault": self.accepted > WORKERS + self.faults,
            f"{after - before} file descriptors are left open": after > before,
            f"{self.left} threads or tasks are left": self.left,
            f"the server still sees {self.open} connections": self.open,
            f"the garbage collector closed {len(self.forgotten)}, first "
            f"{''.join(self.forgotten[:1])}": self.forgotten,
            f"each request leaks {self.growth:.2f} blocks of memory": (
                self.requests >= _FEW and self.growth > 1 / 2
            ),
        }
        return (description for description, holds in wrong.items() if holds)


def soak(
    transport: Transport, server: Faulty, requests: int, within: float = 30.0
) -> Report:
    """Send requests through a transport, and count leaks.

    Args:
        transport: The transport to test.
        server: A server that fails some requests.
        requests: The number of requests. Count, >= 5.
        within: How long threads, tasks, files and connections may take to end, in
            seconds.
    """
    report = Report(name=transport.name, requests=requests)
    start = server.counts()
    threads = threading.active_count()
    files = _files()
    report.files.append(files)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        if transport.open is not None:
            with transport.open(_POLICY, WORKERS, server.url) as client:
                _run_threads(report, client)
            left = _wait_until_at_most(threads, threading.active_count, within)
            report.left = max(0, left - threads)
        else:
            asyncio.run(_run_tasks(report, transport, server.url, within))
        report.files.append(_wait_until_at_most(files, _files, within))
        end = server.settled(within)
        gc.collect()
    report.forgotten = [str(each.message) for each in warned]
    report.attempts = end.requests - start.requests
    report.faults = end.faults - start.faults
    report.accepted = end.accepted - start.accepted
    report.open = end.open - start.open
    return report


def _run_threads(report: Report, client: Client) -> None:
    def work(turns: Iterator[None]) -> None:
        for _ in turns:
            if report.errors:
                return
            try:
                _check(client.get())
            except Exception as error:  # noqa: BLE001  reported below
                report.errors.append(repr(error))

    blocks = []
    for turns in _stages(report.requests):
        with ThreadPoolExecutor(WORKERS) as workers:
            list(workers.map(work, repeat(turns, WORKERS)))
        blocks.append(_blocks())
    _count_at_rest(report, client, blocks)


async def _run_tasks(
    report: Report, transport: Transport, url: str, within: float
) -> None:
    async def work(client: Client, turns: Iterator[None]) -> None:
        for _ in turns:
            if report.errors:
                return
            try:
                _check(await client.get())
            except Exception as error:  # noqa: BLE001  reported below
                report.errors.append(repr(error))

    assert transport.aopen is not None  # noqa: S101  it has one of the two
    blocks = []
    async with transport.aopen(_POLICY, WORKERS, url) as client:
        for turns in _stages(report.requests):
            await asyncio.gather(*(work(client, turns) for _ in range(WORKERS)))
            blocks.append(_blocks())
        _count_at_rest(report, client, blocks)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=within)
    report.left = len(asyncio.all_tasks()) - 1


def _stages(requests: int) -> Iterator[Iterator[None]]:
    """Yield turns for a fifth of the requests, as a warm-up, and for the rest."""
    warm = requests // 5
    yield repeat(None, warm)
    yield repeat(None, requests - warm)


def _check(status: int) -> None:
    if status != 200:  # noqa: PLR2004  OK
        msg = f"status {status}"
        raise RuntimeError(msg)


def _count_at_rest(report: Report, client: Client, blocks: list[int]) -> None:
    report.pool = client.pool()
    report.files.append(_files())
    warm, done = blocks
    report.growth = (done - warm) / (report.requests - report.requests // 5)


def _blocks() -> int:
    gc.collect()
    return sys.getallocatedblocks()


_OPEN = Path("/dev/fd")


def _files() -> int:
    # Includes the folder itself, in every count.
    return sum(1 for _ in _OPEN.iterdir()) if _OPEN.is_dir() else 0


def _wait_until_at_most(most: int, count: Callable[[], int], within: float) -> int:
    """Count until there are no more than *most*, or until a timeout."""
    # A client may close files in a thread that ends after its close(), as gRPC does.
    end = time.monotonic() + within
    while (now := count()) > most and time.monotonic() < end:
        time.sleep(0.01)
    return now


_HEADS = "transport", "requests", "attempts", "faults", "errors", "connections made"
_MORE = "idle / busy / limit", "files before / open / after", "threads or tasks left"
_LAST = "open at the server", "closed by the collector", "blocks a request"


def _row(report: Report) -> list[str]:
    numbers = (
        report.requests,
        report.attempts,
        report.faults,
        len(report.errors),
        report.accepted,
    )
    return [
        report.name,
        *(f"{number:,}" for number in numbers),
        f"{report.pool.idle} / {report.pool.busy} / {WORKERS}",
        " / ".join(map(str, report.files)),
        *map(str, (report.left, report.open, len(report.forgotten))),
        f"{report.growth:.3f}",
    ]


def main() -> int:
    """Print a line for each transport; return 1 if any leaks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak")
    parser.add_argument("--requests", type=int, default=10_000)
    requests = parser.parse_args().requests
    reports = []
    for transport in installed():
        print(f"testing {transport.name}", file=sys.stderr)
        with Faulty(EVERY, transport.server) as server:
            reports.append(soak(transport, server, requests))
    print(markdown([*_HEADS, *_MORE, *_LAST], [_row(each) for each in reports]))
    leaks = [f"{each.name}: {leak}" for each in reports for leak in each.leaks()]
    for leak in leaks:
        print(leak, file=sys.stderr)
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main())
