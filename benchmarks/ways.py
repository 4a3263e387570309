"""The ways to send a request that is measured: bare, and with one retry or another.

A subject is a client; it opens itself in each way, on a server or on something in
its own process that answers at once, and gives what fetches a response.
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
from enum import Enum, auto
from typing import Any, final

from benchmarks.contenders import ATTEMPTS
from retrykit import Policy, aretry, retry
from retrykit.schedules import constant

__all__ = ["SUBJECTS", "Subject", "Way"]

POLICY = Policy(schedule=constant(0), max_attempts=ATTEMPTS)
"""No delay is ever measured, as nothing fails; the proofs need not wait."""

_NOWHERE = "http://127.0.0.1/"

Fetch = Callable[[], Any]
"""Fetches one response, with its body; awaited, if the client is."""


@final
class Way(Enum):
    """What is around a request."""

    BARE = auto()
    TRANSPORT = auto()
    DECORATED = auto()
    PEER = auto()


@final
@dataclass(frozen=True, kw_only=True)
class Subject:
    """A client.

    Attributes:
        name: What it is called.
        module: The module of retrykit for it.
        transport: What that calls its transport.
        peer: What another way to retry with it is called.
        needs: What users of that one import, named as its distribution.
        open: Takes a way and a URL, which is empty where no server is asked.
        aopen: The same for a client of asyncio; one of the two is None.
    """

    name: str
    module: str
    transport: str
    peer: str
    needs: str
    open: Callable[[Way, str], AbstractContextManager[Fetch]] | None = None
    aopen: Callable[[Way, str], AbstractAsyncContextManager[Fetch]] | None = None

    def called(self, way: Way) -> str:
        """Return what a way is called in the table."""
        names = "bare", self.transport, "decorator", self.peer
        return names[way.value - 1]


@contextmanager
def _httpx(way: Way, url: str) -> Iterator[Fetch]:
    import httpx

    from retrykit.integrations import httpx as retries

    inner: httpx.BaseTransport
    inner = httpx.HTTPTransport() if url else httpx.MockTransport(_httpx_at_once)
    if way is Way.TRANSPORT:
        inner = retries.RetryTransport(POLICY, inner)
    elif way is Way.PEER:
        import httpx_retries

        inner = httpx_retries.RetryTransport(inner, httpx_retries.Retry(ATTEMPTS - 1))
    with httpx.Client(transport=inner) as client:

        def fetch() -> httpx.Response:
            return client.get(url or _NOWHERE)

        around = retry(retries.policy(POLICY))
        yield around(fetch) if way is Way.DECORATED else fetch


@asynccontextmanager
async def _httpx_awaited(way: Way, url: str) -> AsyncIterator[Fetch]:
    import httpx

    from retrykit.integrations import httpx as retries

    inner: httpx.AsyncBaseTransport
    inner = httpx.AsyncHTTPTransport() if url else httpx.MockTransport(_httpx_at_once)
    if way is Way.TRANSPORT:
        inner = retries.AsyncRetryTransport(POLICY, inner)
    elif way is Way.PEER:
        import httpx_retries

        inner = httpx_retries.RetryTransport(inner, httpx_retries.Retry(ATTEMPTS - 1))
    async with httpx.AsyncClient(transport=inner) as client:

        async def fetch() -> httpx.Response:
            return await client.get(url or _NOWHERE)

        around = aretry(retries.policy(POLICY))
        yield around(fetch) if way is Way.DECORATED else fetch


def _httpx_at_once(_request: Any) -> Any:
    import httpx

    return httpx.Response(200, content=b"ok")


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
)
