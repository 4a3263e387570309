"""HTTP clients to measure, each bare and with retries of several kinds.

A subject opens its client in one of these ways, on a server or on a stub in the same
process, which answers with given statuses, and yields a function that sends a request.
"""

# ruff: noqa: PLC0415  a client is imported only if it is measured

import io
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, final

from benchmarks.contenders import ATTEMPTS
from retrykit import Policy, aretry, retry
from retrykit.schedules import constant

__all__ = ["NOWHERE", "POLICY", "SUBJECTS", "Fetch", "Statuses", "Subject", "Way"]

POLICY = Policy(schedule=constant(0), max_attempts=ATTEMPTS)
"""Without delays, so that the checks do not wait."""

NOWHERE = "http://127.0.0.1/"

Fetch = Callable[[], Any]
"""Fetches one response with its body; async if the client is."""

Statuses = Iterator[int]


@final
class Way(Enum):
    """How a request is retried."""

    BARE = auto()
    TRANSPORT = auto()
    DECORATED = auto()
    PEER = auto()


@final
@dataclass(frozen=True, kw_only=True)
class Subject:
    """A client.

    Attributes:
        name: Its name.
        module: The module of retrykit for it.
        transport: The class of that module that retries.
        peer: Another library that retries with it; empty if none is measured.
        needs: The module of that library.
        open: Takes a way, the URL of a server, empty for the stub, and the statuses of
            the stub.
        aopen: The same for an async client; one of the two is None.
        server: The module of the server.
    """

    name: str
    module: str
    transport: str
    peer: str = ""
    needs: str = ""
    open: Callable[[Way, str, Statuses], AbstractContextManager[Fetch]] | None = None
    aopen: Callable[[Way, str, Statuses], AbstractAsyncContextManager[Fetch]] | None = (
        None
    )
    server: str = "benchmarks.faulty"

    def title(self, way: Way) -> str:
        """Return the title of a way in the table."""
        titles = "bare", self.transport, "decorator", self.peer
        return titles[way.value - 1]


@contextmanager
def _httpx(way: Way, url: str, statuses: Statuses) -> Iterator[Fetch]:
    import httpx

    from retrykit.integrations import httpx as retries

    inner: httpx.BaseTransport
    inner = httpx.HTTPTransport() if url else _httpx_at_once(statuses)
    if way is Way.TRANSPORT:
        inner = retries.RetryTransport(POLICY, inner)
    elif way is Way.PEER:
        import httpx_retries

        inner = httpx_retries.RetryTransport(inner, httpx_retries.Retry(ATTEMPTS - 1))
    with httpx.Client(transport=inner) as client:

        def fetch() -> httpx.Response:
            return client.get(url or NOWHERE)

        around = retry(retries.policy(POLICY))
        yield around(fetch) if way is Way.DECORATED else fetch


@asynccontextmanager
async def _httpx_awaited(
    way: Way, url: str, statuses: Statuses
) -> AsyncIterator[Fetch]:
    import httpx

    from retrykit.integrations import httpx as retries

    inner: httpx.AsyncBaseTransport
    inner = httpx.AsyncHTTPTransport() if url else _httpx_at_once(statuses)
    if way is Way.TRANSPORT:
        inner = retries.AsyncRetryTransport(POLICY, inner)
    elif way is Way.PEER:
        import httpx_retries

        inner = httpx_retries.RetryTransport(inner, httpx_retries.Retry(ATTEMPTS - 1))
    async with httpx.AsyncClient(transport=inner) as client:

        async def fetch() -> httpx.Response:
            return await client.get(url or NOWHERE)

        around = aretry(retries.policy(POLICY))
        yield around(fetch) if way is Way.DECORATED else fetch


def _httpx_at_once(statuses: Statuses) -> Any:
    import httpx

    return httpx.MockTransport(lambda _: httpx.Response(next(statuses), content=b"ok"))


@contextmanager
def _requests(way: Way, url: str, statuses: Statuses) -> Iterator[Fetch]:
    import requests
    from requests.adapters import HTTPAdapter

    from retrykit.integrations import requests as retries

    inner = HTTPAdapter(max_retries=_peer() if way is Way.PEER else 0)
    if not url:
        inner.poolmanager.pool_classes_by_scheme = {"http": _urllib3_at_once(statuses)}
    adapter = retries.RetryAdapter(POLICY, inner) if way is Way.TRANSPORT else inner
    with requests.Session() as session:
        session.mount("http://", adapter)

        def fetch() -> requests.Response:
            return session.get(url or NOWHERE)

        around = retry(retries.policy(POLICY))
        yield around(fetch) if way is Way.DECORATED else fetch


