"""Sessions of aiohttp under the middleware, and one request of each kind of end."""

import asyncio

import aiohttp
import pytest

from retrykit import state_of, testing
from retrykit.integrations.aiohttp import RetryMiddleware

__all__ = ["failing", "fetch", "session", "virtual_time"]


def virtual_time(stall_timeout=0.05):
    """Return virtual time that does not wait for long on idle connections."""
    return testing.virtual_time(stall_timeout=stall_timeout)


def session(*inner, **settings):
    """Return a session that hangs when a connection is not given back.

    What is named as a parameter of a session is one; all else is the policy's.
    """
    names = {"raise_for_status", "timeout", "trace_configs"}
    own = {name: settings.pop(name) for name in names & settings.keys()}
    waits = {"schedule": [1, 2, 4], "max_attempts": 3}
    return aiohttp.ClientSession(
        middlewares=[RetryMiddleware(**waits | settings), *inner],
        connector=aiohttp.TCPConnector(limit=1),
        **own,
    )


def fetch(url, method="GET", *inner, data=None, headers=None, **settings):
    """Return the status, the body, the state and the sleeps of a request."""

    async def main():
        with virtual_time() as clock:
            async with (
                session(*inner, **settings) as client,
                client.request(method, url, data=data, headers=headers) as response,
            ):
                body = await response.read()
                return response.status, body, state_of(response), clock.sleeps

    return asyncio.run(main())


def failing(url, method="GET", *inner, data=None, kind=Exception, **settings):
    """Return the error of a request, and the sleeps."""

    async def main():
        with virtual_time() as clock, pytest.raises(kind) as caught:
            async with session(*inner, **settings) as client:
                await client.request(method, url, data=data)
        return caught.value, clock.sleeps

    return asyncio.run(main())
