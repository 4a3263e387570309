"""The rig: starts the processes of a cell, and collects what they have recorded."""

import datetime as dt
import gzip
import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from tests.reality.cell import Cell
from tests.reality.clients import call_server
from tests.reality.lag import p99
from tests.reality.server import serve

__all__ = ["Recording", "record", "recorded"]

# A busy machine may take so long to start a process, in seconds.
STARTS = 60.0
# When all have started, they begin together after so many seconds.
SOON = 0.3
SPAWN = multiprocessing.get_context("spawn")


class Recording(NamedTuple):
    """What happened in a cell. Times are nanoseconds since its beginning.

    Attributes:
        cell: What was run, as text: a recording of another one is of no use.
        date: When.
        lag: The 99th percentile of how late the timers of a process were, in seconds,
            of the process in which it is the highest.
        unexpected: Numbers of errors that no simulation has.
        served: Counts of the server.
        calls: When each began, its client, when it succeeded, when it gave up.
        attempts: When each was sent, whether it is the first one of its call, and
            whether it succeeded; None if another one did.
        refused: When attempts failed that were not sent.
    """

    cell: str
    date: str
    lag: float
    unexpected: dict[str, int]
    served: dict[str, int]
    calls: list[tuple[int, int, int | None, int | None]]
    attempts: list[tuple[int, bool, bool | None]]
    refused: list[int]

    def save(self, path: Path) -> None:
        """Write it, all or nothing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(gzip.compress(json.dumps(self).encode()))
        part.replace(path)


def recorded(cell: Cell, path: Path) -> Recording | None:
    """Return the recording of a cell, if there is one."""
    if not path.exists():
        return None
    fields = json.loads(gzip.decompress(path.read_bytes()))
    if len(fields) != len(Recording._fields) or fields[0] != repr(cell):
        return None
    return Recording(*fields)


def record(cell: Cell) -> Recording:
    """Run the processes of a cell."""
    clients: list[Connection] = []
    with ExitStack() as starts:
        server = starts.enter_context(started(serve, cell))
        port = receive(server, STARTS)
        clients.extend(
            starts.enter_context(started(call_server, cell, host))
            for host in range(cell.processes)
        )
        for each in clients:
            receive(each, STARTS)
        zero = time.monotonic() + SOON
        server.send(zero)
        for each in clients:
            each.send((port, zero))
        wait = cell.end + cell.timeout + STARTS
        told = [receive(each, wait) for each in clients]
        served, lags = receive(server, STARTS)
    unexpected: Counter[str] = Counter()
    for each in told:
        unexpected.update(each[3])
    return Recording(
        cell=repr(cell),
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        lag=max(map(p99, [lags, *(each[4] for each in told)])),
        unexpected=dict(unexpected),
        served=served,
        calls=sorted((call for each in told for call in each[0]), key=first),
        attempts=sorted((one for each in told for one in each[1]), key=first),
        refused=sorted(moment for each in told for moment in each[2]),
    )


def first(call: Any) -> Any:
    return call[:2]


@contextmanager
def started(target: Callable[..., None], *arguments: Any) -> Iterator[Connection]:
    """Start a process that has a connection, and end it."""
    own, other = SPAWN.Pipe()
    process = SPAWN.Process(target=target, args=(*arguments, other), daemon=True)
    process.start()
    other.close()
    try:
        yield own
        process.join(STARTS)
    finally:
        own.close()
        process.kill()
        process.join()


def receive(connection: Connection, seconds: float) -> Any:
    """Return what a process tells.

    Raises:
        TimeoutError: It tells nothing within so many seconds.
        EOFError: It has ended.
    """
    if not connection.poll(seconds):
        raise TimeoutError(f"no word of a process within {seconds:g} s")
    return connection.recv()
