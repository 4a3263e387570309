"""The transports that are put to the soak: one small entry for each.

An entry opens a client with a transport on a pool of a given size, and tells how
many of the connections in that pool are at rest, and how many are in use.
"""

# ruff: noqa: PLC0415  a client is imported only where it is asked for

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, final

from benchmarks.contenders import importable
from retrykit import Policy

__all__ = ["TRANSPORTS", "Client", "Pool", "Transport", "in_pool", "installed"]

PATIENCE = 5.0
"""How long a client waits for a connection or an answer, in seconds."""


@final
class Pool(NamedTuple):
    """The connections that a client has.

    Attributes:
        idle: How many are at rest.
        busy: How many are in use.
    """

    idle: int
    busy: int


@final
class Client(NamedTuple):
    """An open client.

    Attributes:
        get: Makes a request, reads the body too, and returns the status; awaited,
            if its transport is.
        pool: Returns what is in its pool.
    """

    get: Callable[[], Any]
    pool: Callable[[], Pool]


_Opened = TypeVar("_Opened")
_Open = Callable[[Policy, int, str], _Opened]


@final
@dataclass(frozen=True, kw_only=True)
class Transport:
    """One transport that retries.

    Attributes:
        name: What it is called.
        module: What its users import.
        open: Takes a policy, the size of the pool and the URL of a server, and opens a
            client.
        aopen: The same for a client of asyncio; one of the two is None.
        server: The module of the server that it is soaked with.
    """

    name: str
    module: str
    open: _Open[AbstractContextManager[Client]] | None = None
    aopen: _Open[AbstractAsyncContextManager[Client]] | None = None
    server: str = "benchmarks.faulty"


@contextmanager
def _httpx(policy: Policy, limit: int, url: str) -> Iterator[Client]:
    import httpx

    from retrykit.integrations.httpx import RetryTransport

    inner = httpx.HTTPTransport(limits=httpx.Limits(max_connections=limit))
    transport = RetryTransport(policy, inner)
    with httpx.Client(transport=transport, timeout=PATIENCE) as client:
        yield Client(lambda: client.get(url).status_code, lambda: in_pool(inner))


@asynccontextmanager
async def _httpx_awaited(policy: Policy, limit: int, url: str) -> AsyncIterator[Client]:
    import httpx

    from retrykit.integrations.httpx import AsyncRetryTransport

    inner = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=limit))
    transport = AsyncRetryTransport(policy, inner)
    async with httpx.AsyncClient(transport=transport, timeout=PATIENCE) as client:

        async def get() -> int:
            return (await client.get(url)).status_code

        yield Client(get, lambda: in_pool(inner))


def in_pool(inner: Any) -> Pool:
    """Return what is in the pool of a transport of httpx."""
    idle = [line.is_idle() for line in inner._pool.connections]  # noqa: SLF001  no other way
    return Pool(sum(idle), len(idle) - sum(idle))


TRANSPORTS = (
    Transport(name="httpx", module="retrykit.integrations.httpx", open=_httpx),
    Transport(
        name="httpx, asyncio",
        module="retrykit.integrations.httpx",
        aopen=_httpx_awaited,
    ),
)


def installed() -> list[Transport]:
    """Return the transports whose clients can be imported here."""
    return [each for each in TRANSPORTS if importable(each.module)]
