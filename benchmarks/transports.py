"""The transports that `benchmarks.soak` tests.

Each opens a client with a connection pool of a given size, and counts the idle and the
busy connections in it.
"""

# ruff: noqa: PLC0415  a client is imported only if it is tested

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any, NamedTuple, TypeVar, final
from urllib.parse import urlsplit

from benchmarks.contenders import importable
from retrykit import Policy

__all__ = ["TRANSPORTS", "Client", "Pool", "Transport", "in_pool", "installed"]

TIMEOUT = 60.0
"""For a connection, a response, and an idle connection, in seconds.

No fault of the server hangs, so only a machine that stalls takes long.
"""


@final
class Pool(NamedTuple):
    """The connections of a client.

    Attributes:
        idle: The number that no request uses.
        busy: The number in use.
    """

    idle: int
    busy: int


@final
class Client(NamedTuple):
    """An open client.

    Attributes:
        get: Sends a request, reads the body, and returns the status; async if the
            transport is.
        pool: Counts the connections in its pool.
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
        name: Its name.
        module: The module that users import.
        open: Takes a policy, the size of the pool and the URL of a server, and opens a
            client.
        aopen: The same for an async client; one of the two is None.
        server: The module of the server.
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

    inner = httpx.HTTPTransport(limits=_limits(limit))
    transport = RetryTransport(policy, inner)
    with httpx.Client(transport=transport, timeout=TIMEOUT) as client:
        yield Client(lambda: client.get(url).status_code, lambda: in_pool(inner))


@asynccontextmanager
async def _httpx_awaited(policy: Policy, limit: int, url: str) -> AsyncIterator[Client]:
    import httpx

    from retrykit.integrations.httpx import AsyncRetryTransport

    inner = httpx.AsyncHTTPTransport(limits=_limits(limit))
    transport = AsyncRetryTransport(policy, inner)
    async with httpx.AsyncClient(transport=transport, timeout=TIMEOUT) as client:

        async def get() -> int:
            return (await client.get(url)).status_code

        yield Client(get, lambda: in_pool(inner))


def _limits(limit: int) -> Any:
    import httpx

    return httpx.Limits(max_connections=limit, keepalive_expiry=TIMEOUT)


def in_pool(inner: Any) -> Pool:
    """Count the connections in the pool of an httpx transport."""
    idle = [each.is_idle() for each in inner._pool.connections]  # noqa: SLF001  no other way
    return Pool(sum(idle), len(idle) - sum(idle))


@contextmanager
def _requests(policy: Policy, limit: int, url: str) -> Iterator[Client]:
    import requests
    from requests.adapters import HTTPAdapter

    from retrykit.integrations.requests import RetryAdapter

    inner = HTTPAdapter(pool_maxsize=limit)
    with requests.Session() as session:
        session.mount("http://", RetryAdapter(policy, inner))

        def get() -> int:
            return session.get(url, timeout=TIMEOUT).status_code

        yield Client(get, lambda: _in_pools(inner.poolmanager))


@contextmanager
def _urllib3(policy: Policy, limit: int, url: str) -> Iterator[Client]:
    import urllib3

    from retrykit.integrations.urllib3 import RetryPoolManager

    inner = urllib3.PoolManager(maxsize=limit, timeout=TIMEOUT)
    with RetryPoolManager(policy, inner) as pools:

        def get() -> int:
            return pools.request("GET", url).status

        yield Client(get, lambda: _in_pools(pools))


def _in_pools(manager: Any) -> Pool:
    """Count the connections in the pools of a urllib3 manager."""
    idle = busy = 0
    for key in manager.pools.keys():  # noqa: SIM118  it cannot be iterated
        slots = manager.pools.get(key).pool
        # A busy connection is missing from the queue; None is a free slot.
        busy += slots.maxsize - slots.qsize()
        idle += sum(each is not None and each.sock is not None for each in slots.queue)
    return Pool(idle, busy)


@asynccontextmanager
async def _aiohttp(policy: Policy, limit: int, url: str) -> AsyncIterator[Client]:
    import aiohttp

    from retrykit.integrations.aiohttp import RetryMiddleware

    inner: Any = aiohttp.TCPConnector(limit=limit, keepalive_timeout=TIMEOUT)
    middleware, timeout = RetryMiddleware(policy), aiohttp.ClientTimeout(TIMEOUT)
    async with aiohttp.ClientSession(
        connector=inner, middlewares=[middleware], timeout=timeout
    ) as session:

        async def get() -> int:
            async with session.get(url) as response:
                await response.read()
                return response.status

        def pool() -> Pool:
            idle = sum(map(len, inner._conns.values()))  # noqa: SLF001  no other way
            return Pool(idle, len(inner._acquired))  # noqa: SLF001  as above

        yield Client(get, pool)


_GOOD = 200

_OPTIONS = [("grpc.enable_retries", 0)]

_NO_POOL = Pool(0, 0)


@contextmanager
def _grpc(policy: Policy, _limit: int, url: str) -> Iterator[Client]:
    import grpc

    from retrykit.integrations.grpc import RetryInterceptor

    with grpc.insecure_channel(urlsplit(url).netloc, _OPTIONS) as channel:
        retrying = grpc.intercept_channel(channel, RetryInterceptor(policy))
        one: Any = retrying.unary_unary("/shop.Cart/One")
        many: Any = retrying.unary_stream("/shop.Cart/Many")

        turns: Iterator[Any] = cycle(
            [lambda **given: [one(b"", **given)], partial(many, b"")]
        )

        def get() -> int:
            got = list(next(turns)(timeout=TIMEOUT))
            return _GOOD if got == [b"ok"] else 0

        yield Client(get, lambda: _NO_POOL)


@asynccontextmanager
async def _grpc_awaited(policy: Policy, _limit: int, url: str) -> AsyncIterator[Client]:
    from grpc import aio

    from retrykit.integrations.grpc import async_interceptors

    target, added = urlsplit(url).netloc, async_interceptors(policy)
    async with aio.insecure_channel(target, _OPTIONS, interceptors=added) as channel:
        one: Any = channel.unary_unary("/shop.Cart/One")
        many: Any = channel.unary_stream("/shop.Cart/Many")

        turns: Iterator[Any] = cycle([one, many])

        async def get() -> int:
            call = next(turns)(b"", timeout=TIMEOUT)
            if isinstance(call, aio.UnaryStreamCall):
                got = [message async for message in call]
            else:
                got = [await call]
            return _GOOD if got == [b"ok"] else 0

        yield Client(get, lambda: _NO_POOL)


TRANSPORTS = (
    Transport(name="httpx", module="retrykit.integrations.httpx", open=_httpx),
    Transport(
        name="httpx, asyncio",
        module="retrykit.integrations.httpx",
        aopen=_httpx_awaited,
    ),
    Transport(name="requests", module="retrykit.integrations.requests", open=_requests),
    Transport(name="urllib3", module="retrykit.integrations.urllib3", open=_urllib3),
    Transport(name="aiohttp", module="retrykit.integrations.aiohttp", aopen=_aiohttp),
    Transport(
        name="grpc",
        module="retrykit.integrations.grpc",
        open=_grpc,
        server="benchmarks.faulty_grpc",
    ),
    Transport(
        name="grpc, asyncio",
        module="retrykit.integrations.grpc",
        aopen=_grpc_awaited,
        server="benchmarks.faulty_grpc",
    ),
)


def installed() -> list[Transport]:
    """Return the transports whose clients are installed."""
    return [each for each in TRANSPORTS if importable(each.module)]
