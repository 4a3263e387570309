"""All HTTP clients with an integration, behind one interface for tests.

Each fetches a URL a number of times, with retries in one of two layers: in its
transport, which repeats requests, or in a decorated function, which also reads the
body.
"""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import aiohttp
import httpx
import httpx2
import requests
import urllib3

from retrykit import Policy, aretry, retry, state_of
from retrykit.integrations import (
    aiohttp as for_aiohttp,
    httpx as for_httpx,
    httpx2 as for_httpx2,
    requests as for_requests,
    urllib3 as for_urllib3,
)
from tests._support.optional_trio import trio

__all__ = ["CLIENTS", "LAYERS", "NO_FILES", "READS_BODIES", "Fetched"]
__all__ += ["timeout_for"]

LAYERS = ["transport", "function"]

NO_FILES = ["httpx, asyncio", "httpx, trio", "httpx2, asyncio", "httpx2, trio"]
"""The clients for which a file is a stream that can be read once."""

READS_BODIES = ["urllib3"]
"""The clients whose transport reads the body, and so notices a truncated one."""

PATIENT = 10.0
"""The timeout of the clients, in seconds: no busy machine takes as long."""


def timeout_for(steps, hanging):
    """Return the timeout of a client, in seconds, whose server may be hanging."""
    return 1.0 if hanging in steps else PATIENT


class Fetched(NamedTuple):
    """The result of a fetch: a status and a body, or an error of the client."""

    status: int | None
    body: bytes | None
    error: Exception | None
    state: object


def fetched(own_errors, fetch):
    """Fetch, and return the result; errors that are not the client's are raised."""
    try:
        answer, status, body = fetch()
    except own_errors as error:
        return Fetched(None, None, error, state_of(error))
    return Fetched(status, body, None, state_of(answer))


async def afetched(own_errors, fetch):
    """Fetch, and return the result, like `fetched`."""
    try:
        answer, status, body = await fetch()
    except own_errors as error:
        return Fetched(None, None, error, state_of(error))
    return Fetched(status, body, None, state_of(answer))


def httpx_in_a_thread(
    library,
    retries,
    layer,
    policy,
    times,
    url,
    method,
    headers,
    body,
    client_timeout=PATIENT,
):
    transport = retries.RetryTransport(policy) if layer == "transport" else None
    client = library.Client(
        transport=transport, timeout=client_timeout, follow_redirects=True
    )

    def fetch():
        answer = client.request(method, url, headers=headers, content=body())
        if layer == "function":
            answer.raise_for_status()
        return answer, answer.status_code, answer.content

    call = fetch if layer == "transport" else retry(retries.policy(policy))(fetch)
    with client:
        return [fetched(library.HTTPError, call) for _ in range(times)]


def requests_in_a_thread(
    layer, policy, times, url, method, headers, body, client_timeout=PATIENT
):
    session = requests.Session()
    # Nothing is taken from the environment: the server is on this machine.
    session.trust_env = False
    if layer == "transport":
        session.mount("http://", for_requests.RetryAdapter(policy))

    def fetch():
        answer = session.request(
            method, url, headers=headers, data=body(), timeout=client_timeout
        )
        if layer == "function":
            answer.raise_for_status()
        return answer, answer.status_code, answer.content

    call = fetch if layer == "transport" else retry(for_requests.policy(policy))(fetch)
    with session:
        return [fetched(requests.RequestException, call) for _ in range(times)]


def urllib3_in_a_thread(
    layer, policy, times, url, method, headers, body, client_timeout=PATIENT
):
    # urllib3 by itself would retry three times.
    pool = for_urllib3.RetryPoolManager(
        policy if layer == "transport" else ONCE,
        urllib3.PoolManager(timeout=client_timeout),
    )

    def fetch():
        answer = pool.request(method, url, headers=headers, body=body())
        if layer == "function" and answer.status >= 400:
            # urllib3 has no error for a status.
            raise StatusError(answer)
        return answer, answer.status, answer.data

    call = fetch
    if layer == "function":
        hint = for_urllib3.policy(policy).hint
        delay = partial(StatusError.requested_delay, hint)
        ready = for_urllib3.policy(policy, on=StatusError.is_transient, hint=delay)
        call = retry(ready)(fetch)
    with pool:
        return [fetched(urllib3.exceptions.HTTPError, call) for _ in range(times)]


