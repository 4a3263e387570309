"""Real clients in a process of their own, whose calls have their policies."""

import asyncio
import gc
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from multiprocessing.connection import Connection
from typing import Any

from retrykit import Policy, aretry, state_of
from retrykit.schedules._randomness import SHARED_CALLS
from retrykit.simulate import ServiceUnavailable
from retrykit.simulate._draws import Stream
from tests.reality.cell import Cell
from tests.reality.lag import measure_lag
from tests.reality.policies import build_policy

__all__ = ["call_server"]

REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
EXPECTED = (TimeoutError, ConnectionRefusedError, ServiceUnavailable)


def call_server(cell: Cell, host: int, parent: Connection) -> None:
    """Learn the port and when to begin, make calls, and tell what happened.

    Args:
        cell: What to run.
        host: The number of this process: it has the clients whose numbers leave it as
            the remainder.
        parent: Who is told.
    """
    logging.getLogger("retrykit").setLevel(logging.CRITICAL)
    parent.send(None)
    port, zero = parent.recv()
    found = asyncio.run(Clients(cell, host, port, zero).run())
    parent.send(found)


class Answer(asyncio.Protocol):
    """One request, and the head of its answer."""

    def __init__(self) -> None:
        self.data, self.head = b"", asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        self.data += data
        if self.data.endswith(b"\r\n\r\n") and not self.head.done():
            self.head.set_result(self.data.decode())

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.head.done():
            self.head.set_result("")


class Call:
    """A call, and the connections of its client, if there are not enough for all."""

    def __init__(self, connections: AbstractAsyncContextManager[Any]) -> None:
        self.connections, self.attempts = connections, 0


class Clients:
    """The clients of one process.

    Args:
        cell: What to run.
        host: The number of the process.
        port: Of the server.
        zero: The beginning, on the monotonic clock in seconds.
    """

    def __init__(self, cell: Cell, host: int, port: int, zero: float) -> None:
        self.cell, self.port, self.zero = cell, port, round(zero * 1e9)
        self.due = [
            (number, due, client)
            for number, (due, client) in enumerate(cell.arrivals())
            if client % cell.processes == host
        ]
        self.once: Callable[[Call], Awaitable[None]] = self.attempt
        if cell.sdk:
            self.once = with_own_retries(build_policy(cell.sdk), self.once)
        self.policies = {
            client: build_policy(name)
            for client, name in enumerate(cell.fleet)
            if client % cell.processes == host
        }
        few = cell.connections
        self.connections: dict[int, AbstractAsyncContextManager[Any]] = {
            client: asyncio.Semaphore(few) if few else nullcontext()
            for client in self.policies
        }
        self.first_seed = Stream(cell.seed, "delays").below(2**46) * SHARED_CALLS
        # When it began, its client, and when it succeeded or gave up: nanoseconds.
        self.calls: list[list[Any]] = []
        # When it was sent, whether it is the first one of its call, and whether it
        # succeeded: None if another one did.
        self.attempts: list[tuple[int, bool, bool | None]] = []
        # When attempts failed that were not sent.
        self.refused: list[int] = []
        self.unexpected: Counter[str] = Counter()

    def now(self) -> int:
        return time.monotonic_ns() - self.zero

    async def run(self) -> Any:
        """Make the calls when they are due, whatever has become of the earlier ones."""
        gc.freeze()
        lags: list[float] = []
        running = {asyncio.ensure_future(measure_lag(lags))}
        for number, due, client in self.due:
            await asyncio.sleep(max(due - self.now() / 1e9, 0))
            task = asyncio.ensure_future(self.call(number, client))
            running.add(task)
            task.add_done_callback(running.discard)
        # Of the attempts that count, the last one ends then.
        await asyncio.sleep(self.cell.end + self.cell.timeout + 1 - self.now() / 1e9)
        for task in running:
            task.cancel()
        # What they do at their end is not told.
        told = [*self.calls], [*self.attempts], [*self.refused]
        await asyncio.gather(*running, return_exceptions=True)
        return *told, dict(self.unexpected), lags

    async def call(self, number: int, client: int) -> None:
        # Its delays are those of the simulated call.
        policy = self.policies[client].replace(seed=self.first_seed + number)
        fetch, begun = aretry(policy)(self.once), self.now()
        told = [begun, client, None, None]
        self.calls.append(told)
        try:
            await fetch(Call(self.connections[client]))
        except Exception as error:  # noqa: BLE001  counted where it is raised
            told[2:] = None, self.now()
            state = state_of(error)
            if state is not None and state.stop_reason == "refused":
                self.refused.append(self.now())
            else:
                self.expect(error)
        else:
            told[2:] = self.now(), None

    async def attempt(self, call: Call) -> None:
        """Send a request on a connection of its own, and count it."""
        sent, first = None, False
        succeeded: bool | None = False
        try:
            async with asyncio.timeout(self.cell.timeout), call.connections:
                call.attempts += 1
                sent, first = self.now(), call.attempts == 1
                head = await self.exchange()
            check(head)
            succeeded = True
        except asyncio.CancelledError:
            succeeded = None
            raise
        except Exception as error:
            self.expect(error)
            raise
        finally:
            if sent is not None:
                self.attempts.append((sent, first, succeeded))
            elif succeeded is not None:
                self.refused.append(self.now())

    def expect(self, error: Exception) -> None:
        """Count an error that no simulation has."""
        if not isinstance(error, EXPECTED):
            self.unexpected[type(error).__name__] += 1

    async def exchange(self) -> str:
        """Return the head of the answer."""
        loop = asyncio.get_running_loop()
        made = await loop.create_connection(Answer, "127.0.0.1", self.port)
        transport, answer = made
        try:
            return await answer.head
        finally:
            transport.close()


def check(head: str) -> None:
    """Raise the error that the head of an answer stands for."""
    if not head:
        raise ConnectionResetError("no answer")
    if not head.startswith("HTTP/1.1 200 "):
        _, _, after = head.partition("Retry-After: ")
        raise ServiceUnavailable(float(after.split()[0]) if after else None)


def with_own_retries(
    policy: Policy, once: Callable[[Call], Awaitable[None]]
) -> Callable[[Call], Awaitable[None]]:
    """Return what an SDK does that retries by itself."""

    async def fetch(call: Call) -> None:
        for delay in policy.schedule.draw():
            try:
                return await once(call)
            except Exception:  # noqa: BLE001  whatever it is
                await asyncio.sleep(delay)
        return await once(call)

    return fetch
