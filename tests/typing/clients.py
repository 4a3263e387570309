# pyright: reportUnnecessaryTypeIgnoreComment=true
"""Types of the integrations of clients; checked, never run."""

from pathlib import Path
from typing import assert_type

import aiohttp
import grpc
import httpx
import httpx2
import requests
import urllib3

from retrykit import AsArgument, Policy, RetryState, retry, state_of
from retrykit.integrations import (
    aiohttp as for_aiohttp,
    grpc as for_grpc,
    httpx as for_httpx,
    httpx2 as for_httpx2,
    requests as for_requests,
    urllib3 as for_urllib3,
)
from retrykit.streams import AsyncStream, Stream

POLICY = Policy(max_attempts=4)


@retry(for_httpx.policy(POLICY, max_attempts=3))
def fetch(client: httpx.Client, url: str) -> httpx.Response:
    return client.get(url).raise_for_status()


@retry(for_aiohttp.policy())
async def fetch_awaited(session: aiohttp.ClientSession, url: str) -> bytes:
    async with session.get(url) as response:
        return await response.read()


assert_type(for_grpc.policy(name="cart"), Policy)
assert_type(for_requests.policy(None), Policy)

transport = for_httpx.RetryTransport(POLICY, methods={"GET"}, max_elapsed="1m")
client = httpx.Client(transport=transport)
assert_type(fetch(client, "/"), httpx.Response)
assert_type(state_of(client.get("/")), RetryState | None)
fetch(client)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

httpx.AsyncClient(transport=for_httpx.AsyncRetryTransport(attempt_timeout=5))
httpx2.Client(transport=for_httpx2.RetryTransport(POLICY, httpx2.HTTPTransport()))
httpx2.AsyncClient(transport=for_httpx2.AsyncRetryTransport(max_attempts=3))
for_httpx2.RetryTransport(transport=httpx.HTTPTransport())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
httpx.Client(transport=for_httpx.AsyncRetryTransport())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
for_httpx.RetryTransport(max_retries=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

session = requests.Session()
session.mount("https://", for_requests.RetryAdapter(attempt_timeout=AsArgument(5)))
proxied = urllib3.ProxyManager("http://127.0.0.1:1")
pool = for_urllib3.RetryPoolManager(POLICY, proxied, methods=None, max_attempts=3)
assert_type(pool.request("GET", "/", policy=POLICY), urllib3.BaseHTTPResponse)
for_aiohttp.RetryMiddleware("polite")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


assert_type(for_httpx.download(client, "/"), Stream[bytes, None, None])
assert_type(for_httpx.download_to(client, "/", "file"), int)
assert_type(for_requests.download(session, "/"), Stream[bytes, None, None])
assert_type(for_requests.download_to(session, "/", Path("file")), int)
for event in for_requests.events(session, "/", last_event_id="1", headers={}):
    assert_type(event, for_requests.ServerSentEvent)
    assert_type(event.retry, int | None)
for_aiohttp.download(session, "/")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def stream(client: httpx2.AsyncClient, session: aiohttp.ClientSession) -> None:
    async with for_httpx2.download(client, "/", policy=POLICY) as chunks:
        assert_type(chunks, AsyncStream[bytes, None])
    assert_type(await for_httpx2.download_to(client, "/", "file"), int)
    assert_type(await for_aiohttp.download_to(session, "/", "file"), int)
    async for event in for_aiohttp.events(session, "/"):
        assert_type(event.data, str)
    async for price in for_httpx2.events(client, "/"):
        assert_type(price.id, str)


async def main() -> None:
    again = for_aiohttp.RetryMiddleware(POLICY, methods=None)
    async with aiohttp.ClientSession(middlewares=[again]) as session:
        assert_type(await fetch_awaited(session, "/"), bytes)


channel = grpc.intercept_channel(
    grpc.insecure_channel("127.0.0.1:1"),
    for_grpc.RetryInterceptor(POLICY, methods=["shop.Cart/List"]),
)
grpc.aio.insecure_channel("127.0.0.1:1", interceptors=for_grpc.async_interceptors())
