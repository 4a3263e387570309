"""The downloads and event streams of all HTTP clients, behind one interface for tests.

Each entry of `STREAMS` is a function of the name of a stream (``"download"``,
``"events"`` or ``"download_to"``), a list of URLs and its settings. One client gets
the URLs in turn, and a `Got` is returned for each.
"""

import asyncio
import contextlib
from functools import partial
from typing import Any, NamedTuple

import aiohttp
import httpx
import httpx2
import requests

from retrykit import state_of
from retrykit.integrations import (
    aiohttp as for_aiohttp,
    httpx as for_httpx,
    httpx2 as for_httpx2,
    requests as for_requests,
)
from tests._support.optional_trio import trio

__all__ = ["STREAMS", "Got"]


class Got(NamedTuple):
    """What a stream has handed out, its state, and the error that ended it."""

    items: list[Any]
    state: Any
    error: Exception | None = None


def in_a_thread(library, client, what, urls, take=None, **settings):
    """Get URLs by a sync client; *take* is the number of items after which to stop."""
    got = []
    with client() as opened:
        for url in urls:
            items, stream = [], None
            try:
                stream = getattr(library, what)(opened, url, **settings)
                if what == "download_to":
                    got.append(Got([stream], None))
                    continue
                with stream:
                    for item in stream:
                        items.append(item)
                        if len(items) == take:
                            break
            except Exception as error:  # noqa: BLE001  for the test
                got.append(Got(items, state_of(error), error))
            else:
                got.append(Got(items, stream.state))
    return got


async def in_a_task(library, client, what, urls, take=None, **settings):
    """Get URLs by an async client, as `in_a_thread` does."""
    got = []
    async with client() as opened:
        for url in urls:
            items, stream = [], None
            try:
                stream = getattr(library, what)(opened, url, **settings)
                if what == "download_to":
                    got.append(Got([await stream], None))
                    continue
                async with stream:
                    async for item in stream:
                        items.append(item)
                        if len(items) == take:
                            break
            except Exception as error:  # noqa: BLE001  for the test
                got.append(Got(items, state_of(error), error))
            else:
                got.append(Got(items, stream.state))
    return got


@contextlib.contextmanager
def session():
    with requests.Session() as opened:
        # Nothing is taken from the environment: the server is on this machine.
        opened.trust_env = False
        yield opened


def under_asyncio(library, client):
    get = partial(in_a_task, library, client)
    return lambda *args, **kwargs: asyncio.run(get(*args, **kwargs))


def under_trio(library, client):
    get = partial(in_a_task, library, client)
    return lambda *args, **kwargs: trio.run(partial(get, *args, **kwargs))


STREAMS = {
    "aiohttp": under_asyncio(for_aiohttp, aiohttp.ClientSession),
    "httpx": partial(in_a_thread, for_httpx, httpx.Client),
    "httpx, asyncio": under_asyncio(for_httpx, httpx.AsyncClient),
    "httpx, trio": under_trio(for_httpx, httpx.AsyncClient),
    "httpx2": partial(in_a_thread, for_httpx2, httpx2.Client),
    "httpx2, asyncio": under_asyncio(for_httpx2, httpx2.AsyncClient),
    "requests": partial(in_a_thread, for_requests, session),
}
