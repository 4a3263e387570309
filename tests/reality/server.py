"""A real server in a process of its own, with the settings of a simulated one."""

import asyncio
import socket
import time
from collections import Counter, deque
from multiprocessing.connection import Connection
from typing import Any

from retrykit.simulate._draws import Stream
from tests.reality.cell import Cell
from tests.reality.lag import measure_lag

__all__ = ["serve"]

REASONS = {200: "OK", 503: "Service Unavailable"}
BACKLOG = 4096


def serve(cell: Cell, parent: Connection) -> None:
    """Tell the port, learn when to begin, serve until the end, and tell the counts."""
    asyncio.run(run_server(cell, parent))


async def run_server(cell: Cell, parent: Connection) -> None:
    # It keeps the port while nobody listens: else a client may get it for itself.
    kept = bind(0)
    port = kept.getsockname()[1]
    service = Service(cell)
    listening = await listen(service, port)
    parent.send(port)
    service.zero = parent.recv()
    lags: list[float] = []
    tasks = [asyncio.ensure_future(measure_lag(lags))]
    tasks += [asyncio.ensure_future(service.work()) for _ in range(cell.server.slots)]
    outage = cell.outage
    if outage.kind == "refuse":
        await service.sleep_until(outage.begin)
        listening.close()
        await service.sleep_until(outage.begin + outage.duration)
        listening = await listen(service, port)
    await service.sleep_until(cell.end + cell.timeout + 1)
    for task in tasks:
        if task.done():
            task.result()
        task.cancel()
    listening.close()
    kept.close()
    parent.send((dict(service.counts), lags))


def bind(port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    return bound


async def listen(service: "Service", port: int) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    return await loop.create_server(
        lambda: Request(service), sock=bind(port), backlog=BACKLOG
    )


class Request(asyncio.Protocol):
    """A connection with one request."""

    transport: Any = None
    received = 0.0

    def __init__(self, service: "Service") -> None:
        self.service, self.data = service, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        if self.data.endswith(b"\r\n\r\n"):
            self.service.receive(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None

    @property
    def awaited(self) -> bool:
        """Whether the client has not closed the connection."""
        return self.transport is not None and not self.transport.is_closing()

    def answer(self, status: int, header: str = "") -> None:
        if self.awaited:
            line = f"HTTP/1.1 {status} {REASONS[status]}\r\n"
            rest = f"{header}Content-Length: 0\r\nConnection: close\r\n\r\n"
            self.transport.write(f"{line}{rest}".encode())


class Service:
    """The queue, and what works on it. All times are seconds since the beginning."""

    zero = 0.0

    def __init__(self, cell: Cell) -> None:
        self.server, self.outage = cell.server, cell.outage
        self.end = self.outage.begin + self.outage.duration
        self.pauses = self.outage.kind != "error" and self.outage.share == 1
        self.queue: deque[Request] = deque()
        self.arrived = asyncio.Event()
        self.counts: Counter[str] = Counter()
        # Those of the simulation, so that a difference is not another draw.
        self.failed = Stream(cell.seed, "failed requests")
        self.times = Stream(cell.seed, "service times")

    def now(self) -> float:
        return time.monotonic() - self.zero

    async def sleep_until(self, moment: float) -> None:
        await asyncio.sleep(moment - self.now())

    def receive(self, request: Request) -> None:
        """Queue a request, or answer it at once."""
        outage = self.outage
        request.received = now = self.now()
        self.counts["requests"] += 1
        if (
            not self.pauses
            and outage.begin <= now < self.end
            and (outage.share == 1 or self.failed.random() < outage.share)
        ):
            if outage.kind == "error":
                after = outage.retry_after
                asked = "" if after is None else f"Retry-After: {after:g}\r\n"
                request.answer(503, asked)
            # Otherwise it gets no answer.
            return
        most = self.server.most_waiting
        if most is not None and len(self.queue) >= most:
            self.counts["busy"] += 1
            request.answer(503)
            return
        self.queue.append(request)
        self.arrived.set()

    async def work(self) -> None:
        """Serve one request after another.

        It sleeps to the time at which a request ends if no timer is ever late: a late
        one costs no capacity.
        """
        queue, newest_first = self.queue, self.server.order == "newest_first"
        free = 0.0
        while True:
            while not queue:
                self.arrived.clear()
                await self.arrived.wait()
            begun = max(queue[-1 if newest_first else 0].received, free)
            if self.pauses and self.outage.begin <= begun < self.end:
                free = self.end
                await self.sleep_until(free)
                continue
            request = queue.pop() if newest_first else queue.popleft()
            if self.server.drops == "abandoned" and not request.awaited:
                self.counts["dropped"] += 1
                continue
            free = begun + self.duration(begun)
            await self.sleep_until(free)
            self.counts["served"] += 1
            request.answer(200)

    def duration(self, begun: float) -> float:
        mean = self.server.slots / self.server.capacity
        if self.server.service == "exponential":
            mean = self.times.exponential(round(mean * 1e9)) / 1e9
        ramp = self.outage.slow_start
        if self.end <= begun < self.end + ramp:
            mean *= 10 * ramp / (ramp + 9 * (begun - self.end))
        return mean
