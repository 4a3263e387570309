"""gRPC channels to measure, as the clients of `benchmarks.ways`."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, final
from urllib.parse import urlsplit

import grpc
from grpc import aio

from benchmarks.ways import NOWHERE, POLICY, Fetch, Statuses, Subject, Way
from retrykit import aretry, retry
from retrykit.integrations import grpc as retries

__all__ = ["GRPC"]

_OPTIONS = [("grpc.enable_retries", 0)]


@contextmanager
def _grpc(way: Way, url: str, _: Statuses) -> Iterator[Fetch]:
    around: list[Any] = [] if url else [_grpc_at_once()]
    if way is Way.TRANSPORT:
        around.insert(0, retries.RetryInterceptor(POLICY))
    with grpc.insecure_channel(_target(url), _OPTIONS) as bare:
        channel = grpc.intercept_channel(bare, *around) if around else bare
        one: Any = channel.unary_unary("/shop.Cart/One")

        def fetch() -> Response:
            one(b"")
            return Response()

        again = retry(retries.policy(POLICY))
        yield again(fetch) if way is Way.DECORATED else fetch


@asynccontextmanager
async def _grpc_awaited(way: Way, url: str, _: Statuses) -> AsyncIterator[Fetch]:
    around: list[Any] = [] if url else [_grpc_awaited_at_once()]
    if way is Way.TRANSPORT:
        around = [*retries.async_interceptors(POLICY), *around]
    target = _target(url)
    async with aio.insecure_channel(target, _OPTIONS, interceptors=around) as channel:
        one: Any = channel.unary_unary("/shop.Cart/One")

        async def fetch() -> Response:
            await one(b"")
            return Response()

        again = aretry(retries.policy(POLICY))
        yield again(fetch) if way is Way.DECORATED else fetch


@final
class Response:
    """The response to a gRPC call, which raises an error if it fails."""

    status = 200

    def result(self) -> bytes:
        """Return the message."""
        return b"ok"

    def done(self) -> bool:
        """Return that the response has arrived."""
        return True


def _target(url: str) -> str:
    return urlsplit(url or NOWHERE).netloc


def _grpc_at_once() -> Any:
    """Return the innermost interceptor, which answers without a server."""

    class AtOnce(grpc.UnaryUnaryClientInterceptor):
        def intercept_unary_unary(self, *_: object) -> Any:
            return Response()

    return AtOnce()


def _grpc_awaited_at_once() -> Any:
    """Return the same for async calls."""

    class AtOnce(aio.UnaryUnaryClientInterceptor):
        async def intercept_unary_unary(self, *_: object) -> Any:
            return b"ok"

    return AtOnce()


GRPC = (
    Subject(
        name="grpc",
        module="retrykit.integrations.grpc",
        transport="RetryInterceptor",
        open=_grpc,
        server="benchmarks.faulty_grpc",
    ),
    Subject(
        name="grpc, asyncio",
        module="retrykit.integrations.grpc",
        transport="async_interceptors",
        aopen=_grpc_awaited,
        server="benchmarks.faulty_grpc",
    ),
)
