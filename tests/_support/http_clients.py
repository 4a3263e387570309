"""Every HTTP client that there is a part for, to be tried by one table.

Each fetches a URL some times, in one of two ways: through its transport, which
sends requests again, or whole, in a decorated function that reads the body too.
"""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import aiohttp
import httpx
import requests
import trio
import urllib3

from retrykit import Policy, aretry, retry, state_of
from retrykit.integrations import (
    aiohttp as for_aiohttp,
    httpx as for_httpx,
    requests as for_requests,
    urllib3 as for_urllib3,
)

__all__ = ["CLIENTS", "NO_FILES", "PATIENCE", "READS_BODIES", "WAYS", "Came"]

WAYS = ["transport", "whole"]

NO_FILES = ["httpx, asyncio", "httpx, trio"]
"""The clients that take no file: it is a stream to them, to be read once."""

READS_BODIES = ["urllib3"]
"""The clients whose transport reads the body, and so sees that it is cut short."""

PATIENCE = 0.5
"""How long a client waits for a server that hangs, in seconds."""


class Came(NamedTuple):
    """What came of a fetch: a status and a body, or an error of the client's."""

    status: int | None
    body: bytes | None
    error: Exception | None
    state: object


def blocking(own, fetch):
    """Fetch, and tell what came of it; other errors than the client's come out."""
    try:
        answer, status, body = fetch()
    except own as error:
        return Came(None, None, error, state_of(error))
    return Came(status, body, None, state_of(answer))


async def awaited(own, fetch):
    """Fetch, and tell what came of it, as `blocking` does."""
    try:
        answer, status, body = await fetch()
    except own as error:
        return Came(None, None, error, state_of(error))
    return Came(status, body, None, state_of(answer))


def httpx_in_a_thread(way, policy, times, url, method, headers, body):
    transport = for_httpx.RetryTransport(policy) if way == "transport" else None
    client = httpx.Client(transport=transport, timeout=PATIENCE, follow_redirects=True)

    def fetch():
        answer = client.request(method, url, headers=headers, content=body())
        if way == "whole":
            answer.raise_for_status()
        return answer, answer.status_code, answer.content

    whole = fetch if way == "transport" else retry(for_httpx.policy(policy))(fetch)
    with client:
        return [blocking(httpx.HTTPError, whole) for _ in range(times)]


def requests_in_a_thread(way, policy, times, url, method, headers, body):
    session = requests.Session()
    # Nothing is taken from the environment: the server is on this machine.
    session.trust_env = False
    if way == "transport":
        session.mount("http://", for_requests.RetryAdapter(policy))

    def fetch():
        answer = session.request(
            method, url, headers=headers, data=body(), timeout=PATIENCE
        )
        if way == "whole":
            answer.raise_for_status()
        return answer, answer.status_code, answer.content

    whole = fetch if way == "transport" else retry(for_requests.policy(policy))(fetch)
    with session:
        return [blocking(requests.RequestException, whole) for _ in range(times)]


def urllib3_in_a_thread(way, policy, times, url, method, headers, body):
    # urllib3 by itself would retry three times.
    pool = for_urllib3.RetryPoolManager(
        policy if way == "transport" else ONCE, urllib3.PoolManager(timeout=PATIENCE)
    )

    def fetch():
        answer = pool.request(method, url, headers=headers, body=body())
        if way == "whole" and answer.status >= 400:
            # It has no error for a status; the policy knows those that may pass.
            raise Refused(answer)
        return answer, answer.status, answer.data

    whole = fetch
    if way == "whole":
        hint = for_urllib3.policy(policy).hint
        asks = partial(Refused.asks, hint)
        ready = for_urllib3.policy(policy, on=Refused.may_pass, hint=asks)
        whole = retry(ready)(fetch)
    with pool:
        return [blocking(urllib3.exceptions.HTTPError, whole) for _ in range(times)]


ONCE = Policy(max_attempts=1)


class Refused(urllib3.exceptions.HTTPError):
    """A status that a function does not take for an answer."""

    def __init__(self, answer):
        super().__init__(answer.status)
        self.answer = answer

    @staticmethod
    def may_pass(error):
        return for_urllib3.transient(getattr(error, "answer", error))

    @staticmethod
    def asks(hint, error):
        return hint(getattr(error, "answer", error))


async def httpx_in_a_task(way, policy, times, url, method, headers, body):
    transport = for_httpx.AsyncRetryTransport(policy) if way == "transport" else None
    client = httpx.AsyncClient(
        transport=transport, timeout=PATIENCE, follow_redirects=True
    )

    async def fetch():
        content = body()
        if isinstance(content, Iterator):
            content = one_by_one(content)
        answer = await client.request(method, url, headers=headers, content=content)
        if way == "whole":
            answer.raise_for_status()
        return answer, answer.status_code, answer.content

    whole = fetch if way == "transport" else aretry(for_httpx.policy(policy))(fetch)
    async with client:
        return [await awaited(httpx.HTTPError, whole) for _ in range(times)]


async def aiohttp_in_a_task(way, policy, times, url, method, headers, body):
    again = for_aiohttp.RetryMiddleware(policy) if way == "transport" else None
    client = aiohttp.ClientSession(
        middlewares=[again] if again else [],
        timeout=aiohttp.ClientTimeout(sock_connect=PATIENCE, sock_read=PATIENCE),
    )
    if again is None:
        # It would send some requests twice by itself, before the policy may.
        client._retry_connection = False  # noqa: SLF001  there is no other way

    async def fetch():
        data = body()
        if isinstance(data, Iterator) and not hasattr(data, "read"):
            data = one_by_one(data)
        async with client.request(method, url, headers=headers, data=data) as answer:
            if way == "whole":
                answer.raise_for_status()
            return answer, answer.status, await answer.read()

    whole = fetch if way == "transport" else aretry(for_aiohttp.policy(policy))(fetch)
    own = (aiohttp.ClientError, TimeoutError)
    async with client:
        return [await awaited(own, whole) for _ in range(times)]


async def one_by_one(pieces):
    for piece in pieces:
        yield piece


def under_asyncio(fetches):
    return lambda *args: asyncio.run(fetches(*args))


def under_trio(fetches):
    return lambda *args: trio.run(fetches, *args)


CLIENTS = {
    "aiohttp": under_asyncio(aiohttp_in_a_task),
    "httpx": httpx_in_a_thread,
    "httpx, asyncio": under_asyncio(httpx_in_a_task),
    "httpx, trio": under_trio(httpx_in_a_task),
    "requests": requests_in_a_thread,
    "urllib3": urllib3_in_a_thread,
}
"""What fetches: by way, policy, how often, URL, method, headers and what makes
the body, it gives a list of `Came`."""
