"""Latency of hedged requests: ``python -m benchmarks.hedging``.

A server on loopback answers after 1 to 3 ms, and 1 % of its answers take 100 ms. Each
way makes the same number of requests, some at a time, in laps that the ways take in
turns, and gets a new server in each, whose answers are the same for all. A hedge goes
out after 10 ms, except where all are sent at once. The extra load is what the server
counts besides the requests; its processor time is included.
"""

import argparse
import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from benchmarks.contenders import importable
from benchmarks.table import machine, markdown, versions
from retrykit import Hedge, aretry

REQUESTS = 10_000
LAPS = 5
AT_A_TIME = 10

USUAL_MS = (1.0, 3.0)
SLOW_MS = 100.0
SLOW_SHARE = 0.01
DELAY_MS = 10.0

Fetch = Callable[[], Awaitable[bytes]]


class Server:
    """Answers HTTP requests on a free port, sometimes late.

    Attributes:
        requests: How many requests it has received.
    """

    def __init__(self, lap: int) -> None:
        self.requests = 0
        self._rng = random.Random(lap)  # noqa: S311  the same answers each time

    async def answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer the request of a connection."""
        try:
            await reader.readuntil(b"\r\n\r\n")
            self.requests += 1
            slow = self._rng.random() < SLOW_SHARE
            usual = self._rng.uniform(*USUAL_MS)
            await asyncio.sleep((SLOW_MS if slow else usual) / 1000)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            # The client was cancelled.
            pass
        finally:
            writer.close()


async def fetch(port: int) -> bytes:
    """Make a request on a new connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        response = await reader.read()
        return response.rpartition(b"\r\n\r\n")[2]
    finally:
        writer.close()


def by_hand(fetch: Fetch) -> Fetch:
    """Hedge as one writes it with asyncio."""

    async def hedged() -> bytes:
        tasks = [asyncio.ensure_future(fetch())]
        try:
            done, _ = await asyncio.wait(tasks, timeout=DELAY_MS / 1000)
            if not done:
                tasks.append(asyncio.ensure_future(fetch()))
                first = asyncio.FIRST_COMPLETED
                done, _ = await asyncio.wait(tasks, return_when=first)
            return done.pop().result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    return hedged


def by_nopanic(fetch: Fetch) -> Fetch:
    """Hedge with nopanic."""
    decorate: Any = import_module("nopanic").hedge(delay=DELAY_MS / 1000)
    hedged: Fetch = decorate(fetch)
    return hedged


def by_backon(fetch: Fetch) -> Fetch:
    """Hedge with backon, which sends all at once."""
    backon: Any = import_module("backon")
    decorate = backon.on_hedge(backon.constant, max_hedge=2, max_tries=1)
    hedged: Fetch = decorate(fetch)
    return hedged


DELAY = f"{DELAY_MS:g}ms"

WAYS: dict[str, Callable[[Fetch], Fetch]] = {
    "no hedge": lambda fetch: fetch,
    "retrykit, Hedge(10 ms)": Hedge(DELAY, idempotent=True),
    "retrykit, Hedge(quantile=0.95)": Hedge(quantile=0.95, idempotent=True),
    "retrykit, aretry(hedge=...)": aretry(hedge=Hedge(DELAY, idempotent=True)),
    "by hand with asyncio": by_hand,
    "nopanic": by_nopanic,
    "backon": by_backon,
}


@dataclass
class Measured:
    """What was measured of a way, server included.

    Attributes:
        latencies: Of each request, in ms.
        received: How many requests the servers received.
        cpu: Processor time, in s.
    """

    latencies: list[float] = field(default_factory=list)
    received: int = 0
    cpu: float = 0.0

    def cells(self) -> list[str]:
        """Return the cells of a row of the table."""
        ordered, made = sorted(self.latencies), len(self.latencies)
        shares = (ordered[int(share * made)] for share in (0.5, 0.99, 0.999))
        extra, cpu = self.received / made - 1, self.cpu / made * 1e6
        return [*(f"{each:.1f}" for each in shares), f"{extra:.1%}", f"{cpu:.0f}"]


async def run_lap(
    lap: int, way: Callable[[Fetch], Fetch], requests: int, measured: Measured
) -> None:
    """Make requests in a way, and add what was measured."""
    server = Server(lap)
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]

    async def fetch_from_server() -> bytes:
        return await fetch(port)

    call, latencies = way(fetch_from_server), measured.latencies
    left = iter(range(requests))

    async def client() -> None:
        for _ in left:
            begun = time.perf_counter()
            if await call() != b"hello":
                msg = "the server says hello"
                raise RuntimeError(msg)
            latencies.append((time.perf_counter() - begun) * 1000)

    async with listening:
        before = time.process_time()
        async with asyncio.TaskGroup() as clients:
            for _ in range(AT_A_TIME):
                clients.create_task(client())
        measured.cpu += time.process_time() - before
        measured.received += server.requests
        # The server answers those that were cancelled.
        await asyncio.sleep(2 * SLOW_MS / 1000)


def main() -> None:
    """Print a row for each way."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hedging")
    parser.add_argument("--requests", type=int, default=REQUESTS)
    requests: int = parser.parse_args().requests
    libraries = [name for name in ("nopanic", "backon") if importable(name)]
    absent = {"nopanic", "backon"} - {*libraries}
    found = {name: Measured() for name in WAYS if name not in absent}
    for lap in range(LAPS):
        for name, measured in found.items():
            asyncio.run(run_lap(lap, WAYS[name], requests // LAPS, measured))
    rows = [[name, *measured.cells()] for name, measured in found.items()]
    heads = ["", "p50 (ms)", "p99", "p99.9", "extra load", "CPU (µs)"]
    print(markdown(heads, rows))
    print(f"\n{requests:,} requests, {AT_A_TIME} at a time. {machine()}; ", end="")
    print(f"{versions(libraries)}.")


if __name__ == "__main__":
    main()