@contextmanager
def _urllib3(way: Way, url: str, statuses: Statuses) -> Iterator[Fetch]:
    import urllib3

    from retrykit.integrations import urllib3 as retries

    pools = urllib3.PoolManager(retries=_peer() if way is Way.PEER else False)
    if not url:
        pools.pool_classes_by_scheme = {"http": _urllib3_at_once(statuses)}
    if way is Way.TRANSPORT:
        pools = retries.RetryPoolManager(POLICY, pools)
    with pools:

        def fetch() -> urllib3.BaseHTTPResponse:
            return pools.request("GET", url or NOWHERE)

        around = retry(retries.policy(POLICY))
        yield around(fetch) if way is Way.DECORATED else fetch


def _peer() -> Any:
    import urllib3

    return urllib3.Retry(ATTEMPTS - 1, status_forcelist=[429, 503])


def _urllib3_at_once(statuses: Statuses) -> Any:
    """Return a class of pools whose connections answer at once."""
    import urllib3
    from urllib3.connection import HTTPConnection

    class Connection(HTTPConnection):
        def request(self, *_: Any, **__: Any) -> None:
            """Send nothing."""

        def getresponse(self) -> Any:
            return urllib3.HTTPResponse(
                io.BytesIO(b"ok"),
                {"Content-Length": "2"},
                next(statuses),
                preload_content=False,
            )

    class Pool(urllib3.HTTPConnectionPool):
        ConnectionCls: Any = Connection

    return Pool


@asynccontextmanager
async def _aiohttp(way: Way, url: str, statuses: Statuses) -> AsyncIterator[Fetch]:
    import aiohttp

    from retrykit.integrations import aiohttp as retries

    middlewares: list[Any] = [] if url else [_aiohttp_at_once(statuses)]
    if way is Way.TRANSPORT:
        middlewares.insert(0, retries.RetryMiddleware(POLICY))
    async with aiohttp.ClientSession(middlewares=middlewares) as session:
        client: Any = session
        if way is Way.PEER:
            import aiohttp_retry

            options = aiohttp_retry.ExponentialRetry(
                ATTEMPTS, start_timeout=0, statuses={429}
            )
            client = aiohttp_retry.RetryClient(session, retry_options=options)

        async def fetch() -> Any:
            async with client.get(url or NOWHERE) as response:
                await response.read()
                return response

        around = aretry(retries.policy(POLICY))
        yield around(fetch) if way is Way.DECORATED else fetch


def _aiohttp_at_once(statuses: Statuses) -> Any:
    """Return the innermost middleware, which answers without a server."""
    import aiohttp

    class Response(aiohttp.ClientResponse):
        headers: Any = ()

        def __init__(self) -> None:
            # Other attributes have defaults on the class.
            self.status = next(statuses)
            self.method, self._raw_cookie_headers = "GET", ()

        async def read(self) -> bytes:
            return b"ok"

    async def answer(_request: object, _handler: object) -> Response:
        return Response()

    return answer


SUBJECTS = (
    Subject(
        name="httpx",
        module="retrykit.integrations.httpx",
        transport="RetryTransport",
        peer="httpx-retries",
        needs="httpx_retries",
        open=_httpx,
    ),
    Subject(
        name="httpx, asyncio",
        module="retrykit.integrations.httpx",
        transport="AsyncRetryTransport",
        peer="httpx-retries",
        needs="httpx_retries",
        aopen=_httpx_awaited,
    ),
    Subject(
        name="requests",
        module="retrykit.integrations.requests",
        transport="RetryAdapter",
        peer="urllib3's Retry",
        needs="urllib3",
        open=_requests,
    ),
    Subject(
        name="urllib3",
        module="retrykit.integrations.urllib3",
        transport="RetryPoolManager",
        peer="urllib3's Retry",
        needs="urllib3",
        open=_urllib3,
    ),
    Subject(
        name="aiohttp",
        module="retrykit.integrations.aiohttp",
        transport="RetryMiddleware",
        peer="aiohttp-retry",
        needs="aiohttp_retry",
        aopen=_aiohttp,
    ),
)