ONCE = Policy(max_attempts=1)


class StatusError(urllib3.exceptions.HTTPError):
    """The error of a function for a response with an error status."""

    def __init__(self, answer):
        super().__init__(answer.status)
        self.answer = answer

    @staticmethod
    def is_transient(error):
        return for_urllib3.transient(getattr(error, "answer", error))

    @staticmethod
    def requested_delay(hint, error):
        return hint(getattr(error, "answer", error))


async def httpx_in_a_task(
    library,
    retries,
    layer,
    policy,
    times,
    url,
    method,
    headers,
    body,
    client_timeout=PATIENT,
):
    transport = retries.AsyncRetryTransport(policy) if layer == "transport" else None
    client = library.AsyncClient(
        transport=transport, timeout=client_timeout, follow_redirects=True
    )

    async def fetch():
        content = body()
        if isinstance(content, Iterator):
            content = one_by_one(content)
        answer = await client.request(method, url, headers=headers, content=content)
        if layer == "function":
            answer.raise_for_status()
        return answer, answer.status_code, answer.content

    call = fetch if layer == "transport" else aretry(retries.policy(policy))(fetch)
    async with client:
        return [await afetched(library.HTTPError, call) for _ in range(times)]


async def aiohttp_in_a_task(
    layer, policy, times, url, method, headers, body, client_timeout=PATIENT
):
    middleware = for_aiohttp.RetryMiddleware(policy) if layer == "transport" else None
    client = aiohttp.ClientSession(
        middlewares=[middleware] if middleware else [],
        timeout=aiohttp.ClientTimeout(
            sock_connect=client_timeout, sock_read=client_timeout
        ),
    )
    if middleware is None:
        # Or aiohttp itself would repeat some requests once.
        client._retry_connection = False  # noqa: SLF001  there is no setting

    async def fetch():
        data = body()
        if isinstance(data, Iterator) and not hasattr(data, "read"):
            data = one_by_one(data)
        async with client.request(method, url, headers=headers, data=data) as answer:
            if layer == "function":
                answer.raise_for_status()
            return answer, answer.status, await answer.read()

    call = fetch if layer == "transport" else aretry(for_aiohttp.policy(policy))(fetch)
    own_errors = (aiohttp.ClientError, TimeoutError)
    async with client:
        return [await afetched(own_errors, call) for _ in range(times)]


async def one_by_one(pieces):
    for piece in pieces:
        yield piece


def under_asyncio(fetches):
    return lambda *args, **kwargs: asyncio.run(fetches(*args, **kwargs))


def under_trio(fetches):
    return lambda *args, **kwargs: trio.run(partial(fetches, *args, **kwargs))


CLIENTS = {
    "aiohttp": under_asyncio(aiohttp_in_a_task),
    "httpx": partial(httpx_in_a_thread, httpx, for_httpx),
    "httpx, asyncio": under_asyncio(partial(httpx_in_a_task, httpx, for_httpx)),
    "httpx, trio": under_trio(partial(httpx_in_a_task, httpx, for_httpx)),
    "httpx2": partial(httpx_in_a_thread, httpx2, for_httpx2),
    "httpx2, asyncio": under_asyncio(partial(httpx_in_a_task, httpx2, for_httpx2)),
    "httpx2, trio": under_trio(partial(httpx_in_a_task, httpx2, for_httpx2)),
    "requests": requests_in_a_thread,
    "urllib3": urllib3_in_a_thread,
}
"""Functions of layer, policy, number of fetches, URL, method, headers, a function that
makes the body, and a timeout; they return a list of `Fetched`."""
